#!/bin/sh
# Makes the environment of a peer of launch.benchmark that is on PyTorch, with exactly the packages of its lock, unless
# that is done already: .venv-pfl for pfl, .venv-flower-simulation for flower. `make setup-pfl` and `make setup-flower`
# call it after the set-up of .venv.
#
# PyPI has PyTorch for x86-64 Linux only with CUDA, and that build cannot be imported without its 2 GB of CUDA
# libraries. The build for the CPU alone is taken where pip is set up to find it, for example by PIP_FIND_LINKS (a folder
# with the file) or PIP_EXTRA_INDEX_URL. Both compute alike on the CPU. PFL_CUDA=1 asks for the
# one with CUDA, which launch.benchmark --device=gpu needs.
set -u
cd "$(dirname "$0")/../.." || exit 1

target=setup-$1
case $1 in
    pfl) name=pfl modules="torch, pfl" ;;
    flower) name=flower-simulation modules="torch, flwr, ray" ;;
    *) exit 2 ;;
esac
environment=.venv-$name
lock=requirements-$name.lock
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
"$python" -c "import $modules" >>"$log" 2>&1 || fail "$modules cannot be imported: $(tail -n 1 "$log")"
echo "$digest" >"$stamp"
