#!/bin/sh
# Exports a run and checks every file, those for on-device training too, with LiteRT, the stand-alone TFLite runtime, in
# an environment of its own, .venv-litert. `make test-litert` calls it after the set-up of .venv. The argument is a
# finished run; without it, FedSiKD is trained for 3 rounds with --quantize=qat into a temporary folder.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-litert
environment=.venv-litert
lock=requirements-litert.lock
disk="0.2 GB"
. ./extra_environment.sh

set_up

run_dir=${1:-}
if [ -z "$run_dir" ]; then
    folder=$(mktemp -d) || fail "cannot make a temporary folder"
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    run_dir=$folder/run
    .venv/bin/python -m launch.train --algo=fedsikd --quantize=qat --rounds=3 --run_dir="$run_dir" || exit
fi
.venv/bin/python -m launch.export --run_dir="$run_dir" --on_device_training=full --save_test_set || exit
"$python" tests/litert/check_export.py "$run_dir/export"
