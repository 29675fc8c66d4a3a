"""How much is tried: the numbers of a contest, by what its time allows. Imports no TensorFlow."""

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.console.progress import format_duration
from launch.console.shown_text import format_count
from launch.contests.methods import ALONE, REFERENCE, Method
from launch.sweeps.tuning.search_space import SearchSpace, compute_grid_size, has_ranges

FIRST_TRIAL_SEED, FIRST_SEED = 100, 0
# Of FedAvg, by which its speed is measured before anything is planned; no run of a contest is shorter.
CALIBRATION_ROUNDS = 3
# Of another method for one of FedAvg, where its rounds take less. What limits all alike ends a run before, even one
# whose rounds are a few updates each.
MOST_ROUNDS_FOR_ONE = 100
# Virtual seconds of another method, where bytes alone are equal: who sends next to nothing could train for days.
MOST_SECONDS_FOR_ONE = 10
# Of a method whose clients learn alone, for one of FedAvg: nothing is sent, so that a round costs its clients less, and
# what has learned too little would make all others look better.
ROUNDS_ALONE = 3
# Of the time that is left. Estimates are wrong, slots wait for each other, and further seeds take what remains.
PLANNED_SHARE = 0.8
# Characters of a line of the plan; what is longer goes on below itself.
LONGEST_LINE = 100
NO_LIMIT_S = 1e9  # of a contest that may take any time
NO_TIME = "no time for it"  # why a method is left out
_HELD = "\N{NO-BREAK SPACE}"  # in what stays together
_WRAPPED = {"subsequent_indent": " " * 9, "break_long_words": False, "break_on_hyphens": False}


class Plan(NamedTuple):
    """The numbers of a contest, as its journal has them.

    Attributes:
      rounds: of FedAvg. Other federated methods may spend what it takes in these, in at most `MOST_ROUNDS_FOR_ONE`
        times as many rounds and, where bytes alone are equal, `MOST_SECONDS_FOR_ONE` times its virtual seconds;
        clients that learn alone have `ROUNDS_ALONE` times as many as it, pooled data as many.
      trials: points of each method's space; point 0 has the algorithm's defaults, where the space contains them.
      first_share: of a run's length that the first rung has: all trials, one seed.
      kept: of each method's trials, how many go on to the second rung: whole length, all trial seeds.
      trial_seeds: of trials alone; the first is that of the first rung.
      finalists: how many methods go to fresh seeds by their validation mean, beside those that always do.
      seeds: fresh ones, which every finalist has.
      most_seeds: how many fresh ones a method may have, if it is asked for and time is left.
    """

    rounds: int
    trials: int
    first_share: float
    kept: int
    trial_seeds: tuple[int, ...]
    finalists: int
    seeds: tuple[int, ...]
    most_seeds: int

    def count_rounds(self, share: float) -> int:
        """FedAvg's rounds in this share of a run's length."""
        return min(self.rounds, max(CALIBRATION_ROUNDS, round(self.rounds * share)))

    @property
    def is_halved(self) -> bool:
        """Whether the first rung is shorter than the second."""
        return self.first_share < 1


class Pace(NamedTuple):
    """How fast runs are on this machine, as FedAvg's first rounds show it.

    Attributes:
      overhead_s: real seconds of a run beside its rounds.
      round_s: of a round of FedAvg.
      slots: runs that go on at a time.
    """

    overhead_s: float
    round_s: float
    slots: int

    def estimate_s(self, cost: float, rounds: float) -> float:
        """Seconds of a run.

        Args:
          cost: of the method, beside FedAvg's 1.
          rounds: of FedAvg in whose place it is.
        """
        return self.overhead_s + cost * self.round_s * rounds


class Planned(NamedTuple):
    """A plan and what it was made from.

    Attributes:
      plan: the numbers.
      names: of the methods that it has.
      left_out: {name: why} of the others.
      stages_s: estimated real seconds of the two rungs and of the fresh seeds.
      pace: what was measured.
    """

    plan: Plan
    names: tuple[str, ...]
    left_out: Mapping[str, str]
    stages_s: tuple[float, float, float]
    pace: Pace


