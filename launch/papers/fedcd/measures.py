"""What the FedCD report measures in a run, from its `metrics.csv` and `timing.csv`. Imports no TensorFlow.

Accuracies are in per cent, changes of them in points. Most measures look at the rounds that the paper's figure of the
experiment shows (COMPARED_ROUNDS), so that runs of different lengths can be compared. What a run does not reach within
its rounds, such as convergence, is at infinity.
"""

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from launch.papers.engine.collection import Cell, Measure, Numbers, Place, group_runs, list_bytes
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CLIENT_TEST_ACCURACY, EVALUATION_S, ROUND_S, TIMING_FILE
from launch.runs.run_records import RunRecord, read_columns
from launch.settings.algorithms import ALGORITHMS

HIERARCHICAL, HYPERGEOMETRIC = "hierarchical", "hypergeometric"
FEDCD, FEDAVG = "fedcd", "fedavg"
NAMES = {algo: ALGORITHMS[algo].title for algo in (FEDCD, FEDAVG)}
SMALL, AUTHORS_SMALL, AUTHORS, FULL, PAPER = "cpu", "authors_small", "authors", "authors_full", "paper"
SIZES = {
    SMALL: "small (2 cores)",
    AUTHORS_SMALL: "small, authors' training",
    AUTHORS: "medium, authors' training",
    FULL: "full, authors' training",
    PAPER: "as large as in the paper",
}
COMPARED_ROUNDS = {HIERARCHICAL: 45, HYPERGEOMETRIC: 80}
# Rounds of the medium size. A clone of the last milestone that begins its learning rates anew counts the rounds in
# which a device of the cohort has it: its rate falls after about round 58 if three devices have it, 63 if two, 80 if
# one. So the late changes mix both rates.
LATE = 60
FULL_ROUNDS = 53  # of the run that the authors print
WHOLE_DATA = (AUTHORS, FULL, PAPER)  # the sizes that mean the whole of CIFAR-10
META_ARCHETYPES = (tuple(range(5)), tuple(range(5, 10)))  # of the hierarchical archetypes
NUM_ARCHETYPES = {HIERARCHICAL: 10, HYPERGEOMETRIC: 6}
META_0, META_1, OUTER, CENTRAL = "meta_0", "meta_1", "outer", "central"
ARCHETYPE_GROUPS = {
    HIERARCHICAL: dict(zip((META_0, META_1), META_ARCHETYPES, strict=True)),
    HYPERGEOMETRIC: {OUTER: (0, 5), CENTRAL: (2, 3)},
}
BIASES = ("0.2", "0.35", "0.5", "0.65", "0.8")
BITS = ("8", "4")
BASE = ""  # the variant with biases from U(0.6, 0.7) and 32 bits
# What ends the name of a run's experiment, and what a table says of it.
SHOWN_VARIANTS = {f"{bits}bits": f"{bits} bits" for bits in BITS} | {f"bias{bias}": f"bias {bias}" for bias in BIASES}
ONE_MILESTONE = "1milestone"
SHARED = "shared"  # one schedule of learning rates for all models
FURTHER_VARIANTS = {ONE_MILESTONE: "first milestone alone", SHARED: "one schedule"}  # of which the paper shows nothing
# Variants of the small size, each with one thing of the authors' code (`launch.papers.fedcd.causes`).
CAUSES = {
    "steps": "rate 0.1, tenfold down after round 25",
    "steps_anew": "the same, anew for each clone",
    "validation500": "500 validation images",
    "clone_history": "a clone keeps its first accuracy",
    "below_mean": "deletion below the mean",
    "augmented": "crops and flips",
    "weight_decay": "weight decay 0.0005",
    "clone_score": "1 - accuracy as a clone's score",
    "together": "all of these, and the latest accuracy where there are fewer than three",
}
FEDCD_RUNS = (
    rf"({FEDCD}|{FEDAVG})_cifar10_({HIERARCHICAL}|{HYPERGEOMETRIC})_({'|'.join(SIZES)})"
    rf"(?:_({'|'.join(map(re.escape, (*SHOWN_VARIANTS, *FURTHER_VARIANTS, *CAUSES)))}|\d+rounds))?"
)
RunsByPlace = Mapping[Place, Sequence[RunRecord]]
MILESTONES = (5, 15, 25, 30)  # rounds after which all models are cloned
ACCURACY = CLIENT_TEST_ACCURACY
RATE = "learning_rate_mean"  # FedCD's own column where the rate has steps
WINDOW = 5  # rounds of a trailing mean
LAST_ROUNDS = 10
CALM_FROM = 10  # "stop by round 10"
MOST_CHANGE, MOST_BEHIND = 5.0, 3.0  # points
RESTLESS_AFTER = 40  # "past round 40"
LONG, CAP = 150, 300  # rounds of the paper's longer FedAvg runs


