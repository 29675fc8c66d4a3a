"""The order of a client's examples in a task, as it travels: the very shuffles of local training."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tff_algos.settings.local_training import LocalTrainingConfig

MOST_OF_UINT16 = 2**16  # examples whose indices have two bytes
MOST_BYTES = 2**27  # of an order


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


def order_examples(training: LocalTrainingConfig, num_examples: int, seed: np.ndarray) -> Order:
    """The order that local training takes with this seed, int32, shape (2,); not while a graph is traced."""
    per_epoch = -(-num_examples // training.batch_size)
    steps = (training.steps or training.epochs * per_epoch) if num_examples else 0
    dtype = np.uint16 if num_examples <= MOST_OF_UINT16 else np.uint32
    order = np.empty((-(-steps // max(per_epoch, 1)), num_examples), dtype)
    for epoch in range(len(order)):
        epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
        order[epoch] = tf.random.experimental.stateless_shuffle(tf.range(num_examples), epoch_seed).numpy()
    return Order(steps, order)
