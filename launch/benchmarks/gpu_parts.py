"""What is measured on a GPU: full-size workloads, there and on the host, clients at a time, and pfl-research."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch.benchmarks.workloads import PEERS, PFL, WORKLOADS, Peer, Workload, make_fed_avg, name_random
from launch.settings.experiments import get_experiment
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from launch.settings.runtimes import CPU, GPU, IN_PROCESS

HOST = "host"
CIFAR10_ROUNDS = 1500  # of pfl-research's benchmark


class Machine(NamedTuple):
    """Where it is measured: the GPU as CUDA_VISIBLE_DEVICES names it, or in miniature on the CPU in its place."""

    gpu: str
    is_smoke: bool = False


class Part(NamedTuple):
    """A workload with its peers; the ratios are to the first of these, and `repeats` is the most timed rounds."""

    name: str
    workload: Workload
    peers: Mapping[str, Peer]
    repeats: int


def list_parts(machine: Machine, clients_at_a_time: Sequence[int], repeats: int, pfl_rounds: int) -> dict[str, Part]:
    """The parts by name, the quick ones first, so that a budget cuts off the long ones."""
    fed_avg, lstm = WORKLOADS["fed_avg_mnist_student"], _make_lstm()
    both = {GPU: _make_peer(machine, GPU), HOST: _make_peer(machine, CPU)}
    widths = {f"{GPU}_{number}": _make_peer(machine, GPU, number) for number in clients_at_a_time}
    beside_pfl = {GPU: both[GPU], PFL: _make_pfl(machine)}
    parts = (
        Part("fed_avg", fed_avg, both, repeats),
        Part("char_lstm", lstm, both, repeats),
        Part("pfl_cifar10", _make_cifar10(), beside_pfl, pfl_rounds),
        Part("fed_avg_at_a_time", fed_avg, widths, repeats),
        Part("char_lstm_at_a_time", lstm, widths, repeats),
        Part("fed_sikd", _make_fed_sikd(), both, repeats),
        Part("fed_cd", _make_fed_cd(), both, repeats),
    )
    return {part.name: _shrink(part) if machine.is_smoke else part for part in parts}


def _shrink(part: Part) -> Part:
    workload = dataclasses.replace(part.workload, settings={**part.workload.settings, "smoke": True})
    return part._replace(workload=workload)


def _make_peer(machine: Machine, device: str, clients_at_a_time: int | None = None) -> Peer:
    settings = {"runtime": IN_PROCESS, "device": CPU if machine.is_smoke else device}
    options = {"settings": settings, "clients_at_a_time": clients_at_a_time}
    number = f", {clients_at_a_time} clients at a time" if clients_at_a_time else ""
    environment = _see_gpu(machine) if device == GPU else {}
    return Peer("launch.benchmarks.ours", f"this project, --device={settings['device']}{number}", environment, options)


def _make_pfl(machine: Machine) -> Peer:
    options = {"num_processes": 1, "device": CPU if machine.is_smoke else "cuda"}
    description = "pfl-research 0.6.0 on PyTorch, one process"
    return dataclasses.replace(PEERS[PFL], description=description, environment=_see_gpu(machine), options=options)


def _see_gpu(machine: Machine) -> dict[str, str]:
    """The variables of a peer on the GPU."""
    if machine.is_smoke:
        return {"OMP_NUM_THREADS": "1"}  # PyTorch's threads wait for one another where others work
    return {
        "CUDA_VISIBLE_DEVICES": machine.gpu,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # as nvidia-smi counts
        # A card newer than TensorFlow's kernels has these compiled by the driver, once: they must fit its cache.
        "CUDA_CACHE_MAXSIZE": str(4 * 2**30),
    }


def _make_lstm() -> Workload:
    settings = {"batch_size": 16, "learning_rate": 0.003}
    return make_fed_avg("fed_avg_shakespeare_cohort", "char_lstm", 10, 46, "shakespeare", **settings)


def _make_cifar10() -> Workload:
    """The benchmark of pfl-research, benchmarks/image_classification/configs/baseline.yaml, on random images."""
    return make_fed_avg(
        "fed_avg_cifar10_pfl",
        "emnist_cnn",
        1000,
        50,
        "cifar10",
        batch_size=10,
        optimizer="sgd",
        learning_rate=0.1,
        cohort_size=50,
    )


def _make_fed_sikd() -> Workload:
    return _take_experiment("fedsikd/fedsikd_mnist_alpha0.1", name_random("mnist", 60_000))


def _make_fed_cd() -> Workload:
    # Test examples are only evaluated on, which is not timed.
    return _take_experiment("fedcd/fedcd_cifar10_hierarchical_paper", name_random("cifar10", 50_000), test_per_client=0)


def _take_experiment(name: str, dataset: str, **changes: Any) -> Workload:
    """An experiment of a paper on random examples in place of its data."""
    values = flag_values(parse_config([f"--experiment={name}"]))
    settings = {flag: values[flag] for flag in get_experiment(name).flags}
    return Workload(
        name.rpartition("/")[2],
        f"the experiment {name} on random examples",
        {**settings, "dataset": dataset, **changes},
    )