class _Size(NamedTuple):
    trials: int
    first_share: float
    kept: int
    trial_seeds: int
    finalists: int
    seeds: int
    most_seeds: int


_SIZES = (
    _Size(1, 1.0, 1, 1, 1, 3, 8),
    _Size(2, 0.5, 1, 1, 1, 5, 8),
    _Size(3, 0.33, 1, 2, 2, 5, 8),
    _Size(4, 0.33, 2, 2, 3, 5, 10),
    _Size(6, 0.33, 2, 2, 3, 5, 12),
    _Size(8, 0.33, 2, 3, 4, 5, 12),
    _Size(12, 0.25, 3, 3, 4, 5, 12),
)
# Rounds and size, each step with more to do than the one before. In few rounds methods look worse that learn slowly,
# so both grow in turns.
_STEPS = (
    *((5, 0), (10, 0), (10, 1), (15, 1), (20, 1), (20, 2), (30, 2), (30, 3), (40, 3), (40, 4), (60, 4), (60, 5)),
    *((80, 5), (100, 5), (100, 6)),
)
# Below this step methods are left out first, since none is tried as it should be; but not the last few.
_LEAST_STEP, _FEWEST_OTHERS = 2, 3


def make_plan(
    methods: Sequence[Method], always: Collection[str], seconds: float, pace: Pace, rounds: int | None = None
) -> Planned:
    """The largest plan that fits into the time.

    Where even a small one does not, methods are left out from the end, down to a few; then it is made smaller still,
    and then these are left out, too. One that does not fit at all is the smallest: then the time cuts it.

    Args:
      methods: the most important first.
      always: names of those that are never left out, and go to fresh seeds; FedAvg is one in any case.
      seconds: real ones that are left.
      pace: as measured.
      rounds: of FedAvg; None: what the time allows.
    """
    always, most_s = {*always, REFERENCE}, PLANNED_SHARE * seconds
    plans = list(dict.fromkeys(_build(step, rounds) for step in _STEPS))
    least = plans.index(_build(_STEPS[_LEAST_STEP], rounds))

    def estimate(plan: Plan, entered: Sequence[Method]) -> float:
        return sum(estimate_stages(plan, entered, always, pace))

    entered, left_out = list(methods), {}

    def leave_out(plan: Plan, fewest: int) -> None:
        while estimate(plan, entered) > most_s:
            others = [each for each in entered if each.name not in always]
            if len(others) <= fewest:
                return
            entered.remove(last := others[-1])
            needed_s = estimate(plan, [*entered, last]) - estimate(plan, entered)
            left_out[last.name] = f"{NO_TIME}: it would take about {format_duration(needed_s)}"

    leave_out(plans[least], _FEWEST_OTHERS)
    leave_out(plans[0], 0)
    fitting = [plan for plan in plans if estimate(plan, entered) <= most_s]
    plan = fitting[-1] if fitting else plans[0]
    stages = estimate_stages(plan, entered, always, pace)
    return Planned(plan, tuple(each.name for each in entered), left_out, stages, pace)


def _build(step: tuple[int, int], rounds: int | None) -> Plan:
    size = _SIZES[step[1]]
    return Plan(
        rounds or step[0],
        size.trials,
        size.first_share,
        size.kept,
        tuple(range(FIRST_TRIAL_SEED, FIRST_TRIAL_SEED + size.trial_seeds)),
        size.finalists,
        tuple(range(FIRST_SEED, FIRST_SEED + size.seeds)),
        size.most_seeds,
    )


def estimate_stages(
    plan: Plan, methods: Sequence[Method], always: Collection[str], pace: Pace
) -> tuple[float, float, float]:
    """Real seconds of the two rungs and of the fresh seeds. Who will be a finalist is not known: the average is."""
    first, whole = plan.count_rounds(plan.first_share), plan.rounds
    rung_0, rung_1 = [], []
    for method in methods:
        trials = _count_trials(method.space, plan.trials)
        kept = min(plan.kept, trials)
        rung_0 += [pace.estimate_s(method.cost, first)] * trials
        rung_1 += [pace.estimate_s(method.cost, whole)] * (kept * (len(plan.trial_seeds) - 1))
        rung_1 += [pace.estimate_s(method.cost, whole - first)] * (kept if whole > first else 0)
    others = [method.cost for method in methods if method.name not in always]
    costs = [method.cost for method in methods if method.name in always]
    costs += [sum(others) / len(others)] * min(plan.finalists, len(others)) if others else []
    runs = [pace.estimate_s(cost, whole) for cost in costs] * len(plan.seeds)
    return (
        estimate_makespan(rung_0, pace.slots),
        estimate_makespan(rung_1, pace.slots),
        estimate_makespan(runs, pace.slots),
    )


