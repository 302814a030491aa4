"""Measures the load engine beside its peers; see run.sh."""

import os
import platform
import re
import subprocess
import sys
import time

import interval
import measure
from measure import Failed
from servers import Arrivals, Nginx
from tools import TOOLS

PAIRS = int(os.environ.get("PAIRS", "20"))
OURS = "cargo httpbench load"


class Bench:
    """What all measurements share."""

    def __init__(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise SystemExit("peers.py needs two cores: one for the server, one for the generators in turn")
        self.ours, self.servers = cores[0], cores[-1]
        self.descriptors = measure.allow_descriptors()
        self.nginx = Nginx(self.servers, self.descriptors)
        self.tools = []
        for tool in TOOLS:
            why_not = tool.why_not()
            if why_not:
                say(why_not)
            else:
                self.tools.append(tool)

    def some(self, *names):
        return [tool for tool in self.tools if tool.name in names]

    def slope(self, count, tool, connections, path="/"):
        """What `count` counts for each request of a tool. A tool without a number of requests runs for 3 and 9 seconds. The
        numbers are large, because a short run's report and first use of memory grow with its requests."""
        short = max(20_000, 4 * connections)
        amounts = (short, 4 * short) if tool.counts else (3, 9)
        command = lambda amount: tool.http1(self.nginx.url(path), connections, amount)
        return measure.slope(lambda amount: count(command(amount), self.ours, self.nginx), *amounts)


def say(text):
    print(text, file=sys.stderr, flush=True)


def table(title, heads, rows):
    print(f"\n### {title}\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def figure(get, text):
    """A table's cell: a measured value, or why there is none."""
    try:
        return text(get())
    except Failed as why:
        say(str(why))
        return f"– ({why})"


def count_table(bench, title, count, tools, connections, path, text):
    heads = ["generator"] + [f"{c:,} connections" for c in connections]
    rows = []
    for tool in tools:
        say(f"{title}: {tool.name}")
        cells = [figure(lambda: bench.slope(count, tool, c, path), text) for c in connections]
        rows.append([tool.name] + cells)
    table(title, heads, rows)


def instructions(bench):
    title = "User-space instructions for each request"
    count_table(bench, title, measure.instructions, bench.tools, [64], "/", "{:,.0f}".format)


def syscalls(bench):
    count_table(bench, "System calls for each request", measure.system_calls, bench.tools, [64], "/", "{:.2f}".format)


def connections(bench):
    counts = [c for c in (64, 1_000, 10_000) if c + 256 <= bench.descriptors]
    title = "User-space instructions for each request, by connections"
    count_table(bench, title, measure.instructions, bench.some(OURS, "wrk"), counts, "/", "{:,.0f}".format)


def heads(bench):
    title = "User-space instructions for each request, heads that change with every answer"
    count_table(bench, title, measure.instructions, bench.tools, [64], "/changing", "{:,.0f}".format)


def pairs(bench, one, other):
    """CPU time for each request of two tools, in pairs of runs: first one first, then the other, in turn (ABBA)."""
    amounts = {}
    for name, (tool, command) in {"one": one, "other": other}.items():
        # So many requests that a run takes about a second and a half, start and end being a small part of it.
        amounts[name] = 2 if not tool.counts else calibrated(bench, command)
    found = []
    for pair in range(PAIRS):
        cost = {}
        for name in ("one", "other") if pair % 2 == 0 else ("other", "one"):
            tool, command = one if name == "one" else other
            done = measure.run(command(amounts[name]), bench.ours, bench.nginx)
            if done.requests < 1_000:
                raise Failed(f"{tool.name} made {done.requests} requests")
            cost[name] = done.cpu / done.requests
        found.append((cost["one"], cost["other"]))
    return found


def calibrated(bench, command):
    begun = time.monotonic()
    measure.run(command(20_000), bench.ours, bench.nginx)
    per_second = 20_000 / (time.monotonic() - begun)
    return max(20_000, min(500_000, int(per_second * 1.5)))


def cpu_rows(bench, ours, others):
    rows, own = [], []
    for name, other in others:
        say(f"CPU time: {OURS} and {name}, {PAIRS} pairs")
        try:
            found = pairs(bench, ours, other)
        except Failed as why:
            rows.append([name, f"– ({why})", "–"])
            continue
        own += [a for a, _ in found]
        estimate, low, high = interval.ratio(found)
        theirs = interval.median(sorted(b for _, b in found))
        rows.append([name, f"{theirs * 1e6:.2f} µs", f"{estimate:.3f} ({low:.3f} to {high:.3f})"])
    if own:
        rows.insert(0, [OURS, f"{interval.median(sorted(own)) * 1e6:.2f} µs", "1"])
    return rows


def cpu_table(bench, call, peers, what):
    """CPU time of ours, and its ratio to each peer's. `call` says how a tool makes so many requests."""
    ours = bench.some(OURS)
    if ours:
        calls = lambda tool: (tool, lambda amount: call(tool, amount))
        rows = cpu_rows(bench, calls(ours[0]), [(tool.name, calls(tool)) for tool in bench.some(*peers)])
        heads = ["generator", "CPU time for each request", "ours is so many times that (95 % interval)"]
        table(f"{what}, {PAIRS} pairs", heads, rows)


def cpu(bench):
    url = bench.nginx.url()
    call = lambda tool, amount: tool.http1(url, 64, amount)
    cpu_table(bench, call, ("wrk", "oha"), "CPU time, user and system, 64 connections")


def http2(bench):
    url = bench.nginx.url(version=2)
    call = lambda tool, amount: tool.http2(url, 4, 16, amount)
    cpu_table(bench, call, ("oha", "h2load"), "HTTP/2, CPU time, 4 connections of 16 streams")


def memory(bench):
    counts = (100_000, 5_000_000)
    rows = []
    for tool in bench.some(OURS, "oha", "h2load", "ab"):
        cells = []
        for count in counts:
            say(f"memory: {tool.name}, {count:,} requests")
            command = tool.http1(bench.nginx.url(), 64, count)
            get = lambda: measure.run(command, bench.ours, bench.nginx, watch_memory=True).peak_kib
            cells.append(figure(get, lambda kib: f"{kib / 1024:.1f} MiB"))
        rows.append([tool.name] + cells)
    table("Peak resident memory", ["generator"] + [f"{count:,} requests" for count in counts], rows)


def lateness(bench):
    rows = []
    for per_second in (1_000, 10_000):
        for tool in (tool for tool in bench.tools if tool.open_loop):
            say(f"lateness: {tool.name}, {per_second:,} a second")
            server = Arrivals(bench.servers, per_second)
            try:
                measure.run(tool.open_loop(f"http://{server.address}/", 64, per_second, 6), bench.ours)
                seen = server.lateness()
            except Failed as why:
                say(str(why))
                seen = {}
            finally:
                server.end()
            cells = [f"{seen[q]:,.0f} µs" if q in seen else "–" for q in ("p50_us", "p90_us", "p99_us")]
            rows.append([tool.name, f"{per_second:,}/s", f"{seen.get('arrivals', 0):,.0f}"] + cells)
    heads = ["generator", "arrival rate", "arrivals in 6 s", "p50", "p90", "p99"]
    table("Lateness of an open loop, as the server sees it", heads, rows)


WHAT = dict(
    instructions=instructions,
    syscalls=syscalls,
    cpu=cpu,
    memory=memory,
    lateness=lateness,
    connections=connections,
    heads=heads,
    http2=http2,
)


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    model = model[1] if model else platform.machine()
    return f"{time.strftime('%Y-%m-%d')}, commit {commit}, {model}, {os.cpu_count()} cores, Linux {platform.release()}"


def main(asked):
    unknown = [what for what in asked if what not in WHAT and what != "all"]
    if unknown or not asked:
        raise SystemExit(f"unknown: {' '.join(unknown)}; expected `all` or some of: {' '.join(WHAT)}")
    bench = Bench()
    print(machine())
    try:
        for name, measurement in WHAT.items():
            if name in asked or "all" in asked:
                measurement(bench)
    finally:
        bench.nginx.end()


if __name__ == "__main__":
    main(sys.argv[1:])
