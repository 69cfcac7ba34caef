#!/bin/sh
out=$(sh src/greet.sh you)
test "$out" = 'hello, you' || { echo "got: $out" >&2; exit 3; }
