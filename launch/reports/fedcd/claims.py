"""What the FedCD paper claims in words, each with the rule that decides it; section numbers are the paper's.

Accuracies are in per cent, changes in points. The rules and their thresholds are ours and were written before any runs
were compared. Accuracies by archetype are means over the last rounds, since those of FedAvg swing from round to round.
"""

from collections.abc import Sequence

from launch.reports.claims import Claim
from launch.reports.collection import Cell
from launch.reports.conditions import Condition, at_least, at_most, bounded, exceeds, mean_exceeds
from launch.reports.fedcd.measures import (
    BASE,
    BIASES,
    BITS,
    CALM_FROM,
    CAP,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    HYPERGEOMETRIC,
    LAST_ROUNDS,
    LONG,
    META_ARCHETYPES,
    MILESTONES,
    MOST_BEHIND,
    MOST_CHANGE,
    NUM_ARCHETYPES,
    RESTLESS_AFTER,
    WINDOW,
)
from launch.settings.algorithms import ALGORITHMS

NUM_MODELS = 16
LEAST_DELETED, MOST_PREFERRED, MOST_ACTIVE = 10, 6, 2
LEAST_SEPARATION = 80.0  # per cent of the rounds
MOST_DEVIATION = 0.05  # of scores that sum to 1
MOST_BIT_EFFECT = 2.0  # points
GAP_TO_32_BITS = "gap_to_32_bits"
OUTER, CENTRAL = (0, 5), (2, 3)  # hypergeometric archetypes
NAMES = {algo: ALGORITHMS[algo].title for algo in (FEDCD, FEDAVG)}
CONVERGENCE_RULE = (
    f"converged from the first round on since which, to the end of the run and for {LAST_ROUNDS} rounds or more, the "
    f"mean over {WINDOW} rounds of the size of the change of a device's accuracy is at most {MOST_CHANGE:g} points, "
    f"and that of the devices' mean accuracy at most {MOST_BEHIND:g} points from where it ends; a run that does not "
    "converge counts as a round longer than it is"
)
OF_LAST = (
    f"mean over the last {LAST_ROUNDS} of the rounds compared ({' and '.join(map(str, COMPARED_ROUNDS.values()))})"
)
END = COMPARED_ROUNDS[HIERARCHICAL]  # to which hierarchical runs are compared


def make_cell(partition: str, algo: str, metric: str, variant: str = BASE) -> Cell:
    """A result of an experiment; the round is part of the metric."""
    return Cell(partition, variant, algo, 0, metric)


def _exceeds(first: Cell, second: Cell, names: tuple[str, str]) -> Condition:
    return exceeds(first, second, f"{names[0]} {{0}} against {names[1]} {{1}}")


def _are_better(
    partition: str, algo: str, better: Sequence[int], worse: Sequence[int], names: tuple[str, str]
) -> tuple[Condition]:
    """Some archetypes reach a higher mean accuracy than others under the same algorithm."""
    sides = [[make_cell(partition, algo, f"archetype_{each}") for each in archetypes] for archetypes in (better, worse)]
    return (mean_exceeds(*sides, names),)


def _converges_by(section: str, partition: str, round_num: int) -> Claim:
    return Claim(
        section,
        f"FedCD converges by round {round_num}, {partition} archetypes",
        "rounds to convergence, as defined at the top",
        (at_most(make_cell(partition, FEDCD, "convergence"), "round {0}", round_num),),
    )


def _does_not_converge(section: str, partition: str, length: int) -> Claim:
    return Claim(
        section,
        f"FedAvg does not converge within {length} rounds, {partition} archetypes",
        "rounds to convergence, as defined at the top",
        (bounded(make_cell(partition, FEDAVG, f"convergence_{length}"), "round {0}", above=length),),
    )


