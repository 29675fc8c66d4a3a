#!/bin/sh
# Adds TFF's worker to the installed TFF, unless it is there: only --runtime=tff needs it. `make setup-tff` calls it after
# the set-up of .venv, and the first --runtime=tff does, with its own Python as PYTHON.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=setup-tff
environment=.venv
lock=requirements-tff.lock
disk="0.5 GB"
. ./extra_environment.sh
python=${PYTHON:-$python}
log=${python%/bin/*}/setup_tff.log

wait_for_others
"$python" -c 'import launch.runtimes.tff_package as it, sys; sys.exit(not it.has_worker())' && exit 0
[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    fail "TFF's worker runs on x86-64 Linux only, and this is $(uname -s) on $(uname -m)"
: 2>/dev/null >"$log" || fail "cannot write into ${python%/bin/*}"
folder=$(mktemp -d) || fail "cannot make a temporary folder"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
echo "getting TFF's worker: 72 MB to download, 301 MB on disk"
"$python" launch/runtimes/tff_package.py get-worker "$folder" >>"$log" 2>&1 || fail_to_install
