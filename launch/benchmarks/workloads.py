"""What is timed, and on which data: the tables of workloads and peers. Imports no TensorFlow.

A new workload is one entry of `WORKLOADS`; a new competitor one of `PEERS`, and a module with a context manager
`open_rounds(workload, folder, **options)` that yields a function without arguments, which runs one round.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.arrays import MNIST_FORMAT, make_array_dataset
from datasets.federate import PartitionSettings, build_federated_data
from datasets.federated_data import FederatedData
from launch.worker_process import default_threads

OURS = "ours"
OURS_QAT = "ours_qat"
RAW_LOOP = "raw_loop"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A program that can run the rounds of a workload.

    Attributes:
      module: where its `open_rounds` is.
      description: for the table.
      environment: variables set in its process.
      options: passed on to its `open_rounds`.
    """

    module: str
    description: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


OUR_THREADS = default_threads()

PEERS = {
    OURS: Peer("launch.benchmarks.ours", "this project, its runtime and its threads"),
    RAW_LOOP: Peer(
        "launch.benchmarks.raw_loop",
        "TensorFlow alone, data in memory, a single-threaded process a core: the machine's limit",
        {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"},
    ),
    "stock_tff_tuned": Peer(
        "launch.benchmarks.stock_tff",
        "tff.learning's weighted FedAvg, threads as ours",
        {
            "TF_NUM_INTRAOP_THREADS": str(OUR_THREADS.intra_op),
            "TF_NUM_INTEROP_THREADS": str(OUR_THREADS.inter_op),
            "OMP_NUM_THREADS": str(OUR_THREADS.intra_op),
        },
        {"max_concurrent_calls": OUR_THREADS.concurrent_calls},
    ),
    OURS_QAT: Peer(
        "launch.benchmarks.ours",
        "this project, quantization-aware training (--quantize=qat)",
        options={"quantize": "qat"},
    ),
    "stock_tff": Peer("launch.benchmarks.stock_tff", "tff.learning's weighted FedAvg, default threads"),
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """Federated rounds on random images; all clients take part, and train on all their examples, with Adam.

    Attributes:
      name: its key in the results.
      algo: the algorithm that `ours` runs, as `--algo` spells it.
      model: as `--model` spells it.
      num_clients: clients, all of them in every round.
      num_examples: examples of each client, in the format of MNIST.
      batch_size: examples in a mini-batch.
      epochs: passes over a client's examples in a round.
      learning_rate: of Adam.
      seed: of the data, the first weights and the order of the examples.
      trainings: the prefixes of the algorithm's flags for local training, for example "student_".
      peers: keys of `PEERS` that can run it, in the order in which they take turns.
    """

    name: str
    algo: str
    model: str
    num_clients: int
    num_examples: int
    batch_size: int = 64
    epochs: int = 1
    learning_rate: float = 1e-3
    seed: int = 0
    trainings: tuple[str, ...] = ("",)
    peers: tuple[str, ...] = (OURS, RAW_LOOP, "stock_tff_tuned", "stock_tff")

    def describe(self) -> str:
        """One line for a heading."""
        return (
            f"{self.name}: {self.num_clients} clients x {self.num_examples} examples, batch {self.batch_size}, "
            f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("fed_avg_mnist_student", "fedavg", "image_student", num_clients=40, num_examples=1500),
        Workload(
            "fed_avg_mnist_student_qat",
            "fedavg",
            "image_student",
            num_clients=40,
            num_examples=1500,
            peers=(OURS, OURS_QAT),
        ),
        Workload(
            "fed_sikd_mnist_student_qat",
            "fedsikd",
            "image_student",
            num_clients=40,
            num_examples=1500,
            trainings=("student_", "teacher_"),
            peers=(OURS, OURS_QAT),
        ),
    )
}


def build_data(workload: Workload, folder: str) -> FederatedData:
    """The federation of a workload, all of it for training; its shards are in `folder` after the first call.

    A pure function of the workload, so every peer can call it for itself.
    """
    generator = np.random.default_rng(workload.seed)
    num_examples = workload.num_clients * workload.num_examples
    x = generator.integers(0, 256, (num_examples, *MNIST_FORMAT.input_shape), np.uint8)
    y = generator.integers(0, len(MNIST_FORMAT.class_names), num_examples, np.int32)
    arrays = make_array_dataset(
        workload.name, (x, y), (x[:1], y[:1]), MNIST_FORMAT.class_names, MNIST_FORMAT.preprocessing
    )
    settings = PartitionSettings(
        "iid", workload.num_clients, validation_fraction=0.0, test_fraction=0.0, seed=workload.seed
    )
    return build_federated_data(arrays, settings, folder)
