#!/bin/sh
# Compiles the Kotlin of docs/android.md and examples/android with the compiler inside kotlin-jupyter-kernel, in an
# environment of its own, .venv-kotlin. `make test-kotlin` calls it after the set-up of .venv. Without Java it says so
# and checks nothing.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-kotlin
environment=.venv-kotlin
lock=requirements-kotlin.lock
disk="0.1 GB"
. ./extra_environment.sh

if ! java -version >/dev/null 2>&1; then
    echo "test-kotlin: SKIPPED, nothing was compiled: there is no java here; install Java 17 or newer"
    exit 0
fi
set_up
"$python" tests/kotlin/check_kotlin.py docs/android.md examples/android
