#!/bin/sh
# Makes .venv-pfl with exactly the packages of requirements-pfl.lock, unless that is done already: pfl-research on
# PyTorch, a peer of launch.benchmark. `make setup-pfl` calls it after the set-up of .venv.
#
# PyPI has PyTorch for x86-64 Linux only with CUDA, and that build cannot be imported without its 2 GB of CUDA
# libraries. The build for the CPU alone is taken where pip is set up to find it, for example by PIP_FIND_LINKS (a folder
# with the file) or PIP_EXTRA_INDEX_URL. Both compute alike on the CPU. PFL_CUDA=1 asks for the
# one with CUDA, which launch.benchmark --device=gpu needs.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=setup-pfl
environment=.venv-pfl
lock=requirements-pfl.lock
cpu_lock=requirements-pfl-cpu.lock
disk="6 GB, or 1 GB with PyTorch for the CPU alone,"
. ./extra_environment.sh

# The lock without PyTorch and what only its CUDA build needs.
drop_cuda() {
    awk '/^[a-z]/ { dropped = /^(torch|triton|cuda-|nvidia-)/ } !dropped' "$lock"
}

wait_for_others
digest=$({ cat "$lock" "$cpu_lock" && pwd; } | cksum)
case $(cat "$stamp" 2>/dev/null) in
    "$digest with CUDA") exit 0 ;;
    "$digest") [ -n "${PFL_CUDA:-}" ] || exit 0 ;;
esac

mkdir -p "$environment" 2>/dev/null && rm -f "$stamp" 2>/dev/null || fail "cannot write into $(pwd)/$environment"
# By its own path, since the folder may be a link to another disk.
.venv/bin/python -m venv --clear "$(cd "$environment" && pwd -P)" >/dev/null 2>&1 || fail "cannot make $environment"
echo "setting up $environment, a minute or more (log: $log)"
if [ -z "${PFL_CUDA:-}" ] && install "$cpu_lock"; then
    drop_cuda >"$environment/packages.lock"
    install "$environment/packages.lock"
else
    [ -n "${PFL_CUDA:-}" ] || echo "pip finds no PyTorch for the CPU alone"
    echo "getting PyTorch with CUDA, 5 GB on disk"
    digest="$digest with CUDA"
    : >"$log"
    install "$lock"
fi || fail_to_install
"$python" -c 'import torch, pfl' >>"$log" 2>&1 || fail "pfl-research cannot be imported: $(tail -n 1 "$log")"
echo "$digest" >"$stamp"
