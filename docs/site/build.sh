#!/bin/sh
# Builds the site of docs/ into build/docs, in an environment of its own, .venv-docs: the packages of .venv, and on top of
# them those of requirements-docs.lock. `make docs` calls it after the set-up of .venv. Arguments go to mkdocs.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=docs
environment=.venv-docs
lock=requirements-docs.lock
disk="0.1 GB"
. ./extra_environment.sh

set_up on_top
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict "$@" || fail "the site cannot be built"
echo "built build/docs/index.html; open it, or type: $python -m http.server --directory build/docs"
