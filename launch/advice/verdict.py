"""The advice: what a contest's runs on fresh seeds have measured, and what is decided by it. Imports no TensorFlow."""

from collections.abc import Mapping
from typing import NamedTuple

from launch.advice.choices import collect_sizes, get_margin
from launch.advice.contrasts import contrast, find_losers
from launch.advice.decision import NOTHING_LEARNED, UNDECIDED, Decision, decide, get_rate, list_open
from launch.advice.marks import list_marks, list_rising
from launch.advice.measures import Measured, counts_answers, measure_outcome
from launch.advice.needs import Need, list_needs
from launch.advice.questions import LEARNED, MAIN, Comparison
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
      worse_off: clients for which the method that is judged was worse than alone, the worst first. Where results are no
        shares of right answers, only those beyond doubt.
      rising: names of the methods that train alone, and that more training might make clearly better.
      notes: what the reader should know of the data, a line each.
    """

    outcome: Outcome
    decision: Decision
    methods: tuple[Measured, ...]
    rows: tuple[Measured, ...]
    beside_alone: Mapping[str, Comparison]
    marks: Mapping[str, list[str]]
    needs: tuple[Need, ...]
    worse_off: tuple[str, ...]
    rising: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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


def judge(outcome: Outcome, rows: dict[int, Mapping[str, Row]] | None = None, notes: tuple[str, ...] = ()) -> Advice:
    """The advice that a contest leads to.

    Args:
      outcome: of the contest.
      rows: what is reached without a model, by fresh seed, as far as it is known. The rest is measured, for which the
        data are read, and put there.
      notes: on the data, for the reader.

    Raises:
      RunRecordError: a run cannot be read.
      DatasetError: the data cannot be.
    """
    task = outcome.problem.task
    methods = measure_outcome(outcome)
    trivial = collect_trivial(measure_seeds(outcome, rows), task)
    return assemble(outcome, methods, trivial, notes)


def assemble(outcome: Outcome, methods: list[Measured], trivial: list[Measured], notes: tuple[str, ...] = ()) -> Advice:
    """The advice of what was measured."""
    task = outcome.problem.task
    decision = decide(methods, trivial, task, get_rate(outcome.plan))
    order = sorted(methods, key=lambda each: _rank(each, task))
    rows = sorted(trivial, key=lambda each: _rank(each, task))
    everything = {each.name: each for each in (*order, *rows)}
    alone, main = everything.get(decision.alone or ""), decision.comparisons.get(MAIN)
    # Those that a question was asked about have its rate, the others that of the main one.
    asked = {each.first: each for each in decision.comparisons.values() if alone and each.second == alone.name}
    beside_alone = {}
    for each in everything.values() if alone else ():
        if each is not alone:
            gains = contrast(each.tests, alone.tests, task.sign, collect_sizes(methods, task))
            made = Comparison(each.name, alone.name, gains, main.rate if main else 1.0)
            beside_alone[each.name] = asked.get(each.name, made)
    beside = get_margin(task, alone.average() if alone else None)
    rising = list_rising(outcome, beside)
    of_clients = decision.over_alone.contrast.by_client if decision.over_alone else {}
    losers = sorted((gain, name) for name, gain in of_clients.items() if gain < -UNTOLD)
    if decision.over_alone and not counts_answers(task):
        first, second = (everything[name].tests for name in (decision.over_alone.first, decision.over_alone.second))
        doubtless = find_losers(first, second, task.sign)
        losers = [each for each in losers if each[1] in doubtless]
    return Advice(
        outcome,
        decision,
        tuple(order),
        tuple(rows),
        beside_alone,
        list_marks(methods, outcome, rising),
        tuple(_find_needs(decision, beside)),
        tuple(name for _, name in losers),
        rising,
        notes,
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


def build_chooser(known: dict[int, Mapping[str, Row]]) -> ChooseMore:
    """Which methods get a further seed, for `run_contest`: the two of the question that is open after the planned ones.

    It never looks at further seeds. To go on until a difference is seen is to see one too often, and the next look is
    that of `judge`.

    Args:
      known: rows without a model by seed, which are read once, and put there.
    """

    def choose_more(outcome: Outcome) -> tuple[str, ...]:
        first = _keep_planned(outcome)
        task, methods = first.problem.task, measure_outcome(first)
        rows = collect_trivial(measure_seeds(first, known), task)
        return list_open(decide(methods, rows, task, get_rate(first.plan)), methods, task)

    return choose_more


def _keep_planned(outcome: Outcome) -> Outcome:
    """The outcome with the seeds that every finalist has, as it was before any further one."""
    entered = (
        each._replace(runs={seed: path for seed, path in each.runs.items() if seed in outcome.plan.seeds})
        for each in outcome.entered
    )
    return outcome._replace(entered=tuple(entered))
