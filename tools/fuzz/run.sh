#!/bin/sh
# Builds the fuzz target TARGET on the stable compiler and runs it for SECONDS (default 60).
#
#   ./run.sh parser-fences 60
#
# Needs a C++ compiler. What it learns stays in corpus/TARGET; an input that fails goes to artifacts/, from where it
# belongs into a test. The inputs to begin with lie in CRATE/seeds/WHAT, for a target named CRATE-WHAT.
set -eu
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET [SECONDS]}
seconds=${2:-60}
host=$(rustc -vV | sed -n 's/^host: //p')

# What cargo-fuzz would pass, without the sanitizers, which need a nightly compiler and which safe code does not.
export RUSTFLAGS="-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing"
cargo build --release --target "$host" --bin "$target"

seeds="${target%%-*}/seeds/${target#*-}"
mkdir -p "corpus/$target" artifacts "$seeds"
exec "${CARGO_TARGET_DIR:-target}/$host/release/$target" "corpus/$target" "$seeds" \
    -max_total_time="$seconds" -artifact_prefix="artifacts/$target-" \
    -verbosity=0 -print_final_stats=1
