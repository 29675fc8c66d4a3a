#!/bin/sh
# Makes .venv with exactly the packages of requirements.lock and this project, unless that is done already.
# `make` calls it. PYTHON names another Python 3.11. Every failure is one line; pip's own words are in .venv.log.
set -u
cd "$(dirname "$0")" || exit 1

stamp=.venv/setup_done
unfinished=.venv/setup_unfinished
log=.venv.log
python=.venv/bin/python

fail() {
    echo "set-up: $1" >&2
    exit 1
}

is_python_3_11() {
    "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python; do
        if is_python_3_11 "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# What the environment is made from: the lock, the project's metadata, and where it lies (an editable install points there).
compute_digest() {
    { cat requirements.lock setup.py pyproject.toml && pwd; } | sha256sum
}

# One line for what stopped pip, from its log.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|Max retries exceeded' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 4 GB are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of requirements.lock"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

install() {
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps "$@" >>"$log" 2>&1 ||
        fail "$(explain) (whole log: $log); then run make again"
}

exec 9<setup.py
! command -v flock >/dev/null || flock 9 # two `make` at once would disturb each other

digest=$(compute_digest)
if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    fail "TensorFlow Federated 0.87 runs on x86-64 Linux only, and this is $(uname -s) on $(uname -m)"
[ ! -e "$unfinished" ] || rm -rf .venv
if [ -e .venv ]; then
    is_python_3_11 "$python" || fail ".venv is not a working Python 3.11 environment; delete it and run make again"
else
    base=$(find_python) ||
        fail "no Python 3.11 found, which TensorFlow Federated 0.87 needs; install it, or name it: make setup PYTHON=<path>"
fi
echo "setting up .venv: 83 packages, 2.4 GB on disk, a few minutes (log: $log)"
: >"$log"
if [ ! -e .venv ]; then
    mkdir .venv && : >"$unfinished" || fail "cannot make .venv here"
    "$base" -m venv .venv >>"$log" 2>&1 ||
        fail "$base cannot make a virtual environment; on Debian and Ubuntu: apt install python3.11-venv (whole log: $log)"
else
    : >"$unfinished" || fail "cannot write into .venv"
fi
install --require-hashes -r requirements.lock
install --no-build-isolation -e .
echo "$digest" >"$stamp"
rm -f "$unfinished"
echo "set-up done"
