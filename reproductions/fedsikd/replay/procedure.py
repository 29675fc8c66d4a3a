"""The procedure that FedSiKD's published scripts carry out, and FedAvg of all clients beside it, in our terms.

Source: the facts read from github.com/SimuEnv/FedSiKD, commit 7e47aa4 (February 2024); none of its code. Models, local
training and evaluation are ours. docs/results/fedsikd_published_code.md says which printed rows each stands beside.

Softmax outputs with Keras's cross-entropy are the same as our logits with theirs, since Keras takes the logits from
under a softmax layer. The printed losses above 16.1 agree: a cross-entropy of clipped probabilities (1e-7) ends there.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.arrays import ArrayDataset
from launch.training.evaluation import Evaluation, build_evaluator
from models.catalog import build_model_spec
from models.model_spec import ModelSpec
from tff_algos.client.local_training import train_locally
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights

NUM_CLIENTS = 40
NUM_CLUSTERS = 4
LEADER = 1  # the second position of a cluster
# Keras's defaults for what the scripts do not hand over: the batch size and Adam's step size.
BATCH_SIZE, LEARNING_RATE = 32, 1e-3


# Passes over a client's examples in a round: of the leaders' teachers, and of "FedAvg"'s one client. Of HAR's the facts
# say nothing. On MNIST its 8 lie half way between the teacher's 10 and the students' 6; half way between HAR's 7 and 3
# is 5.
EPOCHS = {"mnist": (10, 8), "har": (7, 5)}


class Side(NamedTuple):
    """A model with what is done to it.

    Attributes:
      spec: the model.
      train: (weights, x, y, seed int32 (2,)) -> the weights after a round's local training.
      test: (weights) -> their evaluation on the whole test set.
    """

    spec: ModelSpec
    train: Callable[[Weights, np.ndarray, np.ndarray, np.ndarray], Weights]
    test: Callable[[Weights], Evaluation]


class Bench(NamedTuple):
    """A data set with both models on it; made once, as its graphs take seconds to trace."""

    arrays: ArrayDataset
    student: Side
    teacher: Side


Clients = Sequence[tuple[np.ndarray, np.ndarray]]  # the examples (x, y) of each


def build_bench(arrays: ArrayDataset, epochs: tuple[int, int]) -> Bench:
    """Makes the paper's student and teacher for a data set: Table III for images, Table IV for sequences."""
    spec = build_model_spec("auto", arrays.format)
    teacher, student = (
        _build_side(spec, arrays, num_epochs) for spec, num_epochs in zip((spec.teacher, spec), epochs, strict=True)
    )
    return Bench(arrays, student, teacher)


def _build_side(spec: ModelSpec, arrays: ArrayDataset, num_epochs: int) -> Side:
    config = LocalTrainingConfig(
        epochs=num_epochs, batch_size=BATCH_SIZE, optimizer="adam", learning_rate=LEARNING_RATE
    )
    model = spec.build()
    # Outside of TFF, a graph may make no variables of its own, so the model is made once before.
    built = dataclasses.replace(spec, build=lambda: model)
    weights_type = tuple(tf.TensorSpec(weight.shape, weight.dtype) for weight in model.weights)
    examples_type = tf.TensorSpec((None, *spec.format.input_shape), spec.format.input_dtype)

    @tf.function(
        input_signature=[weights_type, examples_type, tf.TensorSpec((None,), tf.int32), tf.TensorSpec((2,), tf.int32)]
    )
    def train_in_graph(weights, x, y, seed):
        deltas = train_locally(built, config, weights, x, y, seed, tf.constant(LEARNING_RATE)).weights_delta
        return tuple(weight + delta for weight, delta in zip(weights, deltas, strict=True))

    evaluate = build_evaluator(spec)

    def train(weights: Weights, x: np.ndarray, y: np.ndarray, seed: np.ndarray) -> Weights:
        return tuple(weight.numpy() for weight in train_in_graph(tuple(map(tf.constant, weights)), x, y, seed))

    return Side(spec, train, lambda weights: evaluate(weights, arrays.test_x, arrays.test_y))


def draw_owners(labels: np.ndarray, num_clients: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """The client of each example, int64, shape (examples,): drawn by its label's shares, which are Dirichlet(alpha).

    Unlike the suite's own partition, which rounds the shares, it draws each example, and a client may stay empty.

    Args:
      labels: integers, shape (examples,).
      num_clients: at least 1.
      alpha: above 0; small is skewed.
      rng: is advanced.
    """
    owners = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        owners[members] = rng.choice(num_clients, len(members), p=rng.dirichlet(np.full(num_clients, alpha)))
    return owners


def split_clients(arrays: ArrayDataset, alpha: float, split: int) -> Clients:
    """The examples of each of the 40 clients in the split of this number."""
    owners = draw_owners(arrays.train_y, NUM_CLIENTS, alpha, derive_generator(split, "published code: split"))
    return [(arrays.train_x[owners == client], arrays.train_y[owners == client]) for client in range(NUM_CLIENTS)]


def average(models: Sequence[Weights], shares: Sequence[float]) -> Weights:
    """The average of models, weighted by shares, which need not sum to 1."""
    total = float(sum(shares))
    return tuple(
        (sum(share * weight.astype(np.float64) for share, weight in zip(shares, arrays, strict=True)) / total).astype(
            np.float32
        )
        for arrays in zip(*models, strict=True)
    )


def replay(arm: str, bench: Bench, alpha: float, split: int, rounds: int) -> Iterator[Evaluation]:
    """The global model of an arm on the whole test set after each round.

    - "client_0", what "FedAvg" does: client 0 trains the student from the global weights, and its model is the global
      one.
    - "leaders", what "FedSiKD" and "Random" do: the plain mean of four clusters of ten neighbouring positions, whose
      average is (the teacher before its leader trained + (n - 1) x the leader's trained teacher) / n.
    - "fedavg" (McMahan et al. 2017): all clients train the student, and count by their examples.
    - "fl_hc", what FL+HC is read to do: a round of FedAvg, always from the first weights, and its mean added twice.
    """
    clients = split_clients(bench.arrays, alpha, split)
    side = bench.teacher if arm == "leaders" else bench.student
    weights = initialize_weights(side.spec, split)
    members = NUM_CLIENTS // NUM_CLUSTERS
    trainers = {"client_0": [0], "leaders": range(LEADER, NUM_CLIENTS, members)}.get(arm, range(NUM_CLIENTS))
    for round_num in range(1, rounds + 1):
        trained = [
            side.train(weights, *clients[i], derive_seed(split, "published code: training", round_num, i))
            for i in trainers
        ]
        if arm == "leaders":
            averages = [average([weights, each], [1, members - 1]) for each in trained]
            mean = average(averages, [1] * NUM_CLUSTERS)
        else:
            mean = average(trained, [len(clients[i][1]) for i in trainers]) if len(trained) > 1 else trained[0]
        if arm == "fl_hc":
            yield side.test(tuple(2 * weight for weight in mean))
        else:
            weights = mean
            yield side.test(weights)
