"""Which runs the FedCD report counts, and what it measures in one of them. Imports no TensorFlow.

Accuracies are in per cent, changes of them in points. Most measures look at the rounds that the paper's figure of the
experiment shows (COMPARED_ROUNDS), so that runs of different lengths can be compared. What a run does not reach within
its rounds, such as convergence, is at infinity.
"""

import dataclasses
import functools
import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from datasets.archetypes import count_labels, describe_archetypes
from datasets.partition_settings import ArchetypeSettings
from launch.pages.plots.archetype_plots import read_preferences
from launch.runs.archetype_metrics import CHANGE, MIXED, name_accuracy
from launch.runs.columns import CLIENT_TEST_ACCURACY as ACCURACY
from launch.runs.columns import EVALUATION_S, EVENTS_FILE, ROUND, ROUND_S, TIMING_FILE, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord, read_columns
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.collection import FOLDER, Place, list_bytes, read_toml
from reproductions.engine.tables import SEED, make_frame
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
CIFAR10 = "cifar10"  # the whole of it, as runs name their data
WHOLE_DATA = (AUTHORS, FULL, PAPER)  # the sizes that mean it
NUM_ARCHETYPES = {HIERARCHICAL: 10, HYPERGEOMETRIC: 6}
# Archetypes whose mean is a measure: the two meta-archetypes, and those whose labels are the most and the least skewed.
GROUPS = {
    HIERARCHICAL: {"meta_0": range(5), "meta_1": range(5, 10)},
    HYPERGEOMETRIC: {"outer": (0, 5), "central": (2, 3)},
}
BASE = ""  # the variant with biases from U(0.6, 0.7) and 32 bits
MILESTONES = (5, 15, 25, 30)  # rounds after which all models are cloned
WINDOW = 5  # rounds of a trailing mean
LAST_ROUNDS = 10
CALM_FROM = 10  # "stop by round 10"
TAKES = {"mean": statistics.fmean, "max": max}
MOST_CHANGE, MOST_BEHIND = 5.0, 3.0  # points
RESTLESS_AFTER = 40  # "past round 40"
LONG, CAP = 150, 300  # rounds of the paper's longer FedAvg runs


def find_place(experiment: str) -> Place:
    """The place of an experiment's runs: the size is the preset, the archetypes the data, the variant the setting.

    Experiments that differ only in rounds share a place.
    """
    # The longest first, since some begin like others.
    sizes = "|".join(sorted(SIZES, key=len, reverse=True))
    pattern = rf"(\w+?)_cifar10_([a-z]+)_({sizes})(?:_(.+))?"
    algo, partition, size, variant = re.fullmatch(pattern, experiment).groups(default=BASE)
    return Place(size, partition, BASE if variant.endswith("rounds") else variant, algo)


def count_rounds(place: Place) -> int:
    """The rounds that the experiments of a place ask for; the longer ones of FedAvg have these and more."""
    # The run that the authors print has 53.
    longer = {AUTHORS: LATE, FULL: 53} if (place.dataset, place.setting) == (HIERARCHICAL, BASE) else {}
    return longer.get(place.preset, COMPARED_ROUNDS[place.dataset])


def make_runs(runs: Iterable[RunRecord]) -> pd.DataFrame:
    """A row a run, in the order given: experiment, seed, the columns of its place, and

    - run, with its rounds and how many are asked for; whether each is evaluated by archetype, and whether it is whole,
      which is both;
    - data, on which it was made, and counted, the one data set on which runs of its size count, since runs on different
      data are not compared: the whole of CIFAR-10, or of the small sizes, for which a subset will do, that of most.
    """

    def describe(run: RunRecord) -> dict[str, Any]:
        place, numbers = find_place(run.experiment), range(1, len(run.rounds) + 1)
        evaluated = bool(numbers) and all({ACCURACY, MIXED} <= run.rounds.get(number, {}).keys() for number in numbers)
        found = {"run": run, "rounds": len(numbers), "asked": count_rounds(place), "evaluated": evaluated}
        return {**place._asdict(), **found, "data": run.dataset}

    frame = make_frame(runs, describe, (*Place._fields, "run", "rounds", "asked", "evaluated", "data"))
    frame = frame.astype({"evaluated": bool})
    of_most = frame.groupby("preset").data.transform(statistics.mode)
    whole = (frame.rounds >= frame.asked) & frame.evaluated
    return frame.assign(whole=whole, counted=of_most.mask(frame.preset.isin(WHOLE_DATA), CIFAR10))


