"""The servers that are loaded: a private nginx, and the one that times arrivals. Each is ended by its process id."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
worker_rlimit_nofile {descriptors};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    default_type text/plain;
    keepalive_requests 2000000000;
    keepalive_timeout 1h;
    http2_max_concurrent_streams 256;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{http1} backlog=16384;
        listen 127.0.0.1:{http2} http2 backlog=16384;
        location = / {{ return 200 "{body}"; }}
        location = /changing {{
            add_header X-Request-Id $request_id;
            add_header X-Count $connection_requests;
            return 200 "{body}";
        }}
        location = /status {{ stub_status; }}
    }}
}}
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Nginx:
    """Answers 100 bytes on one core, and counts the requests."""

    def __init__(self, core, descriptors):
        self.folder = tempfile.mkdtemp(prefix="httpbench-peers-")
        self.http1, self.http2 = free_ports(2)
        configuration = os.path.join(self.folder, "nginx.conf")
        with open(configuration, "w") as file:
            file.write(
                CONFIGURATION.format(
                    folder=self.folder,
                    http1=self.http1,
                    http2=self.http2,
                    body="x" * 100,
                    descriptors=descriptors,
                    connections=min(16384, descriptors - 64),
                )
            )
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        self.process = subprocess.Popen(
            [program, "-p", self.folder, "-c", configuration],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        for _ in range(200):
            try:
                self.requests()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        self.end()
        raise SystemExit(f"nginx did not start: {self.process.stderr.read().decode(errors='replace')}")

    def requests(self):
        """How many requests it has had, this one included."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http1}/status", timeout=10) as answer:
            return int(answer.read().split(b"\n")[2].split()[2])

    def url(self, path="/", version=1):
        return f"http://127.0.0.1:{self.http2 if version == 2 else self.http1}{path}"

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Arrivals:
    """Times when requests arrive, and compares that with the schedule (httpbench-core/examples/arrivals.rs)."""

    def __init__(self, core, per_second):
        program = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release/examples/arrivals")
        self.process = subprocess.Popen(
            [program, str(per_second)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        self.address = self.process.stdout.readline().strip()

    def lateness(self):
        """What it saw, by name, once its standard input is closed."""
        try:
            out, _ = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return {}
        return dict((name, float(value)) for name, value in (line.split() for line in out.splitlines()))

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
