#!/usr/bin/env bash
# Builds and packs the static program of the last commit twice, in two folders of different names, compares every byte, and leaves the
# packages in target/archives. Takes two optimized builds.
#
#   tools/packaging/twice.sh [TARGET]     as for dist.sh; without one, with this machine's glibc
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
case $target in *musl) ;; *) export STATIC=1 ;; esac
unset CARGO_TARGET_DIR

commit=$(git rev-parse HEAD)
folder=$(mktemp -d "$PWD/target/twice-XXXXXX")
trap 'rm -rf "$folder"' EXIT
for name in one a/longer/name; do
    git clone --quiet . "$folder/$name"
    git -C "$folder/$name" checkout --quiet --detach "$commit"
    "$folder/$name/tools/packaging/dist.sh" "$target"
    mv "$folder/$name/target/archives" "$folder/archives-${name%%/*}"
    rm -rf "$folder/$name"
done
diff -r "$folder/archives-one" "$folder/archives-a"
echo "two builds in two folders: the same bytes"
rm -rf target/archives
mv "$folder/archives-one" target/archives
