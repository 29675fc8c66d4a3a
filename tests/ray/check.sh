#!/bin/sh
# Runs the tests of `--runtime=ray` in an environment of its own, .venv-ray: the packages of .venv, and on top of them
# those of requirements-ray.lock. `make test-ray` calls it after the set-up of .venv. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-ray
environment=.venv-ray
lock=requirements-ray.lock
disk="0.3 GB"
. ./extra_environment.sh

set_up on_top
"$python" -m pytest tests/launch/runtimes/test_ray.py tests/launch/runtimes/test_ray_graphs.py \
    tests/launch/runtimes/test_ray_reaper.py tests/launch/sweeps/test_ray_runs.py tests/launch/fire/test_ray_kills.py "$@"
