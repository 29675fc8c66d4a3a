"""The one local training loop: what a client computes between receiving a model and sending its update.

The loop works on dense arrays. It shuffles indices with a stateless op, gathers a batch, preprocesses it in the graph
and takes a step; this measured several times faster than a `tf.data` pipeline that handles one example at a time. Its
result is a pure function of (weights, anchor, examples, seed, learning rate), bit for bit on one machine with one
thread an operation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from models.stateless_dropout import dropout_seed
from models.task import Task
from models.training_terms import add_own_losses
from tff_algos.client.joined_optimizer import JoinedOptimizer, as_written
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import is_float


class Batch(NamedTuple):
    """What a loss sees in a step.

    Attributes:
      labels: in the task's dtype, shape (batch, *label_shape); int32, (batch,), in classification.
      logits: the model's outputs, float32, shape (batch, *output_shape); (batch, classes) in classification.
      targets: the batch's rows of what the loss needs beside the labels, shape (batch, ...); None without such.
      trained: the trainable weights as they are in this step.
      anchor: the weights that a pull goes to, one for each of `trained`.
    """

    labels: tf.Tensor
    logits: tf.Tensor
    targets: tf.Tensor | None
    trained: tuple[tf.Tensor, ...]
    anchor: tuple[tf.Tensor, ...]


LossFn = Callable[[Batch], tf.Tensor]  # a scalar, the mean over the batch


class LocalResult(NamedTuple):
    """The result of local training.

    Attributes:
      weights_delta: trained - initial, one tensor for each floating-point weight; zeros if not finite.
      squared_norm: of the whole update, float32; 0 if not finite.
      loss_sum: loss summed over all trained examples by their weights, with the model's own losses and the proximal
        term, float32; 0 if not finite.
      num_trained: the weight of what was trained on, each epoch counted, float32: the number of examples, or of tokens
        where the task weighs by these.
      is_finite: whether the squared norm and the loss are finite, and with them every weight, bool.
    """

    weights_delta: tuple[tf.Tensor, ...]
    squared_norm: tf.Tensor
    loss_sum: tf.Tensor
    num_trained: tf.Tensor
    is_finite: tf.Tensor


def compute_proximal_term(batch: Batch, proximal_weight: float) -> tf.Tensor:
    """mu / 2 * |trained - anchor|^2 (Li et al. 2020, "Federated Optimization in Heterogeneous Networks", Eq. 2)."""
    pulls = zip(batch.trained, batch.anchor, strict=True)
    return proximal_weight * tf.add_n([tf.nn.l2_loss(variable - point) for variable, point in pulls])


def decay_weights(
    gradients: Sequence[tf.Tensor], trained: Sequence[tf.Variable], weight_decay: float
) -> Sequence[tf.Tensor]:
    """The gradients with that of weight_decay / 2 * |kernel|^2, which is weight_decay * kernel, added to each kernel's.

    Kernels are the trained weights of two or more axes; biases and BatchNorm's scales and offsets do not decay. The
    term comes before momentum, as in PyTorch's SGD, and is in no loss that is reported.
    """
    if not weight_decay:  # decided while the graph is made: plain training has no such term
        return gradients
    return [
        gradient + weight_decay * variable.read_value() if variable.shape.rank >= 2 else gradient
        for gradient, variable in zip(gradients, trained, strict=True)
    ]


def make_dense(gradients: Sequence[tf.Tensor | tf.IndexedSlices]) -> list[tf.Tensor]:
    """The gradients as tensors; that of an embedding comes as the rows that were looked up."""
    return [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in gradients]


def build_optimizer(config: LocalTrainingConfig, learning_rate: float | tf.Tensor) -> tff.learning.optimizers.Optimizer:
    """The local optimizer of `config` at the learning rate of the round."""
    if config.optimizer == "adam":
        return tff.learning.optimizers.build_adam(learning_rate)
    return tff.learning.optimizers.build_sgdm(learning_rate, momentum=config.momentum or None)


def count_examples_trained(config: LocalTrainingConfig, num_examples: int) -> int:
    """Examples that a client with `num_examples` trains on in a round, each epoch counted."""
    if config.steps:
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
) -> LocalResult:
    """Trains the model from `weights` on a client's examples; call it while a graph is traced.

    Each epoch visits the examples in a new order, and its last batch may be partial. A client without examples returns
    zeros. The loss of a batch is `loss_fn` plus the model's own losses, those of its regularizers, plus the proximal
    term, mu / 2 * |trained weights - anchor|^2. After each step the model's constraints on its weights are applied.

    Args:
      model_spec: the model.
      config: epochs or steps, batch size, optimizer, weight decay, proximal weight mu.
      weights: start weights in the order of `model.weights`.
      x: examples as stored, shape (examples, *input_shape).
      y: labels, shape (examples, *label_shape), in the task's dtype.
      seed: int32, shape (2,); orders, dropout masks and augmentation are derived from it.
      learning_rate: float32 scalar.
      loss_fn: the loss of a batch; None is the task's.
      targets: what the loss needs beside the labels, a row an example, shape (examples, ...), e.g. a teacher's logits.
      num_steps: int32 scalar, the steps to take in place of the config's epochs or steps.
      anchor: the weights that the proximal term pulls to, in the order of `model.weights`; None: the start weights.
    """
    model, task = model_spec.build(), model_spec.task
    trained = model.trainable_variables
    start_of = _key_by_variable(model, weights)
    anchor_of = _key_by_variable(model, weights if anchor is None else anchor)
    pulled_to = tuple(anchor_of[variable.ref()] for variable in trained)
    optimizer = JoinedOptimizer(build_optimizer(config, learning_rate), trained)
    sent = [variable for variable in model.weights if is_float(variable)]
    batch_size = config.batch_size

    # `tf.function` turns the Python loops into loops of the graph, and keeps reads and assignments of the Keras
    # variables in the order in which they stand here.
    @tf.function
    def train(x, y, targets, num_steps):
        for variable in model.weights:
            variable.assign(start_of[variable.ref()])
        num_examples = tf.shape(y)[0]
        steps_per_epoch = (num_examples + batch_size - 1) // batch_size
        num_steps = _count_steps(config, num_examples, steps_per_epoch, num_steps)
        num_epochs = -(-num_steps // tf.maximum(steps_per_epoch, 1))
        carried = optimizer.start()
        loss_sum, num_trained = tf.constant(0.0), tf.constant(0.0)
        for epoch in tf.range(num_epochs):
            epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
            # Only indices are shuffled. A batch is gathered when its turn comes, so that no second copy of the examples
            # is made, and only a batch at a time is turned into floats.
            order = tf.random.experimental.stateless_shuffle(tf.range(num_examples), epoch_seed)
            for step in tf.range(tf.minimum(steps_per_epoch, num_steps - epoch * steps_per_epoch)):
                batch = order[step * batch_size : (step + 1) * batch_size]
                batch_targets = None if targets is None else tf.gather(targets, batch)
                step_seed = tf.random.experimental.stateless_fold_in(epoch_seed, step)
                with tf.GradientTape() as tape:
                    with dropout_seed(step_seed):
                        logits = model(model_spec.preprocess_to_train(tf.gather(x, batch), step_seed), training=True)
                    seen = Batch(tf.gather(y, batch), logits, batch_targets, tuple(trained), pulled_to)
                    loss = task.mean_loss(seen.labels, logits) if loss_fn is None else loss_fn(seen)
                    loss = add_own_losses(loss, model)
                    if config.proximal_weight:  # decided while the graph is made: plain training has no such term
                        loss += compute_proximal_term(seen, config.proximal_weight)
                gradients = tape.gradient(loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO)
                carried = optimizer.step(carried, decay_weights(make_dense(gradients), trained, config.weight_decay))
                # The loss is a mean over the batch, and the last batch may be smaller.
                size = _weigh(task, seen.labels)
                loss_sum += loss * size
                num_trained += size
        # All float weights, not only the trained ones: BatchNorm's statistics and quantization ranges travel, too.
        return [v - start_of[v.ref()] for v in sent], loss_sum, num_trained

    return reject_if_not_finite(*train(x, y, targets, num_steps))


def _key_by_variable(model, weights) -> dict:
    """The weights by variable, since `trainable_variables` has not the order of `model.weights`, nor all of them."""
    return {variable.ref(): weight for variable, weight in zip(model.weights, weights, strict=True)}


@as_written
def _count_steps(config: LocalTrainingConfig, num_examples, steps_per_epoch, num_steps) -> tf.Tensor:
    """`num_steps` if it is given, else what the config says; none without examples."""
    if num_steps is None:
        num_steps = config.steps or config.epochs * steps_per_epoch
    return tf.where(num_examples > 0, num_steps, 0)


@as_written
def _weigh(task: Task, labels: tf.Tensor) -> tf.Tensor:
    """How much a batch counts: its examples, or what the task weighs them by, float32."""
    if not task.kind.weighs_examples:  # decided while the graph is made
        return tf.cast(tf.shape(labels)[0], tf.float32)
    return tf.reduce_sum(task.compute_weights(labels))


def reject_if_not_finite(deltas, loss_sum, num_trained) -> LocalResult:
    """The result with these deltas, or zeros in its place if they are not finite or their squared norm overflows.

    The values are replaced, because a weight of 0 in the sum would not do: 0 x NaN is NaN.
    """
    # One NaN or infinity anywhere makes the sum of squares not finite, so this one test covers all weights.
    squared_norm = tf.add_n([tf.reduce_sum(tf.square(delta)) for delta in deltas])
    is_finite = tf.math.is_finite(squared_norm) & tf.math.is_finite(loss_sum)
    kept = tuple(tf.where(is_finite, delta, tf.zeros_like(delta)) for delta in deltas)
    scalars = (tf.where(is_finite, value, 0.0) for value in (squared_norm, loss_sum, num_trained))
    return LocalResult(kept, *scalars, is_finite)


def predict_logits(model_spec: ModelSpec, weights: tuple[tf.Tensor, ...], x: tf.Tensor) -> tf.Tensor:
    """Outputs for stored examples, float32, shape (examples, *output_shape), in any graph.

    They are computed in batches, to bound the memory.
    """
    model = model_spec.build()
    batch_size = 500

    @tf.function
    def predict(x):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        num_batches = (tf.shape(x)[0] + batch_size - 1) // batch_size
        # Batches differ in size, so the array's elements have no common static shape.
        shape = (None, *model_spec.task.output_shape)
        batches = tf.TensorArray(tf.float32, num_batches, infer_shape=False, element_shape=shape)
        for index in tf.range(num_batches):
            batch = x[index * batch_size : (index + 1) * batch_size]
            batches = batches.write(index, model(model_spec.preprocess(batch), training=False))
        return tf.ensure_shape(batches.concat(), shape)

    # `concat` refuses an array of no batches.
    return tf.cond(tf.shape(x)[0] > 0, lambda: predict(x), lambda: tf.zeros((0, *model_spec.task.output_shape)))
