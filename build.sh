#!/usr/bin/env bash
# The whole gate: format, tests, lints, docs, packages, licences, fuzz targets. Exits with 0 if and only if the project is right.
set -euo pipefail
cd "$(dirname "$0")"

# Seconds that each fuzz target runs.
FUZZ_SECONDS=${FUZZ_SECONDS:-30}

step() { printf '\n== %s\n' "$*"; "$@"; }

stated=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
running=$(rustc --version | cut -d' ' -f2)
case $running in
    "$stated" | "$stated".*) echo "rust $running: the oldest that is supported" ;;
    *) echo "SKIPPED: the oldest Rust that is supported ($stated), because this is $running" >&2 ;;
esac

step cargo fmt --all --check
INSTA_UPDATE=no step cargo test --workspace --locked
step cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS='-D warnings' step cargo doc --workspace --no-deps --locked

# A test checks every link of the pages.
if command -v mdbook >/dev/null; then
    step docs/commands.sh target/debug/code-commit
    step mdbook build docs
else
    echo "SKIPPED: the book, because mdbook is not installed (cargo install mdbook --locked)" >&2
fi

# Every crate has to be whole by itself: what it reads lies in it, what it needs is named with a version.
step cargo package --workspace --no-verify --allow-dirty --locked --quiet

if cargo deny --version >/dev/null 2>&1; then
    step cargo deny --locked check bans licenses sources
else
    echo "SKIPPED: licences and sources, because cargo-deny is not installed (cargo install cargo-deny --locked)" >&2
fi

if command -v g++ >/dev/null; then
    for target in parser-fences parser-markers parser-proposal; do
        step tools/fuzz/run.sh "$target" "$FUZZ_SECONDS"
    done
else
    echo "SKIPPED: fuzzing, because there is no g++" >&2
fi