def make_cell(partition: str, algo: str, metric: str, variant: str = BASE) -> Cell:
    """A result of an experiment; the round is part of the metric."""
    return Cell(partition, variant, algo, 0, metric)


def find_place(experiment: str) -> Place | None:
    """The place of an experiment's runs: the size is the preset, the archetypes the data, the variant the setting.

    Experiments that differ only in rounds share a place. None if it is another report's.
    """
    match = re.fullmatch(FEDCD_RUNS, experiment)
    if match is None:
        return None
    algo, partition, size, variant = match.groups(default=BASE)
    return Place(size, partition, BASE if variant.endswith("rounds") else variant, algo)


def count_rounds(place: Place) -> int:
    """The rounds that the experiments of a place ask for; the longer ones of FedAvg have these and more."""
    longer = {AUTHORS: LATE, FULL: FULL_ROUNDS} if (place.dataset, place.setting) == (HIERARCHICAL, BASE) else {}
    return longer.get(place.preset, COMPARED_ROUNDS[place.dataset])


def has_its_data(run: RunRecord) -> bool:
    """Whether a run was made on the data that its size means: the subset of CIFAR-10 will do for small ones alone."""
    place = find_place(run.experiment)
    return place is None or place.preset not in WHOLE_DATA or run.dataset == run.flags["dataset"]


def choose_data(runs: Iterable[RunRecord]) -> dict[str, str]:
    """The one data set of each size, since runs on different data are not compared: of two the one with more runs.

    Whole runs count, others only where no run of a size is whole. Of as many runs on both it is the whole of CIFAR-10.
    Causes do not count: each is compared on its own data.
    """
    numbers: dict[str, Counter[tuple[bool, str]]] = {}
    for run in runs:
        place = find_place(run.experiment)
        if place is not None and place.setting not in CAUSES and has_its_data(run):
            numbers.setdefault(place.preset, Counter())[is_whole(run), run.dataset] += 1
    # The name of a subset is longer.
    return {
        size: max(counted, key=lambda key: (key[0], counted[key], -len(key[1])))[1] for size, counted in numbers.items()
    }


