#!/bin/sh
# Passes if and only if every test does.
set -eu
sh -n src/greet.sh
sh tests/greet_test.sh
