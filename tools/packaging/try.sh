#!/usr/bin/env bash
# Installs each package of OUT in a clean Debian of its own and runs `code-commit demo` there.
#
#   tools/packaging/try.sh [OUT]     OUT is target/archives, as pack.sh leaves it
#
# Needs root, debootstrap and a network that reaches Debian's packages; says SKIPPED without them. Prints how long it took
# from each package to the end of its first demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath "${1:-target/archives}")
clean=$PWD/target/clean-root

skip() { echo "SKIPPED: $*" >&2; }
if ! command -v debootstrap >/dev/null; then skip "packages in clean roots, because there is no debootstrap"; exit 0; fi
if [ "$(id -u)" != 0 ]; then skip "packages in clean roots, because only root can make one"; exit 0; fi
tools/packaging/clean-root.sh "$clean" || { skip "packages in clean roots, because debootstrap could not make one"; exit 0; }

# One clean root: a layer over the common one, which is gone with the namespace, with places of this machine at others in it.
# Standard input is the script that runs there.
within() {
    unshare --mount bash -euc '
        mount -t tmpfs layers /mnt && mkdir /mnt/upper /mnt/work /mnt/root
        mount -t overlay overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
        shift
        for place in /dev /proc /sys; do mount --rbind "$place" "/mnt/root$place"; done
        mount -t tmpfs -o mode=1777 temporary /mnt/root/tmp
        while [ $# -gt 0 ]; do
            to=/mnt/root$2
            if [ -d "$1" ]; then mkdir -p "$to"; else mkdir -p "${to%/*}" && touch "$to"; fi
            mount --bind -o ro "$1" "$to"
            shift 2
        done
        exec chroot /mnt/root env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            bash -euo pipefail -c "cd; exec bash -euo pipefail -s"
    ' within "$clean" "$out" /packages "$(realpath /etc/resolv.conf)" /etc/resolv.conf "$@"
}

# What is installed before, in time that does not count; then the installation and the demo. Without Debian's packages nothing is tried.
try() {
    local name=$1 prepare=$2 start=$3
    shift 3
    printf '\n== %s\n' "$name"
    {
        echo 'export DEBIAN_FRONTEND=noninteractive; apt_get() { apt-get -qq -o=Dpkg::Use-Pty=0 --no-install-recommends "$@" >/dev/null; }'
        echo "{ $prepare; } || exit 77"
        echo 'began=$(date +%s%N)'
        echo "$start"
        echo 'echo "installed, and its first demo done, in $((($(date +%s%N) - began) / 1000000)) ms"'
    } | within "$@" || case $? in
        77) skip "$name, because Debian's packages could not be installed" ;;
        *) echo "$name: the demo failed in a clean root" >&2; return 1 ;;
    esac
}

# A daemon without a network of its own, as in the end-to-end tests; the clean root stands for the image that the recipe names.
try_container() {
    printf '\n== container\n'
    local folder daemon
    folder=$(mktemp -d /var/tmp/dockerd-XXXXXX)
    export DOCKER_HOST=unix://$folder/sock
    dockerd --iptables=false --ip6tables=false --bridge=none -H "$DOCKER_HOST" --data-root "$folder/data" --exec-root "$folder/exec" \
        --pidfile "$folder/pid" >"$folder/log" 2>&1 &
    daemon=$!
    # shellcheck disable=SC2064
    trap "kill $daemon; wait $daemon; umount '$folder'/exec/netns/*; rm -rf '$folder'" EXIT
    timeout 30 bash -c 'until docker version >/dev/null 2>&1; do :; done' || { skip "the container, because dockerd does not start"; return; }
    tar -C "$clean" -c . | docker import - clean >/dev/null
    docker build --quiet --network host --build-arg BASE=clean -f tools/packaging/Containerfile -t code-commit "$out" ||
        { skip "the container, because its image could not be built"; return; }
    docker run --rm --network none --security-opt seccomp=unconfined --security-opt systempaths=unconfined code-commit demo
}

# What the roots run is not for this shell to expand.
# shellcheck disable=SC2016
{
    try '.deb' 'apt_get update; apt_get install git' \
        'apt_get install /packages/code-commit_*_"$(dpkg --print-architecture)".deb
         test -s /usr/share/man/man1/code-commit.1.gz -a -s /usr/share/bash-completion/completions/code-commit
         code-commit demo'
    try 'archive' 'apt_get update; apt_get install git' \
        'tar -xzf /packages/code-commit-*-"$(uname -m)"-*.tar.gz -C /usr/local --strip-components 1
         code-commit demo'
    if command -v npx >/dev/null; then
        node=$(readlink -f "$(command -v node)")
        try 'npx' 'apt_get update; apt_get install git libstdc++6
            ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/bin/npx; ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm' \
            'npx --yes --package /packages/code-commit-*[0-9].tgz code-commit demo' \
            "$node" /usr/bin/node "$(npm root -g)" /usr/lib/node_modules
    else
        skip 'npx, because it is not here'
    fi
    try 'pipx' 'apt_get update; apt_get install git pipx' 'PIP_CERT=/certificates pipx run --spec /packages/code_commit-*_"$(uname -m)".whl code-commit demo' \
        /etc/ssl/certs/ca-certificates.crt /certificates
    if command -v dockerd >/dev/null; then try_container; else skip 'the container, because there is no dockerd'; fi
}
