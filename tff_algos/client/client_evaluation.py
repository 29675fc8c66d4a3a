"""How well each client's models do on a split of its own: many models and many clients in one computation.

Functional type: (models@SERVER, {EvaluationInput}@CLIENTS) -> {sums over examples by model}@CLIENTS
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import ClientFiles
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.cohort import pad_cohort
from tff_algos.late_computation import LateComputation
from tff_algos.protocol import Weights
from tff_algos.weights import build_stacked_type, build_type

_BATCH_SIZE = 500  # bounds the memory of the activations
SCORES, LOSSES = "scores", "losses"  # what is summed


class EvaluationInput(NamedTuple):
    """A client's path prefix, "" for an empty slot, and which models it evaluates, bool, shape (models,)."""

    path: str
    is_asked: np.ndarray


def build_client_evaluation(
    model_spec: ModelSpec, template_weights: Weights, num_models: int, split: str, what: str = SCORES
) -> Callable[[Weights, Sequence[ClientFiles], np.ndarray], np.ndarray]:
    """Returns `evaluate(models, clients, is_asked) -> scores`, for models stacked along axis 0.

    `is_asked`, bool, shape (clients, models), says which client evaluates which model; the other pairs cost nothing.
    `scores`, of that shape, sums `Task.compute_scores` over the examples, 0 where it was not asked. Where examples are
    right or wrong, it is the number of correct ones, int64; for other tasks it is float64, at most their number. Of
    `LOSSES` it sums what training lowers in place of that, float64: the examples' training losses, of class weights or
    a loss of the user's own, by their weights; on the train split also times what the data weigh them by.

    Args:
      model_spec: the models.
      template_weights: one model's weights, for their shapes and dtypes.
      num_models: how many are stacked.
      split: "train", "validation" or "test".
      what: `SCORES` or `LOSSES`.
    """
    # One computation for all models: each would trace its own graph otherwise.
    models_type = build_stacked_type(template_weights, num_models)
    blank = EvaluationInput("", np.zeros(num_models, bool))  # of an empty slot, which is asked nothing
    run = LateComputation(_build, model_spec, models_type, build_type(blank), split, what)
    dtype = get_sum_dtype(model_spec) if what == SCORES else np.float64

    def evaluate(models: Weights, clients: Sequence[ClientFiles], is_asked: np.ndarray) -> np.ndarray:
        inputs = [EvaluationInput(client.path, asked) for client, asked in zip(clients, is_asked, strict=True)]
        padded = pad_cohort(inputs, padding=blank)
        return np.array(run(models, padded)[: len(inputs)], dtype)

    return evaluate


def _build(model_spec: ModelSpec, models_type: tff.Type, input_type: tff.Type, split: str, what: str) -> Callable:
    """(models@SERVER, {EvaluationInput}@CLIENTS) -> {sums by model}@CLIENTS."""

    @tff.tensorflow.computation(models_type, input_type)
    def client_work(models, client):
        x, y = read_split(client.path, split, model_spec)
        return sum_over_examples(model_spec, models, client.is_asked, x, y, what)

    @tff.federated_computation(tff.FederatedType(models_type, tff.SERVER), tff.FederatedType(input_type, tff.CLIENTS))
    def run(models, clients):
        return tff.federated_map(client_work, (tff.federated_broadcast(models), clients))

    return run


def get_sum_dtype(model_spec: ModelSpec) -> type:
    """The dtype in which the host keeps sums of scores: int64 for counts, else float64."""
    return np.int64 if model_spec.task.score_dtype == "int32" else np.float64


def sum_over_examples(
    model_spec: ModelSpec, models: Sequence[tf.Tensor], is_asked: tf.Tensor, x: tf.Tensor, y: tf.Tensor, what: str
) -> tf.Tensor:
    """The sum of the examples' scores by model, shape (models,), in the task's `score_dtype`; or of losses, float32.

    Call it while a graph is traced.

    Args:
      model_spec: the models.
      models: stacked along axis 0, in the order of `keras_model.weights`.
      is_asked: the models to evaluate, bool, shape (models,); 0 for the others.
      x: examples as stored, shape (examples, *input_shape).
      y: labels as `read_split` gives them.
      what: `SCORES` or `LOSSES`.
    """
    model, task = model_spec.build(), model_spec.task
    num_models = is_asked.shape[0]

    def measure(y, outputs):
        labels, example_weights = split_labels(y, task)
        if what == SCORES:
            return task.compute_scores(labels, outputs)
        losses = task.compute_training_losses(labels, outputs) * task.compute_weights(labels)
        return losses if example_weights is None else losses * example_weights

    @tf.function
    def add_up(x, y):
        num_examples = tf.shape(y)[0]
        sums = tf.zeros(num_models, task.score_dtype if what == SCORES else tf.float32)
        # One Keras model serves all: its variables take the weights of one row after another.
        for index in tf.range(num_models):
            # A branch of the graph: a model that is not asked for costs neither reading nor time.
            if is_asked[index]:
                for variable, stacked in zip(model.weights, models, strict=True):
                    variable.assign(stacked[index])
                for start in tf.range(0, num_examples, _BATCH_SIZE):
                    end = start + _BATCH_SIZE
                    outputs = tf.cast(model(model_spec.preprocess(x[start:end]), training=False), tf.float32)
                    total = tf.reduce_sum(measure(y[start:end], outputs))
                    sums = tf.tensor_scatter_nd_add(sums, [[index]], [total])
        return sums

    return add_up(x, y)
