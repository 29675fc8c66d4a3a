"""Where a run of FedSiKD's experiments stands in the report, and what is measured in it. Imports no TensorFlow.

A megabyte is 10^6 bytes, down and up, of all clients. Accuracies named below are in per cent, changes in points.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from launch.runs.columns import MAJORITY_ACCURACY, TEST_ACCURACY, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT
from launch.runs.run_records import RunRecord, read_summary
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine.collection import (
    PRINTED,
    TUNED,
    Cell,
    Place,
    PrintedValue,
    SeedResults,
    compute_deviation_of_changes,
    find_first_round,
    list_bytes,
)
from reproductions.engine.folder import read_toml

NAMES = {algo: ALGORITHMS[algo].title for algo in ("fedsikd", "random_cluster", "fl_hc", "fedavg")}
FEDSIKD, RANDOM_CLUSTER, FL_HC, FEDAVG = NAMES
CONTROL = "control"  # RandomCluster with every setting of the FedSiKD beside it, down to the sizes of the clusters
AXES: Mapping[str, Mapping[str, str]] = read_toml("fedsikd", "tables.toml")["axes"]  # names and titles
MNIST, HAR, HAR_WINDOWS = AXES["data"]
ALPHAS = ("0.1", "0.5", "1", "2")
LAST_ROUND = {MNIST: 70, HAR: 50, HAR_WINDOWS: 50}
FIRST_ROUNDS = (1, 2, 3, 4, 5)
BUDGET_ROUNDS = FIRST_ROUNDS[-1]
FLUCTUATING_ROUNDS = 10
COMPARED_ALPHAS = ("0.1", "0.5")  # of tuned runs

AUTHORS, PRIVACY = "authors", "privacy"
NO_NOISE = "none"
EPSILONS = ("1", "2", "4", "8", NO_NOISE)
FEDSIKD_RUNS = rf"({'|'.join(NAMES)})_(.+)_alpha([0-9.]+)(?:_(.+))?"


RunsByPlace = Mapping[Place, Sequence[RunRecord]]


def make_cell(
    dataset: str, alpha: str, metric: str = TEST_ACCURACY, algo: str = FEDSIKD, round_num: int = BUDGET_ROUNDS
) -> Cell:
    """A result, by default FedSiKD's accuracy after five rounds."""
    return Cell(dataset, alpha, algo, round_num, metric)


def find_place(experiment: str) -> Place:
    """The place of an experiment's runs, its setting the alpha.

    Controls and ablations of the tuned preset take the part of an algorithm: "control", "fedsikd_k1". So do the runs
    with privacy, by statistics and epsilon: "scalar_1".
    """
    algo, dataset, alpha, variant = re.fullmatch(FEDSIKD_RUNS, experiment).groups(default="")
    kind, _, epsilon = variant.partition("_epsilon")
    parts = {"": (PRINTED, algo), AUTHORS: (AUTHORS, algo), CONTROL: (TUNED, CONTROL)}
    if epsilon:
        parts[variant] = PRIVACY, f"{kind}_{epsilon.removeprefix('_')}"
    preset, part = parts.get(variant, (TUNED, f"{algo}{variant.removeprefix(TUNED)}"))
    return Place(preset, dataset, spell_alpha(alpha), part)


def spell_alpha(alpha: str) -> str:
    """An alpha as cells spell it: "1" and "1.0" are both "1"."""
    return f"{float(alpha):g}"


def count_rounds_within(sums: Sequence[float], budget: float) -> int | None:
    """How many rounds a budget of bytes pays for; None if the run is too short to tell.

    A run is long enough if another round like its last would not fit. Whether it has reached anything does not count,
    or only the runs that reach it would be compared.
    """
    if not sums:
        return None
    last = sums[-1] - (sums[-2] if len(sums) > 1 else 0)
    return None if sums[-1] + last <= budget else sum(total <= budget for total in sums)


def compute_fluctuation(accuracies: Mapping[int, float], last_round: int) -> float | None:
    """Sample deviation, in points, of the changes from round to round over the last ten rounds of the full length.

    None if the run is shorter or lacks one of these rounds.
    """
    levels = [accuracies.get(r) for r in range(last_round - FLUCTUATING_ROUNDS, last_round + 1)]
    return None if None in levels else 100 * compute_deviation_of_changes(levels)


def measure_run(run: RunRecord, target: float | None, budget: float | None) -> dict[tuple[str, int], float]:
    """{(metric, round): number} of every metric, and what is computed; what a run is too short for is left out.

    Args:
      run: of one of the experiments.
      target: the accuracy to reach, a share; None if none is printed.
      budget: bytes that count at equal bytes; None if FedSiKD has no run of this seed.
    """
    numbers = {(metric, r): value for r, row in run.rounds.items() for metric, value in row.items()}
    for r, row in run.rounds.items():
        if row.get(TOTAL_DRIFT) and WITHIN_CLUSTER_DRIFT in row:
            numbers["drift_ratio", r] = row[WITHIN_CLUSTER_DRIFT] / row[TOTAL_DRIFT]
    place, sums = find_place(run.experiment), list_bytes(run)
    accuracies = {number: row[TEST_ACCURACY] for number, row in run.rounds.items() if TEST_ACCURACY in row}
    last_round = LAST_ROUND[place.dataset]
    values = {("fluctuation", last_round): compute_fluctuation(accuracies, last_round)}
    if sums:
        values["megabytes_a_round", BUDGET_ROUNDS] = sums[-1] / len(sums) / 1e6
    if target is not None and len(run.rounds) >= BUDGET_ROUNDS:
        values["rounds_to_accuracy", BUDGET_ROUNDS] = find_first_round(accuracies, target, BUDGET_ROUNDS)
    last = None if budget is None else count_rounds_within(sums, budget)
    if last is not None and target is not None:
        first = find_first_round(accuracies, target, last)
        spent = math.inf if math.isinf(first) else sums[int(first) - 1] / 1e6
        values["megabytes_to_accuracy", BUDGET_ROUNDS] = spent
    if place.preset == TUNED and last in accuracies:
        values["equal_bytes_accuracy", BUDGET_ROUNDS] = 100 * accuracies[last]
    return numbers | {name: value for name, value in values.items() if value is not None}


