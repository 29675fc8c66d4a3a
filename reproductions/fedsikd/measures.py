"""Where a run of FedSiKD's experiments stands in the report, and what is measured in it. Imports no TensorFlow.

A megabyte is 10^6 bytes, down and up, of all clients. Accuracies named below are in per cent, changes in points.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launch.pages.comparison.seed_statistics import compute_deviation
from launch.runs import columns
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_summary
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.collection import PRINTED, TUNED, Cell, Place, find_first_round, list_bytes, read_toml
from reproductions.engine.tables import SEED, make_frame

NAMES = {algo: ALGORITHMS[algo].title for algo in ("fedsikd", "random_cluster", "fl_hc", "fedavg")}
AXES: Mapping[str, Mapping[str, str]] = read_toml("fedsikd", "tables.toml")["axes"]  # names and titles
MNIST, HAR, HAR_WINDOWS = AXES["data"]
ALPHAS = ("0.1", "0.5", "1", "2")
COMPARED_ALPHAS = ("0.1", "0.5")  # of tuned runs
LAST_ROUND = {MNIST: 70, HAR: 50, HAR_WINDOWS: 50}
FIRST_ROUNDS = (1, 2, 3, 4, 5)
BUDGET_ROUNDS = FIRST_ROUNDS[-1]
FLUCTUATING_ROUNDS = 10
AUTHORS, PRIVACY = "authors", "privacy"
NO_NOISE = "none"
EPSILONS = ("1", "2", "4", "8", NO_NOISE)

MEASURED = (  # numbers
    *(TEST_ACCURACY, columns.CLIENT_TEST_ACCURACY, columns.TEST_LOSS, "drift_ratio", "fluctuation"),
    *("rounds_to_accuracy", "megabytes_to_accuracy", "equal_bytes_accuracy", "megabytes_a_round", "seconds_a_round"),
    "majority",  # what each client's most frequent class gets on its own test split, a share
)


def find_place(experiment: str) -> Place:
    """The place of an experiment's runs, its setting the alpha, of which "1.0" is "1".

    Controls and ablations of the tuned preset take the part of an algorithm: "control", "fedsikd_k1". So do the runs
    with privacy, by statistics and epsilon: "scalar_1".
    """
    pattern = rf"({'|'.join(NAMES)})_(.+)_alpha([0-9.]+)(?:_(.+))?"
    algo, dataset, alpha, variant = re.fullmatch(pattern, experiment).groups(default="")
    kind, _, epsilon = variant.partition("_epsilon")
    parts = {"": (PRINTED, algo), AUTHORS: (AUTHORS, algo), "control": (TUNED, "control")}
    if epsilon:
        parts[variant] = PRIVACY, f"{kind}_{epsilon.removeprefix('_')}"
    preset, part = parts.get(variant, (TUNED, f"{algo}{variant.removeprefix(TUNED)}"))
    return Place(preset, dataset, f"{float(alpha):g}", part)


def place_runs(runs: Iterable[RunRecord]) -> pd.DataFrame:
    """A row a run, by place and seed: its experiment and seed, the fields of its place, and `run` itself."""
    fields = (*Place._fields, "run")
    frame = make_frame(runs, lambda run: {**find_place(run.experiment)._asdict(), "run": run}, fields)
    return frame.sort_values([*Place._fields, SEED])


def measure_runs(runs: Iterable[RunRecord], targets: pd.Series) -> pd.DataFrame:
    """What is measured in each run after the rounds that are printed or claimed.

    Args:
      runs: of the experiments, each experiment and seed once.
      targets: the accuracies to reach, see `find_targets`.

    Returns:
      A row a run and round: the columns of `place_runs`, round_num, MEASURED and cluster_sizes, of which what concerns
      a whole run stands at round 5. What a run is too short for is missing.
    """
    placed, rows = place_runs(runs), []
    # The authors' values set how FedSiKD distils, not what it moves.
    presets = placed.preset.replace(AUTHORS, PRINTED)
    for (_, dataset, alpha, _), paired in placed.groupby([presets, "dataset", "setting", SEED]):
        moved = [list_bytes(run) for run in paired.run[paired.algo == "fedsikd"]]
        budget = next((sums[BUDGET_ROUNDS - 1] for sums in moved if len(sums) >= BUDGET_ROUNDS), None)
        for each in paired.itertuples(index=False):
            for round_num in (*FIRST_ROUNDS, LAST_ROUND[dataset]):
                found = measure_round(each.run, round_num)
                if round_num == BUDGET_ROUNDS:
                    found |= measure_whole(each.run, targets[dataset, alpha], budget)
                rows.append({**each._asdict(), "round_num": round_num, **found})
    types = {"round_num": int, **dict.fromkeys(MEASURED, float)}
    return pd.DataFrame(rows, columns=[*placed.columns, *types, "cluster_sizes"]).astype(types)


def measure_round(run: RunRecord, round_num: int) -> dict[str, float]:
    """The columns of `metrics.csv` after a round, and what is computed unless the run is too short for it.

    - drift_ratio: that within the clusters over all.
    - fluctuation: the sample deviation, in points, of the changes of accuracy from round to round over the ten rounds
      up to this one, if it has them all.
    """
    found = dict(run.rounds.get(round_num, {}))
    if found.get(columns.TOTAL_DRIFT) and columns.WITHIN_CLUSTER_DRIFT in found:
        found["drift_ratio"] = found[columns.WITHIN_CLUSTER_DRIFT] / found[columns.TOTAL_DRIFT]
    levels = [run.rounds.get(r, {}).get(TEST_ACCURACY) for r in range(round_num - FLUCTUATING_ROUNDS, round_num + 1)]
    if None not in levels:
        found["fluctuation"] = 100 * compute_deviation(np.diff(levels))
    return found


def measure_whole(run: RunRecord, target: float, budget: float | None) -> dict[str, Any]:
    """What is computed of a whole run, unless it is too short for it, and what its summary says.

    Args:
      run: of one of the experiments.
      target: the accuracy to reach, a share.
      budget: bytes that count at equal bytes; None if FedSiKD has no run of this seed.
    """
    accuracies = {number: row[TEST_ACCURACY] for number, row in run.rounds.items() if TEST_ACCURACY in row}
    sums, summary = list_bytes(run), read_summary(run)
    counts = sorted(Counter(summary.get("fl_hc", {}).get("cluster_sizes") or ()).items(), reverse=True)
    found = {
        "seconds_a_round": summary.get("seconds_per_round"),
        "majority": summary.get("clients", {}).get(columns.MAJORITY_ACCURACY),
        "cluster_sizes": ", ".join(str(size) if count == 1 else f"{count} x {size}" for size, count in counts) or None,
    }
    if sums:
        found["megabytes_a_round"] = sums[-1] / len(sums) / 1e6
    if len(run.rounds) >= BUDGET_ROUNDS:
        found["rounds_to_accuracy"] = find_first_round(accuracies, target, BUDGET_ROUNDS)
    if (last := count_rounds_within(sums, budget)) is not None:
        first = find_first_round(accuracies, target, last)
        found["megabytes_to_accuracy"] = math.inf if math.isinf(first) else sums[int(first) - 1] / 1e6
        found["equal_bytes_accuracy"] = 100 * accuracies.get(last, math.nan)
    return found


def count_rounds_within(sums: Sequence[float], budget: float | None) -> int | None:
    """How many rounds a budget of bytes pays for; None without a budget, or if the run is too short to tell.

    A run is long enough if another round like its last would not fit. Whether it has reached anything does not count,
    or only the runs that reach it would be compared.
    """
    if not sums or budget is None:
        return None
    last = sums[-1] - (sums[-2] if len(sums) > 1 else 0)
    return None if sums[-1] + last <= budget else sum(total <= budget for total in sums)


def read_printed(rows: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """The printed numbers, in the order of the file; those of HAR for both inputs, since the paper has one table.

    Args:
      rows: of `printed.csv`, whose columns are a table, the fields of a `Cell`, and the number.

    Returns:
      A row a number: table, the fields of its cell, value.
    """
    frame = pd.DataFrame(rows).set_axis(["table", *Cell._fields, "value"], axis="columns")
    frame = frame.astype({"setting": float, "round_num": int, "value": float})
    frame["setting"] = frame.setting.map("{:g}".format)
    frame["algo"] = frame.algo.map({name: algo for algo, name in NAMES.items()})
    windows = frame[frame.dataset == HAR].assign(dataset=HAR_WINDOWS)
    return pd.concat([frame, windows]).sort_index(kind="stable", ignore_index=True)


def find_targets(printed: pd.DataFrame) -> pd.Series:
    """The accuracy to reach: what the paper prints for FedSiKD after round 5, by data set and alpha."""
    fifth = printed[(printed.round_num == BUDGET_ROUNDS) & (printed.metric == TEST_ACCURACY)]
    return fifth[fifth.algo == "fedsikd"].set_index(["dataset", "setting"]).value.rename("target")


def measure_printed(printed: pd.DataFrame) -> pd.DataFrame:
    """The rounds to the accuracy to reach that follow from the printed accuracies of rounds 1 to 5, in no table."""
    early = printed[(printed.metric == TEST_ACCURACY) & printed.round_num.isin(FIRST_ROUNDS)]
    early = early.join(find_targets(printed), on=["dataset", "setting"])
    rounds = early.assign(value=early.round_num.astype(float).where(early.value >= early.target, math.inf))
    first = rounds.groupby(["dataset", "setting", "algo"], as_index=False).value.min()
    return first.assign(table="", round_num=BUDGET_ROUNDS, metric="rounds_to_accuracy")
