#!/bin/sh
# Exports a run and checks every file, those for on-device training too, with LiteRT, the stand-alone TFLite runtime, in
# an environment of its own, .venv-litert; then makes the files of all models that the documentation names, and compares
# these with Keras: `make_models.py` and `check_models.py`. `make test-litert` calls it after the set-up of .venv.
#
#   the first argument   a finished run, which alone is checked; without it, FedSiKD is trained for 3 rounds with
#                        --quantize=qat into a temporary folder
#   --only=<models>      the models alone, and of these the named ones, separated by commas
#   --write              the models alone, whose table becomes docs/results/measured/litert_models.csv
set -u
cd "$(dirname "$0")/../.." || exit 1

target=test-litert
environment=.venv-litert
lock=requirements-litert.lock
disk="0.2 GB"
. ./extra_environment.sh

run_dir=${1:-}
[ $# -eq 0 ] || shift
only="" write=""
for argument; do
    case $argument in
    --only=*) only=$argument ;;
    --write) write=$argument ;;
    *) fail "$argument: expected --only=<models> or --write" 2 ;;
    esac
done
[ -z "$run_dir" ] || [ $# -eq 0 ] || fail "$1: it is of the models, expected no RUN_DIR beside it" 2
[ -z "$only" ] || [ -z "$write" ] || fail "--write: it is of the table of all models, expected no --only beside it" 2

set_up

check_run() {
    .venv/bin/python -m launch.export --run_dir="$1" --on_device_training=full --save_test_set || exit
    "$python" tests/litert/check_export.py "$1/export"
}

if [ -n "$run_dir" ]; then
    check_run "$run_dir"
    exit
fi
if [ $# -eq 0 ]; then
    folder=$(mktemp -d) || fail "cannot make a temporary folder"
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    run_dir=$folder/run
    .venv/bin/python -m launch.train --algo=fedsikd --quantize=qat --rounds=3 --run_dir="$run_dir" || exit
    check_run "$run_dir" || exit
fi
models=build/litert_models
PYTHONPATH=. .venv/bin/python tests/litert/make_models.py "$models" $only || exit
"$python" tests/litert/check_models.py "$models" $write
