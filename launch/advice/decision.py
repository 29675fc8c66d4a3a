"""Whether to federate, and with what: the decision, by fixed rules on what was measured. Imports no TensorFlow.

Validation examples choose, test examples compare:
1. The winner is the federated method with the best mean on the clients' validation examples over the fresh seeds that
   all have; of those within `choices.NEAR` of it, the one that sends least.
2. *Alone* is local training or each client's own constant answer, the better on validation examples. The *trivial* row
   is likewise the best of those without a model.
3. The questions, with Holm's correction over them, are those of `launch.advice.questions`. They are asked at most
   twice, each time with half the error: after the planned seeds, and after all further ones. `count_looks`
4. FEDERATE if the winner, FedAvg or a rival is beyond doubt better than alone and than the trivial row; ALONE if alone
   is beyond doubt better than the winner, and local training than the trivial row; NOTHING_LEARNED if no model beats
   the trivial row even without a correction; else UNDECIDED.
5. Advised is the winner; where it is not beyond doubt better than FedAvg, FedAvg, if that is so than alone. One model
   for all is not advised where a rival, which has several, is beyond doubt better than it.

What is beyond doubt, `launch.advice.contrasts` says.
"""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.advice.choices import (
    FEDAVG,
    choose_row,
    choose_winner,
    collect_sizes,
    get_margin,
    list_rivals,
    list_shared,
)
from launch.advice.contrasts import contrast
from launch.advice.measures import TRIVIAL, Measured
from launch.advice.questions import (
    ALONE_LEARNED,
    FEDAVG_LEARNED,
    FEDAVG_MAIN,
    LEARNED,
    MAIN,
    OVER_FEDAVG,
    Comparison,
    list_asked,
    list_asked_of_rival,
    name_rivals,
    share_doubt,
)
from launch.advice.trivial import OWN
from launch.contests.methods import ALONE as ROLE_ALONE
from launch.contests.methods import SHARED
from launch.contests.plan import Plan
from launch.pages.comparison.seed_statistics import ERROR_RATE
from launch.runs.task_columns import TaskColumns

FEDERATE, ALONE, UNDECIDED, NOTHING_LEARNED = "federate", "alone", "undecided", "nothing learned"


class Decision(NamedTuple):
    """What follows from the measurements.

    Attributes:
      verdict: FEDERATE, ALONE, UNDECIDED or NOTHING_LEARNED.
      winner: the best federated method; None without any.
      advised: what to take: a federated method, or of ALONE that; None where the data cannot tell.
      alone: the better of local training and each client's own constant answer; None without any.
      trivial: the best row without a model; None without any.
      comparisons: by name, those that were made.
      over_alone, over_trivial, over_fedavg: of the advised method, else of the winner; None where there is no such. Of
        FedAvg itself the last is what the winner gains over it.
      why: why nothing could be compared, in words; "" if it was.
    """

    verdict: str
    winner: str | None = None
    advised: str | None = None
    alone: str | None = None
    trivial: str | None = None
    comparisons: Mapping[str, Comparison] = types.MappingProxyType({})
    over_alone: Comparison | None = None
    over_trivial: Comparison | None = None
    over_fedavg: Comparison | None = None
    why: str = ""


def count_looks(plan: Plan) -> int:
    """How often the questions are asked: once more where further seeds may come."""
    return 2 if plan.most_seeds > len(plan.seeds) else 1


def get_rate(plan: Plan) -> float:
    """The error that each look is allowed, so that all together make `ERROR_RATE` at most."""
    return ERROR_RATE / count_looks(plan)