def choose_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """The evaluated runs on the data that count, by place and seed: of one seed the longest.

    Its first rounds are those of the others. Tables are of those that are whole.
    """
    alike = [*Place._fields, SEED]
    found = frame[frame.evaluated & (frame.data == frame.counted)]
    longest = found.sort_values("rounds", ascending=False, kind="stable").drop_duplicates(alike)
    return longest.sort_values(alike, ignore_index=True)


def describe_left_out(frame: pd.DataFrame) -> list[str]:
    """A line for each run that does not count, or that the tables do without: on other data, or interrupted."""
    return [
        f"{row.run.path}: made on {row.data}; runs of its size count on {row.counted} alone"
        if row.data != row.counted
        else f"{row.run.path}: {row.rounds} of {row.asked} rounds; in no table, only in curves"
        for row in frame.itertuples()
        if row.data != row.counted or row.rounds < row.asked
    ]


@functools.cache
def read_authors_run() -> RunRecord:
    """The one run that the authors' published notebook prints, as if it were one of ours.

    FedCD on hierarchical archetypes with 8 bits, 53 rounds, the test accuracy of each of the 30 devices in per cent
    (github.com/jessijzhao/FedCD, commit cea256a). In this commit models are cloned after rounds 2, 15, 25 and 30, where
    the paper prints 5, 15, 25 and 30. Its rounds have the columns of metrics.csv that follow from the accuracies.
    """
    path = FOLDER / "fedcd" / "authors_run.csv"
    devices = pd.read_csv(path, index_col=ROUND) / 100
    archetypes = np.arange(len(devices.columns)) // 3  # the devices of an archetype are side by side, three of each
    rounds = devices.T.groupby(archetypes).mean().T.rename(columns=name_accuracy)
    rounds[ACCURACY], rounds[CHANGE] = devices.mean(axis=1), devices.diff().abs().mean(axis=1)
    # The first round has no change, so its cell is dropped.
    by_round = {round_num: row.dropna().to_dict() for round_num, row in rounds.iterrows()}
    return RunRecord(path, {}, "fedcd_cifar10_hierarchical_authors_full", by_round)


def measure(run: RunRecord) -> dict[str, float]:
    """Every measure of a run, by the names of `claims.py`; those of FedCD's models for FedCD only."""
    place = find_place(run.experiment)
    last = COMPARED_ROUNDS[place.dataset]
    values = measure_rounds(run) | measure_majority(run.flags)
    values |= measure_costs(run, last, values["convergence"])
    if place.dataset == HIERARCHICAL:
        values |= measure_draw(run, CALM_FROM + 1, last) if place.algo == FEDAVG else measure_preferences(run, last)
    return values


