"""The kinds of tasks: what labels are, which metrics are reported, and how these come from sums. No TensorFlow.

Whatever a metric is made of is added up: over the examples of a batch, over batches and over clients. So a split of one
client, several clients pooled, or a whole test set have one vector of sums, float64, and `TaskKind.finish` turns it
into values. The sums of a union are the sum of the sums. `models.task.Task.compute_sums` makes them in a graph.

What each kind sums, in this order (K is the number of outputs, B the number of bins):
  classification  examples, correct ones.
  binary          examples, correct ones, then as `multi_label`: hits, false alarms, misses, the two histograms.
  multi_label     hits, false alarms, misses, hits among the five highest outputs, then of the pairs of example and
                  label a histogram of the positive ones' outputs (B) and of the negative ones' (B).
  regression      examples, absolute errors, then K sums of labels, K of their squares, K of squared errors. Labels are
                  taken less the task's offset, so that large ones lose no digits. Errors have the labels' unit.
  next_token      tokens, correct ones, tokens that are in the vocabulary, correct ones of these, losses. Padding does
                  not count.

A value that nothing is known of is NaN: every one without examples, the AUC of labels that are all alike, F1 without a
positive label or prediction, R2 of labels that are all equal.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # `--help` reads the names of the kinds, and needs no NumPy
    import numpy as np

NUM_BINS = 500  # of the histograms of outputs; those in one bin count as ties
LARGEST_BINNED_OUTPUT = 1000.0  # outputs beyond are in the outermost bins
# Bins are equally wide in asinh(BIN_SHARPNESS * logit): 0.004 near 0, where the outputs of a new model lie, and 4 % of
# the logit far from it, where a sure model's lie. Equal bins of probabilities would put rare labels into a few.
BIN_SHARPNESS = 10.0
NUM_BEST = 5  # of recall at 5


class Metric(NamedTuple):
    """A value that is reported.

    Attributes:
      name: in columns, for example "rmse", as in test_rmse.
      title: in plots and tables, for example "RMSE".
      unit: "%" for a share, which is shown times 100; "" for none, or that of the labels.
      larger_is_better: which way is up.
      undefined: what test examples are or have that leave it undefined, in words that go on after them.
    """

    name: str
    title: str
    unit: str
    larger_is_better: bool
    undefined: str = "are none"

    @property
    def factor(self) -> float:
        """What a value is multiplied by when it is shown."""
        return 100.0 if self.unit == "%" else 1.0


@dataclasses.dataclass(frozen=True)
class TaskKind:
    """A kind of task.

    Attributes:
      name: the spelling of `--task`.
      title: in words, for example "multi-label classification".
      metrics: what is reported; the first is the one that plots, targets, tuning, reports and cards speak of.
      losses: the losses to train by; the first is the default.
      label_dtype: as stored, "int32", "uint8" or "float32".
      is_labelled_by_class: whether each example has one of a few classes, so that label skew, counts of labels,
        a confusion matrix and a majority class make sense.
      weighs_examples: whether an example counts by its tokens, not as one.
      activation: what turns a model's outputs into predictions: "softmax" or "sigmoid" of logits, "identity".
      num_sums: outputs (of one position) -> length of the vector of sums.
      compute_values: the vector of sums -> one value a metric, in their order.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    losses: tuple[str, ...]
    label_dtype: str
    is_labelled_by_class: bool
    weighs_examples: bool
    activation: str
    num_sums: Callable[[int], int]
    compute_values: Callable[["np.ndarray"], tuple[float, ...]]

    @property
    def main_metric(self) -> Metric:
        """The metric that stands for the task."""
        return self.metrics[0]

    def finish(self, sums: "np.ndarray") -> dict[str, float]:
        """The value of each metric by name.

        Args:
          sums: float64, shape (num_sums,), summed over all examples, batches and clients that are meant.
        """
        import numpy as np

        values = self.compute_values(np.asarray(sums, np.float64))
        return {metric.name: float(value) for metric, value in zip(self.metrics, values, strict=True)}


def compute_auc(positives: "np.ndarray", negatives: "np.ndarray") -> float:
    """Area under the ROC curve: the chance that a positive lies above a negative, one in the same bin by half.

    Args:
      positives: how many positive pairs lie in each bin, ascending, shape (bins,).
      negatives: the same of the negative ones.
    """
    below = negatives.cumsum() - negatives
    return _divide((positives * (below + negatives / 2)).sum(), positives.sum() * negatives.sum())


def compute_f1(hits: float, false_alarms: float, misses: float) -> float:
    """2 hits / (2 hits + false alarms + misses), the harmonic mean of precision and recall."""
    return _divide(2 * hits, 2 * hits + false_alarms + misses)


