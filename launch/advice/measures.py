"""What the runs of a contest on fresh seeds have measured, a method at a time. Imports no TensorFlow."""

import pathlib
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.partition_settings import NATURAL
from launch.advice.contrasts import Results
from launch.contests.contest import Entered, Outcome
from launch.contests.methods import FEDERATED_ROLES
from launch.contests.problem import Limits
from launch.pages.comparison.compared_run import ComparedRun, read_compared_run
from launch.pages.comparison.results import LAST, read_result
from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.columns import (
    ATTACKER,
    BYTES_DOWN,
    BYTES_UP,
    CLIENT,
    MODEL,
    NUM_TEST,
    REACHED_LIMITS,
    ROUND,
    SUMMARY_FILE,
    TOOK_PART,
    VIRTUAL_TIME_S,
)
from launch.runs.run_records import read_json, sum_fine_tuning_s
from launch.runs.task_columns import PERCENT, TaskColumns
from launch.sweeps.tuning.search_space import Settings

TRIVIAL = "trivial"  # the role of a row that no model was trained for
ROUNDS, BYTES, TIME = "rounds", "bytes", "time"  # what can end a run
NOTHING: Mapping = types.MappingProxyType({})


class Cost(NamedTuple):
    """What a run takes, as a mean over the seeds.

    Attributes:
      bytes: sent both ways by a client on average; None if unknown.
      seconds: of the devices, with fine-tuning at the end; None if unknown.
      fine_tuning_s: seconds of that alone.
      rounds: that it had.
      limit: what ended most of its runs: ROUNDS, BYTES or TIME.
    """

    bytes: float | None = None
    seconds: float | None = None
    fine_tuning_s: float = 0.0
    rounds: float = 0.0
    limit: str = ROUNDS


class Measured(NamedTuple):
    """A method, or a row without a model, as it is judged.

    Attributes:
      name: as in the contest.
      title: for readers.
      role: of `launch.contests.methods`, or TRIVIAL.
      tests: each client's result on its own test examples, by seed.
      validations: the mean of the clients on their own validation examples, by seed: by these alone it is chosen.
      new: as `tests`, of clients that took no part in training; empty if none were held out.
      sizes: test examples of each client, as a mean over the seeds.
      models: how many models its clients have together in the end, by seed.
      used: the model that each client has in the end, of the first seed.
      cost: of its runs.
      settings: the chosen ones.
      runs: folders by seed.
      notes: of the first run's data, a sentence each.
      is_natural: whether a client's name means the same client with any seed, and not whom that seed's split made.
    """

    name: str
    title: str
    role: str
    tests: Results
    validations: Mapping[int, float] = NOTHING
    new: Results = NOTHING
    sizes: Mapping[str, float] = NOTHING
    models: Mapping[int, int] = NOTHING
    cost: Cost = Cost()
    settings: Settings = NOTHING
    runs: Mapping[int, pathlib.Path] = NOTHING
    notes: Sequence[str] = ()
    is_natural: bool = True
    used: Mapping[str, str] = NOTHING

    @property
    def is_federated(self) -> bool:
        """Whether clients learn from each other without handing over their examples."""
        return self.role in FEDERATED_ROLES

    def average(self) -> float | None:
        """The mean result of the clients over the seeds; None where nothing was measured."""
        return average_results(self.tests)

    def average_clients(self) -> dict[str, float]:
        """The mean result of each client over the seeds."""
        names = dict.fromkeys(name for each in self.tests.values() for name in each)
        return {name: compute_mean(each[name] for each in self.tests.values() if name in each) for name in names}

    def average_worst_tenth(self, task: TaskColumns) -> float | None:
        """The mean over the seeds of that of the tenth of the clients with the worst results."""
        return _average(task.compute_worst_tenth(np.array(list(each.values()))) for each in self.tests.values() if each)

    def average_validation(self, seeds: Iterable[int]) -> float | None:
        """The mean over these seeds; None unless it has them all."""
        wanted = list(seeds)
        has_all = wanted and all(seed in self.validations for seed in wanted)
        return compute_mean(self.validations[seed] for seed in wanted) if has_all else None


def average_results(results: Results) -> float | None:
    """The mean over the seeds of the mean over the clients; None without any."""
    return _average(compute_mean(each.values()) for each in results.values() if each)


def _average(values: Iterable[float]) -> float | None:
    known = list(values)
    return compute_mean(known) if known else None


