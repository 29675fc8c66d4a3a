#!/bin/sh
# Runs the tests of `launch.tune` with Optuna in an environment of its own, .venv-tune: the packages of .venv, and on top
# of them those of requirements-tune.lock. `make test-tune` calls it after the set-up of .venv. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-tune
environment=.venv-tune
lock=requirements-tune.lock
disk="0.2 GB"
. ./extra_environment.sh

set_up on_top
"$python" -m pytest tests/tune "$@"
