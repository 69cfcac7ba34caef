#!/usr/bin/env bash
# Writes the book's page of commands, which is not kept: the help of every command of PROGRAM.
set -euo pipefail
program=$(realpath "${1:?usage: docs/commands.sh PROGRAM}")
cd "$(dirname "$0")/reference"

# The help of a command, then that of the commands below it.
help_of() {
    local text name
    text=$(COLUMNS=100 "$program" "$@" --help)
    printf '\n## code-commit%s\n\n```text\n%s\n```\n' "${*:+ $*}" "$text"
    for name in $(sed -n '/^Commands:$/,/^$/s/^  \([a-z-]\{1,\}\) .*/\1/p' <<<"$text"); do
        [ "$name" = help ] || help_of "$@" "$name"
    done
}

page=$(mktemp .commands.XXXXXX)
trap 'rm -f "$page"' EXIT
{
    echo '# Commands'
    printf '\nWhat `--help` prints for each of them. `code-commit man FOLDER` writes the same as manual pages,\n'
    echo '`code-commit completions SHELL` a completion script.'
    help_of
} >"$page"
chmod 644 "$page"
mv "$page" commands.md
