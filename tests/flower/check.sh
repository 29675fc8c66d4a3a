#!/bin/sh
# Exports a short run as a Flower app, and trains it with a SuperLink and four SuperNodes of Flower on 127.0.0.1, once
# plain and once by TLS, with keys of nodes and with secure aggregation; the weights must be those of plain gradient
# descent in TensorFlow. Before, each strategy that the app offers adds up made-up weights. Flower is in an environment
# of its own, .venv-flower, since it wants a newer protobuf.
# `make test-flower` calls it after the set-up of .venv; it takes minutes, since Flower starts a process a message.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-flower
environment=.venv-flower
lock=requirements-flower.lock
disk="0.4 GB"
. ./extra_environment.sh

set_up
folder=$(mktemp -d) || fail "cannot make a temporary folder"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
.venv/bin/python -m launch.train --algo=fedavg --model=perceptron --num_clients=4 --rounds=1 --optimizer=sgd \
    --learning_rate=0.05 --epochs=2 --run_page=false --run_dir="$folder/run" || exit
.venv/bin/python -m launch.export --run_dir="$folder/run" --formats=float32 --flower_app="$folder/app" || exit
FLWR_TELEMETRY_ENABLED=0 "$python" tests/flower/check_strategies.py "$folder/app" || exit
PYTHONPATH=. TF_CPP_MIN_LOG_LEVEL=2 .venv/bin/python tests/flower/check_fleet.py "$folder" "$environment/bin"
