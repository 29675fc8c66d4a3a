"""Whether to federate, and with what: the decision, by fixed rules on what was measured. Imports no TensorFlow.

Validation examples choose, test examples compare:
1. The winner is the federated method with the best mean on the clients' validation examples over the fresh seeds; of
   those within `NEAR` of it, the one that sends least.
2. *Alone* is local training or each client's own constant answer, the better on validation examples. The *trivial* row
   is likewise the best of those without a model.
3. Three questions, each with a p-value, and Holm's correction over the three:
   - federate or alone: the winner against alone. Whichever leads must beat the trivial row, too.
   - the winner against FedAvg.
   - FedAvg against alone and against the trivial row, which counts where the winner does not beat FedAvg.
   Of several comparisons that must all hold, the largest p-value is that of the question.
4. The verdict is about the first: FEDERATE or ALONE if it is decided, else UNDECIDED; NOTHING_LEARNED if neither the
   winner nor local training beats the trivial row even without a correction.
5. FedAvg is advised where the winner does not beat it, if it is itself beyond doubt better than alone. One model for
   all is not advised where a method with several is beyond doubt better than it.

What is beyond doubt, `launch.advice.contrasts` says.
"""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.advice.contrasts import NO_CONTRAST, Contrast, contrast, level_by_holm
from launch.advice.measures import TRIVIAL, Measured, is_share, is_share_of_answers
from launch.advice.trivial import OWN
from launch.contests.methods import ALONE as ROLE_ALONE
from launch.contests.methods import GROUPS, PERSONAL, SHARED
from launch.pages.comparison.seed_statistics import ERROR_RATE, LEAST_SEEDS, MARGIN
from launch.runs.task_columns import TaskColumns

FEDERATE, ALONE, UNDECIDED, NOTHING_LEARNED = "federate", "alone", "undecided", "nothing learned"
FEDAVG = "fedavg"
NEAR = 0.001  # a tenth of a point; of other metrics that share of the best
# The comparisons, first against second.
MAIN, LEARNED, OVER_FEDAVG = "winner against alone", "winner against trivial", "winner against FedAvg"
FEDAVG_MAIN, FEDAVG_LEARNED, ALONE_LEARNED = "FedAvg against alone", "FedAvg against trivial", "alone against trivial"


class Comparison(NamedTuple):
    """Two methods beside each other.

    Attributes:
      first, second: their names.
      contrast: what the first gains.
      rate: the rate of error at which it is decided, and its interval misses.
    """

    first: str
    second: str
    contrast: Contrast
    rate: float = ERROR_RATE

    @property
    def is_better(self) -> bool:
        return self.contrast.is_better(self.rate)

    @property
    def is_worse(self) -> bool:
        return self.contrast.is_worse(self.rate)

    @property
    def is_decided(self) -> bool:
        return self.is_better or self.is_worse

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the interval of the gain; None where nothing is known. Without 0 exactly if it is decided."""
        return self.contrast.find_ends(self.rate)

    def is_within(self, margin: float) -> bool:
        """Whether the gain is beyond doubt smaller than the margin, either way."""
        ends = self.ends
        return ends is not None and -margin < ends[0] and ends[1] < margin


class Decision(NamedTuple):
    """What follows from the measurements.

    Attributes:
      verdict: FEDERATE, ALONE, UNDECIDED or NOTHING_LEARNED.
      winner: the best federated method; None without any.
      advised: what to take: a federated method, or of ALONE that; None where the data cannot tell.
      alone: the better of local training and each client's own constant answer; None without any.
      trivial: the best row without a model; None without any.
      comparisons: by name, those that were made.
      over_alone, over_trivial, over_fedavg: of the advised method, else of the winner; None where there is no such.
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