def decide(
    methods: Sequence[Measured], rows: Sequence[Measured], task: TaskColumns, rate: float = ERROR_RATE
) -> Decision:
    """The decision.

    Args:
      methods: those with runs on fresh seeds.
      rows: those without a model.
      task: what the results are.
      rate: of an error in any of the questions.
    """
    everything = {each.name: each for each in (*methods, *rows)}
    winner = choose_winner(methods, task)
    locals_ = [each for each in methods if each.role == ROLE_ALONE]
    alone = choose_row([*locals_, *(row for row in rows if row.name == OWN)], task)
    trivial = choose_row(rows, task)
    if winner is None or alone is None:
        missing = "a federated method" if winner is None else "training alone"
        names = [each and each.name for each in (winner, alone, trivial)]
        why = f"a finished run of {missing} on a fresh seed"
        return Decision(UNDECIDED, names[0], None, names[1], names[2], why=why)
    asked = list_asked(winner, everything.get(FEDAVG), alone, choose_row(locals_, task), trivial)
    shared = list_shared(winner, methods)
    rivals = list_rivals(winner, methods) if shared else []
    for rival in rivals:
        asked |= list_asked_of_rival(rival, shared, alone, trivial)
    sizes = collect_sizes(methods, task)
    found = {name: contrast(a.tests, b.tests, task.sign, sizes) for name, (a, b, _) in asked.items()}
    rates = share_doubt(asked, found, alone.role != TRIVIAL, rate)
    made = {name: Comparison(a.name, b.name, found[name], rates[name]) for name, (a, b, _) in asked.items()}
    better = [each for each in rivals if all(made[name].is_better for name in asked if asked[name].first is each)]
    trivial_name = trivial.name if trivial else None
    decision = Decision(UNDECIDED, winner.name, None, alone.name, trivial_name, made, made[MAIN], made.get(LEARNED))
    verdict = _find_verdict(made, better)
    advised = {FEDERATE: lambda: _choose_advised(everything, winner, better, made, task), ALONE: lambda: alone}
    name = advised[verdict]().name if verdict in advised else None
    return _set_beside(decision._replace(verdict=verdict, advised=name))


def _is_better(made: Mapping[str, Comparison], main: str, learned: str) -> bool:
    """Whether a method is beyond doubt better than alone, and than the trivial row if there is one."""
    return main in made and all(made[name].is_better for name in (main, learned) if name in made)


def _find_verdict(made: Mapping[str, Comparison], better: Sequence[Measured]) -> str:
    main, alone = made[MAIN], made.get(ALONE_LEARNED)
    if better or _is_better(made, MAIN, LEARNED) or _is_better(made, FEDAVG_MAIN, FEDAVG_LEARNED):
        return FEDERATE
    learned = [made[name].contrast for name in (LEARNED, FEDAVG_LEARNED, ALONE_LEARNED) if name in made]
    # Without a correction: what is not even seen so is not seen.
    if learned and not any(each.is_better(ERROR_RATE) for each in learned):
        return NOTHING_LEARNED if main.contrast.samples else UNDECIDED
    is_learned = alone.is_better and alone.first == main.second if alone else LEARNED not in made
    return ALONE if main.is_worse and is_learned else UNDECIDED


def _choose_advised(
    everything: Mapping[str, Measured],
    winner: Measured,
    better: Sequence[Measured],
    made: Mapping[str, Comparison],
    task: TaskColumns,
) -> Measured:
    """Which federated method to take, where one is beyond doubt better than alone.

    Args:
      everything: methods by name.
      winner: the best on validation examples.
      better: the rivals that are beyond doubt better than one model for all.
      made: the comparisons.
      task: what the results are.
    """
    advised = winner if _is_better(made, MAIN, LEARNED) else None
    is_beaten = OVER_FEDAVG not in made or made[OVER_FEDAVG].is_better
    if not (advised and is_beaten) and _is_better(made, FEDAVG_MAIN, FEDAVG_LEARNED):
        advised = everything[FEDAVG]
    if better and (advised is None or advised.role == SHARED):
        return choose_winner(better, task) or better[0]
    return advised


def _set_beside(decision: Decision) -> Decision:
    """The decision with what the advised method gains over others."""
    made, advised = decision.comparisons, decision.advised
    if advised in (None, decision.winner, decision.alone):
        return decision._replace(over_fedavg=made.get(OVER_FEDAVG))
    if advised == FEDAVG:
        return decision._replace(
            over_alone=made[FEDAVG_MAIN], over_trivial=made.get(FEDAVG_LEARNED), over_fedavg=made.get(OVER_FEDAVG)
        )
    over = [made.get(name_rivals(advised, other)) for other in ("alone", "trivial", FEDAVG)]
    return decision._replace(over_alone=over[0], over_trivial=over[1], over_fedavg=over[2])


def list_open(decision: Decision, methods: Sequence[Measured], task: TaskColumns) -> tuple[str, ...]:
    """The names of the methods that a further seed should go to: the two of what is not decided, or none."""
    names = {each.name for each in methods}
    main = decision.comparisons.get(MAIN)
    if main is None:
        return tuple(name for name in (decision.winner, decision.alone) if name in names)
    beside = next((each.average() for each in methods if each.name == decision.alone), None)
    if decision.verdict in (UNDECIDED, NOTHING_LEARNED):
        is_close = main.is_within(get_margin(task, beside))
        return () if is_close else tuple(name for name in (main.first, main.second) if name in names)
    further = decision.comparisons.get(OVER_FEDAVG)
    if decision.verdict == ALONE or further is None or further.is_decided:
        return ()
    return () if further.is_within(get_margin(task, beside)) else (further.first, further.second)
