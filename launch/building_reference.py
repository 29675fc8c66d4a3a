"""`python -m launch.building_reference` measures the accuracy of pooled trees in the simulated building.

Beside it: what is right for a sensor's most frequent level alone. `launch.report --tables=amfl_p` shows both beside the
algorithms. Imports no TensorFlow.

Exit codes: 0 done, 1 the file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import pathlib
from collections.abc import Sequence

from absl import flags as absl_flags

from datasets.building.readings import load_building_arrays
from datasets.catalog import BUILDING_HETEROGENEITY
from launch.command_line import format_command_help, parse_flags, run_main
from launch.papers.amfl_p.pooled_reference import (
    COLUMNS,
    MOST_SENSORS,
    compute_majority,
    compute_pooled_accuracy,
)
from launch.progress import say
from launch.runs.tables import write_table
from launch.settings.seeds import read_seeds
from launch.stop_signals import leave

PROGRAM = "python -m launch.building_reference"


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
    values = parse_flags(define_flags(), arguments)
    seeds = read_seeds(values.seeds, "seeds")
    rows = []
    for heterogeneity in BUILDING_HETEROGENEITY:
        for seed in map(int, seeds):
            arrays = load_building_arrays(values.num_sensors, heterogeneity, seed)
            accuracy, majority = compute_pooled_accuracy(arrays, seed), compute_majority(arrays)
            say(f"heterogeneity {heterogeneity}, seed {seed}: accuracy {accuracy:.4f}, majority {majority:.4f}")
            rows.append([heterogeneity, str(seed), f"{accuracy:.6f}", f"{majority:.6f}"])
    if values.output:
        write_table(pathlib.Path(values.output), COLUMNS, rows)


if __name__ == "__main__":
    leave(main())
