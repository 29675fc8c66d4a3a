"""The order of a client's examples in a task, as it travels: the very shuffles of local training."""

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tff_algos.settings.local_training import LocalTrainingConfig

MOST_OF_UINT16 = 2**16  # examples whose indices have two bytes
MOST_BYTES = 2**27  # of an order
_MADE_AT_ONCE = 2**20  # entries, and those of one client more
_FEW = 4  # epochs up to which to call a graph takes longer


class Order(NamedTuple):
    """Which examples a client trains on, one batch after another.

    Attributes:
      steps: to take.
      order: indices of its examples, a permutation an epoch, uint16 or, from 65,537 examples on, uint32;
        shape (epochs, examples). Step k takes the rows (k % per) * batch_size to (k % per + 1) * batch_size of epoch
        k // per, where per is the number of batches in an epoch; the last batch may be smaller.
    """

    steps: int
    order: np.ndarray


def count_most_examples(training: LocalTrainingConfig) -> int:
    """How many examples a client may have, so that its order has no more than so many bytes; at least 1."""
    entries = MOST_BYTES // np.dtype(np.uint32).itemsize
    # Steps take a part of their last epoch, which is ordered as a whole.
    return max(entries - training.steps * training.batch_size if training.steps else entries // training.epochs, 1)


def order_all(training: LocalTrainingConfig, numbers: Sequence[int], seeds: Sequence[np.ndarray]) -> Iterator[Order]:
    """The orders that local training takes, of clients with so many examples each, in their order; not inside a graph.

    Args:
      training: settings of the training.
      numbers: of examples of each client.
      seeds: of each, int32, shape (2,).
    """
    shapes = [_find_shape(training, number) for number in numbers]
    # By the entries before each client, so that what is made at once has a bound.
    before = np.cumsum([0, *(epochs * number for _, epochs, number in shapes)]) // _MADE_AT_ONCE
    pairs = zip(shapes, seeds, before[:-1].tolist(), strict=True)
    for _, group in itertools.groupby(pairs, operator.itemgetter(2)):
        yield from _order_few([(*shape, seed) for shape, seed, _ in group])


def _find_shape(training: LocalTrainingConfig, num_examples: int) -> tuple[int, int, int]:
    """The steps of a client, the epochs that these begin, and its examples."""
    per_epoch = -(-num_examples // training.batch_size)
    steps = (training.steps or training.epochs * per_epoch) if num_examples else 0
    return steps, -(-steps // max(per_epoch, 1)), num_examples


def _order_few(clients: Sequence[tuple[int, int, int, np.ndarray]]) -> Iterator[Order]:
    """Of steps, epochs, examples and seed of each."""
    rows = [(seed, epoch, number) for _, epochs, number, seed in clients for epoch in range(epochs)]
    if len(rows) <= _FEW:
        entries = np.concatenate([np.zeros(0, np.int32), *(_shuffle(*row) for row in rows)])
    else:
        entries = _shuffle_all(*(np.array(each, np.int32) for each in zip(*rows, strict=True))).numpy()
    for steps, epochs, number, _ in clients:
        own, entries = np.split(entries, [epochs * number])
        dtype = np.uint16 if number <= MOST_OF_UINT16 else np.uint32
        yield Order(steps, own.reshape(epochs, number).astype(dtype))


def _shuffle(seed: tf.Tensor, epoch: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    return tf.random.experimental.stateless_shuffle(
        tf.range(number), tf.random.experimental.stateless_fold_in(seed, epoch)
    )


@tf.function(
    input_signature=[tf.TensorSpec(shape, tf.int32) for shape in ((None, 2), (None,), (None,))], autograph=False
)
def _shuffle_all(seeds: tf.Tensor, epochs: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """The orders of these epochs, one behind the other. As a graph, since a call of an operation takes long."""

    def shuffle(index: tf.Tensor) -> tf.Tensor:
        return _shuffle(seeds[index], epochs[index], numbers[index])

    rows = tf.TensorArray(tf.int32, tf.size(epochs), infer_shape=False, element_shape=(None,))
    _, rows = tf.while_loop(
        lambda index, _: index < tf.size(epochs),
        lambda index, rows: (index + 1, rows.write(index, shuffle(index))),
        (0, rows),
    )
    return rows.concat()
