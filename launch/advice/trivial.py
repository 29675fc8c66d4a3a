"""What is reached without a model, client by client: what every method has to beat. Imports no TensorFlow.

Each answers the same to all examples, or the same after each token:
- OWN: each client its own most frequent class or token, or the mean of its own labels, of its train split;
- ALL: the same of all train examples of the clients that train;
- AFTER: the most frequent token after the last one, of all of them;
- ANY: of AUC the half that any order of the examples has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.baselines import TokenTables
from datasets.example_format import NEXT_TOKEN
from datasets.federated_data import ClientFiles, FederatedData
from launch.advice.measures import TRIVIAL, Measured
from launch.contests.contest import Outcome
from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.task_columns import TaskColumns
from launch.settings.flags import parse_config
from launch.training.federation import load_federated_data

OWN, ALL, AFTER, ANY = "own_answer", "shared_answer", "after_token", "any_order"
ANSWERS = {"regression": "mean", NEXT_TOKEN: "most frequent token"}
EVEN_AUC = 0.5
# (client, its split) -> the metric of a row there, NaN where nothing is known.
Measure = Callable[[ClientFiles, str], float]


class Row(NamedTuple):
    """One row with one seed.

    Attributes:
      tests: the metric of each client on its own test examples.
      new: likewise, of clients that take no part in training.
      validation: the mean of the former on their own validation examples; NaN without any.
    """

    tests: Mapping[str, float]
    new: Mapping[str, float]
    validation: float


def measure_seeds(
    outcome: Outcome, known: dict[int, Mapping[str, Row]] | None = None
) -> Mapping[int, Mapping[str, Row]]:
    """The rows of a contest by fresh seed, with the splits of its runs.

    Args:
      outcome: of the contest.
      known: those of earlier calls, which are not read again; new ones are put there.

    Raises:
      DatasetError: the data cannot be read any more.
    """
    by_seed = {} if known is None else known
    algos = {seed: each.method.algo for each in outcome.entered for seed in each.runs}
    for seed in sorted(algos.keys() - by_seed.keys()):
        config = parse_config([f"--algo={algos[seed]}", *outcome.problem.arguments, f"--seed={seed}"])
        by_seed[seed] = measure_trivial(load_federated_data(config), outcome.problem.task)
    return {seed: by_seed[seed] for seed in sorted(algos)}


def collect_trivial(by_seed: Mapping[int, Mapping[str, Row]], task: TaskColumns) -> list[Measured]:
    """The rows of all seeds, as methods are measured."""
    names = dict.fromkeys(name for rows in by_seed.values() for name in rows)
    found = []
    for name in names:
        rows = {seed: rows[name] for seed, rows in by_seed.items() if name in rows}
        tests = {seed: row.tests for seed, row in rows.items() if row.tests}
        new = {seed: row.new for seed, row in rows.items() if row.new}
        validations = {seed: row.validation for seed, row in rows.items() if row.validation == row.validation}
        if tests:
            found.append(Measured(name, title_row(name, task), TRIVIAL, tests, validations, new))
    return found


def title_row(name: str, task: TaskColumns) -> str:
    """What a row does, as "always the most frequent class"."""
    answer = ANSWERS.get(task.kind.name, "most frequent class")
    return {
        OWN: f"always each client's own {answer}",
        ALL: f"always the {answer}" if answer != "mean" else "always the mean of all",
        AFTER: "always the most frequent token after the last one",
        ANY: "the labels in any order",
    }[name]


def measure_trivial(data: FederatedData, task: TaskColumns) -> dict[str, Row]:
    """The rows that the task has, of one division of the data."""
    if data.is_remote:
        return {}
    return {name: _measure_row(data, measure) for name, measure in _list_measures(data, task)}


def _measure_row(data: FederatedData, measure: Measure) -> Row:
    def measure_all(clients: Sequence[ClientFiles], split: str) -> dict[str, float]:
        values = {client.name: measure(client, split) for client in clients if data.count(client, split)}
        return {name: value for name, value in values.items() if value == value}

    validations = measure_all(data.clients, "validation").values()
    mean = compute_mean(validations) if validations else float("nan")
    return Row(measure_all(data.clients, "test"), measure_all(data.new_clients, "test"), mean)


def _list_measures(data: FederatedData, task: TaskColumns) -> Iterator[tuple[str, Measure]]:
    kind = task.kind
    if kind.is_labelled_by_class:
        yield from _list_classes(data)
    elif kind.name == NEXT_TOKEN:
        yield from _list_tokens(data)
    elif kind.main_metric.name == "rmse":
        yield from _list_means(data)
    elif kind.main_metric.name == "auc":
        yield ANY, lambda client, split: EVEN_AUC


def _list_classes(data: FederatedData) -> Iterator[tuple[str, Measure]]:
    counts = {client.index: _count_classes(data, client) for client in data.everyone}
    of_all = int(np.sum([counts[client.index] for client in data.clients], axis=0).argmax())
    own = {index: int(each.argmax()) for index, each in counts.items()}

    def measure(client: ClientFiles, split: str, answer: int) -> float:
        return float(np.mean(data.read_labels(client, split) == answer))

    yield OWN, lambda client, split: measure(client, split, own[client.index])
    yield ALL, lambda client, split: measure(client, split, of_all)


def _count_classes(data: FederatedData, client: ClientFiles) -> np.ndarray:
    labels = data.read_labels(client, "train")
    return np.bincount(labels.ravel().astype(np.int64), minlength=data.format.num_classes)


def _list_means(data: FederatedData) -> Iterator[tuple[str, Measure]]:
    def read(client: ClientFiles, split: str) -> np.ndarray:
        labels = data.read_labels(client, split).astype(np.float64)
        return labels.reshape(len(labels), -1)

    def measure(client: ClientFiles, split: str, answer: np.ndarray) -> float:
        return float(np.sqrt(np.mean((read(client, split) - answer) ** 2)))

    own = {client.index: read(client, "train").mean(axis=0) for client in data.everyone}
    sizes = [client.num_train for client in data.clients]
    of_all = np.average([own[client.index] for client in data.clients], axis=0, weights=sizes)
    yield OWN, lambda client, split: measure(client, split, own[client.index])
    yield ALL, lambda client, split: measure(client, split, of_all)


def _list_tokens(data: FederatedData) -> Iterator[tuple[str, Measure]]:
    labels = data.format.labels
    of_all = TokenTables((data.read_split(client, "train") for client in data.clients), labels)

    def measure_own(client: ClientFiles, split: str) -> float:
        own = TokenTables([data.read_split(client, "train")], labels)
        return own.measure(*data.read_split(client, split))["unigram_accuracy"]

    yield OWN, measure_own
    for name, column in ((ALL, "unigram_accuracy"), (AFTER, "bigram_accuracy")):
        yield name, lambda client, split, column=column: of_all.measure(*data.read_split(client, split))[column]
