"""How each load generator is called. A command has one thread; `amount` is a number of requests, or seconds for a tool that
knows no number."""

import os
import shutil

HTTPBENCH = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release/cargo-httpbench")


class Tool:
    """`counts`: it can be told a number of requests."""

    def __init__(self, name, program, http1, http2=None, open_loop=None, counts=True):
        self.name, self.program, self.counts = name, program, counts
        self.http1, self.http2, self.open_loop = http1, http2, open_loop

    def why_not(self):
        """Why it cannot take part, or None."""
        if shutil.which(self.program) or os.access(self.program, os.X_OK):
            return None
        return f"{self.name} is not installed (tests/peers/run.sh install)"


def httperf(url, connections, amount):
    host, path = url.removeprefix("http://").split("/", 1)
    address, port = host.split(":")
    return ["httperf", "--hog", f"--server={address}", f"--port={port}", f"--uri=/{path}", f"--num-conns={connections}",
            f"--num-calls={max(1, amount // connections)}", f"--rate={max(1000, connections)}"]  # fmt: skip


TOOLS = [
    Tool(
        "cargo httpbench load",
        HTTPBENCH,
        lambda url, c, n: [HTTPBENCH, "load", url, "-t1", f"-c{c}", f"-n{n}", "-q"],
        lambda url, c, m, n: [HTTPBENCH, "load", url, "-t1", f"-c{c}", f"-n{n}", "-q", "--http2", "--streams", str(m)],
        lambda url, c, r, s: [HTTPBENCH, "load", url, "-t1", f"-c{c}", "-q", "--arrival-rate", str(r), "-d", f"{s}s"],
    ),
    Tool("weighttp", "weighttp", lambda url, c, n: ["weighttp", "-k", "-t1", f"-c{c}", f"-n{n}", url]),
    Tool(
        "h2load",
        "h2load",
        lambda url, c, n: ["h2load", "--h1", "-t1", f"-c{c}", f"-n{n}", url],
        lambda url, c, m, n: ["h2load", "-t1", f"-c{c}", f"-m{m}", f"-n{n}", url],
    ),
    Tool("wrk", "wrk", lambda url, c, seconds: ["wrk", "-t1", f"-c{c}", f"-d{seconds}s", url], counts=False),
    Tool("ab", "ab", lambda url, c, n: ["ab", "-q", "-k", f"-c{c}", f"-n{n}", url]),
    Tool("httperf", "httperf", httperf),
    Tool(
        "oha",
        "oha",
        lambda url, c, n: ["oha", "--no-tui", f"-c{c}", f"-n{n}", url],
        lambda url, c, m, n: ["oha", "--no-tui", "--http2", f"-c{c}", f"-p{m}", f"-n{n}", url],
        lambda url, c, r, s: ["oha", "--no-tui", f"-c{c}", f"-q{r}", f"-n{r * s}", url],
    ),
]
