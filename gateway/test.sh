#!/usr/bin/env bash
# The gateway's gate: format, tests, lints, licences. Its tests use the product's program, which they build, PostgreSQL and Slurm;
# without one of these they say SKIPPED. `GATEWAY_ORDERS` and `GATEWAY_FAULTS` make the campaign on Slurm longer.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== gateway: %s\n' "$*"; "$@"; }

step cargo fmt --check
step cargo test --locked
step cargo clippy --all-targets --locked -- -D warnings
if cargo deny --version >/dev/null 2>&1; then
    step cargo deny --locked check bans licenses sources
else
    echo "SKIPPED: licences and sources, because cargo-deny is not installed" >&2
fi
