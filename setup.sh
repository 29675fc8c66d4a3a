#!/bin/sh
# Makes .venv with exactly the packages of this platform's lock, TFF without its worker, and this project, unless that
# is done already. `make` calls it. PYTHON names the Python 3.11 to use. Without one on the PATH, uv gets a CPython 3.11,
# once. Every failure is one line; the words of pip and uv are in .venv/setup.log.
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

# Sets `lock` to that of this platform: the same versions everywhere.
choose_lock() {
    case "$(uname -s) $(uname -m)" in
        "Linux x86_64") lock=requirements.lock ;;
        "Linux aarch64") lock=requirements-linux-aarch64.lock ;;
        "Darwin arm64") lock=requirements-macos-arm64.lock ;;
        *)
            machine="$(uname -s) on $(uname -m)"
            fail "expected Linux on x86_64 or aarch64, or macOS on arm64, and this is $machine; on Windows use WSL"
            ;;
    esac
}

# What the environment is made from: the locks, the project's metadata, and the folder that an editable install points
# to.
compute_digest() {
    { cat "$lock" requirements-tff.lock setup.py && pwd; } | cksum
}

# One line for what stopped pip or uv, from its log. The argument is the lock that they were reading.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -qE 'client error \(Connect\)|dns error|operation timed out' "$log"; then
        echo "no network: CPython could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 3 GB are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $1"
    elif grep -q 'Hash mismatch' "$log"; then
        echo "the downloaded CPython is not the one that uv expects"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || grep '^error' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

# Calls the pip of the Python $1.
call_pip() {
    pip_python=$1
    shift
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$pip_python" -m pip --no-input "$@" >>"$log" 2>&1
}

# Prints the uv of the PATH; else the one of requirements-uv.lock, got for the moment by the pip of the Python $1.
find_uv() {
    command -v uv && return
    # A wheel only: building uv from source would take a Rust compiler.
    [ -x "$tools/uv/bin/uv" ] || call_pip "$1" install --no-deps --only-binary=:all: --require-hashes \
        --target "$tools/uv" -r requirements-uv.lock || return
    echo "$tools/uv/bin/uv"
}

# Prints a Python with pip: any Python 3 will do.
find_pip() {
    for candidate in python3 python; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info[0] != 3)' >/dev/null 2>&1 || continue
        "$candidate" -m venv "$tools/environment" >>"$log" 2>&1 || {
            echo "error: $candidate cannot make a virtual environment (Debian, Ubuntu: apt install python3-venv)" >>"$log"
            return 1
        }
        echo "$tools/environment/bin/python"
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
    uv=$(command -v uv) || { pip_of=$(find_pip) && uv=$(find_uv "$pip_of"); } || return
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
    echo "no Python 3.11 here: getting CPython 3.11 with uv"
    final_log=$log
    log=$tools/log
    base=$(get_python) || fail "$missing ($(explain requirements-uv.lock))"
    log=$final_log
}

make_environment() {
    choose_python
    mkdir .venv 2>/dev/null && touch "$unfinished" || fail "cannot write into $(pwd)"
    "$base" -m venv .venv >"$log" 2>&1 ||
        fail "$base cannot make a virtual environment (Debian, Ubuntu: apt install python3.11-venv); whole log: $log"
}

# An environment of an older lock is brought up to date in place. If pip refuses, it has left that one as it was.
reuse_environment() {
    is_python_3_11 "$python" || fail ".venv is no working Python 3.11 environment; delete it and run make setup again"
    touch "$unfinished" 2>/dev/null || fail "cannot write into .venv"
    : >"$log"
    is_reused=yes
}

fail_to_install() {
    [ -z "$is_reused" ] || rm -f "$unfinished"
    fail "$(explain "$1"); fix that and run make setup again (whole log: $log)"
}

# Installs by uv, which takes a third of pip's time. Where uv cannot be had or fails, pip does it: it knows settings that
# uv does not read, such as an index of its own in pip.conf. Both compare the hashes.
install() {
    { [ -n "$uv" ] && "$uv" pip install --python "$python" --no-deps "$@" >>"$log" 2>&1; } ||
        call_pip "$python" install --no-deps --no-compile "$@" || fail_to_install "$lock"
}

# What wheels are built with, as the lock has it: its entries, each a line and the hashes after it.
list_build_tools() {
    awk '/^[^ ]/ { is_tool = /^(setuptools|wheel)==/ } is_tool' "$lock"
}

# Puts TFF's wheel without its worker into $tools, and the line of a lock for it into tff.lock there; no line, if this
# TFF is installed.
get_tff() {
    version=$(sed -n 's/^tensorflow-federated==\([^ ]*\).*/\1/p' requirements-tff.lock)
    : >"$tools/tff.lock"
    [ -e ".venv/lib/python3.11/site-packages/tensorflow_federated-$version.dist-info" ] ||
        "$python" launch/runtimes/tff_package.py get-small "$tools" >"$tools/tff.lock" 2>>"$log" ||
        fail_to_install requirements-tff.lock
}

# Compiles the packages on all cores, but for large ones of which runs import little. Python would do it on one core, and
# in each process anew where it may not write or must not (PYTHONDONTWRITEBYTECODE).
compile() {
    "$python" -m compileall -q -j 0 .venv/lib \
        -x '/tests/|_test\.py|/(tensorflow_probability|fontTools|plotly|sqlalchemy|pygments|mpmath|narwhals|pip)/'
}

exec 9<setup.py
! command -v flock >/dev/null || flock 9 # two `make` at once would disturb each other

choose_lock
digest=$(compute_digest)
if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi

tools=$(mktemp -d) || fail "cannot make a temporary folder"
trap 'rm -rf "$tools"' EXIT
trap 'exit 130' INT TERM HUP
is_reused=
[ ! -e "$unfinished" ] || rm -rf .venv # a set-up was killed: nobody knows what is missing
if [ -e .venv ]; then reuse_environment; else make_environment; fi
num_packages=$(cat "$lock" requirements-tff.lock | grep -c '==')
echo "setting up .venv: $num_packages packages, 1.8 GB on disk, a minute or two (log: $log)"
get_tff # first, since it fails at once without a network
uv=$(find_uv "$python") || uv=
# One package has no wheel. Left to itself, pip would get the newest tools to build it with, and compare no hashes. Its
# extension in C is not needed, and would take a compiler.
export DISABLE_SQLALCHEMY_CEXT=1 UV_NO_PROGRESS=1
list_build_tools >"$tools/build_tools.lock"
install --require-hashes --only-binary=:all: -r "$tools/build_tools.lock"
install --require-hashes --no-build-isolation -r "$lock" -r "$tools/tff.lock"
rm -f .venv/lib/python3.11/site-packages/tensorflow_federated-*.dist-info/direct_url.json # `pip freeze` would copy it
install --no-build-isolation -e .
compile >>"$log" 2>&1
echo "$digest" >"$stamp"
rm -f "$unfinished"
echo "set-up done"
