"""The tables of workloads (what is timed, on which data) and of peers (who runs it). Imports no TensorFlow.

A new workload is one entry of `WORKLOADS`; a new competitor one of `PEERS`, and a module with a context manager
`open_rounds(workload, folder, **options)` that yields a function without arguments, which runs one round.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datasets.federated_data import FederatedData
from launch.runs.errors import RunStopped
from launch.runs.library_versions import find_version
from launch.runtimes.tff_package import ABSENCE, GET_WORKER, has_worker
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import RunConfig, build_run_config
from launch.settings.runtimes import CPU, GPU, IN_PROCESS, TFF
from launch.training.federation import load_federated_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = "ours"
TFF_WORKER = "tff_worker"
BEFORE = "before"
RAW_LOOP = "raw_loop"
PFL = "pfl_research"
FLOWER = "flower"
STOCK = "stock_tff"
OF_THIS_PROJECT = (OURS, BEFORE, TFF_WORKER)
PFL_ENVIRONMENT = ROOT / ".venv-pfl"
FLOWER_ENVIRONMENT = ROOT / ".venv-flower-simulation"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A program that can run the rounds of a workload.

    Attributes:
      module: where its `open_rounds` is.
      description: for the table.
      environment: variables set in its process.
      options: passed on to its `open_rounds`.
      set_up: the command that makes its environment of its own, with the file that is there when this is done.
      build: what this file must say; "" if that does not matter.
      needs_worker: whether it needs TFF's worker in this environment.
    """

    module: str
    description: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    set_up: tuple[str, pathlib.Path] | None = None
    build: str = ""
    needs_worker: bool = False

    def explain_absence(self) -> str | None:
        """Why it cannot run, and how to fix that; None if it can."""
        if self.needs_worker and not has_worker():
            return f"{ABSENCE}; to get it: {GET_WORKER}"
        if self.set_up is None:
            return None
        command, done = self.set_up
        if done.exists() and self.build in done.read_text(encoding="utf-8"):
            return None
        return f"{' '.join([done.parent.name, 'is not set up', self.build]).rstrip()}; make it with: {command}"


def make_own_peer(
    description: str,
    settings: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    needs_worker: bool = False,
    **options: Any,
) -> Peer:
    """This project with these settings, or another checkout of it; `options` are those of `ours.open_rounds`."""
    options = {"settings": settings, **options}
    return Peer("launch.benchmarks.ours", description, environment or {}, options, needs_worker=needs_worker)


def make_peer_before(checkout: str, runtime: str) -> Peer:
    """Another checkout of this project, in its folder; an empty runtime leaves that to its default."""
    described, settings = (f"--runtime={runtime}", {"runtime": runtime}) if runtime else ("its default runtime", {})
    return make_own_peer(f"{checkout} ({described})", settings, checkout=os.path.abspath(checkout))


