"""The steps of local training: one after another in TensorFlow's operations, or many in one compiled function.

A small dense or recurrent model spends most of a step on starting operations. XLA makes one function of the step and of
the loop around it. It compiles anew for each shape, and a client's number of examples is a shape. So a compiled
function gets the batches of a few steps at a time, at most `CHUNK_STEPS[-1]` and padded to one of these numbers, and is
told how many steps to take. In the last batch of an epoch padding stands in for the examples that are missing; a mask
takes it out of the loss, so each example counts as it does without compilation.

Its users call what is here from a `tf.function`, which turns the Python loops into loops of the graph.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf
import tensorflow_federated as tff

from datasets.own_objects import ContractError
from models.model_spec import ModelSpec
from models.stateless_dropout import dropout_seed
from models.training_terms import add_own_losses
from tff_algos.client.joined_optimizer import Carried, JoinedOptimizer, as_written
from tff_algos.settings.local_training import LocalTrainingConfig

CHUNK_STEPS = (4, 16, 64, 256)  # steps of a compiled function; each size is compiled once, when a client first needs it


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


LossFn = Callable[[Batch], tf.Tensor]  # the loss of each example, shape (batch,)


class Examples(NamedTuple):
    """Examples as stored, (examples, *input_shape), labels, (examples, *label_shape), and targets as in `Batch`.

    `weights`, float32 (examples,), are what the examples' losses are multiplied by; None leaves them as they are.
    """

    x: tf.Tensor
    y: tf.Tensor
    targets: tf.Tensor | None
    weights: tf.Tensor | None = None

    @as_written
    def gather(self, indices: tf.Tensor) -> "Examples":
        """These rows."""
        return self._map(lambda values: tf.gather(values, indices))

    @as_written
    def cut(self, start: tf.Tensor, size: int) -> "Examples":
        """`size` rows from `start` on."""

        def cut(values):
            rest = values.shape.rank - 1
            return tf.slice(values, [start] + [0] * rest, [size] + [-1] * rest)

        return self._map(cut)

    def _map(self, function: Callable[[tf.Tensor], tf.Tensor]) -> "Examples":
        return Examples(*(None if values is None else function(values) for values in self))


class Progress(NamedTuple):
    """What a loop carries from step to step: the rule's part, and sums as in `local_training.LocalResult`."""

    carried: Any
    loss_sum: tf.Tensor
    num_trained: tf.Tensor


# A function of what the proximal term pulls to, None for the anchor of the training, -> the loss of the step's batch at
# the variables as they are, and a gradient for each that is trained.
Measure = Callable[[Sequence[tf.Tensor] | None], tuple[tf.Tensor, Sequence[tf.Tensor]]]


class StepRule(Protocol):
    """What a step does with a batch. What it carries from step to step are nested tensors of fixed shapes."""

    def start(self) -> Any:
        """What is carried into the first step; the variables have their first values."""

    def take(self, carried: Any, measure: Measure) -> tuple[Any, tf.Tensor]:
        """Takes a step: gives the variables new values, and returns what is carried on, and the loss to report."""

    def finish(self, carried: Any) -> Any:
        """What the training ends with beside the variables' values, nested tensors."""


class OptimizerRule:
    """The usual rule: a step of the optimizer."""

    def __init__(self, optimizer: JoinedOptimizer, model: tf.keras.Model):
        self._optimizer = optimizer

    @as_written
    def start(self) -> Carried:
        return self._optimizer.start()

    def take(self, carried, measure):
        loss, gradients = measure(None)
        return self._optimizer.step(carried, gradients), loss

    def finish(self, carried: Carried) -> tuple:
        return ()


