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

import numpy as np

from launch.plots.archetype_plots import read_preferences
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CLIENT_TEST_ACCURACY, EVALUATION_S, EVENTS_FILE, ROUND_S, TIMING_FILE
from launch.runs.run_records import RunRecord, read_columns
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.collection import Cell, Place, group_runs, list_bytes
from reproductions.engine.folder import read_toml
from reproductions.fedcd.majority import measure_majority
from tff_algos.client.cohort_draw import sample_cohort

HIERARCHICAL, HYPERGEOMETRIC = "hierarchical", "hypergeometric"
FEDCD, FEDAVG = "fedcd", "fedavg"
NAMES = {algo: ALGORITHMS[algo].title for algo in (FEDCD, FEDAVG)}
TEXTS = read_toml("fedcd", "tables.toml")
AXES: Mapping[str, Mapping[str, str]] = TEXTS["axes"]  # names and titles
SMALL, AUTHORS_SMALL, AUTHORS, FULL, PAPER = SIZES = AXES["size"]
COMPARED_ROUNDS = {HIERARCHICAL: 45, HYPERGEOMETRIC: 80}
# Rounds of the medium size. A clone of the last milestone that begins its learning rates anew counts the rounds in
# which a device of the cohort has it: its rate falls after about round 58 if three devices have it, 63 if two, 80 if
# one. So the late changes mix both rates.
LATE = 60
FULL_ROUNDS = 53  # of the run that the authors print
WHOLE_DATA = (AUTHORS, FULL, PAPER)  # the sizes that mean the whole of CIFAR-10
NUM_ARCHETYPES = {HIERARCHICAL: 10, HYPERGEOMETRIC: 6}
# Archetypes whose mean is a measure: the two meta-archetypes, and those whose labels are the most and the least skewed.
GROUPS = {
    HIERARCHICAL: {"meta_0": range(5), "meta_1": range(5, 10)},
    HYPERGEOMETRIC: {"outer": (0, 5), "central": (2, 3)},
}
BASE = ""  # the variant with biases from U(0.6, 0.7) and 32 bits
_LONGEST_FIRST = sorted(SIZES, key=len, reverse=True)
FEDCD_RUNS = rf"({FEDCD}|{FEDAVG})_cifar10_({HIERARCHICAL}|{HYPERGEOMETRIC})_({'|'.join(_LONGEST_FIRST)})(?:_(.+))?"
RunsByPlace = Mapping[Place, Sequence[RunRecord]]
MILESTONES = (5, 15, 25, 30)  # rounds after which all models are cloned
ACCURACY = CLIENT_TEST_ACCURACY
RATE = "learning_rate_mean"  # FedCD's own column where the rate has steps
WINDOW = 5  # rounds of a trailing mean
LAST_ROUNDS = 10
CALM_FROM = 10  # "stop by round 10"
TAKES = {"mean": statistics.fmean, "max": max}
MOST_CHANGE, MOST_BEHIND = 5.0, 3.0  # points
RESTLESS_AFTER = 40  # "past round 40"
LONG, CAP = 150, 300  # rounds of the paper's longer FedAvg runs


def make_cell(partition: str, algo: str, metric: str, variant: str = BASE) -> Cell:
    """A result of an experiment; the round is part of the metric."""
    return Cell(partition, variant, algo, 0, metric)


def find_place(experiment: str) -> Place:
    """The place of an experiment's runs: the size is the preset, the archetypes the data, the variant the setting.

    Experiments that differ only in rounds share a place.
    """
    algo, partition, size, variant = re.fullmatch(FEDCD_RUNS, experiment).groups(default=BASE)
    return Place(size, partition, BASE if variant.endswith("rounds") else variant, algo)


def count_rounds(place: Place) -> int:
    """The rounds that the experiments of a place ask for; the longer ones of FedAvg have these and more."""
    longer = {AUTHORS: LATE, FULL: FULL_ROUNDS} if (place.dataset, place.setting) == (HIERARCHICAL, BASE) else {}
    return longer.get(place.preset, COMPARED_ROUNDS[place.dataset])


def choose_data(runs: Iterable[RunRecord]) -> dict[str, str]:
    """The one data set of each size, since runs on different data are not compared.

    It is the whole of CIFAR-10, or of the small sizes, for which a subset will do, that of most of the runs.
    """
    found: dict[str, list[str]] = {}
    for run in runs:
        size = find_place(run.experiment).preset
        found.setdefault(size, []).append(run.flags["dataset"] if size in WHOLE_DATA else run.dataset)
    return {size: statistics.mode(datasets) for size, datasets in found.items()}


