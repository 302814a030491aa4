#!/bin/sh
# Measures the load engine beside other load generators, in turn, against one server: what docs/performance.md shows.
#
#   tests/peers/run.sh install            the peers: from Debian's packages, and oha from the crates registry (a few minutes)
#   tests/peers/run.sh all                everything, about 25 minutes on a quiet machine
#   tests/peers/run.sh WHAT...            some of: instructions syscalls cpu memory lateness connections heads http2
#
# Traffic goes to a private nginx on 127.0.0.1, pinned to one core; the generators take turns on another. Every run is bounded
# in count and time, and whatever was started is ended by its process id. What is not installed is left out, and said so.
# Instructions and system calls do not depend on how busy the machine is; CPU time and lateness need a quiet one.
#
# Variables: HTTPBENCH_PEERS_CACHE (default ~/.cache/httpbench-peers) is where oha goes; PAIRS (default 20) is how many pairs
# of runs a ratio is made of.
set -eu
cd "$(dirname "$0")/../.."
cache=${HTTPBENCH_PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/httpbench-peers}

case ${1:-} in
    "" | -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    install)
        # Without their recommendations: no service is started where no service manager runs.
        apt-get install -y --no-install-recommends nginx-light wrk apache2-utils nghttp2-client httperf valgrind strace python3
        # Not in every release of Debian.
        apt-get install -y --no-install-recommends weighttp || echo "weighttp is not packaged here: left out" >&2
        cargo install oha --version 1.16.0 --locked --root "$cache"
        exit 0
        ;;
esac
command -v python3 >/dev/null || {
    echo "run.sh needs python3 and the peers: tests/peers/run.sh install" >&2
    exit 2
}
cargo build --quiet --release --package cargo-httpbench
cargo build --quiet --release --package httpbench-core --example arrivals
PATH=$PATH:$cache/bin exec python3 -B tests/peers/peers.py "$@"
