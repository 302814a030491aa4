"""One run of one program on one core: its CPU time, memory, instructions and system calls, and how many requests the server
had meanwhile."""

import os
import re
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass

# The longest that any run may take.
LONGEST = 900


class Failed(Exception):
    """A run that gave nothing to measure; its text says why."""


@dataclass
class Run:
    requests: int
    cpu: float
    peak_kib: int
    stderr: str


def run(command, core, server=None, watch_memory=False):
    """Runs a command to its end, on a core."""
    before = server.requests() if server else 0
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        peak, status, usage = 0, None, None
        ends = time.monotonic() + LONGEST
        while True:
            # The kernel's own figure for an ended child (ru_maxrss) holds this program's memory too, from before the exec.
            if watch_memory:
                peak = max(peak, high_water(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG if watch_memory or time.monotonic() > ends else 0)
            if pid:
                break
            if time.monotonic() > ends:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                raise Failed(f"{command[0]} took longer than {LONGEST} s")
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    # The question is a request too.
    requests = server.requests() - before - 1 if server else 0
    if child.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])} ended with {child.returncode}: {last_line(text)}")
    return Run(requests, usage.ru_utime + usage.ru_stime, peak, text)


def last_line(text):
    lines = [line for line in text.strip().splitlines() if not line.startswith("==")]
    return lines[-1][:100] if lines else "without a word"


def high_water(pid):
    """The most memory that the process has had resident, in KiB."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"VmHWM:\s+(\d+)", file.read())
        return int(found[1]) if found else 0
    except OSError:
        return 0


def instructions(command, core, server):
    """(requests, user-space instructions) of a run under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p"]
        done = run(valgrind + command, core, server)
    totals = [int(total) for total in re.findall(r"Collected : (\d+)", done.stderr)]
    if not totals:
        raise Failed(f"{os.path.basename(command[0])} does not run under callgrind")
    return done.requests, sum(totals)


def system_calls(command, core, server):
    """(requests, system calls) of a run under strace."""
    with tempfile.NamedTemporaryFile("r") as table:
        done = run(["strace", "-f", "-c", "-o", table.name] + command, core, server)
        rows = [line.split() for line in table]
    # % time, seconds, usecs/call, calls, errors (may be empty), syscall
    calls = sum(int(row[3]) for row in rows if len(row) >= 5 and row[0][0].isdigit() and row[-1] != "total")
    return done.requests, calls


def slope(count, short, long):
    """What one request costs: start and end of the program cancel out between a short run and a long one."""
    (n, a), (m, b) = count(short), count(long)
    if m <= n:
        raise Failed("the longer run had no more requests than the shorter")
    return (b - a) / (m - n)


def allow_descriptors():
    """Raises the soft limit of this process and its children to the hard one, and tells it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = 65536 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
