#!/bin/sh
# Checks the types with mypy, which lies in an environment of its own, .venv-types, and reads the packages of .venv.
# `make test-types` calls it after the set-up of .venv.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-types
environment=.venv-types
lock=requirements-types.lock
disk="0.1 GB"
. ./extra_environment.sh

set_up
"$python" tests/types/check_types.py
