"""What accuracy a model of all sensors' pooled readings reaches in the simulated building.

Federated learning may not pool readings, so this is a reference to compare it with. It is no ceiling: it is one model
for all sensors, which a model of each sensor's own may exceed. The model is gradient-boosted trees.
They are told which sensor a reading is from and what is usual for it (mean and deviation of its train readings, by
which calibration errors can be undone). They learn from the train days; their accuracy on the later days is averaged
over the sensors, as that of the algorithms is. The other end is to say always what was most frequent on a sensor's
train days. Imports no TensorFlow.

The study was made once, into `pooled_reference.csv`. `python -m reproductions.amfl_p.pooled_reference` makes it again.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from datasets.arrays import ArrayDataset
from datasets.building.readings import load_building_arrays
from datasets.options import BUILDING_HETEROGENEITY
from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.console.progress import say
from launch.console.stop_signals import leave
from launch.runs.tables import write_table
from tff_algos.settings.config_fields import setting

POOLED_FILE = pathlib.Path(__file__).with_name("pooled_reference.csv")
COLUMNS = ("heterogeneity", "seed", "accuracy", "majority")
SEEDS, NUM_SENSORS = range(20), 100  # of the study


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
      arrays: the building, each sensor with train readings.
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
        # The sensor's number stands behind the readings' own features. As a quantity it would mean nothing.
        categorical_features=[arrays.train_x.shape[1]],
        random_state=seed,
    )
    trees.fit(add_sensor_features(arrays.train_x, sensors, usual), arrays.train_y)
    correct = trees.predict(add_sensor_features(arrays.test_x, test_sensors, usual)) == arrays.test_y
    return _average_over_sensors(arrays, correct)


def compute_majority(arrays: ArrayDataset) -> float:
    """Accuracy on the later days, the mean over sensors, of always saying what was most frequent in the train days."""
    sensors = arrays.train_clients
    usual = np.array([np.bincount(arrays.train_y[sensors == sensor]).argmax() for sensor in range(sensors.max() + 1)])
    return _average_over_sensors(arrays, arrays.test_y == usual[arrays.test_clients])


def _average_over_sensors(arrays: ArrayDataset, correct: np.ndarray) -> float:
    sensors = arrays.test_clients
    return float(np.mean([correct[sensors == sensor].mean() for sensor in np.unique(sensors)]))


def read_pooled(path: pathlib.Path = POOLED_FILE) -> pd.DataFrame:
    """The study, columns COLUMNS; no rows if there is no such file."""
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=COLUMNS)


def compute_rows(seeds: Iterable[int] = SEEDS, num_sensors: int = NUM_SENSORS) -> Iterator[list[str]]:
    """The rows of the table, each said as it is made."""
    for heterogeneity, seed in itertools.product(BUILDING_HETEROGENEITY, seeds):
        arrays = load_building_arrays(num_sensors, heterogeneity, seed)
        accuracy, majority = compute_pooled_accuracy(arrays, seed), compute_majority(arrays)
        say(f"heterogeneity {heterogeneity}, seed {seed}: accuracy {accuracy:.4f}, majority {majority:.4f}")
        yield [heterogeneity, str(seed), f"{accuracy:.6f}", f"{majority:.6f}"]


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    output: str = setting("", "CSV file for the accuracies; empty: only print.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code: 0, 1, 2 or 130."""
    usage = "python -m reproductions.amfl_p.pooled_reference [--output=<file>]"
    return run_main(_run, lambda: format_command_help(usage, list_fields(Flags)), argv)


def _run(arguments: Sequence[str]) -> None:
    output, rows = parse_flags(Flags, arguments).output, list(compute_rows())
    if output:
        write_table(pathlib.Path(output), COLUMNS, rows)


if __name__ == "__main__":
    leave(main())