def _changes_less(section: str, partition: str) -> Claim:
    cells = [make_cell(partition, algo, "change") for algo in (FEDAVG, FEDCD)]
    return Claim(
        section,
        f"accuracy changes less from round to round under FedCD than under FedAvg, {partition} archetypes",
        f"mean size of the change of a device's accuracy from round {CALM_FROM} to {COMPARED_ROUNDS[partition]}",
        (_exceeds(*cells, ("FedAvg", "FedCD")),),
    )


def _is_faster(partition: str) -> Claim:
    return Claim(
        "3.6",
        f"FedCD converges in less time than FedAvg, {partition} archetypes",
        f"real seconds of training to convergence, FedCD's over FedAvg's, below 1; FedAvg's of {CAP} rounds if it has "
        "not converged",
        (bounded(make_cell(partition, FEDCD, "real_ratio"), "ratio {0}", below=1),),
    )


BETTER_ON_ALL = Claim(
    "3.2",
    "FedCD is more accurate than FedAvg on all archetypes, hierarchical",
    f"accuracy of each of the ten archetypes, {OF_LAST}",
    tuple(
        _exceeds(*(make_cell(HIERARCHICAL, algo, f"archetype_{k}") for algo in (FEDCD, FEDAVG)),
                 (f"archetype {k}: FedCD", "FedAvg"))
        for k in range(NUM_ARCHETYPES[HIERARCHICAL])
    ),
)  # fmt: skip
CALM = Claim(
    "3.2",
    f"oscillations stop by round {CALM_FROM} in FedCD",
    "size of the change of a meta-archetype's mean accuracy from the round before, mean over both and over rounds "
    f"{CALM_FROM + 1} to {END}, at most {MOST_CHANGE:g} points",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "swing"), "points {0}", MOST_CHANGE),),
)
RESTLESS = Claim(
    "3.2",
    f"FedAvg continues to oscillate past round {RESTLESS_AFTER}",
    f"the same of FedAvg from round {RESTLESS_AFTER + 1} to the end of the run, above {MOST_CHANGE:g} points",
    (bounded(make_cell(HIERARCHICAL, FEDAVG, "late_swing"), "points {0}", above=MOST_CHANGE),),
)
LOWER_META_IS_WORSE = Claim(
    "3.2",
    "meta-archetype 0 performs worse than meta-archetype 1 under FedCD",
    f"mean accuracy of its five archetypes, {OF_LAST}",
    _are_better(
        *(HIERARCHICAL, FEDCD, META_ARCHETYPES[1], META_ARCHETYPES[0]),
        tuple(f"archetypes {META_ARCHETYPES[i][0]} to {META_ARCHETYPES[i][-1]}:" for i in (1, 0)),
    ),
)
OUTER_ARE_BETTER = Claim(
    "3.3",
    "outer archetypes (0, 5) reach higher accuracy than central ones (2, 3) under FedCD, hypergeometric",
    f"mean accuracy of the two, {OF_LAST}",
    _are_better(HYPERGEOMETRIC, FEDCD, OUTER, CENTRAL, ("outer:", "central:")),
)
FEDAVG_IS_CENTRAL = Claim(
    "3.3",
    "FedAvg performs better on the central archetypes than on the outer ones, hypergeometric",
    f"mean accuracy of the two, {OF_LAST}",
    _are_better(HYPERGEOMETRIC, FEDAVG, CENTRAL, OUTER, ("central:", "outer:")),
)
BITS_DO_NOT_MATTER = Claim(
    "3.4",
    "quantization has no significant effect on performance",
    f"accuracy with {' and '.join(BITS)} bits, {OF_LAST}, within {MOST_BIT_EFFECT:g} points of that with 32 and the "
    "same seeds",
    tuple(
        bounded(
            make_cell(HIERARCHICAL, FEDCD, GAP_TO_32_BITS, f"{bits}bits"),
            f"{bits} bits minus 32 bits: {{0}}",
            above=-MOST_BIT_EFFECT,
            below=MOST_BIT_EFFECT,
        )
        for bits in BITS
    ),
)
MODELS_ARE_DELETED = Claim(
    "3.5",
    f"after {len(MILESTONES)} rounds of cloning, {LEAST_DELETED} of {NUM_MODELS} models were deleted",
    f"at round {END} at most {NUM_MODELS - LEAST_DELETED} models are left, mean over the seeds",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "live_models"), "models left {0}", NUM_MODELS - LEAST_DELETED),),
)
SEPARATE = Claim(
    "3.5",
    "after the first milestone the devices segregate by meta-archetype",
    f"share of the rounds {MILESTONES[0] + 1} to {END} in which two or more models are preferred, and none by devices "
    f"of both meta-archetypes, at least {LEAST_SEPARATION:g} %",
    (at_least(make_cell(HIERARCHICAL, FEDCD, "separation"), "per cent of the rounds {0}", LEAST_SEPARATION),),
)
ACTIVE_MODELS_DROP = Claim(
    "3.6",
    "the number of active models first increases and drops in the rounds after the milestones",
    f"all devices' active models: the most of rounds 1 to {END} are more than those at round {END}",
    (
        _exceeds(
            make_cell(HIERARCHICAL, FEDCD, "peak_active_models"),
            make_cell(HIERARCHICAL, FEDCD, "active_models"),
            ("most", "at the end"),
        ),
    ),
)
FEW_ACTIVE = Claim(
    "3.6",
    "in the end each device has at most two active models",
    f"the most that any device has at round {END}, mean over the seeds, is at most {MOST_ACTIVE}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "max_active_models"), "most on a device {0}", MOST_ACTIVE),),
)
FEW_PREFERRED = Claim(
    "3.6",
    f"in the end a total of {MOST_PREFERRED} models are preferred",
    f"models that some device prefers at round {END}, mean over the seeds, at most {MOST_PREFERRED}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "preferred_models"), "models {0}", MOST_PREFERRED),),
)
LOW_BIAS_KEEPS_MODELS = Claim(
    "3.6",
    "with a lower bias devices maintain several models for longer",
    f"all devices' active models, mean over the rounds {MILESTONES[-1] + 1} to {END}: with bias {BIASES[0]} more than "
    f"with {BIASES[-1]}",
    (
        _exceeds(
            *(make_cell(HIERARCHICAL, FEDCD, "late_active_models", f"bias{BIASES[i]}") for i in (0, -1)),
            tuple(f"bias {BIASES[i]}" for i in (0, -1)),
        ),
    ),
)
DEVIATION_VANISHES = Claim(
    "3.6",
    "the average deviation of the scores approaches 0 at all levels of bias",
    f"mean over the rounds {END - WINDOW + 1} to {END} at most {MOST_DEVIATION:g}, with each bias",
    tuple(
        at_most(make_cell(HIERARCHICAL, FEDCD, "score_deviation", f"bias{bias}"), f"bias {bias}: {{0}}", MOST_DEVIATION)
        for bias in BIASES
    ),
)
FEDCD_CLAIMS = (
    BETTER_ON_ALL,
    CALM,
    RESTLESS,
    _changes_less("3.2", HIERARCHICAL),
    _converges_by("3.2", HIERARCHICAL, 35),
    _does_not_converge("3.2", HIERARCHICAL, LONG),
    LOWER_META_IS_WORSE,
    _converges_by("3.3", HYPERGEOMETRIC, 45),
    _changes_less("3.3", HYPERGEOMETRIC),
    OUTER_ARE_BETTER,
    FEDAVG_IS_CENTRAL,
    BITS_DO_NOT_MATTER,
    MODELS_ARE_DELETED,
    SEPARATE,
    ACTIVE_MODELS_DROP,
    FEW_ACTIVE,
    FEW_PREFERRED,
    LOW_BIAS_KEEPS_MODELS,
    DEVIATION_VANISHES,
    *(claim for partition, round_num in ((HIERARCHICAL, 45), (HYPERGEOMETRIC, 50)) for claim in (
        _converges_by("Table 1", partition, round_num),
        _does_not_converge("Table 1", partition, CAP),
        _is_faster(partition),
    )),
)  # fmt: skip
