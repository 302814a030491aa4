#!/bin/sh
# How much two builds of the same source differ, and two builds of which one has a function more that nobody calls.
#
#   tests/layout-bias.sh [COUNT]        comparisons of each kind, default 20; needs git and the release profile's build
#
# How to read it. A compiler and a linker lay code out differently for reasons that have nothing to do with what it does (Mytkowicz
# and others, "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009), so that some "changes" of a server are
# luck. The floor that this gives is the largest change of these comparisons: no tool that compares two builds finds less.
# `same` compares examples/hello-hyper with a second build of itself in another folder, `dead` with a build that has one more function.
# Each line is a comparison's verdict on a metric, with the estimated change. The exit code is 0 unless something could not be measured.
set -eu
cd "$(dirname "$0")/.."
count=${1:-20}
workspace=$(pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v python3 >/dev/null || {
    echo "layout-bias.sh needs python3, to read JSON" >&2
    exit 2
}
cargo build --quiet --release --package cargo-httpbench
httpbench=${CARGO_TARGET_DIR:-$workspace/target}/release/cargo-httpbench

# A repository of its own: its only commit is the baseline, its working tree the candidate.
git clone --quiet --no-hardlinks "$workspace" "$folder/copy"
server=examples/hello-hyper/src/main.rs
cp "$workspace/$server" "$folder/copy/$server"
(cd "$folder/copy" && git -c user.name=layout -c user.email=layout@localhost commit --quiet --allow-empty --all -m "Baseline")

compare() {
    (cd "$folder/copy" && "$httpbench" httpbench -p hello-hyper --against HEAD --exact-rev --force-aa \
        --no-fail-on-regression --message-format json --quiet) >"$folder/result.json" || return $?
    python3 - "$1" "$folder/result.json" <<'PYTHON'
import json, sys
for line in open(sys.argv[2]):
    of = json.loads(line)
    if of["reason"] == "verdict":
        change = of["change"]
        print(sys.argv[1], of["metric"], of["verdict"], "-" if change is None else "%+.2f%%" % (100 * change), sep="\t")
PYTHON
}

run=0
while [ "$run" -lt "$count" ]; do
    (cd "$folder/copy" && git checkout --quiet -- "$server")
    compare same
    # Kept by the linker although nobody calls it, and of another size each time, so that what follows moves by another distance.
    cat >>"$folder/copy/$server" <<RUST

#[used]
static KEPT: fn(u64) -> u64 = dead_code;

#[inline(never)]
fn dead_code(mut x: u64) -> u64 {
    $(awk -v n="$((run + 1))" 'BEGIN { for (i = 0; i < n * 7; i++) printf "x = x.rotate_left(%d) ^ %d;\n    ", i % 63 + 1, i * 2654435761 % 4294967291 }')
    x
}
RUST
    compare dead
    run=$((run + 1))
done
