"""What a run has reached, and what that is worth: the number, the rows without a model beside it. No TensorFlow."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from launch.pages.comparison.compared_run import MAJORITY_OF_ALL, MAJORITY_OF_CLIENT, ComparedRun
from launch.pages.report.words import NBSP, count, read_number, show_cell, show_gain, show_metric
from launch.runs.columns import (
    BUDGET_SPENT,
    EPSILON_SPENT,
    KEPT_BEST,
    NEW_CLIENTS,
    NUM_CLIENTS,
    NUM_TEST,
    REACHED_LIMITS,
    ROUND,
    STOPPED_EARLY,
    TOKEN_BASELINES,
)
from launch.runs.task_columns import TASK, name_test

MAJORITIES = {
    MAJORITY_OF_ALL: "always the most frequent class",
    MAJORITY_OF_CLIENT: "always each client's own most frequent class",
}
TOKENS = {
    "unigram_accuracy": "always the most frequent token",
    "bigram_accuracy": "always the most frequent token after the last one",
}
MEAN_LABEL, ANY_ORDER = "always the mean of the test labels", "the labels in any order"
TARGETS = ("target_accuracy", "target_metric")
EVEN_AUC = 0.5  # of outputs that say nothing


class Trivial(NamedTuple):
    """A row that no model was trained for.

    Attributes:
      label: what it does, as "always the most frequent class".
      value: what it reaches.
      shown: the same in words.
      gain: how much better the model is, in words.
      is_beaten: whether the model is better.
    """

    label: str
    value: float
    shown: str
    gain: str
    is_beaten: bool


class Answer(NamedTuple):
    """What the page begins with.

    Attributes:
      number: the main result, as "89.1 %".
      what: what that is, as "test accuracy after 20 rounds".
      where: on which examples.
      trivial: what is reached without a model; the first is the one to beat.
      further: (name, text) of what else was measured.
      ends: sentences on why the run ended, or on what the number is not worth.
      column: the number's, in `metrics.csv`.
    """

    number: str
    what: str
    where: str
    trivial: list[Trivial]
    further: list[tuple[str, str]]
    ends: list[str]
    column: str


def find_answer(run: ComparedRun, summary: Mapping[str, Any], data: Mapping[str, Any]) -> Answer:
    """What a run has reached.

    Args:
      run: the run.
      summary: its `summary.json`, of any version.
      data: the data section of its `config.json`.
    """
    task, clients = run.task, read_section(summary, "clients")
    after = f"after {count(len(run.columns[ROUND]), 'round')}"
    of_clients = read_number(clients.get(task.statistics[0]))
    of_clients = read_last(run, task.client_test) if of_clients is None else of_clients
    on_test_set = read_last(run, task.test)
    # As in comparisons: clients with models of their own are asked about their own data.
    is_own = on_test_set is None or (run.is_fitted and of_clients is not None)
    column, reached = (task.client_test, of_clients) if is_own else (task.test, on_test_set)
    num_tested, num_clients = read_number(data.get(NUM_TEST)), read_number(data.get(NUM_CLIENTS))
    if is_own:
        whose = "their own models" if run.is_fitted else "the model"
        of = f" of {count(int(num_clients), 'client')}" if num_clients else ""
        where = f"the mean{of} with {whose}, each on its own test examples"
    else:
        where = f"on {count(int(num_tested), 'test example')} apart from the clients" if num_tested else ""
    direction = "" if task.metric.larger_is_better else ", the lower the better"
    whose = "clients' own test" if is_own else "test"
    return Answer(
        show_metric(reached, task),
        f"{whose} {task.title} {after}{direction}",
        where,
        [] if reached is None else list(_list_trivial(run, summary, data, column, reached)),
        list(_list_further(run, summary, of_clients, on_test_set, is_own)),
        list(_list_ends(run, summary)),
        column,
    )


def read_section(summary: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a JSON object; empty where there is none."""
    section = summary.get(name)
    return section if isinstance(section, Mapping) else {}


def read_last(run: ComparedRun, column: str) -> float | None:
    """The last value that was measured; None without any."""
    values = run.columns.get(column, np.array([]))
    values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) else None


