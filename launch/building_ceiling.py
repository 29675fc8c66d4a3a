"""`python -m launch.building_ceiling` finds what accuracy the simulated building allows at all.

A pooled model that federated learning may not have: gradient-boosted trees over the readings of all sensors together,
told which sensor a reading is from and what is usual for it (mean and deviation of its train readings, by which its
calibration errors can be undone). Trained on the train days, its accuracy on the later days is averaged over sensors
like that of the algorithms. `launch.report --tables=amfl_p` shows it beside theirs. Imports no TensorFlow.

Exit codes: 0 done, 1 the file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import csv
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
from absl import flags as absl_flags

from datasets.arrays import ArrayDataset
from datasets.building import load_building_arrays
from datasets.catalog import BUILDING_HETEROGENEITY
from launch.command_line import format_command_help, parse_command, run_main
from launch.flags import FlagError
from launch.progress import say
from launch.run_folder import write_table
from launch.run_records import EXPERIMENTS

PROGRAM = "python -m launch.building_ceiling"
CEILING_FILE = EXPERIMENTS / "results" / "amfl_p_ceiling.csv"
COLUMNS = ("heterogeneity", "seed", "accuracy")
MOST_SENSORS = 255  # of a categorical feature of scikit-learn's trees


def add_sensor_features(x: np.ndarray, sensors: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Features of readings with their sensor's number and what is usual for it, float32.

    Args:
      x: features, shape (n, f).
      sensors: of each reading, integers, shape (n,).
      usual: mean and deviation of each sensor's features, shape (sensors, 2 f).
    """
    return np.column_stack([x, sensors, usual[sensors]]).astype(np.float32)


def compute_ceiling(arrays: ArrayDataset, seed: int) -> float:
    """Accuracy on the later days, the mean over sensors, of trees that know all sensors' train days.

    Args:
      arrays: the building, of at most MOST_SENSORS sensors, each with train readings.
      seed: of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    sensors, test_sensors = arrays.train_clients, arrays.test_clients
    members = [arrays.train_x[sensors == sensor] for sensor in range(sensors.max() + 1)]
    usual = np.array([np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in members])
    trees = HistGradientBoostingClassifier(
        max_iter=150,
        learning_rate=0.08,
        max_leaf_nodes=15,
        min_samples_leaf=20,
        l2_regularization=10.0,
        categorical_features=[arrays.train_x.shape[1]],
        random_state=seed,
    )
    trees.fit(add_sensor_features(arrays.train_x, sensors, usual), arrays.train_y)
    correct = trees.predict(add_sensor_features(arrays.test_x, test_sensors, usual)) == arrays.test_y
    return float(np.mean([correct[test_sensors == sensor].mean() for sensor in np.unique(test_sensors)]))


def read_ceilings(path: pathlib.Path = CEILING_FILE) -> dict[str, list[float]]:
    """{heterogeneity: accuracies, one a seed}; empty if there is no such file."""
    ceilings: dict[str, list[float]] = {}
    if path.is_file():
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                ceilings.setdefault(row["heterogeneity"], []).append(float(row["accuracy"]))
    return ceilings


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list("seeds", ["0"], "Seeds of the building and of the trees.", flag_values=values)
    absl_flags.DEFINE_integer(
        "num_sensors", 100, "Sensors.", lower_bound=1, upper_bound=MOST_SENSORS, flag_values=values
    )
    absl_flags.DEFINE_string("output", "", "CSV file for the accuracies; empty: only print.", flag_values=values)
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(_run, lambda: format_command_help(f"{PROGRAM} [--flag=value ...]", define_flags()), argv)


def _run(arguments: Sequence[str]) -> None:
    values = define_flags()
    if parse_command(values, arguments):
        raise FlagError("nothing is expected after --")
    if not all(seed.isdecimal() for seed in values.seeds) or not values.seeds:
        raise FlagError(f"--seeds={','.join(values.seeds)}: expected integers from 0 on, such as 0,1,2")
    rows = []
    for heterogeneity in BUILDING_HETEROGENEITY:
        for seed in map(int, values.seeds):
            accuracy = compute_ceiling(load_building_arrays(values.num_sensors, heterogeneity, seed), seed)
            say(f"heterogeneity {heterogeneity}, seed {seed}: accuracy {accuracy:.4f}")
            rows.append([heterogeneity, str(seed), f"{accuracy:.6f}"])
    if values.output:
        write_table(pathlib.Path(values.output), COLUMNS, rows)


if __name__ == "__main__":
    sys.exit(main())
