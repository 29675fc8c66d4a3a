"""A task in TensorFlow: what labels are, which loss trains, what is summed for the metrics, what a model puts out.

Outputs are logits where labels are classes, tokens or switches, and standardised labels where these are numbers:
`(label - label_offset) / label_scale`. The data set gives offset and scale, usually mean and deviation of its train
labels, so that the usual learning rates suit labels of any unit. Losses are of standardised labels, metrics of the
labels themselves; `Task.restore` turns outputs back.

Padding is a label of a position that is none: it has no loss and no weight. It is `padding_label`, by default 0, as
Keras's `mask_zero` and TensorFlow Federated's texts have it; negative labels are always padding.
"""

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from datasets.example_format import ExampleFormat
from models.model_names import ModelError
from models.task_kinds import (
    BIN_SHARPNESS,
    LARGEST_BINNED_OUTPUT,
    NUM_BEST,
    NUM_BINS,
    TASK_KINDS,
    TASK_NAMES,
    TaskKind,
)

# Called from functions that AutoGraph would otherwise rewrite; nothing here depends on a tensor's value.
_as_written = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True)
class Task:
    """What a model is trained to do. Made by `build_task`, or directly.

    Attributes:
      kind: see `models.task_kinds`.
      num_outputs: classes; 1 for binary; labels of multi_label; numbers of a regression; the vocabulary of next_token.
      label_shape: of one example's label: () for a class, a switch or one number, (labels,), (numbers,), (positions,).
      loss: one of the kind's; "" is its first.
      huber_delta: where Huber's loss turns from squares to lines, in standardised labels, above 0.
      padding_label: of next_token, see the module; -1 for none but the negative ones.
      oov_label: the label of tokens outside of the vocabulary; None if there is none.
      label_offset: of a regression, one number for each output; () is 0.
      label_scale: of a regression, one number above 0 for each output; () is 1.
      class_weights: of each class, what multiplies the loss of its examples in training, at least 0; () is 1.
      own_loss: (labels, outputs) -> the loss of each example in training, in place of `loss`; see `models.own_loss`.

    Raises:
      ModelError: a value that the kind does not have.
    """

    kind: TaskKind
    num_outputs: int
    label_shape: tuple[int, ...] = ()
    loss: str = ""
    huber_delta: float = 1.0
    padding_label: int = 0
    oov_label: int | None = None
    label_offset: tuple[float, ...] = ()
    label_scale: tuple[float, ...] = ()
    class_weights: tuple[float, ...] = ()
    own_loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None

    def __post_init__(self):
        object.__setattr__(self, "loss", self.loss or self.kind.losses[0])
        name, outputs = self.kind.name, self.num_outputs
        shapes = {"multi_label": [(outputs,)], "regression": [(outputs,)], "next_token": [self.label_shape]}.get(
            name, [()]
        )
        if name == "regression" and outputs == 1:
            shapes.append(())
        checks = {
            "loss": (self.loss in self.kind.losses, f"one of {', '.join(self.kind.losses)} for {name}"),
            "num_outputs": (
                outputs >= 1 if name != "binary" else outputs == 1,
                "1" if name == "binary" else "at least 1",
            ),
            "label_shape": (self.label_shape in shapes, f"{shapes[0]} for {name} of {outputs}"),
            "huber_delta": (0 < self.huber_delta < math.inf, "a number above 0"),
            "label_offset": (len(self.label_offset) in (0, outputs), f"{outputs} numbers"),
            "label_scale": (
                len(self.label_scale) in (0, outputs) and all(0 < scale < math.inf for scale in self.label_scale),
                f"{outputs} numbers above 0",
            ),
            "class_weights": (
                len(self.class_weights) in ((0, self.num_classes) if self.kind.is_labelled_by_class else (0,))
                and all(0 <= weight < math.inf for weight in self.class_weights),
                f"{self.num_classes} numbers of at least 0" if self.kind.is_labelled_by_class else "none",
            ),
        }
        for field, (is_right, expected) in checks.items():
            if not is_right:
                raise ModelError(f"{field}={getattr(self, field)}: expected {expected}")

    @property
    def label_dtype(self) -> str:
        """Of stored labels."""
        return self.kind.label_dtype

    @property
    def num_classes(self) -> int:
        """How many classes an example can have one of; 0 where labels are no classes."""
        return (self.num_outputs + (self.kind.name == "binary")) * self.kind.is_labelled_by_class

    @property
    def output_shape(self) -> tuple[int, ...]:
        """What a model puts out for an example, float32: the outputs, and before them the positions of next_token."""
        return (*self.label_shape, self.num_outputs) if self.kind.name == "next_token" else (self.num_outputs,)

    @property
    def score_dtype(self) -> str:
        """Of `compute_scores`: "int32" where an example is right or wrong, else "float32"."""
        return "int32" if self.kind.is_labelled_by_class else "float32"

    @_as_written
    def compute_losses(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """The loss of each example, shape (batch,): cross-entropies in nats, or errors of standardised labels.

        It is the mean over an example's labels, numbers, or tokens without padding; 0 if all of it is padding.

        Args:
          labels: in `label_dtype`, shape (batch, *label_shape).
          outputs: float32, shape (batch, *output_shape).
        """
        match self.kind.name:
            case "classification":
                return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
            case "binary":
                return tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, outputs.dtype), outputs[:, 0])
            case "multi_label":
                losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, outputs.dtype), outputs)
                return tf.reduce_mean(losses, axis=1)
            case "regression":
                return tf.reduce_mean(self._compute_error_losses(self._standardise(labels) - outputs), axis=1)
            case "next_token":
                known = tf.where(self._find_tokens(labels), labels, 0)
                return self.average_tokens(tf.nn.sparse_softmax_cross_entropy_with_logits(known, outputs), labels)
        raise NotImplementedError(self.kind.name)

    @_as_written
    def compute_training_losses(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """The label loss of each example in training, float32, shape (batch,); arguments as for `compute_losses`.

        All that clients minimise goes through here: local training, distillation, prototypes and meta-gradients. What
        is tested and reported of a test split goes through `compute_losses`. The label loss is what class weights
        multiply and what an own loss replaces; distillation, prototypes, proximal terms and regularizers stay as they
        are.
        """
        if self.own_loss is None:
            losses = self.compute_losses(labels, outputs)
        else:
            labelled = self._standardise(labels) if self.kind.name == "regression" else labels
            losses = self.own_loss(labelled, outputs)
        if set(self.class_weights) <= {1.0}:  # decided while the graph is made: without weights it is the same one
            return losses
        # As in Keras, the mean is over the examples, not over their weights.
        return losses * tf.gather(tf.constant(self.class_weights, losses.dtype), labels)

    @_as_written
    def compute_weights(self, labels: tf.Tensor) -> tf.Tensor:
        """How much each example counts, float32, shape (batch,): 1, or its number of tokens without padding."""
        if not self.kind.weighs_examples:
            return tf.ones(tf.shape(labels)[:1])
        return tf.reduce_sum(tf.cast(self._find_tokens(labels), tf.float32), axis=self._position_axes)

    @_as_written
    def average(self, values: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The mean of a value of each example, shape (batch,), by the examples' weights; a scalar.

        Without a weight it is 0. (Where all weigh 1, it is the plain mean, which is NaN without examples.)
        """
        if not self.kind.weighs_examples:  # decided while the graph is made
            return tf.reduce_mean(values)
        weights = self.compute_weights(labels)
        return tf.math.divide_no_nan(tf.reduce_sum(weights * values), tf.reduce_sum(weights))

    @_as_written
    def average_tokens(self, values: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The mean over an example's tokens of values, shape (batch, *label_shape), padding left out; (batch,)."""
        counted = tf.where(self._find_tokens(labels), values, 0.0)
        return tf.math.divide_no_nan(tf.reduce_sum(counted, self._position_axes), self.compute_weights(labels))

    @_as_written
    def mean_loss(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """The loss that training steps down, a scalar: the mean of the training losses by the examples' weights."""
        return self.average(self.compute_training_losses(labels, outputs), labels)

    @_as_written
    def compute_scores(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """How well each example is predicted, from 0 to 1, in `score_dtype`, shape (batch,); larger is better.

        Right or wrong, 1 or 0, where an example has one class. Else exp(-loss): the geometric mean of the
        probabilities that the model gives to what is right, or of a regression what falls with its error. An example
        of padding alone has 0, and so has one whose outputs are no numbers.
        """
        if self.kind.is_labelled_by_class:
            return tf.cast(self._find_correct(labels, outputs), tf.int32)
        scores = tf.exp(-self.compute_losses(labels, outputs))
        is_scored = (self.compute_weights(labels) > 0) & ~tf.math.is_nan(scores)
        return tf.where(is_scored, scores, 0.0)

    @_as_written
    def compute_sums(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """What the metrics are made of, float64, shape (num_sums,); see `models.task_kinds` and `TaskKind.finish`.

        Args:
          labels: in `label_dtype`, shape (batch, *label_shape); possibly of no example.
          outputs: float32, shape (batch, *output_shape).
        """
        return self.compute_sums_by_group(labels, outputs, tf.zeros(tf.shape(labels)[:1], tf.int32), 1)[0]

    @_as_written
    def compute_sums_by_group(
        self, labels: tf.Tensor, outputs: tf.Tensor, groups: tf.Tensor, num_groups: int | tf.Tensor
    ) -> tf.Tensor:
        """`compute_sums` of several groups of examples, such as the clients of one batch, in one pass.

        Args:
          labels: as there.
          outputs: as there.
          groups: of each example, int32 in [0, num_groups), shape (batch,).
          num_groups: how many there are.

        Returns:
          float64, shape (num_groups, num_sums); zeros for a group without examples.
        """
        parts = []
        match self.kind.name:
            case "classification":
                columns = self._count_correct(labels, outputs)
            case "binary":
                pairs = tf.cast(labels, tf.bool)[:, tf.newaxis]
                columns = [*self._count_correct(labels, outputs), *_count_hits(pairs, outputs)]
                parts = _count_in_bins(pairs, outputs, groups, num_groups)
            case "multi_label":
                pairs = tf.cast(labels, tf.bool)
                # How many of the example's labels are among its highest outputs, int32, shape (batch,)
                best = tf.math.top_k(outputs, k=min(NUM_BEST, outputs.shape[1])).indices
                hits = tf.reduce_sum(tf.cast(tf.gather(pairs, best, batch_dims=1), tf.int32), axis=1)
                columns = [*_count_hits(pairs, outputs), tf.where(_are_numbers(outputs), hits, 0)]
                parts = _count_in_bins(pairs, outputs, groups, num_groups)
            case "regression":
                offset, scale = (tf.constant(values, tf.float64) for values in self._get_offset_and_scale())
                labels = tf.reshape(tf.cast(labels, tf.float64), (-1, self.num_outputs)) - offset
                errors = _make_infinite(labels - tf.cast(outputs, tf.float64) * scale)
                columns = [tf.ones_like(errors[:, 0]), tf.reduce_sum(tf.abs(errors), axis=1)]
                for values in (labels, tf.square(labels), tf.square(errors)):
                    columns += tf.unstack(values, num=self.num_outputs, axis=1)
            case "next_token":
                is_token = self._find_tokens(labels)
                is_known = is_token if self.oov_label is None else is_token & tf.not_equal(labels, self.oov_label)
                is_correct = tf.equal(tf.argmax(outputs, axis=-1, output_type=tf.int32), labels) & _are_numbers(outputs)
                counted = (is_token, is_token & is_correct, is_known, is_known & is_correct)
                counts = [tf.reduce_sum(tf.cast(each, tf.float64), self._position_axes) for each in counted]
                losses = tf.cast(self.compute_losses(labels, outputs), tf.float64) * counts[0]
                columns = [*counts, _make_infinite(losses)]
        rows = tf.stack([tf.cast(column, tf.float64) for column in columns], axis=1)
        return tf.concat([tf.math.unsorted_segment_sum(rows, groups, num_groups), *parts], axis=1)

    def restore(self, outputs):
        """A regression's outputs as labels, shape (..., num_outputs); other outputs as they are. Arrays or tensors."""
        if self.kind.name != "regression" or not (self.label_offset or self.label_scale):
            return outputs
        offset, scale = self._get_offset_and_scale()
        return outputs * scale + offset

    @property
    def _position_axes(self) -> list[int]:
        return list(range(1, 1 + len(self.label_shape)))

    def _get_offset_and_scale(self) -> tuple[list[float], list[float]]:
        outputs = self.num_outputs
        return list(self.label_offset or (0.0,) * outputs), list(self.label_scale or (1.0,) * outputs)

    def _find_tokens(self, labels: tf.Tensor) -> tf.Tensor:
        # In the graph of a TFF computation, `!=` would compare the tensor as an object.
        return (labels >= 0) & tf.not_equal(labels, self.padding_label)

    def _find_correct(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        if self.kind.name == "binary":
            classes = tf.cast(outputs[:, 0] > 0, tf.int32)
        else:
            classes = tf.argmax(outputs, axis=1, output_type=tf.int32)
        return tf.equal(classes, labels) & _are_numbers(outputs)

    def _standardise(self, labels: tf.Tensor) -> tf.Tensor:
        labels = tf.reshape(labels, (-1, self.num_outputs))
        if not (self.label_offset or self.label_scale):
            return labels
        offset, scale = self._get_offset_and_scale()
        return (labels - tf.constant(offset, labels.dtype)) / tf.constant(scale, labels.dtype)

    def _compute_error_losses(self, errors: tf.Tensor) -> tf.Tensor:
        if self.loss == "squared":
            return tf.square(errors)
        sizes = tf.abs(errors)
        if self.loss == "absolute":
            return sizes
        delta = self.huber_delta
        return tf.where(sizes <= delta, tf.square(errors) / 2, delta * (sizes - delta / 2))

    def _count_correct(self, labels: tf.Tensor, outputs: tf.Tensor) -> list[tf.Tensor]:
        return [tf.ones_like(labels), self._find_correct(labels, outputs)]


def build_task(name: str, num_outputs: int, label_shape: tuple[int, ...] = (), **options) -> Task:
    """The task of a kind by its name; `options` are the further attributes of `Task`.

    Raises:
      ModelError: there is no such kind, or it has no such value.
    """
    if name not in TASK_KINDS:
        raise ModelError(f"task={name}: expected one of {', '.join(TASK_NAMES)}")
    return Task(TASK_KINDS[name], num_outputs, tuple(label_shape), **options)


def build_format_task(example_format: ExampleFormat, **options) -> Task:
    """The task that the labels of such examples are of; `options` are its loss and what belongs to that.

    Raises:
      ModelError: the task has no such loss.
    """
    labels = example_format.labels
    return build_task(
        labels.task,
        example_format.num_outputs,
        labels.shape,
        padding_label=labels.padding,
        oov_label=labels.oov,
        label_offset=labels.offset,
        label_scale=labels.scale,
        **options,
    )


@_as_written
def _are_numbers(outputs: tf.Tensor) -> tf.Tensor:
    """Which rows hold no NaN, bool, the shape of `outputs` without its last axis, in any graph.

    Of NaNs the largest is the first, so a model that has diverged would else be right on every example of class 0.
    """
    return ~tf.reduce_any(tf.math.is_nan(outputs), axis=-1)


@_as_written
def _make_infinite(errors: tf.Tensor) -> tf.Tensor:
    """The errors, infinite where they are NaN: that would count as unknown, and who diverged as without examples."""
    return tf.where(tf.math.is_nan(errors), tf.constant(math.inf, errors.dtype), errors)


def _count_hits(is_positive: tf.Tensor, outputs: tf.Tensor) -> list[tf.Tensor]:
    """Hits, false alarms and misses of each example, int32, shape (batch,); predicted is what has more than 1/2."""
    is_predicted = outputs > 0
    counted = (is_positive & is_predicted, ~is_positive & is_predicted, is_positive & ~is_predicted)
    return [tf.reduce_sum(tf.cast(each, tf.int32), axis=1) for each in counted]


def _count_in_bins(is_positive: tf.Tensor, outputs: tf.Tensor, groups: tf.Tensor, num_groups) -> list[tf.Tensor]:
    """Histograms of the positive and of the negative pairs' outputs, each float64, shape (num_groups, bins)."""
    largest = math.asinh(BIN_SHARPNESS * LARGEST_BINNED_OUTPUT)
    # What is no number counts as undecided.
    positions = tf.where(tf.math.is_nan(outputs), 0.0, tf.asinh(BIN_SHARPNESS * outputs) / largest)
    bins = tf.cast(tf.floor((tf.clip_by_value(positions, -1.0, 1.0) + 1) / 2 * NUM_BINS), tf.int32)
    cells = groups[:, tf.newaxis] * NUM_BINS + tf.minimum(bins, NUM_BINS - 1)
    counts = []
    for is_counted in (is_positive, ~is_positive):
        values, size = tf.reshape(tf.cast(is_counted, tf.float64), [-1]), num_groups * NUM_BINS
        counts.append(tf.math.unsorted_segment_sum(values, tf.reshape(cells, [-1]), size))
    return [tf.reshape(each, (num_groups, NUM_BINS)) for each in counts]


CLASSIFICATION = build_task("classification", 2)  # for losses alone, which are the same for any number of classes
