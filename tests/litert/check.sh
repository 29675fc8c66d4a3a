#!/bin/sh
# Exports a run and checks every file but those for on-device training with LiteRT, the stand-alone TFLite runtime, in
# an environment of its own, .venv-litert. `make test-litert` calls it after the set-up of .venv. The argument is a
# finished run; without it, FedSiKD is trained for 3 rounds with --quantize=qat into a temporary folder.
set -u
cd "$(dirname "$0")/../.." || exit 1

environment=.venv-litert
lock=requirements-litert.lock
stamp=$environment/setup_done
log=$environment/setup.log
python=$environment/bin/python

fail() {
    echo "test-litert: $1" >&2
    exit "${2:-1}"
}

# One line for what stopped pip, from its log.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 0.2 GB are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $lock"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

# Small enough to be made anew whenever it is not the one of the lock.
set_up() {
    digest=$({ cat "$lock" && pwd; } | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ] || return 0
    rm -rf "$environment" 2>/dev/null
    mkdir "$environment" 2>/dev/null || fail "cannot write into $(pwd)"
    echo "setting up $environment: $(grep -c '==' "$lock") packages, 0.2 GB on disk (log: $log)"
    .venv/bin/python -m venv "$environment" >"$log" 2>&1 || fail "cannot make $environment; whole log: $log"
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps --require-hashes \
        -r "$lock" >>"$log" 2>&1 || fail "$(explain); mend that and run make test-litert again (whole log: $log)"
    echo "$digest" >"$stamp"
}

exec 9<"$lock"
! command -v flock >/dev/null || flock 9 # two of these at once would disturb each other
set_up

run_dir=${1:-}
if [ -z "$run_dir" ]; then
    folder=$(mktemp -d) || fail "cannot make a temporary folder"
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    run_dir=$folder/run
    .venv/bin/python -m launch.train --algo=fedsikd --quantize=qat --rounds=3 --run_dir="$run_dir" || exit
fi
.venv/bin/python -m launch.export --run_dir="$run_dir" --on_device_training --save_test_set || exit
"$python" tests/litert/check_export.py "$run_dir/export"
