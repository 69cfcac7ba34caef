#!/usr/bin/env bash
# Builds what a distribution ships: the program, manual pages, completions, licences, in one archive below target/archives.
#
#   tools/packaging/dist.sh                                       for this machine, linked to its C library
#   tools/packaging/dist.sh x86_64-unknown-linux-musl             a static program: rustup target add …, and musl-gcc for the C parts
#   STATIC=1 tools/packaging/dist.sh x86_64-unknown-linux-gnu     a static program with glibc, without another target
#
# A static glibc looks up host names through the shared one where it runs; prefer musl for a program that travels.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
if [ "${STATIC:-0}" = 1 ]; then
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
fi
cargo build --profile dist --locked --target "$target" -p code-commit-cli

program=${CARGO_TARGET_DIR:-target}/$target/dist/code-commit
version=$("$program" --version | cut -d' ' -f2)
name=code-commit-$version-$target
stage=target/archives/$name
rm -rf "$stage"
mkdir -p "$stage"/{bin,share/man/man1,share/bash-completion/completions,share/zsh/site-functions,share/fish/vendor_completions.d,share/doc/code-commit}

install -m 755 "$program" "$stage/bin/"
"$program" man "$stage/share/man/man1" >/dev/null
"$program" completions bash >"$stage/share/bash-completion/completions/code-commit"
"$program" completions zsh >"$stage/share/zsh/site-functions/_code-commit"
"$program" completions fish >"$stage/share/fish/vendor_completions.d/code-commit.fish"
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$stage/share/doc/code-commit/"

tar --sort=name --owner=0 --group=0 --numeric-owner -C target/archives -czf "target/archives/$name.tar.gz" "$name"
echo "target/archives/$name.tar.gz"
