"""The one local training loop: what a client computes between receiving a model and sending its update.

The loop works on dense arrays. It shuffles indices with a stateless op, gathers a batch, preprocesses it in the graph
and takes a step; this measured several times faster than a `tf.data` pipeline that handles one example at a time. Its
result is a pure function of (weights, anchor, examples, seed, learning rate), bit for bit on one machine with one
thread an operation.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from datasets.own_objects import ContractError
from models.model_spec import ModelSpec
from tff_algos.client.client_data import split_labels
from tff_algos.client.joined_optimizer import JoinedOptimizer, as_written
from tff_algos.client.training_steps import Examples, LossFn, OptimizerRule, StepRule, TrainingSteps, divide_up
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import is_float


class LocalResult(NamedTuple):
    """The result of local training.

    Attributes:
      weights_delta: trained - initial, one tensor for each floating-point weight; zeros if not finite.
      squared_norm: of the whole update, float32; 0 if not finite.
      loss_sum: loss summed over all trained examples by their weights, with class weights, the model's own losses and
        the proximal term, float32; 0 if not finite.
      num_trained: the weight of what was trained on, each epoch counted, float32: the number of examples, or of tokens
        where the task weighs by these.
      is_finite: whether the squared norm and the loss are finite, and with them every weight, bool.
    """

    weights_delta: tuple[tf.Tensor, ...]
    squared_norm: tf.Tensor
    loss_sum: tf.Tensor
    num_trained: tf.Tensor
    is_finite: tf.Tensor


def count_examples_trained(config: LocalTrainingConfig, num_examples: int) -> int:
    """Examples that a client with `num_examples` trains on in a round, each epoch counted."""
    if config.steps:
        # The last batch of an epoch may be smaller, so steps are no fixed number of examples.
        full_epochs, rest = divmod(config.steps, -(-num_examples // config.batch_size))
        return full_epochs * num_examples + min(rest * config.batch_size, num_examples)
    return config.epochs * num_examples


def train_locally(
    model_spec: ModelSpec,
    config: LocalTrainingConfig,
    weights: tuple[tf.Tensor, ...],
    x: tf.Tensor,
    y: tf.Tensor,
    seed: tf.Tensor,
    learning_rate: tf.Tensor,
    loss_fn: LossFn | None = None,
    targets: tf.Tensor | None = None,
    num_steps: tf.Tensor | None = None,
    anchor: tuple[tf.Tensor, ...] | None = None,
    correction: tuple[tf.Tensor, ...] | None = None,
    chosen: Sequence[bool] | None = None,
) -> LocalResult:
    """Trains the model from `weights` on a client's examples; call it while a graph is traced.

    Each epoch visits the examples in a new order, and its last batch may be partial. A client without examples returns
    zeros. The loss of a batch is `loss_fn` plus the model's own losses, those of its regularizers, plus the proximal
    term, mu / 2 * |trained weights - anchor|^2; class weights multiply the loss of labels in the first alone. After
    each step the model's constraints on its weights are applied.

    Args:
      model_spec: the model.
      config: epochs or steps, batch size, optimizer, weight decay, proximal weight mu.
      weights: start weights in the order of `model.weights`.
      x: examples as stored, shape (examples, *input_shape).
      y: labels as `read_split` gives them: with weights, by which the examples' losses are multiplied, or without.
      seed: int32, shape (2,); orders, dropout masks and augmentation are derived from it.
      learning_rate: float32 scalar.
      loss_fn: the loss of a batch; None is the task's.
      targets: what the loss needs beside the labels, a row an example, shape (examples, ...), e.g. a teacher's logits.
      num_steps: int32 scalar, the steps to take in place of the config's epochs or steps.
      anchor: the weights that the proximal term pulls to, in the order of `model.weights`; None: the start weights.
      correction: what is added to every gradient, one for each floating-point weight; None for nothing.
      chosen: whether each weight, in the order of `model.weights`, is trained if it can be; None for all. The others
        are fixed, but for what is not trained anyway: BatchNorm's statistics move in every layer.
    """
    arguments = model_spec, config, weights, x, y, seed, learning_rate
    return train_by_rule(
        *arguments, OptimizerRule, loss_fn, targets, num_steps, anchor=anchor, correction=correction, chosen=chosen
    )[0]


def train_by_rule(
    model_spec: ModelSpec,
    config: LocalTrainingConfig,
    weights: tuple[tf.Tensor, ...],
    x: tf.Tensor,
    y: tf.Tensor,
    seed: tf.Tensor,
    learning_rate: tf.Tensor,
    make_rule: Callable[[JoinedOptimizer, tf.keras.Model], StepRule],
    loss_fn: LossFn | None = None,
    targets: tf.Tensor | None = None,
    num_steps: tf.Tensor | None = None,
    anchor: tuple[tf.Tensor, ...] | None = None,
    correction: tuple[tf.Tensor, ...] | None = None,
    chosen: Sequence[bool] | None = None,
) -> tuple[LocalResult, Any]:
    """As `train_locally`, but a step is what a rule says; returns what the rule ends with, too.

    The rule is made of the optimizer, whose variables are those that are trained, and of the model. What it ends with
    is not judged: `reject_if_not_finite` does it.
    """
    model = model_spec.build()
    # By variable, since Keras's lists of variables have different orders.
    is_chosen = _key_by_variable("chosen", model.weights, [True] * len(weights) if chosen is None else chosen)
    trained = [variable for variable in model.trainable_variables if is_chosen[variable.ref()]]
    start_of = _key_by_variable("weights", model.weights, weights)
    pulled_to = _order_as(trained, "anchor", model.weights, weights if anchor is None else anchor)
    sent = [variable for variable in model.weights if is_float(variable)]
    corrections = () if correction is None else _order_as(trained, "correction", sent, correction)
    options = loss_fn, pulled_to, corrections, make_rule
    labels, example_weights = split_labels(y, model_spec.task)
    steps = TrainingSteps(model_spec, model, config, trained, learning_rate, *options)

    # `tf.function` turns the Python loops into loops of the graph, and keeps reads and assignments of the Keras
    # variables in the order in which they stand here.
    @tf.function
    def train(x, y, targets, num_steps, example_weights):
        for variable in model.weights:
            variable.assign(start_of[variable.ref()])
        progress = steps.take(
            Examples(x, y, targets, example_weights), count_steps(config, tf.shape(y)[0], num_steps), seed
        )
        # All float weights, not only the trained ones: BatchNorm's statistics and quantization ranges travel, too.
        deltas = [v - start_of[v.ref()] for v in sent]
        return (deltas, progress.loss_sum, progress.num_trained), steps.rule.finish(progress.carried)

    result, finished = train(x, labels, targets, num_steps, example_weights)
    return reject_if_not_finite(*result), finished


def _key_by_variable(name: str, variables, values) -> dict:
    """Values by variable, since `trainable_variables` has not the order of `model.weights`, nor all of them."""
    if len(values) != len(variables):
        raise ContractError(
            f"train_locally: {name} has {len(values)} entries, expected {len(variables)}, one for each weight"
        )
    for index, (variable, value) in enumerate(zip(variables, values, strict=True)):
        shape = getattr(value, "shape", variable.shape)  # a choice has none
        if not variable.shape.is_compatible_with(shape):
            expected = f"{tuple(variable.shape)}, as {variable.name} has"
            raise ContractError(f"train_locally: {name}[{index}] has shape {tuple(shape)}, expected {expected}")
    return {variable.ref(): value for variable, value in zip(variables, values, strict=True)}


def _order_as(trained, name: str, variables, values) -> tuple[tf.Tensor, ...]:
    """Of the values, one for each of the variables, those of `trained`, in its order."""
    value_of = _key_by_variable(name, variables, values)
    return tuple(value_of[variable.ref()] for variable in trained)


@as_written
def count_steps(config: LocalTrainingConfig, num_examples: tf.Tensor, num_steps: tf.Tensor | None = None) -> tf.Tensor:
    """Steps that a client with so many examples takes in a round, int32, in any graph; none without examples.

    They are `num_steps`, or what the config says.
    """
    if num_steps is None:
        num_steps = config.steps or config.epochs * divide_up(num_examples, config.batch_size)
    return tf.where(num_examples > 0, num_steps, 0)


def reject_if_not_finite(deltas: Sequence[tf.Tensor], loss_sum: tf.Tensor, num_trained: tf.Tensor) -> LocalResult:
    """The result with these deltas, or zeros in its place if they are not finite or their squared norm overflows.

    The values are replaced, because a weight of 0 in the sum would not do: 0 x NaN is NaN.
    """
    # One NaN or infinity anywhere makes the sum of squares not finite, so this one test covers all weights.
    squared_norm = tf.add_n([tf.reduce_sum(tf.square(delta)) for delta in deltas])
    is_finite = tf.math.is_finite(squared_norm) & tf.math.is_finite(loss_sum)
    finite = tuple(tf.where(is_finite, delta, tf.zeros_like(delta)) for delta in deltas)
    norm, loss, trained = (tf.where(is_finite, value, 0.0) for value in (squared_norm, loss_sum, num_trained))
    return LocalResult(finite, norm, loss, trained, is_finite)


def reject_unless(is_fine: tf.Tensor, result: LocalResult) -> LocalResult:
    """The result, or zeros in its place unless `is_fine`, too: what belongs together is rejected together."""
    is_finite = result.is_finite & is_fine
    return tf.nest.map_structure(lambda value: tf.where(is_finite, value, tf.zeros_like(value)), result)


def predict_logits(
    model_spec: ModelSpec, weights: tuple[tf.Tensor, ...], x: tf.Tensor, output_shape: tuple[int, ...] | None = None
) -> tf.Tensor:
    """Outputs for stored examples, float32, shape (examples, *output_shape), in inference mode and in any graph.

    They are computed in batches, to bound the memory. None for `output_shape` is the task's.
    """
    model = model_spec.build()
    output_shape = output_shape or model_spec.task.output_shape
    batch_size = 500

    @tf.function
    def predict(x):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        # The number of examples is unknown while the graph is made, so the loop is TensorFlow's.
        num_batches = (tf.shape(x)[0] + batch_size - 1) // batch_size
        # Batches differ in size, so the array's elements have no common static shape.
        shape = (None, *output_shape)
        batches = tf.TensorArray(tf.float32, num_batches, infer_shape=False, element_shape=shape)
        for index in tf.range(num_batches):
            batch = x[index * batch_size : (index + 1) * batch_size]
            batches = batches.write(index, model(model_spec.preprocess(batch), training=False))
        return tf.ensure_shape(batches.concat(), shape)

    # `concat` refuses an array of no batches.
    return tf.cond(tf.shape(x)[0] > 0, lambda: predict(x), lambda: tf.zeros((0, *output_shape)))
