#!/bin/sh
# Runs the tests of parquet and Arrow in an environment of its own, .venv-parquet: the packages of .venv, and on top of
# them those of requirements-parquet.lock. `make test-parquet` calls it after the set-up of .venv. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-parquet
environment=.venv-parquet
lock=requirements-parquet.lock
disk="0.2 GB"
. ./extra_environment.sh

set_up on_top
"$python" -m pytest tests/parquet "$@"
