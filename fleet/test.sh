#!/usr/bin/env bash
# The fleet's gate: format, tests, lints, licences. Its tests use the product's program, which they build, and PostgreSQL, without which
# they say SKIPPED.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== fleet: %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo test --workspace --locked
step cargo clippy --workspace --all-targets --locked -- -D warnings
if cargo deny --version >/dev/null 2>&1; then
    step cargo deny --locked check bans licenses sources
else
    echo "SKIPPED: licences and sources, because cargo-deny is not installed" >&2
fi