def _count_trials(space: SearchSpace, most: int) -> int:
    return most if has_ranges(space) else min(most, compute_grid_size(space))


def estimate_makespan(seconds: Iterable[float], slots: int) -> float:
    """How long runs of these lengths take together: Graham's bound, as the last may be the longest."""
    seconds = list(seconds)
    return sum(seconds) / slots + max(seconds, default=0.0) * (1 - 1 / slots)


def describe_plan(
    planned: Planned,
    methods: Sequence[Method],
    always: Collection[str],
    spent_s: float = 0.0,
    total_s: float | None = None,
    limit: str = "as much device time",
    limits_alone: bool = False,
) -> list[str]:
    """Lines for a terminal: what will run, how long it will take, what is left out and why.

    Args:
      planned: the plan.
      methods: all.
      always: names of those that go to fresh seeds in any case.
      spent_s: real seconds that are to be added to those of the plan.
      total_s: real seconds that there are; None where nothing is to be said of all together.
      limit: what every federated method may use, in words.
      limits_alone: whether that is the limit of clients that learn alone, too.
    """
    plan, titles = planned.plan, {method.name: method.title for method in methods}
    rung_0, rung_1, seeds = (f"about {format_duration(each)}".replace(" ", _HELD) for each in planned.stages_s)
    first, whole, slots = plan.count_rounds(plan.first_share), plan.rounds, planned.pace.slots
    at_a_time = "" if slots == 1 else f"; {'two' if slots == 2 else slots} runs at a time"
    of_length = f"of {first} rounds" if first < whole else f"of all {whole} rounds"
    always_there = [titles[name] for name in planned.names if name in {*always, REFERENCE}]
    num_best = min(plan.finalists, len(planned.names) - len(always_there))
    best = f"{'the best' if num_best == 1 else f'the best {num_best}'} and " if num_best else ""
    alone = [method for method in methods if method.name in planned.names and method.role == ALONE]
    own_rounds = {each.title: each.rounds or ROUNDS_ALONE * whole for each in alone if each.rounds or not limits_alone}
    who = "every method" if alone and limits_alone else "every federated method"
    length = f"{whole} rounds of {titles[REFERENCE]}"
    lines = [
        f"methods  {', '.join(titles[name] for name in planned.names)}",
        f"length   {length}; {who} may use {limit}{at_a_time}",
        *(f"         {title}: {format_count(rounds, 'round')}" for title, rounds in own_rounds.items()),
        f"trials   {format_count(plan.trials, 'setting')} of each method at most, runs {of_length}: {rung_0}",
    ]
    if plan.is_halved or len(plan.trial_seeds) > 1:
        kept = "the best" if plan.kept == 1 else f"the best {plan.kept}"
        seeds_of = format_count(len(plan.trial_seeds), "seed")
        lines.append(f"         {kept} of these of each method, {whole} rounds, {seeds_of}: {rung_1}")
    more = f", up to {plan.most_seeds} where time is left" if plan.most_seeds > len(plan.seeds) else ""
    lines.append(
        f"results  {best}{', '.join(always_there)}, each on {format_count(len(plan.seeds), 'fresh seed')}{more}: "
        f"{seeds}"
    )
    lines += [f"left out {titles[name]}: {why}" for name, why in planned.left_out.items()]
    if total_s is not None:
        of_all = "" if total_s >= NO_LIMIT_S else f" of {format_duration(total_s).replace(' min 0 s', ' min')}"
        lines.append(f"time     in all about {format_duration(sum(planned.stages_s) + spent_s)}{of_all}")
    wrapped = (each for line in lines for each in textwrap.wrap(line, LONGEST_LINE, **_WRAPPED))
    return [line.replace(_HELD, " ") for line in wrapped]
