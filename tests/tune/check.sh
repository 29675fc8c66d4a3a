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

wait_for_others
packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || fail "no .venv"
digest=$({ cat "$lock" requirements.lock && pwd; } | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ]; then
    make_anew
    # .venv itself stays as it is. Its packages come after those of this environment.
    echo "import site; site.addsitedir('$packages')" >"$environment/lib/python3.11/site-packages/of_the_project.pth" ||
        fail "cannot write into $environment"
    echo "$digest" >"$stamp"
fi
exec 9<&-
"$python" -m pytest tests/tune "$@"