def find_targets(printed: Iterable[PrintedValue]) -> dict[tuple[str, str], float]:
    """The accuracy to reach: what the paper prints for FedSiKD after round 5, by data set and alpha."""
    wanted = (FEDSIKD, BUDGET_ROUNDS, TEST_ACCURACY)
    cells = [(value.cell, value.value) for value in printed]
    return {(c.dataset, c.setting): value for c, value in cells if (c.algo, c.round_num, c.metric) == wanted}


def find_budgets(by_place: RunsByPlace) -> dict[tuple[str, str, str, int], float]:
    """The bytes that count at equal bytes: what FedSiKD moves in five rounds, by preset, data set, alpha and seed."""
    budgets = {}
    for place, runs in by_place.items():
        for run in runs:
            sums = list_bytes(run) if place.algo == FEDSIKD else []
            if len(sums) >= BUDGET_ROUNDS:
                budgets[(*place[:3], run.flags["seed"])] = sums[BUDGET_ROUNDS - 1]
    return budgets


def find_majorities(by_place: RunsByPlace) -> dict[tuple[str, str], dict[int, float]]:
    """What each client's most frequent class gets on its own test split, a share, by data set and alpha, and by seed.

    Runs of a seed share their split, and most of them have measured it.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for place, runs in by_place.items():
        for run in runs:
            if (share := read_summary(run).get("clients", {}).get(MAJORITY_ACCURACY)) is not None:
                found.setdefault((place.dataset, place.setting), {})[run.flags["seed"]] = share
    return found


def share_baselines(by_place: RunsByPlace) -> dict[Place, Sequence[RunRecord]]:
    """The runs with those of the baselines beside the authors' values as well, which set only how FedSiKD distils."""
    shared = {
        place._replace(preset=AUTHORS): runs
        for place, runs in by_place.items()
        if place.preset == PRINTED and place._replace(preset=AUTHORS, algo=FEDSIKD) in by_place
    }
    return {**shared, **by_place}


def measure_by_seed(by_place: RunsByPlace, printed: Iterable[PrintedValue]) -> SeedResults:
    """Every measure of every run, by preset, cell and seed.

    As the paper prints it, RandomCluster differs from FedSiKD in the members of the clusters alone. So it is also the
    control there.
    """
    targets, budgets = find_targets(printed), find_budgets(by_place)
    results: SeedResults = {preset: {} for preset in (*AXES["preset"], PRIVACY)}
    for place, runs in by_place.items():
        is_control = (place.preset, place.algo) == (PRINTED, RANDOM_CLUSTER)
        for run in runs:
            seed, target = run.flags["seed"], targets.get((place.dataset, place.setting))
            numbers = measure_run(run, target, budgets.get((*place[:3], seed)))
            for algo in (place.algo, CONTROL) if is_control else (place.algo,):
                for (metric, round_num), value in numbers.items():
                    cell = place._replace(algo=algo).make_cell(metric, round_num)
                    results[place.preset].setdefault(cell, {})[seed] = value
    return results


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """The printed numbers, in the order of the files; those of HAR for both inputs, since the paper has one table."""
    algos = {name: algo for algo, name in NAMES.items()}
    values = []
    for row in rows:
        alpha, algo = spell_alpha(row["dirichlet_alpha"]), algos[row["algorithm"]]
        for dataset in (HAR, HAR_WINDOWS) if row["dataset"] == HAR else (row["dataset"],):
            cell = Cell(dataset, alpha, algo, int(row["round"]), row["metric"])
            values.append(PrintedValue(row["table"], cell, float(row["value"])))
    return values


def measure_printed(printed: Sequence[PrintedValue]) -> list[PrintedValue]:
    """The rounds to the accuracy to reach that follow from the printed accuracies of rounds 1 to 5."""
    accuracies: dict[Cell, dict[int, float]] = {}
    for _, cell, value in printed:
        if cell.metric == TEST_ACCURACY and cell.round_num in FIRST_ROUNDS:
            wanted = cell._replace(round_num=BUDGET_ROUNDS, metric="rounds_to_accuracy")
            accuracies.setdefault(wanted, {})[cell.round_num] = value
    targets = find_targets(printed)
    return [
        PrintedValue("", cell, find_first_round(by_round, targets[cell.dataset, cell.setting], BUDGET_ROUNDS))
        for cell, by_round in accuracies.items()
    ]