def measure_rounds(run: RunRecord) -> dict[str, float]:
    """The measures that need no more than `metrics.csv`; of single columns those that `tables.toml` has."""
    place, rounds = find_place(run.experiment), list_rounds(run)
    ends = {"compared": COMPARED_ROUNDS[place.dataset], "asked": count_rounds(place), "late": LATE}
    last, asked, _ = ends.values()
    values = {
        name: TAKES[take](rounds[column].loc[: ends[until]].iloc[first:])
        for name, (column, until, first, take) in TEXTS["measures"].items()
        if column in run.rounds.get(ends[until], {})
    }
    if "late_rate" in values:
        values["late_rate"] /= run.flags["learning_rate"]

    def converge(end: int) -> float:
        return find_convergence(rounds[ACCURACY].loc[:end], rounds[CHANGE].loc[:end])

    values |= {"convergence": converge(len(rounds)), "convergence_or_end": min(converge(asked), asked + 1)}
    values[f"convergence_or_end_{last}"] = min(converge(last), last + 1)
    values |= {f"convergence_{cap}": converge(cap) for cap in (LONG, CAP) if len(rounds) >= cap}
    compared = rounds.loc[:last]
    # No changes: a run whose devices never calm down can still settle in its mean.
    values["level"] = find_convergence(compared[ACCURACY], [0.0] * last)
    values["calmest"] = min(compute_trailing_means(compared[CHANGE].iloc[1:])[WINDOW - 1 :])
    archetypes = {f"archetype_{i}": [i] for i in range(NUM_ARCHETYPES[place.dataset])}
    for name, means in average_archetypes(compared, archetypes | GROUPS[place.dataset]).items():
        values[name] = statistics.fmean(means.tail(LAST_ROUNDS))
        # Chance changes of devices even out in the changes of a mean.
        values[f"convergence_{name}"] = find_convergence(means, means.diff().abs())
    values["converged"] = sum(values[f"convergence_{name}"] < math.inf for name in archetypes)
    if place.dataset == HIERARCHICAL:
        # How far meta-archetypes swing: the size of the change of their mean accuracy, averaged over both and rounds.
        swings = average_archetypes(rounds, GROUPS[HIERARCHICAL]).diff().abs().mean(axis=1)
        values["swing"] = swings.loc[CALM_FROM + 1 : last].mean()
        values["late_swing"] = swings.loc[RESTLESS_AFTER + 1 : asked].mean()
        if "preferred_models" in rounds:
            # The share of rounds after the first milestone in which the meta-archetypes are apart: two or more models
            # are preferred, and none by devices of both.
            apart = (compared.preferred_models >= 2) & (compared[MIXED] == 0)
            values["separation"] = 100 * apart.loc[MILESTONES[0] + 1 :].mean()
    return values


def list_rounds(run: RunRecord) -> pd.DataFrame:
    """The columns of `metrics.csv`, a row a round: accuracies, their changes and learning rates in per cent.

    0 where a cell is empty, as the first change is.
    """
    rounds = pd.DataFrame.from_dict(run.rounds, orient="index").sort_index().fillna(0.0)
    rounds.loc[:, rounds.columns.str.contains("accuracy|learning_rate")] *= 100
    return rounds


def compute_trailing_means(values: Iterable[float]) -> list[float]:
    """Means over the last WINDOW values up to each, over fewer at the beginning."""
    values = list(values)
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
    unsettled = [
        round_num
        for round_num, (level, change) in enumerate(zip(levels, calm, strict=True), 1)
        if abs(level - levels[-1]) > MOST_BEHIND or change > MOST_CHANGE
    ]
    first = max(unsettled, default=0) + 1
    return first if first <= len(levels) - LAST_ROUNDS + 1 else math.inf


def average_archetypes(rounds: pd.DataFrame, groups: Mapping[str, Iterable[int]]) -> pd.DataFrame:
    """The mean accuracy of groups of archetypes after each round, a column a group."""
    return pd.DataFrame({name: rounds[list(map(name_accuracy, group))].mean(axis=1) for name, group in groups.items()})


