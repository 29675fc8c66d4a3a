"""What a run's results are called by its task, which way they are better, how they are written: their one home.

A task has one main metric, of which plots, tuning, reports and cards speak. Its columns are called after it: those of
classification are `test_accuracy`, `client_test_accuracy` and so on, those of regression `test_rmse` and so on.

Imports no TensorFlow.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.example_format import KIND, TASK  # in summary.json, too, but for classification
from launch.runs import columns
from launch.settings.run_config import RunConfig
from models.task_kinds import TASK_KINDS, Metric, TaskKind

CLASSIFICATION = "classification"  # of every run of an earlier version, which says nothing of its task
PERCENT = "%"  # the unit of shares, which are shown as they are


def _named(pattern: str) -> property:
    """A column that is called after the main metric."""
    return property(lambda self: pattern.format(self.metric.name))


@dataclasses.dataclass(frozen=True)
class TaskColumns:
    """The main metric of a kind of task: its columns, its direction, its words.

    Attributes:
      kind: the kind of task, whose first metric is the main one.
    """

    kind: TaskKind

    @property
    def metric(self) -> Metric:
        """The main metric."""
        return self.kind.metrics[0]

    @property
    def is_classification(self) -> bool:
        """Whether every example has one class of several: only then is there a confusion matrix."""
        return self.kind.name == CLASSIFICATION

    @property
    def title(self) -> str:
        """The main metric in words, such as "accuracy" or "RMSE"."""
        return self.metric.title

    @property
    def heading(self) -> str:
        """The same at the start of a heading, such as "Accuracy"."""
        return capitalize(self.title)

    @property
    def label(self) -> str:
        """The same for an axis: "accuracy", or "error (K)"; shares are shown as they are, without their unit."""
        return f"{self.title} ({self.metric.unit})" if self.metric.unit.strip(PERCENT) else self.title

    # metrics.csv

    test = _named("test_{}")  # on the global test set
    client_test = _named("client_test_{}")  # mean over the clients, each on its own test split
    client_validation = _named("client_validation_{}")  # the same on its own validation split
    validation = _named("validation_{}")  # on all validation examples
    std = _named("client_test_{}_std")  # standard deviation over the clients' own test splits
    worst_tenth = _named("client_test_{}_worst_tenth")  # mean of the worst tenth of them

    @property
    def further_tests(self) -> tuple[str, ...]:
        """The other metrics on the global test set."""
        return tuple(map(name_test, self.kind.metrics[1:]))

    @property
    def evaluation(self) -> tuple[str, ...]:
        """What every evaluation gives, in the order of the columns."""
        own = (self.client_test, self.client_validation, self.validation)
        return (columns.TEST_LOSS, self.test, *self.further_tests, *own)

    @property
    def spread(self) -> tuple[str, str]:
        """What is there with --fairness, and where each client has a model of its own."""
        return (self.std, self.worst_tenth)

    # clients.csv, fine_tuning.csv, summary.json

    of_client = _named("{}")  # a client's own, in clients.csv
    teachers = _named("teachers_test_{}")  # of each teacher, in the algorithm's part of summary.json

    @property
    def further_of_client(self) -> tuple[str, ...]:
        """A client's own further metrics, in clients.csv."""
        return tuple(metric.name for metric in self.kind.metrics[1:])

    @property
    def statistics(self) -> tuple[str, str, str, str]:
        """Of the clients, in summary.json: mean, deviation, what a tenth is worse than, mean of the worst tenth."""
        name = self.metric.name
        percentile = "p10" if self.metric.larger_is_better else "p90"
        return (f"{name}_mean", f"{name}_std", f"{name}_{percentile}", f"{name}_worst_tenth")

    @property
    def starts(self) -> tuple[str, str]:
        """After fine-tuning, from the trained start and from random weights."""
        return (f"trained_start_{self.metric.name}", f"random_start_{self.metric.name}")

    @property
    def fine_tuning_columns(self) -> tuple[str, ...]:
        """The columns of fine_tuning.csv."""
        starts = (name for start in self.starts for name in (start, f"{start}_worst_tenth"))
        return (columns.FINE_TUNING_CLIENTS, columns.FINE_TUNING_STEPS, *starts)

    # The direction.

    @property
    def sign(self) -> int:
        """1 if larger is better, else -1: what is larger after multiplication by it is better."""
        return 1 if self.metric.larger_is_better else -1

    def has_reached_target(self, config: RunConfig, reached: float | None) -> bool:
        """Whether the value on the global test set is what `--target_metric` or `--target_accuracy` asks for."""
        target = config.target_metric or (config.target_accuracy if self.is_classification else 0)
        return target > 0 and reached is not None and self.sign * reached >= self.sign * target

    def find_best(self, values: Sequence[float | None]) -> int | None:
        """The place of the best value, the first of equals; None if all are None or NaN."""
        known = [(self.sign * value, -i) for i, value in enumerate(values) if value is not None and value == value]
        return -max(known)[1] if known else None

    def compute_worst_tenth(self, values: np.ndarray) -> float:
        """Mean of the worst tenth of the values, rounded up to whole values; NaN without any."""
        worst = self.sign * np.sort(self.sign * values)[: -(-len(values) // 10)]
        return float(worst.mean(dtype=np.float64)) if len(worst) else float("nan")

    def compute_worst_percentile(self, values: np.ndarray) -> float:
        """What a tenth of the values is worse than: the 10th percentile, or the 90th where lower is better."""
        return np.percentile(values, 10 if self.metric.larger_is_better else 90)

    def describe_undefined(self, undefined: Mapping[str, str]) -> str:
        """Which metrics some test examples leave undefined, and why, for a cell; "" if none.

        Args:
          undefined: {name of a metric: why}, as `launch.training.evaluation` has it.
        """
        return "; ".join(f"{name}: its test examples {why}" for name, why in undefined.items())

    def say_undefined(self, counts: Any, num_evaluated: int, noun: str = "clients") -> list[str]:
        """For how many clients metrics are undefined, a sentence each.

        Args:
          counts: what `count_reasons` gave, as in summary.json; what is no such thing says nothing.
          num_evaluated: how many clients were.
          noun: what they are, if no clients.
        """
        return [
            f"{metric.title} is undefined for {number:,} of {num_evaluated:,} {noun}, whose test examples {why}"
            for metric in self.kind.metrics
            for why, number in _read_counts(counts, metric.name)
        ]

    def format(self, value: float | None) -> str:
        """A value for a line: "0.9512", "54.21", or "unknown"."""
        return "unknown" if value is None or math.isnan(value) else format_value(value)


def count_reasons(undefined: Iterable[Mapping[str, str]]) -> dict[str, Counter[str]]:
    """{name of a metric: {why it is undefined: how often}} of what `Evaluation.undefined` says of each."""
    counts: dict[str, Counter[str]] = {}
    for reasons in undefined:
        for name, why in reasons.items():
            counts.setdefault(name, Counter())[why] += 1
    return counts


def _read_counts(counts: Any, name: str) -> list[tuple[str, int]]:
    """What a summary, perhaps of somebody else, says of a metric: (why, clients) each."""
    found = counts.get(name) if isinstance(counts, Mapping) else None
    pairs = found.items() if isinstance(found, Mapping) else ()
    return [(why, number) for why, number in pairs if isinstance(number, int)]


def capitalize(text: str) -> str:
    """The text with a capital at its start, the others as they are: "recall at 5" becomes "Recall at 5"."""
    return text[:1].upper() + text[1:]


def format_value(value: float) -> str:
    """A value of any metric: with four digits after the point, or two from ten on."""
    return f"{value:.4f}" if not abs(value) >= 10 else f"{value:,.2f}"


def name_test(metric: Metric) -> str:
    """The column of a metric on the global test set."""
    return f"test_{metric.name}"


def find_task_columns(kind: Any) -> TaskColumns:
    """Those of a kind of task by its name; those of classification for what is no such name."""
    return TaskColumns(TASK_KINDS[kind if isinstance(kind, str) and kind in TASK_KINDS else CLASSIFICATION])


def read_task_columns(data: Any) -> TaskColumns:
    """Those of a run, by the data section of its config.json; a run that says nothing of its task classifies."""
    task = data.get(TASK) if isinstance(data, Mapping) else None
    return find_task_columns(task.get(KIND) if isinstance(task, Mapping) else task)


def describe_columns(tasks: Iterable[TaskColumns]) -> dict[str, str]:
    """{column: title} of what any of these tasks has in metrics.csv, the main ones of each task first."""
    titles: dict[str, str] = {}
    for task in tasks:
        titles |= {
            task.test: f"Test {task.title}",
            task.client_test: f"Clients' own test {task.title}",
            task.validation: f"Validation {task.title}",
            task.client_validation: f"Clients' own validation {task.title}",
            **{name_test(metric): f"Test {metric.title}" for metric in task.kind.metrics[1:]},
        }
    return titles


def list_objectives() -> dict[str, bool]:
    """{column: whether larger is better} of what can score settings, of any task: the main metric in validation.

    Those on test examples are not among them: settings chosen by these could not be judged by them.
    """
    tasks = [TaskColumns(kind) for kind in TASK_KINDS.values()]
    return {name: task.metric.larger_is_better for task in tasks for name in (task.validation, task.client_validation)}


def find_directions(tasks: Iterable[TaskColumns]) -> dict[str, bool]:
    """{column: whether larger is better} of what any of these tasks has in metrics.csv."""
    return _ask_by_column(tasks, False, lambda metric: metric.larger_is_better)


def find_bounds(tasks: Iterable[TaskColumns]) -> dict[str, tuple[float | None, float | None]]:
    """{column: (least, largest)} that what any of these tasks has in metrics.csv can be; None: there is no bound.

    Shares lie from 0 to 1, losses and errors from 0 on, R2 up to 1. An interval of a mean may be cut there.
    """
    return _ask_by_column(tasks, (0.0, None), _bound)


def _ask_by_column(tasks: Iterable[TaskColumns], of_losses: Any, ask: Callable[[Metric], Any]) -> dict[str, Any]:
    """{column: what is asked of its metric}; deviations are as losses are: from 0 on, and better if lower."""
    found = {columns.TRAIN_LOSS: of_losses, columns.TEST_LOSS: of_losses}
    for task in tasks:
        found |= {name_test(metric): ask(metric) for metric in task.kind.metrics}
        own = (task.client_test, task.validation, task.client_validation, task.worst_tenth)
        found |= {**dict.fromkeys(own, ask(task.metric)), task.std: of_losses}
    return found


def _bound(metric: Metric) -> tuple[float | None, float | None]:
    if metric.unit == PERCENT:
        return 0.0, 1.0
    return (None, 1.0) if metric.larger_is_better else (0.0, None)
