"""The advice: what a contest's runs on fresh seeds have measured, and what is decided by it. Imports no TensorFlow."""

from collections.abc import Mapping
from typing import NamedTuple

from launch.advice.contrasts import contrast
from launch.advice.decision import (
    LEARNED,
    MAIN,
    NOTHING_LEARNED,
    UNDECIDED,
    Comparison,
    Decision,
    collect_sizes,
    decide,
    get_margin,
    list_open,
)
from launch.advice.marks import list_marks
from launch.advice.measures import Measured, measure_outcome
from launch.advice.needs import Need, list_needs
from launch.advice.trivial import Row, collect_trivial, measure_seeds
from launch.contests.contest import ChooseMore, Outcome
from launch.runs.task_columns import TaskColumns

UNTOLD = 1e-9  # a loss of a client smaller than this is one of rounding


class Advice(NamedTuple):
    """What is advised, and all that it rests on.

    Attributes:
      outcome: of the contest.
      decision: the verdict, the winner, the comparisons.
      methods: as measured on fresh seeds, those that do best on the clients' test examples first.
      rows: those without a model, likewise.
      beside_alone: {name: what it gains over alone}, of all methods but alone itself.
      marks: {name: what is suspicious about its runs}.
      needs: what would decide the question that is open; empty if none is.
      worse_off: clients for which the method that is judged was worse than alone, the worst first.
    """

    outcome: Outcome
    decision: Decision
    methods: tuple[Measured, ...]
    rows: tuple[Measured, ...]
    beside_alone: Mapping[str, Comparison]
    marks: Mapping[str, list[str]]
    needs: tuple[Need, ...]
    worse_off: tuple[str, ...]

    @property
    def task(self) -> TaskColumns:
        return self.outcome.problem.task

    @property
    def judged(self) -> Measured | None:
        """The federated method that is set against alone: the advised one, else the winner."""
        name = self.decision.over_alone.first if self.decision.over_alone else self.decision.winner
        return self.find(name)

    def find(self, name: str | None) -> Measured | None:
        """The method or row of that name; None if none has it."""
        return next((each for each in (*self.methods, *self.rows) if each.name == name), None)

    @property
    def alone(self) -> Measured | None:
        return self.find(self.decision.alone)

    @property
    def margin(self) -> float:
        """A difference that hardly matters."""
        return get_margin(self.task, self.alone.average() if self.alone else None)


def judge(outcome: Outcome, rows: Mapping[int, Mapping[str, Row]] | None = None) -> Advice:
    """The advice that a contest leads to.

    Args:
      outcome: of the contest.
      rows: what is reached without a model, by fresh seed; None: it is measured, for which the data are read.

    Raises:
      RunRecordError: a run cannot be read.
      DatasetError: the data cannot be.
    """
    task = outcome.problem.task
    methods = measure_outcome(outcome)
    trivial = collect_trivial(measure_seeds(outcome) if rows is None else rows, task)
    return assemble(outcome, methods, trivial)


def assemble(outcome: Outcome, methods: list[Measured], trivial: list[Measured]) -> Advice:
    """The advice of what was measured."""
    task = outcome.problem.task
    decision = decide(methods, trivial, task)
    order = sorted(methods, key=lambda each: _rank(each, task))
    rows = sorted(trivial, key=lambda each: _rank(each, task))
    everything = {each.name: each for each in (*order, *rows)}
    alone, main = everything.get(decision.alone or ""), decision.comparisons.get(MAIN)
    beside_alone = {}
    for each in everything.values() if alone else ():
        if each is not alone:
            gains = contrast(each.tests, alone.tests, task.sign, collect_sizes(methods, task))
            beside_alone[each.name] = Comparison(each.name, alone.name, gains, main.rate if main else 1.0)
    beside = get_margin(task, alone.average() if alone else None)
    of_clients = decision.over_alone.contrast.by_client if decision.over_alone else {}
    losers = sorted((gain, name) for name, gain in of_clients.items() if gain < -UNTOLD)
    return Advice(
        outcome,
        decision,
        tuple(order),
        tuple(rows),
        beside_alone,
        list_marks(methods, outcome),
        tuple(_find_needs(decision, beside)),
        tuple(name for _, name in losers),
    )


def _rank(measured: Measured, task: TaskColumns) -> float:
    mean = measured.average()
    return float("inf") if mean is None else -task.sign * mean


def _find_needs(decision: Decision, margin: float) -> list[Need]:
    of = {UNDECIDED: MAIN, NOTHING_LEARNED: LEARNED}.get(decision.verdict)
    comparison = decision.comparisons.get(of or "")
    needs = list(list_needs(comparison, margin)) if comparison else []
    # Decided by itself, it is open since nobody has shown that anything is learned.
    learned = decision.comparisons.get(LEARNED)
    return needs or (list(list_needs(learned, margin)) if learned and of else [])


def build_chooser() -> ChooseMore:
    """Which methods get a further seed, for `run_contest`: the two of the question that is open.

    It reads the data of each seed once.
    """
    known: dict[int, Mapping[str, Row]] = {}

    def choose_more(outcome: Outcome) -> tuple[str, ...]:
        task, methods = outcome.problem.task, measure_outcome(outcome)
        rows = collect_trivial(measure_seeds(outcome, known), task)
        return list_open(decide(methods, rows, task), methods, task)

    return choose_more
