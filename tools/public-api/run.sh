#!/usr/bin/env bash
# Compares the public interface of every library with its file in docs/reference/api. API_UPDATE=1 writes the files.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
out=$target/public-api
rm -rf "$out/doc"
# The stable rustdoc writes JSON only if RUSTC_BOOTSTRAP is set. Set for cargo, it would recompile whatever depends on a build script
# that reads it. What is compiled already lies in the build folder; the JSON gets a folder of its own, apart from the pages.
RUSTDOC=$PWD/tools/public-api/rustdoc.sh RUSTDOCFLAGS='-Z unstable-options --output-format json' CARGO_BUILD_BUILD_DIR=$target \
    cargo doc --workspace --lib --no-deps --locked --quiet --target-dir "$out"
cargo run --quiet --locked --manifest-path tools/public-api/Cargo.toml --target-dir "$out" -- "$out/doc" docs/reference/api
