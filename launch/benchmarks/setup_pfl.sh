#!/bin/sh
# Makes .venv-pfl with exactly the packages of requirements-pfl.lock, unless that is done already: pfl-research on
# PyTorch, a peer of launch.benchmark. `make setup-pfl` calls it after the set-up of .venv.
#
# PyPI has PyTorch for x86-64 Linux only with CUDA, and that build cannot be imported without its 2 GB of CUDA
# libraries. The build for the CPU alone is taken where pip is set up to find it, for example by PIP_FIND_LINKS (a folder
# with the file) or PIP_EXTRA_INDEX_URL. Both compute alike on the CPU.
set -u
cd "$(dirname "$0")/../.." || exit 1

environment=.venv-pfl
lock=requirements-pfl.lock
cpu_lock=requirements-pfl-cpu.lock
stamp=$environment/setup_done
log=$environment/setup.log
python=$environment/bin/python

fail() {
    echo "setup-pfl: $1" >&2
    exit 1
}

# One line for what stopped pip, from its log.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 6 GB are needed, or 1 GB with PyTorch for the CPU alone"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $lock"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

install() {
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps --require-hashes \
        -r "$1" >>"$log" 2>&1
}

# The lock without PyTorch and what only its CUDA build needs.
drop_cuda() {
    awk '/^[a-z]/ { dropped = /^(torch|triton|cuda-|nvidia-)/ } !dropped' "$lock"
}

exec 9<"$lock"
! command -v flock >/dev/null || flock 9 # two of these at once would disturb each other

digest=$({ cat "$lock" "$cpu_lock" && pwd; } | sha256sum)
[ "$(cat "$stamp" 2>/dev/null)" != "$digest" ] || exit 0

mkdir -p "$environment" 2>/dev/null && rm -f "$stamp" 2>/dev/null || fail "cannot write into $(pwd)/$environment"
# By its own path, since the folder may be a link to another disk.
.venv/bin/python -m venv --clear "$(cd "$environment" && pwd -P)" >/dev/null 2>&1 || fail "cannot make $environment"
echo "setting up $environment, a minute or more (log: $log)"
if install "$cpu_lock"; then
    drop_cuda >"$environment/packages.lock"
    install "$environment/packages.lock"
else
    echo "pip finds no PyTorch for the CPU alone: getting the one with CUDA, 5 GB on disk"
    : >"$log"
    install "$lock"
fi || fail "$(explain); mend that and run make setup-pfl again (whole log: $log)"
"$python" -c 'import torch, pfl' >>"$log" 2>&1 || fail "pfl-research cannot be imported: $(tail -n 1 "$log")"
echo "$digest" >"$stamp"
