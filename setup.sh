#!/bin/sh
# Makes .venv with exactly the packages of requirements.lock and this project, unless that is done already.
# `make` calls it. PYTHON names the Python 3.11 to use. Without one on the PATH, uv gets a CPython 3.11, once.
# Every failure is one line; pip's own words are in .venv/setup.log.
set -u
cd "$(dirname "$0")" || exit 1

stamp=.venv/setup_done
unfinished=.venv/setup_unfinished
log=.venv/setup.log
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

# What the environment is made from: the lock, the project's metadata, and the folder that an editable install points to.
compute_digest() {
    { cat requirements.lock setup.py && pwd; } | sha256sum
}

# One line for what stopped pip or uv, from its log. The argument is the lock that pip was reading.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -qE 'client error \(Connect\)|dns error|operation timed out' "$log"; then
        echo "no network: CPython could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 4 GB are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $1"
    elif grep -q 'Hash mismatch' "$log"; then
        echo "the downloaded CPython is not the one that uv expects"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || grep '^error' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

# Prints the uv of the PATH; else puts the one of requirements-uv.lock into the folder $1 with any Python 3.
find_uv() {
    command -v uv && return
    for candidate in python3 python; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info[0] != 3)' >/dev/null 2>&1 || continue
        "$candidate" -m venv "$1/environment" >>"$log" 2>&1 || {
            echo "error: $candidate cannot make a virtual environment (Debian, Ubuntu: apt install python3-venv)" >>"$log"
            return 1
        }
        # A wheel only: building uv from source would take a Rust compiler.
        PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$1/environment/bin/python" -m pip --no-input install --no-deps \
            --only-binary=:all: --require-hashes -r requirements-uv.lock >>"$log" 2>&1 || return
        echo "$1/environment/bin/uv"
        return
    done
    echo "error: no uv and no Python 3 to get it with" >>"$log"
    return 1
}

# Prints the path of a CPython 3.11 that uv keeps. It lies in uv's own folder in the home, not in the project: there it
# survives the deletion of .venv, serves other clones, and `uv python uninstall` finds it. uv checks its digest.
# Settings are given as variables, since an older uv refuses an option that it does not know.
get_python() {
    UV_NO_PROGRESS=1 UV_PYTHON_PREFERENCE=only-managed UV_SYSTEM_PYTHON=1
    UV_PYTHON_INSTALL_BIN=0 # leaves ~/.local/bin alone
    export UV_NO_PROGRESS UV_PYTHON_PREFERENCE UV_SYSTEM_PYTHON UV_PYTHON_INSTALL_BIN
    uv=$(find_uv "$1") || return
    "$uv" python install 3.11 >>"$log" 2>&1 || return
    python_of_uv=$("$uv" python find --no-project 3.11 2>>"$log") || return
    is_python_3_11 "$python_of_uv" || return
    echo "$python_of_uv"
}

# Sets `base` to the Python 3.11 that .venv is made with.
choose_python() {
    base=$(find_python) && return
    missing="no Python 3.11 found, which TensorFlow Federated 0.87 needs; install it, or name it: make setup PYTHON=<path>"
    [ -z "${PYTHON:-}" ] || fail "$missing" # whoever names one wants that one
    folder=$(mktemp -d) || fail "$missing"
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    echo "no Python 3.11 here: getting CPython 3.11 with uv"
    final_log=$log
    log=$folder/log
    base=$(get_python "$folder") || fail "$missing ($(explain requirements-uv.lock))"
    log=$final_log
    rm -rf "$folder"
}

make_environment() {
    choose_python
    mkdir .venv 2>/dev/null && touch "$unfinished" || fail "cannot write into $(pwd)"
    "$base" -m venv .venv >"$log" 2>&1 ||
        fail "$base cannot make a virtual environment (Debian, Ubuntu: apt install python3.11-venv); whole log: $log"
}

# An environment of an older lock is brought up to date in place. If pip refuses, it has left that one as it was.
reuse_environment() {
    is_python_3_11 "$python" || fail ".venv is no working Python 3.11 environment; delete it and run make again"
    touch "$unfinished" 2>/dev/null || fail "cannot write into .venv"
    : >"$log"
    is_reused=yes
}

install() {
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps "$@" >>"$log" 2>&1 && return
    [ -z "$is_reused" ] || rm -f "$unfinished"
    fail "$(explain requirements.lock); fix that and run make again (whole log: $log)"
}

# What wheels are built with, as the lock has it: its entries, each a line and the hashes after it.
list_build_tools() {
    awk '/^[^ ]/ { is_tool = /^(setuptools|wheel)==/ } is_tool' requirements.lock
}

exec 9<setup.py
! command -v flock >/dev/null || flock 9 # two `make` at once would disturb each other

digest=$(compute_digest)
if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi

[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] ||
    fail "TensorFlow Federated 0.87 runs on x86-64 Linux only, and this is $(uname -s) on $(uname -m)"
is_reused=
[ ! -e "$unfinished" ] || rm -rf .venv # a set-up was killed: nobody knows what is missing
if [ -e .venv ]; then reuse_environment; else make_environment; fi
echo "setting up .venv: $(grep -c '==' requirements.lock) packages, 2.4 GB on disk, a few minutes (log: $log)"
# Two packages have no wheel. Left to itself, pip would get the newest tools to build them with, and compare no hashes.
list_build_tools >.venv/build_tools.lock
install --require-hashes --only-binary=:all: -r .venv/build_tools.lock
install --require-hashes --no-build-isolation -r requirements.lock
install --no-build-isolation -e .
echo "$digest" >"$stamp"
rm -f "$unfinished"
echo "set-up done"