def _list_trivial(
    run: ComparedRun, summary: Mapping[str, Any], data: Mapping[str, Any], column: str, reached: float
) -> Iterator[Trivial]:
    task = run.task
    majorities = run.trivial.get(column, {})
    rows = [(MAJORITIES[name], majorities.get(name)) for name in reversed(MAJORITIES)]
    if column == task.test:
        baselines = read_section(summary, TOKEN_BASELINES)
        rows += [(label, read_number(baselines.get(name))) for name, label in TOKENS.items()]
        labels = read_section(data, TASK)
        is_one_number = (read_number(labels.get("num_outputs")) or 0) <= 1
        rows.append((MEAN_LABEL, _find_error_of_mean(run, reached) if is_one_number else None))
    if task.metric.name == "auc":
        rows.append((ANY_ORDER, EVEN_AUC))
    for label, value in rows:
        if value is not None:
            is_beaten = task.sign * reached > task.sign * value
            yield Trivial(label, value, show_metric(value, task), show_gain(reached, value, task), is_beaten)


def _find_error_of_mean(run: ComparedRun, reached: float) -> float | None:
    """The RMSE of the test labels' mean, from R2 = 1 - (RMSE of the model / RMSE of the mean)^2; None if unknown.

    Of labels that are several numbers R2 is a mean over these, from which nothing follows.
    """
    explained = {metric.name: read_last(run, name_test(metric)) for metric in run.task.kind.metrics}.get("r2")
    if run.task.metric.name != "rmse" or explained is None or explained >= 1:
        return None
    return reached / (1 - explained) ** 0.5


def _list_further(
    run: ComparedRun, summary: Mapping[str, Any], of_clients: float | None, on_test_set: float | None, is_own: bool
) -> Iterator[tuple[str, str]]:
    task = run.task
    column = task.client_test if is_own else task.test
    values = run.columns.get(column, np.array([]))
    place = task.find_best(values.tolist())
    if place is not None and task.find_best([read_last(run, column), float(values[place])]) == 1:
        yield "Best round", f"{show_metric(float(values[place]), task)} in round {run.columns[ROUND][place]:.0f}"
    if is_own and on_test_set is not None:
        yield "On the global test set", show_metric(on_test_set, task)
    elif not is_own and of_clients is not None:
        own = run.trivial.get(task.client_test, {}).get(MAJORITY_OF_CLIENT)
        beside = f" (always each one's most frequent class: {show_metric(own, task)})" if own is not None else ""
        yield "Clients' own test examples, mean", f"{show_metric(of_clients, task)}{beside}"
    for metric in task.kind.metrics[1:]:
        if (value := read_last(run, name_test(metric))) is not None:
            shown = f"{100 * value:.1f}{NBSP}%" if metric.unit == "%" else show_cell(value)
            yield f"{metric.title[:1].upper()}{metric.title[1:]} on the test set", shown
    new = read_number(read_section(summary, NEW_CLIENTS).get(task.statistics[0]))
    if new is not None:
        yield "Clients that took no part in training", show_metric(new, task)
    if (spent := read_last(run, EPSILON_SPENT)) is not None:
        yield "Privacy spent", f"epsilon {show_cell(spent)}"
    kept = read_section(summary, KEPT_BEST)
    if (round_num := read_number(kept.get(ROUND))) is not None:
        yield "Models kept beside the last", f"those of round {round_num:.0f}, best on validation examples"


def _list_ends(run: ComparedRun, summary: Mapping[str, Any]) -> Iterator[str]:
    done, asked = len(run.columns[ROUND]), read_number(run.asked.get("rounds"))
    whole = f"after {done:,} of {count(int(asked), 'round')}" if asked and asked > done else ""
    if run.asked.get("smoke") is True:
        yield "This was a smoke run: it shows that all works. Its numbers mean nothing."
    why = ""
    if STOPPED_EARLY in summary:
        why = ", since its validation examples got no better"
    elif REACHED_LIMITS in summary:
        limits = read_section(summary, REACHED_LIMITS)
        named = " or ".join(f"--{name}={value:g}" for name, value in limits.items() if read_number(value))
        why = f", since the next would pass {named}"
    elif BUDGET_SPENT in summary:
        why = ", since its privacy budget is spent"
    elif any(read_number(run.asked.get(name)) for name in TARGETS):
        why = ", since it had reached its target"
    if whole:
        yield f"It ended {whole}{why}."
