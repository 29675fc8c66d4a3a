"""What the FedCD paper claims in its words, each with the rule that decides it; section numbers are the paper's.

Accuracies are in per cent, changes in points. The rules and their thresholds are ours and were written before any runs
were compared, but for four that were changed later. Three after the first runs of the small size and before all others:
FedCD's convergence is weighed against FedAvg's, late swings are of the same rounds in long runs, and what a run spends
without convergence counts as a bound. And one before any hypergeometric runs but one seed of the small size: Figure 5
counts archetypes that converge. Accuracies by archetype are means over the last rounds, since those of FedAvg swing
from round to round.
"""

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import Cell
from launch.papers.engine.conditions import Condition, at_least, at_most, bounded, differs, exceeds
from launch.papers.fedcd.measures import (
    BASE,
    BIASES,
    BITS,
    CALM_FROM,
    CAP,
    CENTRAL,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    FULL_ROUNDS,
    HIERARCHICAL,
    HYPERGEOMETRIC,
    LAST_ROUNDS,
    LATE,
    LONG,
    META_0,
    META_1,
    MILESTONES,
    MOST_BEHIND,
    MOST_CHANGE,
    NUM_ARCHETYPES,
    ONE_MILESTONE,
    OUTER,
    PAPER,
    RESTLESS_AFTER,
    SMALL,
    WINDOW,
)
from launch.settings.algorithms import ALGORITHMS

NUM_MODELS = 2 ** len(MILESTONES)
LEAST_DELETED, MOST_PREFERRED, MOST_ACTIVE = 10, 6, 2
LEAST_SEPARATION = 80.0  # per cent of the rounds
MOST_DEVIATION = 0.05  # of scores that sum to 1
MOST_BIT_EFFECT = 2.0  # points
MOST_BIT_DELAY = 5  # rounds
MOST_MILESTONE_EFFECT = 2.0  # points
MOST_ARCHETYPES = NUM_ARCHETYPES[HYPERGEOMETRIC] // 2 + 1  # more than half of them
NAMES = {algo: ALGORITHMS[algo].title for algo in (FEDCD, FEDAVG)}
END = COMPARED_ROUNDS[HIERARCHICAL]  # to which hierarchical runs are compared
CONVERGENCE_RULE = (
    "A run has converged from the first round on since which two things hold to its end, for "
    f"{LAST_ROUNDS} rounds or more, so that a run of {END} rounds can show convergence up to round "
    f"{END - LAST_ROUNDS + 1}. A device's accuracy changes by at most {MOST_CHANGE:g} points a round, in the mean over "
    f"the devices and {WINDOW} rounds. And the devices' mean accuracy, over {WINDOW} rounds, is at most "
    f"{MOST_BEHIND:g} points from where it ends. A run in which this never happens has infinitely many rounds to "
    "convergence"
)
ROUNDS_RULE = "rounds to convergence, as defined above the tables"
WHERE_RUNS_END = (
    "What a run without convergence spends in all its rounds, of FedAvg's in "
    f'{CAP} at most, stands for convergence, which takes more. The seed is a tie, shown as "never", if neither '
    "converges; and if one run alone does, but after the last round of the other, or for no less than the other has "
    f"spent. But {CAP} rounds of FedAvg always count, as in the paper"
)
SAME_RATES = (
    "the rates are the same where clones share the schedule; in the medium and the full size they begin it anew, and "
    "train at the first rate where FedAvg's has fallen"
)
AT_THE_END = "a run without convergence counts as one that has it in the round after them"
# The sizes whose flagfiles keep a device's two best models from Eq. (4), and delete below the best, not the mean.
EQ_4_SIZES = frozenset({SMALL, PAPER})
EQ_4_LEAVES_TWO = (
    "Eq. (4) deletes the lowest of three or more models after every round, unless all of a device's scores are exactly "
    f"equal, and {END - MILESTONES[-1]} rounds follow the last milestone"
)


def make_cell(partition: str, algo: str, metric: str, variant: str = BASE) -> Cell:
    """A result of an experiment; the round is part of the metric."""
    return Cell(partition, variant, algo, 0, metric)


