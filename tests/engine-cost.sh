#!/bin/sh
# What one exchange costs the load engine, as exact counts: user-space instructions (callgrind) and system calls (strace).
#
#   tests/engine-cost.sh [CONNECTIONS [HEADS]]      default 64; needs valgrind, and strace for the second figure
#
# HEADS is what changes from answer to answer: nothing by default, with `changing` the value of a field, with `unlike` its
# length too, with `parsed` the length of the body, so that no head is like another.
#
# How to read it. The engine runs twice for different lengths against a tiny server in another process. Both figures are
# slopes, (difference of totals) / (difference of exchanges), so that start-up, connecting and the report cancel out. They
# depend on the code and the compiler only, not on how busy the machine is: a change of 2 % is a change of the code. More than
# 1,400 instructions fail, with changing heads more than 3,200. Under callgrind everything is some 50 times slower, so the
# throughput and times that are printed there mean nothing; those of the first line come from a plain run.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || {
    echo "engine-cost.sh needs valgrind (apt-get install valgrind strace)" >&2
    exit 2
}
connections=${1:-64}
heads=${2:-}
folder=$(mktemp -d)
cargo build --quiet --release --package httpbench-core --example engine_cost
program=${CARGO_TARGET_DIR:-target}/release/examples/engine_cost

"$program" serve ${heads:+"$heads"} >"$folder/address" &
server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
tries=0
while [ ! -s "$folder/address" ] && [ "$tries" -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
address=$(cat "$folder/address")

value() { awk -v key="$2" '$1 == key { print $2 }' "$1"; }

"$program" load "$address" "$connections" 1000 >"$folder/plain"
echo "plain run: $(tr '\n' ' ' <"$folder/plain")"

for length in 1000 4000; do
    valgrind --tool=callgrind --callgrind-out-file="$folder/callgrind.$length" \
        "$program" load "$address" "$connections" "$length" >"$folder/run.$length" 2>"$folder/log.$length"
    awk '/Collected/ { print "instructions", $NF }' "$folder/log.$length" >>"$folder/run.$length"
done
[ -z "${KEEP_CALLGRIND:-}" ] || cp "$folder/callgrind.4000" "$KEEP_CALLGRIND"
slope() {
    awk -v a="$(value "$folder/$1.1000" "$2")" -v b="$(value "$folder/$1.4000" "$2")" \
        -v n="$(value "$folder/$1.1000" exchanges)" -v m="$(value "$folder/$1.4000" exchanges)" \
        -v format="$3" 'BEGIN { printf format, (b - a) / (m - n) }'
}
instructions=$(slope run instructions %.0f)
echo "user-space instructions per exchange: $instructions"

if command -v strace >/dev/null; then
    for length in 1000 4000; do
        strace -f -c -o "$folder/strace.$length" \
            "$program" load "$address" "$connections" "$length" >"$folder/calls.$length"
        awk '$NF == "total" { print "calls", $(NF - 1) ~ /^[0-9]+$/ && NF == 6 ? $(NF - 2) : $(NF - 1) }' \
            "$folder/strace.$length" >>"$folder/calls.$length"
    done
    echo "system calls per exchange: $(slope calls calls %.3f)"
    [ -z "${KEEP_STRACE:-}" ] || cp "$folder/strace.4000" "$KEEP_STRACE"
fi
[ "$instructions" -le "$([ -z "$heads" ] && echo 1400 || echo 3200)" ]