def decide(methods: Sequence[Measured], rows: Sequence[Measured], task: TaskColumns) -> Decision:
    """The decision.

    Args:
      methods: those with runs on fresh seeds.
      rows: those without a model.
      task: what the results are.
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
    fedavg = everything.get(FEDAVG)
    asked = {MAIN: (winner, alone)}
    local = choose_row(locals_, task)
    if trivial is not None:
        asked[LEARNED] = (winner, trivial)
        if local is not None:
            asked[ALONE_LEARNED] = (local, trivial)
    if fedavg is not None and fedavg is not winner:
        asked |= {OVER_FEDAVG: (winner, fedavg), FEDAVG_MAIN: (fedavg, alone)}
        if trivial is not None:
            asked[FEDAVG_LEARNED] = (fedavg, trivial)
    sizes = collect_sizes(methods, task)
    found = {name: contrast(a.tests, b.tests, task.sign, sizes) for name, (a, b) in asked.items()}
    rates = _share_doubt(found, is_model=alone.role != TRIVIAL)
    comparisons = {
        name: Comparison(asked[name][0].name, asked[name][1].name, found[name], rates[name]) for name in asked
    }
    verdict = _find_verdict(comparisons, has_rows=trivial is not None)
    decision = Decision(
        verdict, winner.name, None, alone.name, trivial.name if trivial else None, comparisons, comparisons[MAIN],
        comparisons.get(LEARNED), comparisons.get(OVER_FEDAVG), "",
    )  # fmt: skip
    if verdict == ALONE:
        return decision._replace(advised=alone.name)
    return _advise(decision, everything, task, sizes) if verdict == FEDERATE else decision


def choose_winner(methods: Sequence[Measured], task: TaskColumns) -> Measured | None:
    """The federated method with the best mean on validation examples over the seeds that all have; see `NEAR`.

    Methods with fewer than `LEAST_SEEDS` seeds are left out where others have more. None without any.
    """
    federated = [each for each in methods if each.is_federated and each.validations]
    enough = min(LEAST_SEEDS, max((len(each.validations) for each in federated), default=0))
    federated = [each for each in federated if len(each.validations) >= enough]
    if not federated:
        return None
    seeds = set.intersection(*(set(each.validations) for each in federated))
    scores = {each.name: each.average_validation(sorted(seeds)) for each in federated}
    known = [(task.sign * score, each) for each in federated if (score := scores[each.name]) is not None]
    if not known:
        return None
    best = max(score for score, _ in known)
    near = [each for score, each in known if best - score <= NEAR * (1 if is_share(task) else abs(best))]
    return min(near, key=lambda each: float("inf") if each.cost.bytes is None else each.cost.bytes)


def choose_row(rows: Sequence[Measured], task: TaskColumns) -> Measured | None:
    """The best on validation examples; where some have none, the best on test examples, the harder one to beat."""
    if not rows:
        return None
    seeds = set.intersection(*(set(each.validations) for each in rows))
    if seeds:
        return max(rows, key=lambda each: task.sign * (each.average_validation(sorted(seeds)) or 0.0))
    known = [each for each in rows if each.average() is not None]
    return max(known, key=lambda each: task.sign * (each.average() or 0.0), default=None)


def collect_sizes(methods: Sequence[Measured], task: TaskColumns) -> Mapping[str, float] | None:
    """The test examples of each client, where each of them is right or wrong; else None."""
    return next((each.sizes for each in methods if each.sizes), None) if is_share_of_answers(task) else None


def get_margin(task: TaskColumns, beside: float | None) -> float:
    """A difference that hardly matters: a point, or a hundredth of the result beside which it stands."""
    return MARGIN if is_share(task) else MARGIN * abs(beside or 0.0)


def _share_doubt(found: Mapping[str, Contrast], is_model: bool) -> dict[str, float]:
    """The rate at which each comparison is decided: that of its question, by Holm over the questions."""
    main = found[MAIN]
    leader = LEARNED if (main.gain or 0) >= 0 else ALONE_LEARNED
    # Where each client's own constant answer is all that training alone has, nobody learns by that.
    gate = _miss(found[leader]) if leader in found else 0.0
    gate = 1.0 if leader == ALONE_LEARNED and not is_model else gate
    questions = {MAIN: max(main.p_value, gate)}
    if OVER_FEDAVG in found:
        questions[OVER_FEDAVG] = found[OVER_FEDAVG].p_value
        questions[FEDAVG_MAIN] = max(_miss(found.get(name, NO_GATE)) for name in (FEDAVG_MAIN, FEDAVG_LEARNED))
    rates = dict(zip(questions, level_by_holm(list(questions.values())), strict=True))
    of = {LEARNED: MAIN, ALONE_LEARNED: MAIN, FEDAVG_LEARNED: FEDAVG_MAIN}
    return {name: rates[of.get(name, name)] for name in found}


NO_GATE = NO_CONTRAST._replace(gain=1.0)


def _miss(found: Contrast) -> float:
    """The p-value of the first being better: 1 where it is not; 0 of what there is not to be beaten."""
    return 0.0 if found is NO_GATE else found.p_value if (found.gain or 0) > 0 else 1.0


def _find_verdict(comparisons: Mapping[str, Comparison], has_rows: bool) -> str:
    main, learned, alone = (comparisons.get(name) for name in (MAIN, LEARNED, ALONE_LEARNED))
    # Without a correction: what is not even seen so is not seen.
    is_seen = any(each is not None and each.contrast.is_better(ERROR_RATE) for each in (learned, alone))
    if has_rows and not is_seen:
        return NOTHING_LEARNED if main.contrast.samples else UNDECIDED
    if main.is_better and (learned is None or learned.is_better):
        return FEDERATE
    if main.is_worse and (not has_rows or (alone is not None and alone.is_better and alone.first == main.second)):
        return ALONE
    return UNDECIDED


def _advise(
    decision: Decision, everything: Mapping[str, Measured], task: TaskColumns, sizes: Mapping[str, float] | None
) -> Decision:
    """Which federated method to take, and what it gains."""
    made = decision.comparisons
    advised = everything[decision.winner]
    over_fedavg, fedavg_main, fedavg_learned = (made.get(n) for n in (OVER_FEDAVG, FEDAVG_MAIN, FEDAVG_LEARNED))
    if over_fedavg and not over_fedavg.is_better:
        is_safe = fedavg_main.is_better and (fedavg_learned is None or fedavg_learned.is_better)
        advised = everything[FEDAVG] if is_safe else advised
    advised = _prefer_several(advised, decision, everything, task, sizes)
    over_alone, over_trivial = made[MAIN], made.get(LEARNED)
    if advised.name == FEDAVG != decision.winner:
        over_alone, over_trivial = fedavg_main, fedavg_learned
    elif advised.name != decision.winner:

        def compare(name: str | None) -> Comparison | None:
            if name is None or name not in everything:
                return None
            gains = contrast(advised.tests, everything[name].tests, task.sign, sizes)
            return Comparison(advised.name, name, gains, made[MAIN].rate)

        over_alone, over_trivial, over_fedavg = compare(decision.alone), compare(decision.trivial), compare(FEDAVG)
    return decision._replace(
        advised=advised.name, over_alone=over_alone, over_trivial=over_trivial, over_fedavg=over_fedavg
    )


def _prefer_several(
    advised: Measured,
    decision: Decision,
    everything: Mapping[str, Measured],
    task: TaskColumns,
    sizes: Mapping[str, float] | None,
) -> Measured:
    """In place of one model for all a method with several that is beyond doubt better, the winner first."""
    rivals = [each for each in everything.values() if each.role in (GROUPS, PERSONAL)]
    if advised.role != SHARED or not rivals:
        return advised
    gains = [contrast(each.tests, advised.tests, task.sign, sizes) for each in rivals]
    levels = level_by_holm([each.p_value for each in gains])
    better = [each for each, gain, level in zip(rivals, gains, levels, strict=True) if gain.is_better(level)]
    if not better:
        return advised
    winner = everything[decision.winner]
    return winner if winner.role != SHARED else choose_winner(better, task) or better[0]


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