def _divide(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator > 0 else float("nan")


def _finish_classification(sums: "np.ndarray") -> tuple[float, ...]:
    num_examples, num_correct = sums
    return (_divide(num_correct, num_examples),)


def _finish_binary(sums: "np.ndarray") -> tuple[float, ...]:
    num_examples, num_correct, hits, false_alarms, misses = sums[:5]
    auc = compute_auc(sums[5 : 5 + NUM_BINS], sums[5 + NUM_BINS :])
    return _divide(num_correct, num_examples), auc, compute_f1(hits, false_alarms, misses)


def _finish_multi_label(sums: "np.ndarray") -> tuple[float, ...]:
    hits, false_alarms, misses, best_hits = sums[:4]
    auc = compute_auc(sums[4 : 4 + NUM_BINS], sums[4 + NUM_BINS :])
    return auc, compute_f1(hits, false_alarms, misses), _divide(best_hits, hits + misses)


def _finish_regression(sums: "np.ndarray") -> tuple[float, ...]:
    import numpy as np

    num_examples, absolute_error = sums[:2]
    labels, squares, errors = sums[2:].reshape(3, -1)
    num_values = num_examples * len(labels)
    root_mean_square = float(np.sqrt(_divide(errors.sum(), num_values)))
    if num_examples == 0:
        return root_mean_square, float("nan"), float("nan")
    # Labels that are all equal have no spread to explain; rounding may leave a trace of one.
    spreads = squares - labels**2 / num_examples
    explained = [1 - _divide(e, s if s > 1e-12 * q else 0) for e, s, q in zip(errors, spreads, squares, strict=True)]
    return root_mean_square, _divide(absolute_error, num_values), float(np.mean(explained))


def _finish_next_token(sums: "np.ndarray") -> tuple[float, ...]:
    import numpy as np

    num_tokens, num_correct, num_known, num_known_correct, loss = sums
    with np.errstate(over="ignore"):  # a model that is nowhere near has an infinite perplexity
        perplexity = float(np.exp(_divide(loss, num_tokens)))
    return _divide(num_correct, num_tokens), _divide(num_known_correct, num_known), perplexity


_AUC = Metric("auc", "AUC", "%", True, "are all of one class")
_F1 = Metric("f1", "F1", "%", True, "have no positive label, true or predicted")

_KINDS = (
    TaskKind(
        name="classification",
        title="classification",
        metrics=(Metric("accuracy", "accuracy", "%", True),),
        losses=("cross_entropy",),
        label_dtype="int32",
        is_labelled_by_class=True,
        weighs_examples=False,
        activation="softmax",
        num_sums=lambda num_outputs: 2,
        compute_values=_finish_classification,
    ),
    # Accuracy comes first, since a client with one of the two labels alone has it, but no AUC.
    TaskKind(
        name="binary",
        title="binary classification",
        metrics=(Metric("binary_accuracy", "accuracy", "%", True), _AUC, _F1),
        losses=("cross_entropy",),
        label_dtype="int32",
        is_labelled_by_class=True,
        weighs_examples=False,
        activation="sigmoid",
        num_sums=lambda num_outputs: 5 + 2 * NUM_BINS,
        compute_values=_finish_binary,
    ),
    # All are over the pairs of example and label ("micro"): a client need not have each label to have a value, and the
    # sums do not grow with the labels. Recall at 5 is that of `tf.keras.metrics.Recall(top_k=5)`.
    TaskKind(
        name="multi_label",
        title="multi-label classification",
        metrics=(
            _AUC._replace(undefined="have only positive labels, or only negative ones"),
            _F1,
            Metric("recall_at_5", "recall at 5", "%", True, "have no positive label"),
        ),
        losses=("cross_entropy",),
        label_dtype="uint8",
        is_labelled_by_class=False,
        weighs_examples=False,
        activation="sigmoid",
        num_sums=lambda num_outputs: 4 + 2 * NUM_BINS,
        compute_values=_finish_multi_label,
    ),
    TaskKind(
        name="regression",
        title="regression",
        metrics=(
            Metric("rmse", "RMSE", "", False),
            Metric("mae", "MAE", "", False),
            Metric("r2", "R2", "", True, "are one, or all labelled alike"),
        ),
        losses=("squared", "absolute", "huber"),
        label_dtype="float32",
        is_labelled_by_class=False,
        weighs_examples=False,
        activation="identity",
        num_sums=lambda num_outputs: 2 + 3 * num_outputs,
        compute_values=_finish_regression,
    ),
    TaskKind(
        name="next_token",
        title="next token",
        metrics=(
            Metric("token_accuracy", "token accuracy", "%", True, "have no token to tell"),
            Metric(
                "token_accuracy_without_oov",
                "token accuracy without out-of-vocabulary",
                "%",
                True,
                "have no token of the vocabulary to tell",
            ),
            Metric("perplexity", "perplexity", "", False, "have no token to tell"),
        ),
        losses=("cross_entropy",),
        label_dtype="int32",
        is_labelled_by_class=False,
        weighs_examples=True,
        activation="softmax",
        num_sums=lambda num_outputs: 5,
        compute_values=_finish_next_token,
    ),
)
TASK_KINDS = {kind.name: kind for kind in _KINDS}
TASK_NAMES = tuple(TASK_KINDS)
LOSSES = tuple(dict.fromkeys(loss for kind in _KINDS for loss in kind.losses))