def _of_last(partition: str) -> str:
    last = COMPARED_ROUNDS[partition]
    return f"mean over rounds {last - LAST_ROUNDS + 1} to {last}"


def _exceeds(first: Cell, second: Cell, names: tuple[str, str]) -> Condition:
    return exceeds(first, second, f"{names[0]} {{0}} against {names[1]} {{1}}")


def matches_32_bits(bits: str, metric: str, algo: str = FEDCD, most: float = MOST_BIT_EFFECT) -> Condition:
    """A result with fewer bits lies within a margin of that with 32."""
    cells = [make_cell(HIERARCHICAL, algo, metric, variant) for variant in (f"{bits}bits", BASE)]
    return differs(*cells, f"{bits} bits {{0}}, 32 bits {{1}}", above=-most, below=most)


def converges_first(metric: str, partition: str = HIERARCHICAL, variant: str = BASE) -> Condition:
    """FedCD has fewer rounds to convergence than FedAvg, by a metric that is finite in every run."""
    cells = make_cell(partition, FEDCD, metric, variant), make_cell(partition, FEDAVG, metric)
    return differs(*cells, "rounds to convergence or past the last: FedCD {0}, FedAvg {1}", below=0)


def _converges_by(section: str, partition: str, round_num: int, words: str) -> Claim:
    return Claim(
        section,
        f"{words}, {partition} archetypes",
        f"{ROUNDS_RULE}, at most {round_num}; and fewer than FedAvg's with the same schedule, since steps that "
        f"become small calm any algorithm ({SAME_RATES}). For the second, both are looked at for the rounds that "
        f"FedCD's flagfile has, and {AT_THE_END}. Without runs of FedAvg nothing is reproduced",
        (
            at_most(make_cell(partition, FEDCD, "convergence"), "rounds to convergence {0}", round_num),
            converges_first("convergence_or_end", partition),
        ),
    )


def _does_not_converge(section: str, partition: str, length: int, words: str) -> Claim:
    text = f"rounds to convergence, of the first {length}, {{0}}"
    return Claim(
        section,
        f"{words}, {partition} archetypes",
        f"{ROUNDS_RULE}, of a run's first {length} rounds; only runs that are as long count",
        (bounded(make_cell(partition, FEDAVG, f"convergence_{length}"), text, above=length),),
    )


def _saves_bytes(partition: str) -> Claim:
    cells = [make_cell(partition, algo, "megabytes") for algo in (FEDCD, FEDAVG)]
    return Claim(
        "2.1",
        f'"faster convergence leads to reduced communication cost": below FedAvg\'s, {partition} archetypes',
        f"megabytes in both directions to convergence, which the paper does not print. {WHERE_RUNS_END}",
        (differs(*cells, "megabytes to convergence: FedCD {0}, FedAvg {1}", below=0),),
    )


def _is_faster(partition: str) -> Claim:
    cells = [make_cell(partition, algo, "real_s") for algo in (FEDCD, FEDAVG)]
    return Claim(
        "Table 1",
        f"\"wall-clock time ... till convergence\": FedCD's is below FedAvg's, {partition} archetypes",
        f"real seconds of training to convergence, of which the paper prints the ratio. {WHERE_RUNS_END}",
        (differs(*cells, "time to convergence: FedCD {0}, FedAvg {1}", below=0),),
    )


