#!/usr/bin/env bash
# Builds the program that is shipped, for one target, and packs it: see pack.sh.
#
#   tools/packaging/dist.sh x86_64-unknown-linux-musl     a static program: rustup target add …, pip install cargo-zigbuild ziglang
#   tools/packaging/dist.sh aarch64-unknown-linux-musl    the same for another processor; no test builds these two
#   STATIC=1 tools/packaging/dist.sh                      a static program with this machine's glibc
#   tools/packaging/dist.sh                               for this machine, linked to its C library
#
# Two builds of a commit in two folders give the same bytes: no path of the machine and no time gets in.
# cargo-auditable writes the list of crates into the program, and auditable2cdx reads the SBOM from it; both are required
# (cargo install --locked cargo-auditable auditable2cdx).
set -euo pipefail
cd "$(dirname "$0")/../.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
built=${CARGO_TARGET_DIR:-target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}

maps=("$PWD=/src" "$(realpath -m "$built")=/target" "$cargo_home/registry/src=/crates" "$(rustc --print sysroot)=/rust")
RUSTFLAGS="${RUSTFLAGS:-}$(printf ' --remap-path-prefix=%s' "${maps[@]}")"
CFLAGS="${CFLAGS:-}$(printf ' -ffile-prefix-map=%s' "${maps[@]}")"
if [ "${STATIC:-0}" = 1 ]; then RUSTFLAGS+=" -C target-feature=+crt-static"; fi
export RUSTFLAGS CFLAGS CXXFLAGS="$CFLAGS" CARGO_INCREMENTAL=0
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

case $target in *musl) build=zigbuild ;; *) build=build ;; esac
cargo auditable "$build" --profile dist --locked --target "$target" -p code-commit-cli
program=$built/$target/dist/code-commit

tools/packaging/pack.sh "$program" "$target"
