"""What accuracy a model of all sensors' pooled readings reaches in the simulated building.

Federated learning may not pool readings, so this is a reference to compare it with. It is no ceiling: it is one model
for all sensors, which a model of each sensor's own may exceed. The model is gradient-boosted trees.
They are told which sensor a reading is from and what is usual for it (mean and deviation of its train readings, by
which calibration errors can be undone). They learn from the train days; their accuracy on the later days is averaged
over the sensors, as that of the algorithms is. The other end is to say always what was most frequent on a sensor's
train days. Imports no TensorFlow.

The study was made once, into `pooled_reference.csv`. `python -m launch.papers.amfl_p.pooled_reference` makes it again.
"""

import pathlib
from collections.abc import Sequence

import numpy as np
from absl import flags as absl_flags

from datasets.arrays import ArrayDataset
from datasets.building.readings import load_building_arrays
from datasets.catalog import BUILDING_HETEROGENEITY
from launch.command_line import format_command_help, parse_flags, run_main
from launch.progress import say
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from launch.settings.seeds import read_seeds
from launch.stop_signals import leave

PROGRAM = "python -m launch.papers.amfl_p.pooled_reference"

POOLED_FILE = pathlib.Path(__file__).with_name("pooled_reference.csv")
COLUMNS = ("heterogeneity", "seed", "accuracy", "majority")
MOST_SENSORS = 255  # as many values as a categorical feature of scikit-learn's trees may have


def add_sensor_features(x: np.ndarray, sensors: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Features of readings with their sensor's number and what is usual for it, float32.

    Args:
      x: features, shape (n, f).
      sensors: of each reading, integers, shape (n,).
      usual: mean and deviation of each sensor's features, shape (sensors, 2 f).
    """
    return np.column_stack([x, sensors, usual[sensors]]).astype(np.float32)


def compute_pooled_accuracy(arrays: ArrayDataset, seed: int) -> float:
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


def compute_majority(arrays: ArrayDataset) -> float:
    """Accuracy on the later days, the mean over sensors, of always saying what was most frequent in the train days."""
    sensors, test_sensors = arrays.train_clients, arrays.test_clients
    shares = [
        np.mean(arrays.test_y[test_sensors == sensor] == np.bincount(arrays.train_y[sensors == sensor]).argmax())
        for sensor in np.unique(test_sensors)
    ]
    return float(np.mean(shares))


def read_pooled_accuracies(path: pathlib.Path = POOLED_FILE, column: str = "accuracy") -> dict[str, dict[int, float]]:
    """{heterogeneity: {seed: accuracy}}, of the trees or of another column; empty if there is no such file."""
    accuracies: dict[str, dict[int, float]] = {}
    for row in read_rows(path) if path.is_file() else ():
        if row.get(column):
            accuracies.setdefault(row["heterogeneity"], {})[int(row["seed"])] = float(row[column])
    return accuracies


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list("seeds", ["0-19"], "Seeds of the building and of the trees.", flag_values=values)
    absl_flags.DEFINE_integer("sensors", 100, "Sensors.", 1, MOST_SENSORS, flag_values=values)
    absl_flags.DEFINE_string("output", "", "CSV file for the accuracies; empty: only print.", flag_values=values)
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code: 0, 1, 2 or 130."""
    return run_main(_run, lambda: format_command_help(f"{PROGRAM} [--flag=value ...]", define_flags()), argv)


def _run(arguments: Sequence[str]) -> None:
    values = parse_flags(define_flags(), arguments)
    rows = []
    for heterogeneity in BUILDING_HETEROGENEITY:
        for seed in map(int, read_seeds(values.seeds, "seeds")):
            arrays = load_building_arrays(values.sensors, heterogeneity, seed)
            accuracy, majority = compute_pooled_accuracy(arrays, seed), compute_majority(arrays)
            say(f"heterogeneity {heterogeneity}, seed {seed}: accuracy {accuracy:.4f}, majority {majority:.4f}")
            rows.append([heterogeneity, str(seed), f"{accuracy:.6f}", f"{majority:.6f}"])
    if values.output:
        write_table(pathlib.Path(values.output), COLUMNS, rows)


if __name__ == "__main__":
    leave(main())
