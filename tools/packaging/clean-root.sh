#!/usr/bin/env bash
# Makes a small Debian in FOLDER, unless it is there: of the release of this machine, since a program that is not static needs its C
# library.
#
#   tools/packaging/clean-root.sh FOLDER
set -euo pipefail
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ ! -e "$1/made" ]; then
    rm -rf "$1"
    debootstrap --variant=minbase "$release" "$1" >/dev/null
    touch "$1/made"
fi
