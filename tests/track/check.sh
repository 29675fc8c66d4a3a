#!/bin/sh
# Sends runs to a real MLflow server, which the tests start on this machine and end, and to W&B offline, by
# .venv-track. `make test-track` calls it after the set-up of both environments. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

.venv/bin/python -m pytest tests/launch/runs/trackers tests/launch/test_track.py "$@"