BETTER_ON_ALL = Claim(
    "3.2",
    '"FedCD is significantly more accurate on all archetypes than FedAvg", hierarchical archetypes',
    f"accuracy of each of the ten archetypes, {_of_last(HIERARCHICAL)}",
    tuple(
        _exceeds(*(make_cell(HIERARCHICAL, algo, f"archetype_{k}") for algo in (FEDCD, FEDAVG)),
                 (f"archetype {k}: FedCD", "FedAvg"))
        for k in range(NUM_ARCHETYPES[HIERARCHICAL])
    ),
)  # fmt: skip
CALM = Claim(
    "3.2",
    f'"The accuracy oscillations ... in FedCD stop by round {CALM_FROM}", hierarchical archetypes',
    "size of the change of a meta-archetype's mean accuracy from the round before, mean over both and over rounds "
    f"{CALM_FROM + 1} to {END}, at most {MOST_CHANGE:g} points; and less than FedAvg's over the same rounds, since "
    f"steps that become small calm any algorithm ({SAME_RATES})",
    (
        at_most(make_cell(HIERARCHICAL, FEDCD, "swing"), "points {0}", MOST_CHANGE),
        _exceeds(*(make_cell(HIERARCHICAL, algo, "swing") for algo in (FEDAVG, FEDCD)), ("FedAvg", "FedCD")),
    ),
)
RESTLESS = Claim(
    "3.2",
    f'"accuracy under FedAvg continues to oscillate past round {RESTLESS_AFTER}", hierarchical archetypes',
    f"the same of FedAvg from round {RESTLESS_AFTER + 1} to {END}, in the medium size to {LATE} and in the full one to "
    f"{FULL_ROUNDS}, however long a run is, above {MOST_CHANGE:g} points",
    (bounded(make_cell(HIERARCHICAL, FEDAVG, "late_swing"), "points {0}", above=MOST_CHANGE),),
)
LOWER_META_IS_WORSE = Claim(
    "3.2",
    '"meta-archetype 0 ... performs worse than meta-archetype 1" under FedCD',
    f"mean accuracy of its five archetypes, {_of_last(HIERARCHICAL)}",
    (_exceeds(*(make_cell(HIERARCHICAL, FEDCD, name) for name in (META_1, META_0)),
              ("meta-archetype 1", "meta-archetype 0")),),
)  # fmt: skip
OUTER_ARE_BETTER = Claim(
    "3.3",
    '"archetypes with more skewed probability distributions (... 0, 5) achieve higher accuracy than the central '
    'archetypes (... 2, 3)" under FedCD',
    f"mean accuracy of the two, {_of_last(HYPERGEOMETRIC)}",
    (_exceeds(*(make_cell(HYPERGEOMETRIC, FEDCD, name) for name in (OUTER, CENTRAL)), (OUTER, CENTRAL)),),
)
FEDAVG_IS_CENTRAL = Claim(
    "3.3",
    '"FedAvg performs better ... on the central archetypes" than on the skewed ones',
    f"mean accuracy of the two, {_of_last(HYPERGEOMETRIC)}",
    (_exceeds(*(make_cell(HYPERGEOMETRIC, FEDAVG, name) for name in (CENTRAL, OUTER)), (CENTRAL, OUTER)),),
)
FEDAVG_IS_FASTER_THERE = Claim(
    "3.3",
    '"FedAvg ... converges faster on the central archetypes" than on the skewed ones',
    "rounds to convergence of the mean accuracy of the two, by the definition above the tables, with the changes of "
    f"that mean, within the {COMPARED_ROUNDS[HYPERGEOMETRIC]} rounds compared: fewer. If neither converges, the seed "
    "is a tie",
    (
        differs(
            *(make_cell(HYPERGEOMETRIC, FEDAVG, f"convergence_{name}") for name in (CENTRAL, OUTER)),
            "rounds to convergence: central {0}, outer {1}",
            below=0,
        ),
    ),
)
BITS_DO_NOT_MATTER = Claim(
    "3.4",
    '"different levels of quantization had no significant effect on model performance"',
    f"accuracy with {' and '.join(BITS)} bits, {_of_last(HIERARCHICAL)}, minus that with 32 bits and the same seed: "
    f"the whole interval lies within {MOST_BIT_EFFECT:g} points of 0, on either side",
    tuple(matches_32_bits(bits, "mean_of_last") for bits in BITS),
)
BITS_DO_NOT_DELAY = Claim(
    "3.4",
    '"different levels of quantization ... only slightly impacted the time to convergence"',
    f"rounds to convergence with {' and '.join(BITS)} bits minus those with 32 bits and the same seed: the whole "
    f"interval lies within {MOST_BIT_DELAY} rounds of 0. If neither converges, the seed is a tie",
    tuple(matches_32_bits(bits, "convergence", most=MOST_BIT_DELAY) for bits in BITS),
)
FEDAVG_IGNORES_BITS_TOO = Claim(
    "3.4",
    '"a single model per device, which is similarly insensitive to quantization as the FedAvg global model"',
    f"FedAvg's accuracy with {' and '.join(BITS)} bits, {_of_last(HIERARCHICAL)}, minus that with 32 bits and the same "
    f"seed: the whole interval lies within {MOST_BIT_EFFECT:g} points of 0. (FedCD's is asked for two claims before)",
    tuple(matches_32_bits(bits, "mean_of_last", FEDAVG) for bits in BITS),
)
LATER_CLONES_MATTER_LITTLE = Claim(
    "3.5",
    '"Subsequent cloning rounds have a limited effect"',
    f"FedCD's accuracy, {_of_last(HIERARCHICAL)}, with all milestones minus that with the first alone and the same "
    f"seed: the whole interval lies within {MOST_MILESTONE_EFFECT:g} points of 0",
    (
        differs(
            *(make_cell(HIERARCHICAL, FEDCD, "mean_of_last", variant) for variant in (BASE, ONE_MILESTONE)),
            "all milestones {0}, the first alone {1}",
            above=-MOST_MILESTONE_EFFECT,
            below=MOST_MILESTONE_EFFECT,
        ),
    ),
)
MODELS_ARE_BOUNDED = Claim(
    "3.5",
    f'"after l rounds of cloning, there will exist at most 2^l global models", l = {len(MILESTONES)}',
    f"the most models that are alive after any of rounds 1 to {END}, at most {NUM_MODELS}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "most_live_models"), "models {0}", NUM_MODELS),),
    by_construction="training begins with one model, and each milestone at most doubles the models",
)
MODELS_ARE_DELETED = Claim(
    "3.5",
    f'"after {len(MILESTONES)} rounds of cloning, {LEAST_DELETED} out of {NUM_MODELS} models were deleted from all '
    'devices"',
    f"at most {NUM_MODELS - LEAST_DELETED} models are left at round {END}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "live_models"), "models left {0}", NUM_MODELS - LEAST_DELETED),),
)
SEPARATE = Claim(
    "3.5",
    f'"after the first cloning milestone at round {MILESTONES[0]}, the devices segregate by meta-archetype"',
    f"share of the rounds {MILESTONES[0] + 1} to {END} in which two or more models are preferred, and none by devices "
    f"of both meta-archetypes, at least {LEAST_SEPARATION:g} %. FedAvg has one model and no such share. Chance is no "
    "rival: if 30 devices tossed coins between two models, the meta-archetypes would part in 2 of 2^30 rounds",
    (at_least(make_cell(HIERARCHICAL, FEDCD, "separation"), "per cent of the rounds {0}", LEAST_SEPARATION),),
)
ACTIVE_MODELS_DROP = Claim(
    "3.6",
    '"the number of active models initially increases during the cloning rounds ... and drops during the subsequent '
    'rounds"',
    f"all devices' active models: the most of rounds 1 to {END} are more than those at round {END}",
    (
        _exceeds(
            make_cell(HIERARCHICAL, FEDCD, "peak_active_models"),
            make_cell(HIERARCHICAL, FEDCD, "active_models"),
            ("most", "at the end"),
        ),
    ),
    by_construction=f"after round {MILESTONES[1]} every device has four models, since Eq. (4) spares its two best and "
    "the second milestone doubles them; in the end it has two at most, as the next claim says",
    constructed_in=EQ_4_SIZES,
)
FEW_ACTIVE = Claim(
    "3.6",
    '"In the end, each of the 30 devices update at most two active models"',
    f"the most that any device has at round {END}, at most {MOST_ACTIVE}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "max_active_models"), "most on a device {0}", MOST_ACTIVE),),
    by_construction=EQ_4_LEAVES_TWO,
    constructed_in=EQ_4_SIZES,
)
FEW_PREFERRED = Claim(
    "3.6",
    f'"In the end ... only a total of {MOST_PREFERRED} models were preferred by any given device"',
    f"models that some device prefers at round {END}, at most {MOST_PREFERRED}",
    (at_most(make_cell(HIERARCHICAL, FEDCD, "preferred_models"), "models {0}", MOST_PREFERRED),),
)
LOW_BIAS_KEEPS_MODELS = Claim(
    "3.6",
    '"as the bias decreases ... devices tend to maintain multiple models for a larger number of rounds"',
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
    '"the average standard deviation over model scores approaches 0 ... for all levels of bias"',
    f"mean over the rounds {END - WINDOW + 1} to {END} at most {MOST_DEVIATION:g}, with each bias; a device with one "
    "model counts as 0",
    tuple(
        at_most(make_cell(HIERARCHICAL, FEDCD, "score_deviation", f"bias{bias}"), f"bias {bias}: {{0}}", MOST_DEVIATION)
        for bias in BIASES
    ),
)
CHANGES_LESS = Claim(
    "3.2, Figure 2",
    '"change in round-to-round performance of FedCD versus FedAvg": FedCD\'s is smaller, hierarchical archetypes',
    f"mean size of the change of a device's accuracy, rounds {CALM_FROM} to {END}",
    (_exceeds(*(make_cell(HIERARCHICAL, algo, "change") for algo in (FEDAVG, FEDCD)), ("FedAvg", "FedCD")),),
)
MOST_CONVERGE = Claim(
    "3.3, Figure 5",
    '"most archetypes converge under FedCD, many archetypes under FedAvg continue to oscillate", hypergeometric '
    "archetypes",
    f"archetypes, of {NUM_ARCHETYPES[HYPERGEOMETRIC]}, whose mean accuracy converges within "
    f"{COMPARED_ROUNDS[HYPERGEOMETRIC]} rounds, by the rule above the tables for it and its own changes: at least "
    f"{MOST_ARCHETYPES} under FedCD, and more than under FedAvg",
    (
        at_least(make_cell(HYPERGEOMETRIC, FEDCD, "converged"), "archetypes {0}", MOST_ARCHETYPES),
        _exceeds(*(make_cell(HYPERGEOMETRIC, algo, "converged") for algo in (FEDCD, FEDAVG)), ("FedCD", "FedAvg")),
    ),
)
CAPPED = f'"FedAvg was capped at {CAP} rounds of training, since it had not converged by then"'
FEDCD_CLAIMS = (
    BETTER_ON_ALL,
    CALM,
    RESTLESS,
    CHANGES_LESS,
    _converges_by("3.2", HIERARCHICAL, 35, '"FedCD converges relatively quickly (by round 35)"'),
    _does_not_converge("3.2", HIERARCHICAL, LONG, f'"FedAvg failed to converge within {LONG} training rounds"'),
    LOWER_META_IS_WORSE,
    _converges_by("3.3", HYPERGEOMETRIC, 45, '"the FedCD algorithm converges quickly (by round 45)"'),
    MOST_CONVERGE,
    OUTER_ARE_BETTER,
    FEDAVG_IS_CENTRAL,
    FEDAVG_IS_FASTER_THERE,
    BITS_DO_NOT_MATTER,
    BITS_DO_NOT_DELAY,
    FEDAVG_IGNORES_BITS_TOO,
    MODELS_ARE_BOUNDED,
    MODELS_ARE_DELETED,
    SEPARATE,
    LATER_CLONES_MATTER_LITTLE,
    ACTIVE_MODELS_DROP,
    FEW_ACTIVE,
    FEW_PREFERRED,
    LOW_BIAS_KEEPS_MODELS,
    DEVIATION_VANISHES,
    *(claim for partition, round_num in ((HIERARCHICAL, 45), (HYPERGEOMETRIC, 50)) for claim in (
        _converges_by("Table 1", partition, round_num, f'"Rounds till Convergence": FedCD {round_num}'),
        _does_not_converge("Table 1", partition, CAP, CAPPED),
        _is_faster(partition),
        _saves_bytes(partition),
    )),
)  # fmt: skip