def measure_draw(run: RunRecord, first: int, last: int) -> dict[str, float]:
    """What FedAvg's cohort of a round has to do with the accuracy after it; nothing where one of both never changes.

    `draw` is the correlation, over rounds, of how many devices of the first meta-archetype were drawn with how far its
    mean accuracy is above the other's. Devices of a meta-archetype are side by side, and all are always available.
    """
    flags, means = run.flags, average_archetypes(list_rounds(run), GROUPS[HIERARCHICAL])
    archetypes = np.repeat(np.arange(NUM_ARCHETYPES[HIERARCHICAL]), flags["clients_per_archetype"])
    kinds = np.array([archetypes, archetypes // len(GROUPS[HIERARCHICAL]["meta_0"])]).T
    asked = len(kinds), flags["cohort_size"], flags.get("participation", "fixed"), flags["seed"]
    drawn = [np.sum(kinds[sample_cohort(*asked, r, kinds=kinds), 1] == 0) for r in range(first, last + 1)]
    gaps = (means.meta_0 - means.meta_1).loc[first:last]
    return {"draw": float(np.corrcoef(drawn, gaps)[0, 1])} if np.ptp(drawn) and np.ptp(gaps) else {}


def measure_preferences(run: RunRecord, last: int) -> dict[str, float]:
    """Who prefers what from the first milestone on; nothing without a log of events of all these rounds.

    `agreement` is the share, in per cent, of archetypes and rounds in which all devices of an archetype prefer the same
    model. `returning` counts the archetypes that come back to a model which they had left; an archetype's is the one
    that most of its devices prefer, and the last such one where no two agree.
    """
    if not (run.path / EVENTS_FILE).exists():
        return {}
    number = NUM_ARCHETYPES[HIERARCHICAL]
    preferred = read_preferences(run.path / EVENTS_FILE)[MILESTONES[0] : last]
    if len(preferred) < last - MILESTONES[0]:
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


def compute_majority(flags: Mapping[str, Any]) -> pd.Series:
    """What always saying a device's most frequent class gets, which a model must beat to be of use.

    The settings of a run and its seed say how many images of each label a device has in each split, whichever these
    are. So no data are read, and runs that were made before anybody asked have it as well.

    Args:
      flags: of a run; those that earlier versions did not have are as they were then.

    Returns:
      The accuracy on each device's own test split of the most frequent label of its train split, of equally frequent
      ones the lowest, in per cent: a row a device, by the number of its archetype.
    """
    names = [field.name for field in dataclasses.fields(ArchetypeSettings)]
    settings = ArchetypeSettings(**{name: flags[name] for name in names if name in flags})
    labels = tuple(map(str, range(10)))  # of CIFAR-10
    archetypes = describe_archetypes(flags["partition"], labels, settings)
    counts = count_labels(flags["partition"], archetypes, len(labels), settings, flags["seed"])
    usual = counts["train"].argmax(axis=1)
    right = counts["test"][np.arange(len(usual)), usual]
    return pd.Series(100 * right / counts["test"].sum(axis=1), index=archetypes.of_clients)


def measure_majority(flags: Mapping[str, Any]) -> dict[str, float]:
    """Its mean over the devices, and over those of each archetype."""
    accuracy = compute_majority(flags)
    return {"majority": accuracy.mean(), **accuracy.groupby(level=0).mean().add_prefix("majority_")}


def add_up_costs(run: RunRecord) -> pd.DataFrame:
    """What a run has spent by the end of each round, a row a round; NaN where its files do not say it of all rounds.

    Columns: real_s in training, which has devices' own evaluation in it, evaluation_s on the test splits, virtual_s,
    and megabytes in both directions.
    """
    path, numbers = run.path / TIMING_FILE, range(1, len(run.rounds) + 1)
    timing = read_columns(path) if path.is_file() else {}
    spent = {
        "real_s": np.cumsum(timing.get(ROUND_S, ())),
        "evaluation_s": np.cumsum(timing.get(EVALUATION_S, ())),
        "virtual_s": [run.rounds[number].get(VIRTUAL_TIME_S, math.nan) for number in numbers],
        "megabytes": np.divide(list_bytes(run), 1e6),
    }
    known = {name: each if len(each) == len(numbers) else math.nan for name, each in spent.items()}
    return pd.DataFrame(known, index=numbers)


def measure_costs(run: RunRecord, last: int, convergence: float) -> dict[str, float]:
    """What a run costs; NaN for what its files do not say.

    In the rounds up to `last`: megabytes and seconds a round, and the share of evaluation in the time, in per cent. To
    convergence: real_s, virtual_s and megabytes. Runs end, so for a run that has not converged by then it is only known
    that convergence takes more than it has spent. `spent_until` is the round by whose end that is spent, and `is_exact`
    says whether it counts as the cost of convergence: FedAvg's after CAP rounds does all the same, as in the paper.
    """
    spent = add_up_costs(run)
    by_then = spent.loc[last]
    is_capped = math.isinf(convergence) and run.flags["algo"] == FEDAVG and len(run.rounds) >= CAP
    until = int(min(convergence, CAP if is_capped else len(run.rounds)))
    return {
        "mb_per_round": by_then.megabytes / last,
        "last_mb_per_round": (by_then.megabytes - spent.megabytes[last - LAST_ROUNDS]) / LAST_ROUNDS,
        "s_per_round": by_then.real_s / last,
        "evaluation_share": 100 * by_then.evaluation_s / (by_then.evaluation_s + by_then.real_s),
        **spent.drop(columns="evaluation_s").loc[until],
        "spent_until": until,
        "is_exact": is_capped or convergence < math.inf,
    }
