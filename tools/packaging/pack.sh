#!/usr/bin/env bash
# Packs a program that was built, and the helper beside it: an archive, a .deb, a wheel and an npm package below OUT, with an SBOM and SHA256SUMS.
#
#   tools/packaging/pack.sh PROGRAM TARGET [OUT]     OUT is target/archives
#
# The npm package holds the programs of all targets that were packed into OUT. The same program gives the same bytes: times are
# SOURCE_DATE_EPOCH, by default the commit's. PACK_LEVEL is gzip's, by default 9.
set -euo pipefail
PACK_LEVEL=${PACK_LEVEL:-9}
program=$(realpath "$1") target=$2
cd "$(dirname "$0")/../.."
out=$(realpath -m "${3:-target/archives}")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

machine=${target%%-*}
runs=() # What runs it: nothing, or an emulator for another processor.
if [ "$machine" != "$(uname -m)" ]; then runs=("qemu-$machine-static"); fi
run() { "${runs[@]}" "$program" "$@"; }
version=$(run --version | cut -d' ' -f2)
name=code-commit-$version-$target
needs=$(readelf --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Files for the folder of an archive: with a mode that no umask changes.
put() { install -D -m "$1" "$2" "$3"; }
settle() { find "$1" -print0 | xargs -0 touch --no-dereference --date "@$SOURCE_DATE_EPOCH"; }

# The layout of /usr.
usr=$work/$name
helper=$(dirname "$program")/code-commit-sandbox
put 755 "$program" "$usr/bin/code-commit"
put 755 "$helper" "$usr/bin/code-commit-sandbox"
mkdir -p "$usr/share/man/man1"
run man "$usr/share/man/man1" >/dev/null
for shell in bash:bash-completion/completions/code-commit zsh:zsh/site-functions/_code-commit fish:fish/vendor_completions.d/code-commit.fish; do
    run completions "${shell%%:*}" >"$work/completion"
    put 644 "$work/completion" "$usr/share/${shell#*:}"
done
for file in README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT; do put 644 "$file" "$usr/share/doc/code-commit/$file"; done
settle "$usr"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime "@$SOURCE_DATE_EPOCH" -C "$work" -c "$name" | gzip "-${PACK_LEVEL}n" >"$out/$name.tar.gz"

# Debian's. A program that is linked to a C library needs at least the one that it was built with.
case $machine in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$machine ;; esac
libc=
if [ -n "$needs" ]; then libc=", libc6 (>= $(getconf GNU_LIBC_VERSION | cut -d' ' -f2))"; fi
deb=$work/deb
mkdir -p "$deb/DEBIAN"
cp -a "$usr" "$deb/usr"
gzip -9n "$deb"/usr/share/man/man1/* "$deb/usr/share/doc/code-commit/CHANGELOG.md"
mkdir -p "$deb/usr/lib/code-commit"
mv "$deb/usr/bin/code-commit-sandbox" "$deb/usr/lib/code-commit/"
mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
cat - LICENSE-MIT >"$deb/usr/share/doc/code-commit/copyright" <<'END'
code-commit is licensed under the MIT licence, which follows, or, at your option, under the Apache
licence 2.0, which is in /usr/share/common-licenses/Apache-2.0.

END
cat >"$deb/DEBIAN/control" <<END
Package: code-commit
Version: $version
Architecture: $arch
Maintainer: The authors of code-commit
Section: devel
Priority: optional
Installed-Size: $(du -sk "$deb/usr" | cut -f1)
Depends: git$libc
Description: harness for changes that a language model writes
 Asks a model for a change, checks every path of its reply, writes all files or
 none, runs the build in a sandbox, and asks for repairs a bounded number of
 times. Each run leaves a record from which it can be resumed, undone
 and explained.
END
# Older versions of AppArmor cannot read the profile, and do not restrict namespaces.
put 644 tools/packaging/apparmor/code-commit "$deb/usr/share/code-commit/apparmor"
cat >"$deb/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ -e /etc/apparmor.d/abi/4.0 ]; then
    install -m 644 /usr/share/code-commit/apparmor /etc/apparmor.d/code-commit
    apparmor_parser -r -T -W /etc/apparmor.d/code-commit || true
fi
END
cat >"$deb/DEBIAN/postrm" <<'END'
#!/bin/sh
rm -f /etc/apparmor.d/code-commit
END
chmod 755 "$deb"/DEBIAN/post*
settle "$deb"
dpkg-deb --root-owner-group -Zgzip "-z$PACK_LEVEL" --build "$deb" "$out/code-commit_${version}_$arch.deb" >/dev/null

# A wheel whose only content are the programs. Its tag says which C library it needs: none, or one like this machine's.
tag=linux_$machine
if [ -z "$needs" ]; then tag=manylinux_2_17_$machine.musllinux_1_1_$machine; fi
wheel=$work/wheel/code_commit-$version
put 755 "$program" "$wheel.data/scripts/code-commit"
put 755 "$helper" "$wheel.data/scripts/code-commit-sandbox"
for file in LICENSE-APACHE LICENSE-MIT; do put 644 "$file" "$wheel.dist-info/licenses/$file"; done
cat - README.md >"$wheel.dist-info/METADATA" <<END
Metadata-Version: 2.4
Name: code-commit
Version: $version
Summary: The model proposes, the harness decides: checked, sandboxed, undoable changes by a language model
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Description-Content-Type: text/markdown

END
printf '%s\n' 'Wheel-Version: 1.0' 'Generator: code-commit' 'Root-Is-Purelib: false' >"$wheel.dist-info/WHEEL"
for one in ${tag//./ }; do echo "Tag: py3-none-$one" >>"$wheel.dist-info/WHEEL"; done
python3 -m wheel pack --dest-dir "$out" "$work/wheel" >/dev/null

# npm's holds a program for each kind of machine, and the script that starts the right one.
if command -v npm >/dev/null; then
    npm=$out/npm
    put 755 "$program" "$npm/bin/$machine/code-commit"
    put 755 "$helper" "$npm/bin/$machine/code-commit-sandbox"
    put 755 tools/packaging/npm/code-commit "$npm/bin/code-commit"
    for file in README.md LICENSE-APACHE LICENSE-MIT; do put 644 "$file" "$npm/$file"; done
    cat >"$npm/package.json" <<END
{
  "name": "code-commit",
  "version": "$version",
  "description": "The model proposes, the harness decides: checked, sandboxed, undoable changes by a language model",
  "license": "(MIT OR Apache-2.0)",
  "bin": { "code-commit": "bin/code-commit" },
  "os": ["linux"]
}
END
    npm pack --silent --pack-destination "$out" "$npm" >/dev/null
else
    echo "SKIPPED: the npm package, because there is no npm" >&2
fi

# The crates in the program, as cargo-auditable wrote them into it.
if ! readelf --section-headers --wide "$program" | grep -q '\.dep-v0'; then
    echo "no SBOM: cargo auditable did not build this program" >&2
elif ! command -v auditable2cdx >/dev/null; then
    echo "no SBOM: auditable2cdx is not installed (cargo install --locked auditable2cdx)" >&2
else
    auditable2cdx "$program" >"$out/$name.cdx.json"
fi

(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
cat "$out/SHA256SUMS"