@as_written
def list_values(
    variables: Sequence[tf.Variable], replaced: Sequence[tf.Variable], values: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """The variables' values, but those in `values` for the variables in `replaced`."""
    value_of = {variable.ref(): value for variable, value in zip(replaced, values, strict=True)}
    return tuple(value_of.get(variable.ref(), variable.read_value()) for variable in variables)


@as_written
def compute_proximal_term(batch: Batch, proximal_weight: float) -> tf.Tensor:
    """mu / 2 * |trained - anchor|^2 (Li et al. 2020, "Federated Optimization in Heterogeneous Networks", Eq. 2)."""
    pulls = zip(batch.trained, batch.anchor, strict=True)
    return proximal_weight * tf.add_n([tf.nn.l2_loss(variable - point) for variable, point in pulls])


@as_written
def correct_gradients(gradients: Sequence[tf.Tensor], corrections: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    """The gradients, each with its correction added; as they are if there are none."""
    return (
        [gradient + added for gradient, added in zip(gradients, corrections, strict=True)] if corrections else gradients
    )


@as_written
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


@as_written
def make_dense(gradients: Sequence[tf.Tensor | tf.IndexedSlices]) -> list[tf.Tensor]:
    """The gradients as tensors; that of an embedding comes as the rows that were looked up."""
    return [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in gradients]


def build_optimizer(config: LocalTrainingConfig, learning_rate: float | tf.Tensor) -> tff.learning.optimizers.Optimizer:
    """The local optimizer of `config` at the learning rate of the round."""
    if config.optimizer == "adam":
        return tff.learning.optimizers.build_adam(learning_rate)
    return tff.learning.optimizers.build_sgdm(learning_rate, momentum=config.momentum or None)


class TrainingSteps:
    """Takes steps with a model's variables.

    Args:
      model_spec: says what to do with stored examples and labels, and whether steps are compiled.
      model: whose variables are trained.
      config: batch size, optimizer, weight decay, proximal weight.
      trained: the variables that are trained, in the order of `trainable_variables`; the others are fixed.
      learning_rate: float32 scalar.
      loss_fn: the loss of each example; None is the task's.
      anchor: the weights that the proximal term pulls to, one for each trained variable.
      corrections: what is added to the gradients, one for each trained variable, or nothing.
      make_rule: what a step does, made of the optimizer and the model.
    """

    def __init__(
        self,
        model_spec: ModelSpec,
        model: tf.keras.Model,
        config: LocalTrainingConfig,
        trained: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
        loss_fn: LossFn | None,
        anchor: tuple[tf.Tensor, ...],
        corrections: tuple[tf.Tensor, ...],
        make_rule: Callable[[JoinedOptimizer, tf.keras.Model], StepRule],
    ):
        self._spec, self._model, self._config, self._trained = model_spec, model, config, trained
        self.rule = make_rule(JoinedOptimizer(build_optimizer(config, learning_rate), trained), model)
        self._loss_fn, self._anchor, self._corrections = loss_fn, anchor, corrections
        self._take_compiled = tf.function(self._take_of_chunk, jit_compile=True)

    def take(self, examples: Examples, num_steps: tf.Tensor, seed: tf.Tensor) -> Progress:
        """Takes so many steps, 0 without examples. Each epoch has an order of its own; all is derived from the seed."""
        return (self._take_chunks if self._spec.compiled else self._take_singly)(examples, num_steps, seed)

    @as_written
    def _start(self) -> Progress:
        return Progress(self.rule.start(), tf.constant(0.0), tf.constant(0.0))

    def _take_singly(self, examples: Examples, num_steps: tf.Tensor, seed: tf.Tensor) -> Progress:
        size, num_examples = self._config.batch_size, tf.shape(examples.y)[0]
        steps_per_epoch = divide_up(num_examples, size)
        progress = self._start()
        for epoch in tf.range(divide_up(num_steps, steps_per_epoch)):
            epoch_seed = _fold_in(seed, epoch)
            # Only indices are shuffled. A batch is gathered when its turn comes, so that no second copy of the examples
            # is made, and only a batch at a time is turned into floats.
            order = _shuffle(num_examples, epoch_seed)
            for step in tf.range(tf.minimum(steps_per_epoch, num_steps - epoch * steps_per_epoch)):
                batch = order[step * size : (step + 1) * size]
                progress = self._take_step(progress, examples.gather(batch), None, _fold_in(epoch_seed, step))
        return progress

    def _take_chunks(self, examples: Examples, num_steps: tf.Tensor, seed: tf.Tensor) -> Progress:
        size, num_examples = self._config.batch_size, tf.shape(examples.y)[0]
        steps_per_epoch = divide_up(num_examples, size)
        num_epochs = tf.maximum(divide_up(num_steps, steps_per_epoch), 1)  # an array of none cannot be stacked
        epochs = tf.TensorArray(tf.int32, num_epochs)
        for epoch in tf.range(num_epochs):
            order = _shuffle(num_examples, _fold_in(seed, epoch))
            epochs = epochs.write(epoch, tf.pad(order, [[0, steps_per_epoch * size - num_examples]]))
        order = tf.reshape(epochs.stack(), [-1])
        # XLA compiles for fixed shapes, so a chunk has one of a few sizes and the rest of it is padding.
        sizes = tf.constant(CHUNK_STEPS)
        chunk_steps = tf.reduce_min(tf.where(sizes >= num_steps, sizes, CHUNK_STEPS[-1]))
        progress = self._start()
        for first in tf.range(0, num_steps, chunk_steps):
            rows = order[first * size : (first + chunk_steps) * size]
            chunk = examples.gather(tf.pad(rows, [[0, chunk_steps * size - tf.shape(rows)[0]]]))
            last = tf.minimum(first + chunk_steps, num_steps)
            progress = self._take_compiled(progress, chunk, first, last, num_examples, seed)
        return progress

    def _take_of_chunk(self, progress, chunk: Examples, first, last, num_examples, seed) -> Progress:
        """Takes the steps `first` to `last` - 1, whose batches the chunk has."""
        size = self._config.batch_size
        steps_per_epoch = divide_up(num_examples, size)
        for step in tf.range(first, last):
            epoch, of_epoch = step // steps_per_epoch, step % steps_per_epoch
            # The last batch of an epoch is smaller; rows of padding must neither teach nor count.
            is_there = tf.range(size) < num_examples - of_epoch * size
            batch, step_seed = chunk.cut((step - first) * size, size), _fold_in(_fold_in(seed, epoch), of_epoch)
            progress = self._take_step(progress, batch, is_there, step_seed)
        return progress

    def _take_step(self, progress: Progress, batch: Examples, is_there: tf.Tensor | None, seed: tf.Tensor) -> Progress:
        """One step; `is_there`, bool, shape (batch,), says which rows are examples, None that all are."""
        model, config, trained = self._model, self._config, self._trained

        def measure(anchor):
            with tf.GradientTape() as tape:
                # Keras's own dropout seeds cannot be repeated in TFF's worker.
                with dropout_seed(seed):
                    logits = model(self._spec.preprocess_to_train(batch.x, seed), training=True)
                pulled_to = self._anchor if anchor is None else tuple(anchor)
                seen = Batch(batch.y, logits, batch.targets, tuple(trained), pulled_to)
                loss = add_own_losses(self._compute_mean_loss(seen, is_there, batch.weights), model)
                if config.proximal_weight:  # decided while the graph is made: plain training has no such term
                    loss += compute_proximal_term(seen, config.proximal_weight)
            # Zeros for weights that the loss does not touch, such as those of a head that is not used.
            gradients = tape.gradient(loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO)
            corrected = correct_gradients(make_dense(gradients), self._corrections)
            return loss, decay_weights(corrected, trained, config.weight_decay)

        carried, loss = self.rule.take(progress.carried, measure)
        # The loss is a mean over the batch, and the last batch may be smaller.
        weight = self._weigh(batch.y, is_there)
        return Progress(carried, progress.loss_sum + loss * weight, progress.num_trained + weight)

    @as_written
    def _compute_mean_loss(
        self, seen: Batch, is_there: tf.Tensor | None, example_weights: tf.Tensor | None
    ) -> tf.Tensor:
        """The mean of the examples' losses, each times its weight, over their number, as Keras has it."""
        task = self._spec.task
        if self._loss_fn is None:
            losses = task.compute_training_losses(seen.labels, seen.logits)
        else:
            losses = self._loss_fn(seen)
            rank = getattr(getattr(losses, "shape", None), "rank", "no shape")
            if rank not in (1, None):
                found = f"shape {tuple(losses.shape)}" if isinstance(rank, int) else type(losses).__name__
                raise ContractError(f"loss_fn gave {found}, expected each example's loss, (batch,)", self._loss_fn)
        if example_weights is not None:  # decided while the graph is made
            losses *= example_weights
        if is_there is None:
            return task.average(losses, seen.labels)
        weights = tf.where(is_there, task.compute_weights(seen.labels), 0.0)
        # A batch of padding alone has no weight, and its loss must not become NaN.
        return tf.math.divide_no_nan(tf.reduce_sum(weights * losses), tf.reduce_sum(weights))

    @as_written
    def _weigh(self, labels: tf.Tensor, is_there: tf.Tensor | None) -> tf.Tensor:
        """How much a batch counts: its examples, or what the task weighs them by, float32."""
        task = self._spec.task
        if is_there is not None:
            return tf.reduce_sum(tf.where(is_there, task.compute_weights(labels), 0.0))
        if not task.kind.weighs_examples:  # decided while the graph is made
            return tf.cast(tf.shape(labels)[0], tf.float32)
        return tf.reduce_sum(task.compute_weights(labels))


@as_written
def divide_up(number: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """The quotient, rounded up; for a size of 0 that of 1."""
    return -(-number // tf.maximum(size, 1))


@as_written
def _shuffle(num_examples: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    return tf.random.experimental.stateless_shuffle(tf.range(num_examples), seed)


_fold_in = as_written(tf.random.experimental.stateless_fold_in)
