#!/bin/sh
# Makes .venv-track with exactly the packages of requirements-track.lock, unless that is done already: MLflow and W&B,
# which --track and launch.track send runs to. `make setup-track` calls it after the set-up of .venv.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=setup-track
environment=.venv-track
lock=requirements-track.lock
disk="1 GB"
. ./extra_environment.sh

set_up
