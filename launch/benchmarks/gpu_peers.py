"""The peers of `launch.benchmark --device=gpu`, and the libraries that TensorFlow needs for it."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Sequence

from launch.benchmarks.workloads import PEERS, PFL, ROOT, Peer, make_own_peer
from launch.runs.errors import RunStopped
from launch.runs.library_versions import find_version
from launch.settings.runtimes import CPU, GPU, IN_PROCESS

HOST = "host"
GPU_LOCK, GPU_LIBRARY = "requirements-gpu.lock", "nvidia-cudnn-cu11"


def make_gpu_peers(gpu: str, clients_at_a_time: Sequence[int], is_smoke: bool) -> dict[str, Peer]:
    """The peers by name: `gpu`, one more for each number of clients at a time, `host` and pfl-research.

    With `is_smoke`, those of the GPU compute on the CPU in its place.
    """
    if is_smoke:
        environment = {"OMP_NUM_THREADS": "1"}  # PyTorch's threads wait for one another where others work
        pfl = dataclasses.replace(PEERS[PFL], options={"num_processes": 1})
    else:
        environment = {
            "CUDA_VISIBLE_DEVICES": gpu,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # as nvidia-smi counts
            # A card newer than TensorFlow's kernels has these compiled by the driver, once: they must fit its cache.
            "CUDA_CACHE_MAXSIZE": str(4 * 2**30),
        }
        command, done = PEERS[PFL].set_up
        pfl = dataclasses.replace(
            PEERS[PFL],
            options={"num_processes": 1, "device": "cuda"},
            set_up=(f"PFL_CUDA=1 {command}", done),
            build="with CUDA",
        )
    device, described, settings = CPU if is_smoke else GPU, "this project, --device={}", {"runtime": IN_PROCESS}
    return {
        GPU: make_own_peer(described.format(device), {**settings, "device": device}, environment),
        **{
            f"{GPU}_{number}": make_own_peer(
                f"{described.format(device)}, clients at a time: {number}",
                {**settings, "device": device},
                environment,
                clients_at_a_time=number,
            )
            for number in clients_at_a_time
        },
        HOST: make_own_peer(described.format(CPU), {**settings, "device": CPU}),
        PFL: dataclasses.replace(
            pfl, description="pfl-research 0.6.0 on PyTorch, one process", environment=environment
        ),
    }


def install_libraries(report: Callable[[str], None]) -> None:
    """Installs TensorFlow's CUDA libraries into this environment, if they are missing. Raises RunStopped."""
    if find_version(GPU_LIBRARY):
        return
    report(f"installing {GPU_LOCK}, 3 GB")
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(ROOT / GPU_LOCK)]
    ended = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise RunStopped(f"error: {GPU_LOCK} could not be installed: {reason}", 1)