def keep_one_data_set(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs on the data that their size is compared on, without causes on other data."""
    chosen = choose_data(runs)
    placed = [(run, find_place(run.experiment)) for run in runs if has_its_data(run)]
    return [run for run, place in placed if place is not None and chosen.get(place.preset) == run.dataset]


def describe_left_out(runs: Sequence[RunRecord]) -> list[str]:
    """A line for each run that does not count, or that the tables do without: on other data, or interrupted."""
    lines, chosen = [], choose_data(runs)
    for run in runs:
        place = find_place(run.experiment)
        if not has_its_data(run):
            lines.append(f"{run.path}: made on {run.dataset}; runs of this size count on the whole of CIFAR-10 alone")
        elif place is None:
            continue
        elif len(run.rounds) < count_rounds(place):
            lines.append(f"{run.path}: {len(run.rounds)} of {count_rounds(place)} rounds; in no table, only in curves")
        elif place.setting not in CAUSES and run.dataset != chosen[place.preset]:
            lines.append(
                f"{run.path}: made on {run.dataset}, the other runs of its size on {chosen[place.preset]}; runs on "
                "different data are not compared"
            )
    return lines


def is_whole(run: RunRecord) -> bool:
    """Whether a FedCD run has its data and the rounds asked for, each of them evaluated by archetype."""
    place = find_place(run.experiment)
    return place is not None and has_its_data(run) and len(run.rounds) >= count_rounds(place) and is_evaluated(run)


def is_evaluated(run: RunRecord) -> bool:
    """Whether each round of a run was evaluated by archetype."""
    return bool(run.rounds) and all(
        {ACCURACY, MIXED} <= run.rounds.get(round_num, {}).keys() for round_num in range(1, len(run.rounds) + 1)
    )


def group_whole_runs(runs: Sequence[RunRecord]) -> dict[Place, list[RunRecord]]:
    """The whole runs of each place, by seed: of one seed the longest, whose first rounds are those of the others.

    Those of a size are all on one data set (`choose_data`).
    """
    return group_runs(filter(is_whole, keep_one_data_set(runs)), find_place)


def list_column(run: RunRecord, column: str, last_round: int | None = None) -> list[float]:
    """The numbers of a column by round up to a round, 0 where the cell is empty (the first change is)."""
    rounds = range(1, (last_round or len(run.rounds)) + 1)
    return [run.rounds[round_num].get(column, 0.0) for round_num in rounds]


def list_percent(run: RunRecord, column: str, last_round: int | None = None) -> list[float]:
    """The same in per cent."""
    return [100 * value for value in list_column(run, column, last_round)]


def compute_trailing_means(values: Sequence[float]) -> list[float]:
    """Means over the last WINDOW values up to each, over fewer at the beginning."""
    return [statistics.fmean(values[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(values))]


def find_convergence(accuracies: Sequence[float], changes: Sequence[float]) -> int | None:
    """The first round from which a run is calm and no longer gets better until its end; None if there is none.

    In each round from there on, two trailing means over WINDOW rounds keep to a bound: the size of the change of a
    client's accuracy is at most MOST_CHANGE, and the clients' mean accuracy is at most MOST_BEHIND from where it ends.
    These rounds must be LAST_ROUNDS or more, or a run that ends in a lull would count.

    Args:
      accuracies: the clients' mean accuracy after each round, in per cent.
      changes: the mean size of the change of a client's accuracy from the round before, in points; the first is unused.
    """
    levels = compute_trailing_means(accuracies)
    # There is no change before the second round, so the first counts as calm.
    calm = [0.0, *compute_trailing_means(changes[1:])]
    is_settled = [
        abs(level - levels[-1]) <= MOST_BEHIND and change <= MOST_CHANGE
        for level, change in zip(levels, calm, strict=True)
    ]
    unsettled = [i for i, settled in enumerate(is_settled) if not settled]
    # The round after the last unsettled one: index i is round i + 1, and the next is i + 2.
    first = max(unsettled, default=-1) + 2
    return first if first <= len(accuracies) - LAST_ROUNDS + 1 else None


def find_convergence_of(run: RunRecord, last_round: int | None = None) -> int | None:
    """`find_convergence` of a run's first rounds."""
    return find_convergence(list_percent(run, ACCURACY, last_round), list_percent(run, CHANGE, last_round))


def find_convergence_or_end(run: RunRecord, last_round: int) -> int:
    """The same, for comparisons of runs with one another: the round after the last one where there is none."""
    return find_convergence_of(run, last_round) or last_round + 1


def list_group_means(run: RunRecord, archetypes: Iterable[int], last_round: int | None = None) -> list[float]:
    """The mean accuracy of some archetypes after each round."""
    columns = [list_percent(run, name_accuracy(archetype), last_round) for archetype in archetypes]
    return [statistics.fmean(values) for values in zip(*columns, strict=True)]


def find_convergence_of_group(run: RunRecord, archetypes: Iterable[int], last_round: int) -> int | None:
    """`find_convergence` of the mean accuracy of some archetypes and of its own changes."""
    means = list_group_means(run, archetypes, last_round)
    changes = [abs(after - before) for before, after in itertools.pairwise(means)]
    return find_convergence(means, [0.0, *changes])


def compute_swing(run: RunRecord, first_round: int, last_round: int) -> float:
    """How far meta-archetypes swing: the size of the change of their mean accuracy, averaged over both and the rounds.

    Chance changes of single devices average out in such means.
    """
    changes = []
    for archetypes in META_ARCHETYPES:
        means = list_group_means(run, archetypes)
        changes += [abs(means[r - 1] - means[r - 2]) for r in range(first_round, last_round + 1)]
    return statistics.fmean(changes)


def compute_separation(run: RunRecord, last_round: int) -> float:
    """Share, in per cent, of the rounds after the first milestone in which the meta-archetypes are apart.

    That is, two or more models are preferred, and none by devices of both meta-archetypes.
    """
    first = MILESTONES[0] + 1
    pairs = [
        (run.rounds[round_num]["preferred_models"], run.rounds[round_num][MIXED])
        for round_num in range(first, last_round + 1)
    ]
    return 100 * statistics.fmean(preferred >= 2 and mixed == 0 for preferred, mixed in pairs)


def measure(run: RunRecord) -> Numbers:
    """Every measure of a run, by the names of `claims.toml`; those of FedCD's models for FedCD only.

    A name stands for rounds of its own, so that the round of each measure is 0.
    """
    place = find_place(run.experiment)
    last = COMPARED_ROUNDS[place.dataset]
    accuracies, changes = list_percent(run, ACCURACY, last), list_percent(run, CHANGE, last)
    values = {
        "final": accuracies[-1],
        "mean_of_last": statistics.fmean(accuracies[-LAST_ROUNDS:]),
        "change": statistics.fmean(changes[CALM_FROM - 1 :]),
        "last_change": statistics.fmean(changes[-LAST_ROUNDS:]),
        "convergence": find_convergence_of(run) or math.inf,
        # No changes: a run whose devices never calm down can still settle in its mean.
        "level": find_convergence(accuracies, [0.0] * last) or math.inf,
        "calmest": min(compute_trailing_means(changes[1:])[WINDOW - 1 :]),
        "convergence_or_end": find_convergence_or_end(run, count_rounds(place)),
        f"convergence_or_end_{last}": find_convergence_or_end(run, last),
    }
    for archetype in range(NUM_ARCHETYPES[place.dataset]):
        column = list_percent(run, name_accuracy(archetype), last)
        values[f"archetype_{archetype}"] = statistics.fmean(column[-LAST_ROUNDS:])
    by_archetype = (find_convergence_of_group(run, (i,), last) for i in range(NUM_ARCHETYPES[place.dataset]))
    values["converged"] = sum(round_num is not None for round_num in by_archetype)
    for name, archetypes in ARCHETYPE_GROUPS[place.dataset].items():
        values[name] = statistics.fmean(values[f"archetype_{archetype}"] for archetype in archetypes)
        values[f"convergence_{name}"] = find_convergence_of_group(run, archetypes, last) or math.inf
    if len(run.rounds) >= LATE:
        values["late_change"] = statistics.fmean(list_percent(run, CHANGE, LATE)[-LAST_ROUNDS:])
        if RATE in run.rounds[LATE]:
            first = run.flags[f"{place.algo}_learning_rate"]
            values["late_rate"] = statistics.fmean(list_percent(run, RATE, LATE)[-LAST_ROUNDS:]) / first
    values["mb_per_round"] = list_megabytes(run)[last - 1] / last
    if seconds := list_real_seconds(run):
        values["s_per_round"] = seconds[last - 1] / last
    if seconds and (evaluations := list_evaluation_seconds(run)):
        values["evaluation_share"] = 100 * evaluations[last - 1] / (evaluations[last - 1] + seconds[last - 1])
    for length in (LONG, CAP):
        if len(run.rounds) >= length:
            values[f"convergence_{length}"] = find_convergence_of(run, length) or math.inf
    if place.dataset == HIERARCHICAL:
        values["swing"] = compute_swing(run, CALM_FROM + 1, last)
        values["late_swing"] = compute_swing(run, RESTLESS_AFTER + 1, count_rounds(place))
    if place.algo == FEDCD:
        values |= measure_models(run, last)
    return name_numbers(values)


def name_numbers(values: Mapping[str, float]) -> Numbers:
    """The measures of these names."""
    return {Measure(name, 0): value for name, value in values.items()}


def measure_models(run: RunRecord, last: int) -> dict[str, float]:
    """The measures of FedCD's models."""
    active = list_column(run, "active_models", last)
    place = find_place(run.experiment)
    end = run.rounds[count_rounds(place)]
    values = {name: run.rounds[last][name] for name in ("live_models", "preferred_models", "max_active_models")}
    values |= {f"end_{name}": end[name] for name in ("live_models", "preferred_models")}
    if place.dataset == HIERARCHICAL:
        values["separation"] = compute_separation(run, last)
    return values | {
        "most_live_models": max(list_column(run, "live_models", last)),
        "peak_active_models": max(active),
        "active_models": active[-1],
        "late_active_models": statistics.fmean(active[MILESTONES[-1] :]),
        "cloned_active_models": statistics.fmean(active[MILESTONES[0] :]),
        "score_deviation": statistics.fmean(list_column(run, "score_deviation", last)[-WINDOW:]),
    }


def list_real_seconds(run: RunRecord) -> list[float]:
    """Seconds spent in training by the end of each round; nothing if the run has no `timing.csv` of all its rounds."""
    return _add_up(run, ROUND_S)


def list_evaluation_seconds(run: RunRecord) -> list[float]:
    """The same of evaluating on the test splits, which comes after a round; devices' own evaluation is part of it."""
    return _add_up(run, EVALUATION_S)


def _add_up(run: RunRecord, column: str) -> list[float]:
    path = run.path / TIMING_FILE
    columns = read_columns(path) if path.is_file() else {}
    seconds = columns[column].cumsum().tolist() if column in columns else []
    return seconds if len(seconds) == len(run.rounds) else []


def list_megabytes(run: RunRecord) -> list[float]:
    """Megabytes that have travelled in both directions by the end of each round."""
    return [total / 1e6 for total in list_bytes(run)]
