#!/bin/sh
# Runs the tests of live rounds that open sockets on 127.0.0.1. The server is of .venv; the clients, launch/live/join.py,
# run in an environment of their own, .venv-live, which has what docs/live.md asks of a client and nothing else of the
# project. `make test-live` calls it after the set-up of .venv. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-live
environment=.venv-live
lock=requirements-live.lock
disk="0.2 GB"
. ./extra_environment.sh

set_up
LIVE_PYTHON=$(pwd)/$python .venv/bin/python -m pytest tests/live "$@"
