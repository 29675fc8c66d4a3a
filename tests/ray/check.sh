#!/bin/sh
# Runs the tests of `--runtime=ray` in an environment of its own, .venv-ray: the packages of .venv, and on top of them
# those of requirements-ray.lock. `make test-ray` calls it after the set-up of .venv. Arguments go to pytest.
set -u
cd "$(dirname "$0")/../.." || exit 1

environment=.venv-ray
lock=requirements-ray.lock
stamp=$environment/setup_done
log=$environment/setup.log
python=$environment/bin/python

fail() {
    echo "test-ray: $1" >&2
    exit 1
}

# One line for what stopped pip, from its log.
explain() {
    if grep -qE 'NewConnectionError|NameResolutionError|Connect(ion|Timeout)Error|ReadTimeoutError|ProxyError' "$log"; then
        echo "no network: a package could not be downloaded"
    elif grep -q 'No space left on device' "$log"; then
        echo "the disk is full; about 0.3 GB are needed"
    elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
        echo "a downloaded package is not the one of $lock"
    else
        grep 'ERROR' "$log" | tail -n 1 | grep . || tail -n 1 "$log"
    fi
}

set_up() {
    packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || fail "no .venv"
    digest=$({ cat "$lock" requirements.lock && pwd; } | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ] || return 0
    rm -rf "$environment" 2>/dev/null
    mkdir "$environment" 2>/dev/null || fail "cannot write into $(pwd)"
    echo "setting up $environment: $(grep -c '==' "$lock") packages, 0.3 GB on disk (log: $log)"
    .venv/bin/python -m venv "$environment" >"$log" 2>&1 || fail "cannot make $environment; whole log: $log"
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --no-input install --no-deps --require-hashes \
        -r "$lock" >>"$log" 2>&1 || fail "$(explain); mend that and run make test-ray again (whole log: $log)"
    # .venv itself stays as it is. Its packages come after those of this environment.
    echo "import site; site.addsitedir('$packages')" >"$environment/lib/python3.11/site-packages/of_the_project.pth" ||
        fail "cannot write into $environment"
    echo "$digest" >"$stamp"
}

exec 9<"$lock"
! command -v flock >/dev/null || flock 9 # two of these at once would disturb each other
set_up
exec 9<&-
"$python" -m pytest tests/launch/runtimes/test_ray.py tests/launch/many_runs/test_ray_runs.py "$@"