PEERS = {
    OURS: make_own_peer("this project (--runtime=in_process)", {"runtime": IN_PROCESS}),
    TFF_WORKER: make_own_peer("this project with TFF's worker (--runtime=tff)", {"runtime": TFF}, needs_worker=True),
    RAW_LOOP: Peer(
        "launch.benchmarks.raw_loop",
        "TensorFlow alone, data in memory, a single-threaded process a core: the machine's limit",
        {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"},
    ),
    PFL: Peer(
        "launch.benchmarks.pfl_research",
        "pfl-research 0.6.0 on PyTorch, a single-threaded process a core under torchrun",
        set_up=("make setup-pfl", PFL_ENVIRONMENT / "setup_done"),
    ),
    FLOWER: Peer(
        "launch.benchmarks.flower_simulation",
        "Flower 1.42's simulation (Ray) on PyTorch, a single-threaded worker a core",
        set_up=("make setup-flower", FLOWER_ENVIRONMENT / "setup_done"),
    ),
    STOCK: Peer("launch.benchmarks.stock_tff", "tff.learning's weighted FedAvg, default threads", needs_worker=True),
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """Rounds of a run as `launch.train` makes it.

    Attributes:
      name: its key in the results.
      description: one line.
      settings: of the run, as flags with their values. The data are random or come with this project.
      peers: keys of `PEERS`, and `BEFORE`, that can run it, in the order in which they take turns.
    """

    name: str
    description: str
    settings: Mapping[str, Any]
    peers: tuple[str, ...] = OF_THIS_PROJECT

    def describe(self) -> str:
        """One line for a heading."""
        return f"{self.name}: {self.description}"

    def get_settings(self, folder: str) -> dict[str, Any]:
        """The settings of the run, with a folder for its client files."""
        return {**self.settings, "client_dir": os.path.abspath(folder)}

    def spell_arguments(self, folder: str, **further: Any) -> list[str]:
        """The same and further ones as flags that every version of this project reads.

        Earlier versions put the algorithm's name before its settings, which later ones understand.
        """
        algorithm, settings = ALGORITHMS[self.settings["algo"]], {**self.get_settings(folder), **further}
        own = {name: algorithm.flag_prefix + name for name in algorithm.names}
        return [f"--{own.get(name, name)}={value}" for name, value in settings.items()]

    def build_config(self, folder: str) -> RunConfig:
        """The run's config, with a folder for its client files."""
        return build_run_config(self.get_settings(folder))


def make_fed_avg(
    name: str,
    model: str,
    num_clients: int,
    num_examples: int,
    examples: str = "mnist",
    peers=OF_THIS_PROJECT,
    **settings,
) -> Workload:
    """FedAvg on random examples; all clients take part, and train on all their examples.

    Args:
      name: see `Workload`.
      model: as `--model` spells it.
      num_clients: clients, all of them in every round.
      num_examples: examples of each client.
      examples: their format, a key of `random_examples.FORMATS`.
      peers: see `Workload`.
      settings: further ones of the run.
    """
    training = {"epochs": 1, "learning_rate": 1e-3} | settings
    shared = {key: training.pop(key) for key in ("width", "augment") if key in training}
    shared = {"batch_size": training.pop("batch_size", 64)} | shared
    work = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in training.items())
    return Workload(
        name,
        f"FedAvg, {num_clients} clients x {num_examples} examples, batch {shared['batch_size']}, {work}",
        {
            "algo": "fedavg",
            "dataset": f"launch.benchmarks.random_examples:{examples}_{num_clients * num_examples}",
            "partition": "iid",
            "num_clients": num_clients,
            "validation_fraction": 0.0,
            "test_fraction": 0.0,
            "model": model,
            **shared,
            **training,
        },
        peers,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        make_fed_avg(
            "fed_avg_mnist_student", "image_student", 40, 1500, peers=(*OF_THIS_PROJECT, RAW_LOOP, PFL, FLOWER, STOCK)
        ),
        # As in the experiment fedcd/fedavg_cifar10_hierarchical_authors.
        make_fed_avg(
            "fed_avg_cifar10_authors",
            "image_cnn10",
            15,
            2000,
            "cifar10",
            (*OF_THIS_PROJECT, RAW_LOOP),
            epochs=3,
            optimizer="sgd",
            learning_rate=0.1,
            momentum=0.9,
            weight_decay=5e-4,
            width=0.25,
            augment="crop_flip",
        ),
        # Two of Shakespeare's roles, who have 46 sequences of 80 characters on average.
        make_fed_avg(
            "fed_avg_shakespeare_char_lstm",
            "char_lstm",
            2,
            46,
            "shakespeare",
            (*OF_THIS_PROJECT, STOCK),
            batch_size=16,
            learning_rate=0.003,
        ),
        Workload(
            "fed_sikd_digits",
            "FedSiKD, 12 clients of digits, two epochs of students and teachers",
            {
                "algo": "fedsikd",
                "dataset": "digits",
                "num_clients": 12,
                "student_epochs": 2,
                "teacher_epochs": 2,
            },
        ),
        Workload(
            "fed_cd_digits",
            "FedCD, 10 devices of digits, two models from round 2 on",
            {
                "algo": "fedcd",
                "dataset": "digits",
                "clients_per_archetype": 1,
                "cohort_size": 10,
                "milestones": "1",
                "epochs": 2,
            },
        ),
        Workload(
            "amfl_p_building",
            "AMFL-P, 400 sensors of the building",
            {"algo": "amfl_p", "dataset": "building", "building_num_sensors": 400},
        ),
        Workload(
            "local_only_building",
            "local training, 40 sensors of the building",
            {"algo": "local_only", "dataset": "building", "building_num_sensors": 40},
        ),
        Workload(
            "async_periodic_digits",
            "asynchronous FL with periodic aggregation, 100 devices of digits, 30 a period",
            {"algo": "async_periodic", "dataset": "digits", "num_clients": 100, "max_scheduled": 30},
        ),
    )
}


def build_data(workload: Workload, folder: str) -> FederatedData:
    """The federation of a workload; its client files are in `folder` after the first call.

    A pure function of the workload, so every peer can call it for itself.
    """
    return load_federated_data(workload.build_config(folder))


# The peers of `launch.benchmark --device=gpu`, and the libraries that TensorFlow needs for it.

HOST = "host"
GPU_LOCK, GPU_LIBRARY = "requirements-gpu.lock", "nvidia-cudnn-cu11"


def make_gpu_peers(gpu: str, clients_at_a_time: Sequence[int], is_smoke: bool) -> dict[str, Peer]:
    """The peers by name: `gpu`, one more for each number of clients at a time, `host` and pfl-research.

    With `is_smoke`, those of the GPU compute on the CPU in its place.
    """
    if is_smoke:
        # PyTorch's threads wait for one another where others work.
        environment = {"OMP_NUM_THREADS": "1"}
        pfl = dataclasses.replace(PEERS[PFL], options={"num_processes": 1})
    else:
        environment = {
            "CUDA_VISIBLE_DEVICES": gpu,
            # As nvidia-smi counts; CUDA's own order begins with the fastest.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
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