def keep_one_data_set(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs on the data that their size is compared on."""
    chosen = choose_data(runs)
    return [run for run in runs if run.dataset == chosen[find_place(run.experiment).preset]]


def describe_left_out(runs: Sequence[RunRecord]) -> list[str]:
    """A line for each run that does not count, or that the tables do without: on other data, or interrupted."""
    lines, chosen = [], choose_data(runs)
    for run in runs:
        place = find_place(run.experiment)
        if run.dataset != chosen[place.preset]:
            lines.append(f"{run.path}: made on {run.dataset}; runs of its size count on {chosen[place.preset]} alone")
        elif len(run.rounds) < count_rounds(place):
            lines.append(f"{run.path}: {len(run.rounds)} of {count_rounds(place)} rounds; in no table, only in curves")
    return lines


def is_whole(run: RunRecord) -> bool:
    """Whether a run has the rounds asked for, each of them evaluated by archetype."""
    return len(run.rounds) >= count_rounds(find_place(run.experiment)) and is_evaluated(run)


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


def find_convergence(accuracies: Sequence[float], changes: Sequence[float]) -> float:
    """The first round from which a run is calm and no longer gets better until its end; infinite if there is none.

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
    return first if first <= len(accuracies) - LAST_ROUNDS + 1 else math.inf


def find_convergence_of(run: RunRecord, last_round: int | None = None) -> float:
    """`find_convergence` of a run's first rounds."""
    return find_convergence(list_percent(run, ACCURACY, last_round), list_percent(run, CHANGE, last_round))


def list_group_means(run: RunRecord, archetypes: Iterable[int], last_round: int | None = None) -> list[float]:
    """The mean accuracy of some archetypes after each round."""
    columns = [list_percent(run, name_accuracy(archetype), last_round) for archetype in archetypes]
    return [statistics.fmean(values) for values in zip(*columns, strict=True)]


def list_group_changes(means: Sequence[float]) -> list[float]:
    """The size of the change of a mean in each round, 0 in the first. Chance changes of devices even out in it."""
    return [0.0, *(abs(after - before) for before, after in itertools.pairwise(means))]


def compute_swing(run: RunRecord, first_round: int, last_round: int) -> float:
    """How far meta-archetypes swing: the size of the change of their mean accuracy, averaged over both and rounds."""
    means = [list_group_means(run, archetypes, last_round) for archetypes in GROUPS[HIERARCHICAL].values()]
    return statistics.fmean(change for each in means for change in list_group_changes(each)[first_round - 1 :])


def measure_draw(run: RunRecord, first_round: int, last_round: int) -> dict[str, float]:
    """What FedAvg's cohort of a round has to do with the accuracy after it; nothing where one of both never changes.

    `draw` is the correlation, over rounds, of how many devices of the first meta-archetype were drawn with how far its
    mean accuracy is above the other's. Devices of a meta-archetype are side by side, and all are always available.
    """
    flags = run.flags
    first, second = (list_group_means(run, each, last_round) for each in GROUPS[HIERARCHICAL].values())
    archetypes = np.repeat(np.arange(NUM_ARCHETYPES[HIERARCHICAL]), flags["clients_per_archetype"])
    kinds = np.array([archetypes, archetypes // len(GROUPS[HIERARCHICAL]["meta_0"])]).T
    asked = len(kinds), flags["cohort_size"], flags.get("participation", "fixed"), flags["seed"]
    rounds = range(first_round, last_round + 1)
    drawn = [np.sum(kinds[sample_cohort(*asked, r, kinds=kinds), 1] == 0) for r in rounds]
    gaps = np.subtract(first, second)[first_round - 1 :]
    return {"draw": float(np.corrcoef(drawn, gaps)[0, 1])} if np.ptp(drawn) and np.ptp(gaps) else {}


def compute_separation(run: RunRecord, last_round: int) -> float:
    """Share, in per cent, of the rounds after the first milestone in which the meta-archetypes are apart.

    That is, two or more models are preferred, and none by devices of both meta-archetypes.
    """
    rows = [run.rounds[round_num] for round_num in range(MILESTONES[0] + 1, last_round + 1)]
    return 100 * statistics.fmean(row["preferred_models"] >= 2 and row[MIXED] == 0 for row in rows)


def measure_preferences(run: RunRecord, last_round: int) -> dict[str, float]:
    """Who prefers what from the first milestone on; nothing without a log of events of all these rounds.

    `agreement` is the share, in per cent, of archetypes and rounds in which all devices of an archetype prefer the same
    model. `returning` counts the archetypes that come back to a model which they had left; an archetype's is the one
    that most of its devices prefer, and the last such one where no two agree.
    """
    if not (run.path / EVENTS_FILE).exists():
        return {}
    number = NUM_ARCHETYPES[HIERARCHICAL]
    preferred = read_preferences(run.path / EVENTS_FILE)[MILESTONES[0] : last_round]
    if len(preferred) < last_round - MILESTONES[0]:
        return {}
    of_archetypes = preferred.reshape(len(preferred), number, -1)  # devices of an archetype are side by side
    agree = (of_archetypes == of_archetypes[..., :1]).all(axis=2)
    returning = sum(_returns(of_archetypes[:, archetype]) for archetype in range(number))
    return {"agreement": 100 * float(agree.mean()), "returning": returning}


def _returns(preferred: np.ndarray) -> bool:
    """Whether most of some devices come back to a model; shape (rounds, devices)."""
    most = [Counter(models).most_common(1)[0] for models in preferred.tolist()]
    ordered = [model for model, _ in itertools.groupby(model for model, count in most if count > 1)]
    return len(set(ordered)) < len(ordered)


def measure(run: RunRecord) -> dict[str, float]:
    """Every measure of a run, by the names of `claims.py`; those of FedCD's models for FedCD only."""
    place = find_place(run.experiment)
    last, end = COMPARED_ROUNDS[place.dataset], count_rounds(place)
    values = measure_accuracy(run) | measure_costs(run, last) | measure_majority(run.flags)
    values["convergence_or_end"] = min(find_convergence_of(run, end), end + 1)
    values[f"convergence_or_end_{last}"] = min(find_convergence_of(run, last), last + 1)
    for length in (LONG, CAP):
        if len(run.rounds) >= length:
            values[f"convergence_{length}"] = find_convergence_of(run, length)
    if RATE in run.rounds.get(LATE, {}):
        first = run.flags["learning_rate"]
        values["late_rate"] = statistics.fmean(list_percent(run, RATE, LATE)[-LAST_ROUNDS:]) / first
    if place.dataset == HIERARCHICAL:
        values["late_swing"] = compute_swing(run, RESTLESS_AFTER + 1, end)
        if place.algo == FEDAVG:
            values |= measure_draw(run, CALM_FROM + 1, last)
        if place.algo == FEDCD:
            values["separation"] = compute_separation(run, last)
            values |= measure_preferences(run, last)
    return values


def measure_columns(run: RunRecord) -> dict[str, float]:
    """The measures of single columns, as `tables.toml` has them."""
    place, values = find_place(run.experiment), {}
    ends = {"compared": COMPARED_ROUNDS[place.dataset], "asked": count_rounds(place), "late": LATE}
    for name, (column, until, first, take) in TEXTS["measures"].items():
        if column in run.rounds.get(ends[until], {}):
            list_numbers = list_percent if column in (ACCURACY, CHANGE) else list_column
            values[name] = TAKES[take](list_numbers(run, column, ends[until])[first:])
    return values


def measure_accuracy(run: RunRecord) -> dict[str, float]:
    """The measures that need no more than accuracies, in the rounds compared but for convergence."""
    partition = find_place(run.experiment).dataset
    last = COMPARED_ROUNDS[partition]
    accuracies, changes = list_percent(run, ACCURACY, last), list_percent(run, CHANGE, last)
    values = measure_columns(run) | {
        "convergence": find_convergence_of(run),
        # No changes: a run whose devices never calm down can still settle in its mean.
        "level": find_convergence(accuracies, [0.0] * last),
        "calmest": min(compute_trailing_means(changes[1:])[WINDOW - 1 :]),
    }
    archetypes = {f"archetype_{i}": (i,) for i in range(NUM_ARCHETYPES[partition])}
    means = {name: list_group_means(run, each, last) for name, each in (archetypes | GROUPS[partition]).items()}
    found = {name: find_convergence(each, list_group_changes(each)) for name, each in means.items()}
    values |= {name: statistics.fmean(means[name][-LAST_ROUNDS:]) for name in archetypes}
    values["converged"] = sum(math.isfinite(found[name]) for name in archetypes)
    for name, group in GROUPS[partition].items():
        values[name] = statistics.fmean(values[f"archetype_{archetype}"] for archetype in group)
        values[f"convergence_{name}"] = found[name]
    if partition == HIERARCHICAL:
        values["swing"] = compute_swing(run, CALM_FROM + 1, last)
    return values


def measure_costs(run: RunRecord, last: int) -> dict[str, float]:
    """What a round moves and lasts up to a round; no seconds without a `timing.csv`."""
    megabytes = list_megabytes(run)
    values = {"mb_per_round": megabytes[last - 1] / last}
    values["last_mb_per_round"] = (megabytes[last - 1] - megabytes[last - 1 - LAST_ROUNDS]) / LAST_ROUNDS
    if seconds := list_seconds(run):
        values["s_per_round"] = seconds[last - 1] / last
    if seconds and (evaluations := list_seconds(run, EVALUATION_S)):
        values["evaluation_share"] = 100 * evaluations[last - 1] / (evaluations[last - 1] + seconds[last - 1])
    return values


def list_seconds(run: RunRecord, column: str = ROUND_S) -> list[float]:
    """Seconds spent by the end of each round; nothing if the run has no `timing.csv` of all its rounds.

    By default in training, which has devices' own evaluation in it; evaluating on the test splits is another column.
    """
    path = run.path / TIMING_FILE
    columns = read_columns(path) if path.is_file() else {}
    seconds = columns[column].cumsum().tolist() if column in columns else []
    return seconds if len(seconds) == len(run.rounds) else []


def list_megabytes(run: RunRecord) -> list[float]:
    """Megabytes that have travelled in both directions by the end of each round."""
    return [total / 1e6 for total in list_bytes(run)]
