"""The tables of workloads (what is timed, on which data) and of peers (who runs it). Imports no TensorFlow.

A new workload is one entry of `WORKLOADS`; a new competitor one of `PEERS`, and a module with a context manager
`open_rounds(workload, folder, **options)` that yields a function without arguments, which runs one round.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.arrays import make_array_dataset
from datasets.character_text import choose_character_format
from datasets.cifar10 import CIFAR10_FORMAT
from datasets.dataset import DatasetOptions
from datasets.federate import PartitionSettings, build_federated_data
from datasets.federated_data import FederatedData
from datasets.mnist import MNIST_FORMAT
from launch.settings.runtimes import IN_PROCESS, TFF

TEXT = "shakespeare"
FORMATS = {"mnist": MNIST_FORMAT, "cifar10": CIFAR10_FORMAT, TEXT: choose_character_format(DatasetOptions())}
OURS = "ours"
RAW_LOOP = "raw_loop"
PFL = "pfl_research"
STOCK = "stock_tff"
PFL_ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / ".venv-pfl"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A program that can run the rounds of a workload.

    Attributes:
      module: where its `open_rounds` is.
      description: for the table.
      environment: variables set in its process.
      options: passed on to its `open_rounds`.
      set_up: the command that makes its environment of its own, with the file that is there when this is done.
    """

    module: str
    description: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    set_up: tuple[str, pathlib.Path] | None = None

    def explain_absence(self) -> str | None:
        """Why it cannot run, and how to fix that; None if it can."""
        if self.set_up is None or self.set_up[1].exists():
            return None
        return f"{self.set_up[1].parent.name} is not set up; make it with: {self.set_up[0]}"


PEERS = {
    OURS: Peer("launch.benchmarks.ours", "this project with TFF's worker (--runtime=tff)", options={"runtime": TFF}),
    IN_PROCESS: Peer(
        "launch.benchmarks.ours",
        "this project with TensorFlow in its own process (--runtime=in_process)",
        options={"runtime": IN_PROCESS},
    ),
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
    STOCK: Peer("launch.benchmarks.stock_tff", "tff.learning's weighted FedAvg, default threads"),
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """Rounds of FedAvg on random images or random text; all clients take part, and train on all their examples.

    Attributes:
      name: its key in the results.
      model: as `--model` spells it.
      num_clients: clients, all of them in every round.
      num_examples: examples that each client trains on, in the format of `images`.
      batch_size: examples in a mini-batch.
      epochs: passes over a client's examples in a round.
      learning_rate: of the optimizer.
      seed: of the data, the first weights and the order of the examples.
      settings: of the optimizer "sgd": its momentum and weight decay.
      images: a key of `FORMATS`.
      model_options: further arguments of `models.catalog.build_model_spec`.
      optimizer: "adam" or "sgd".
      peers: keys of `PEERS` that can run it, in the order in which they take turns.
    """

    name: str
    model: str
    num_clients: int
    num_examples: int
    batch_size: int = 64
    epochs: int = 1
    learning_rate: float = 1e-3
    seed: int = 0
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    images: str = "mnist"
    model_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    optimizer: str = "adam"
    peers: tuple[str, ...] = (OURS, IN_PROCESS, RAW_LOOP, PFL, STOCK)

    def describe(self) -> str:
        """One line for a heading."""
        work = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.settings.items())
        epochs = f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        examples = f"{self.num_clients} clients x {self.num_examples} examples, batch {self.batch_size}"
        return f"{self.name}: {examples}, {epochs}{work and f', {work}'}"


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("fed_avg_mnist_student", "image_student", num_clients=40, num_examples=1500),
        Workload(  # a round of FedAvg trained as by FedCD's authors: the experiment fedavg_cifar10_hierarchical_authors
            "fed_avg_cifar10_authors",
            "image_cnn10",
            num_clients=15,
            num_examples=2000,
            epochs=3,
            learning_rate=0.1,
            settings={"momentum": 0.9, "weight_decay": 5e-4},
            images="cifar10",
            model_options={"width": 0.25, "augment": "crop_flip"},
            optimizer="sgd",
            peers=(OURS, IN_PROCESS, RAW_LOOP),
        ),
        Workload(  # a cohort of Shakespeare's roles, who have 46 sequences of 80 characters on average
            "fed_avg_shakespeare_char_lstm",
            "char_lstm",
            num_clients=10,
            num_examples=46,
            batch_size=16,
            learning_rate=0.003,
            images=TEXT,
            peers=(OURS, IN_PROCESS, STOCK),
        ),
    )
}


def build_data(workload: Workload, folder: str) -> FederatedData:
    """The federation of a workload; its client files are in `folder` after the first call.

    A pure function of the workload, so every peer can call it for itself.
    """
    generator, image_format = np.random.default_rng(workload.seed), FORMATS[workload.images]
    num_examples = workload.num_clients * workload.num_examples
    if image_format.takes_tokens:
        length, num_tokens = image_format.input_shape[0], image_format.labels.num_outputs
        text = generator.integers(1, num_tokens, (num_examples, length + 1), np.int32)  # 0 is padding
        x, y = text[:, :-1], text[:, 1:]
    else:
        x = generator.integers(0, 256, (num_examples, *image_format.input_shape), np.uint8)
        y = generator.integers(0, len(image_format.class_names), num_examples, np.int32)
    arrays = make_array_dataset(
        workload.name,
        (x, y),
        (x[:1], y[:1]),
        image_format.class_names,
        image_format.preprocessing,
        labels=image_format.labels,
        takes_tokens=image_format.takes_tokens,
    )
    settings = PartitionSettings(
        "iid", workload.num_clients, validation_fraction=0.0, test_fraction=0.0, seed=workload.seed
    )
    return build_federated_data(arrays, settings, folder)
