#!/bin/sh
set -eu
sh -n src/greet.sh
echo verified
