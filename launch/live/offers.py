"""What clients are told: of the run when they are welcome, and of the work of a task."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from launch.live.referee import TrainingFile
from tff_algos.protocol import Weights
from tff_algos.settings.local_training import LocalTrainingConfig

OVERHEAD_BYTES = 2**16  # of a message beside its weights: most of a header of many arrays


class Offer(NamedTuple):
    """What clients are told of the run when they are welcome.

    Attributes:
      name: of the run: its algorithm and data set.
      file: that they train by.
      training: the settings of their training.
      weights: the model's, in the order of `keras_model.weights`; their shapes and dtypes count.
      input_shape: of an example, as the file's `train` takes it.
      num_classes: of the labels.
      class_names: "" or names in order.
      rounds: of the run.
    """

    name: str
    file: TrainingFile
    training: LocalTrainingConfig
    weights: Weights
    input_shape: tuple[int, ...]
    num_classes: int
    class_names: Sequence[str]
    rounds: int


def pick_weights(file: TrainingFile, weights: Weights) -> dict[str, np.ndarray]:
    """Of a model's weights those that a client needs, by their names in a message."""
    return {
        name: np.asarray(weights[position], np.float32)
        for name, position in zip(file.names, file.positions, strict=True)
    }


def describe_work(offer: Offer, steps: int, learning_rate: np.float32) -> dict[str, Any]:
    """What the headers of `train` and `fine_tune` say of the training itself; the offer is the run's or last task's."""
    return {"learning_rate": float(learning_rate), "steps": steps, "batch_size": offer.training.batch_size}


def count_most_bytes(weights: Weights) -> int:
    """Bytes of the largest message that a client may send: an update of a model with these weights."""
    return OVERHEAD_BYTES + sum(4 * np.asarray(weight).size + 200 for weight in weights)