def measure_outcome(outcome: Outcome) -> list[Measured]:
    """All methods that have a finished run on a fresh seed, in the order in which they entered.

    Raises:
      RunRecordError: a run cannot be read; one line.
    """
    task, limits = outcome.problem.task, outcome.limits
    return [_measure(each, task, limits.get(each.method.name)) for each in outcome.entered if each.runs]


def _measure(entered: Entered, task: TaskColumns, limits: Limits | None) -> Measured:
    tests, validations, new, models, costs = {}, {}, {}, {}, []
    sizes: dict[str, list[float]] = {}
    notes: Sequence[str] = ()
    is_natural, used = True, {}
    for seed, path in sorted(entered.runs.items()):
        run, summary = read_compared_run(path, path.name), read_json(path / SUMMARY_FILE)
        tests[seed], new[seed] = (_read_clients(run, task, took_part) for took_part in (True, False))
        validation = read_result(run, task.client_validation, LAST, task.sign < 0)
        if validation is not None:
            validations[seed] = validation
        for name, size in _read_column(run, NUM_TEST, True).items():
            sizes.setdefault(name, []).append(size)
        of_clients = {name: str(model) for name, model in _read_column(run, MODEL, True).items()}
        used, models[seed] = used or of_clients, len(set(of_clients.values()))
        costs.append(_read_cost(run, summary, limits))
        notes = notes or run.data
        is_natural = is_natural and run.asked.get("partition") == NATURAL
    method = entered.method
    return Measured(
        method.name,
        method.title,
        method.role,
        tests,
        validations,
        {seed: each for seed, each in new.items() if each},
        {name: compute_mean(each) for name, each in sizes.items()},
        models,
        _average_costs(costs),
        entered.chosen or {},
        dict(sorted(entered.runs.items())),
        notes,
        is_natural,
        used,
    )


def _read_clients(run: ComparedRun, task: TaskColumns, took_part: bool) -> dict[str, float]:
    """The result of each client that was tested: of those that took part, or of the new ones."""
    values = _read_column(run, task.of_client, took_part)
    return {name: float(value) for name, value in values.items() if not isinstance(value, str) and np.isfinite(value)}


def _read_column(run: ComparedRun, column: str, took_part: bool) -> dict[str, Any]:
    """{client: its cell} of the honest clients that took part, or of the new ones."""
    names, cells = run.clients.get(CLIENT, ()), run.clients.get(column, ())
    there = run.clients.get(TOOK_PART, [1] * len(names))
    attacks = run.clients.get(ATTACKER, [0] * len(names))
    rows = zip(names, cells, there, attacks, strict=False)
    return {str(name): cell for name, cell, took, attack in rows if bool(took) == took_part and not attack}


def _read_cost(run: ComparedRun, summary: Mapping[str, Any], limits: Limits | None) -> Cost:
    columns, number = run.columns, len(_read_column(run, CLIENT, True))
    total = None
    if {BYTES_UP, BYTES_DOWN} <= columns.keys():
        total = float(np.nansum(columns[BYTES_UP]) + np.nansum(columns[BYTES_DOWN]))
    seconds = float(columns[VIRTUAL_TIME_S][-1]) if VIRTUAL_TIME_S in columns else None
    tuning = sum_fine_tuning_s(summary)
    limit = ROUNDS
    if REACHED_LIMITS in summary and limits:
        spent = {BYTES: (total or 0, limits.most_bytes), TIME: (seconds or 0, limits.most_virtual_s)}
        limit = max(spent, key=lambda name: spent[name][0] / spent[name][1] if spent[name][1] else -1.0)
    each = total / number if total is not None and number else None
    return Cost(each, None if seconds is None else seconds + tuning, tuning, float(len(columns[ROUND])), limit)


def _average_costs(costs: Sequence[Cost]) -> Cost:
    names = [cost.limit for cost in costs]
    return Cost(
        _average(cost.bytes for cost in costs if cost.bytes is not None),
        _average(cost.seconds for cost in costs if cost.seconds is not None),
        compute_mean(cost.fine_tuning_s for cost in costs),
        compute_mean(cost.rounds for cost in costs),
        max(names, key=names.count),
    )


def is_share(task: TaskColumns) -> bool:
    """Whether results are shares, which are spoken of in points."""
    return task.metric.unit == PERCENT


def is_share_of_answers(task: TaskColumns) -> bool:
    """Whether a result is the share of right answers to so many test examples, each of which is right or wrong."""
    return is_share(task) and task.metric.name.endswith("accuracy")


def counts_answers(task: TaskColumns) -> bool:
    """Whether a client's result can be said in answers, one to each test example."""
    return task.is_classification and is_share_of_answers(task)
