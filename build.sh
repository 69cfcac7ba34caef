#!/usr/bin/env bash
# The whole gate: format, lints, tests, docs, licences, fuzz targets. Exits with 0 if and only if the project is right.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings
INSTA_UPDATE=no step cargo test --workspace --locked
RUSTDOCFLAGS='-D warnings' step cargo doc --workspace --no-deps --locked

if cargo deny --version >/dev/null 2>&1; then
    step cargo deny --locked check bans licenses sources
else
    echo "SKIPPED: licences and sources, because cargo-deny is not installed (cargo install cargo-deny --locked)" >&2
fi
if [ -x fuzz/run.sh ]; then
    step fuzz/run.sh --build-only
fi
