"""`python -m launch.papers.fedsikd.replay` replays what FedSiKD's published scripts do, into a CSV file.

The study was made once: docs/results/fedsikd_published_code.md tells what it found, and the CSV file beside it has its
numbers. The file is written after every split, and a split that it has already is not made again. MNIST and HAR are
read as by `launch.train`, HAR as windows of 128 steps of 9 channels.

Exit codes: 0 done, 1 the file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import itertools
import os
import pathlib
import time
from collections.abc import Sequence

from absl import flags as absl_flags

from datasets.catalog import DatasetOptions, load_arrays
from launch.command_line import format_command_help, parse_flags, run_main
from launch.papers.fedsikd.measures import ALPHAS, FIRST_ROUNDS
from launch.progress import say
from launch.runs.columns import ROUND, TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from launch.runtimes.runtime import quiet_tensorflow
from launch.settings.errors import FlagError
from launch.stop_signals import leave

PROGRAM = "python -m launch.papers.fedsikd.replay"
DATASETS = ("mnist", "har")
SPLITS = {"client_0": 10, "leaders": 10, "fl_hc": 10, "fedavg": 3}  # of each arm, in the study
PLACE = ("dataset", "dirichlet_alpha", "arm", "split")
COLUMNS = (*PLACE, ROUND, TEST_ACCURACY, TEST_LOSS, "cpu_s")


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_string("csv", "", "CSV file of the numbers; it is completed.", flag_values=values)
    absl_flags.DEFINE_multi_enum("dataset", list(DATASETS), list(DATASETS), "Data sets.", flag_values=values)
    absl_flags.DEFINE_multi_enum("alpha", list(ALPHAS), list(ALPHAS), "Of the Dirichlet split.", flag_values=values)
    absl_flags.DEFINE_multi_enum("arm", list(SPLITS), list(SPLITS), "What to compute.", flag_values=values)
    absl_flags.DEFINE_integer(
        "splits", max(SPLITS.values()), "Splits of each arm, at most.", lower_bound=1, flag_values=values
    )
    absl_flags.DEFINE_string(
        "data_dir", os.environ.get("FL_DATA_DIR", ""), "Where to look for the data first.", flag_values=values
    )
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(
        _run, lambda: format_command_help(f"{PROGRAM} --csv=<file> [--flag=value ...]", define_flags()), argv
    )


def _run(arguments: Sequence[str]) -> None:
    values = parse_flags(define_flags(), arguments)
    path = pathlib.Path(values.csv)
    if not values.csv or path.is_dir():
        raise FlagError("--csv is missing: expected a file for the numbers, such as replay.csv")
    try:
        rows = [[row[name] for name in COLUMNS] for row in read_rows(path)] if path.is_file() else []
    except (KeyError, ValueError) as error:
        raise FlagError(f"--csv={path}: no table of a replay ({error}); name another file") from None
    there = {tuple(row[: len(PLACE)]) for row in rows}
    for dataset in dict.fromkeys(values.dataset):
        bench = None
        for alpha, arm in itertools.product(dict.fromkeys(values.alpha), dict.fromkeys(values.arm)):
            for split in range(min(values.splits, SPLITS[arm])):
                place = (dataset, alpha, arm, str(split))
                if place in there:
                    continue
                bench = bench or _load_bench(dataset, values.data_dir)
                rows += _compute_rows(bench, place)
                write_table(path, COLUMNS, rows)


def _load_bench(dataset: str, data_dir: str):
    arrays = load_arrays(dataset, DatasetOptions(data_dir=data_dir or None, har_features="inertial"))
    # One thread repeats its results bit for bit, and the models are too small for more.
    os.environ |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
    with quiet_tensorflow(os.devnull):
        from launch.papers.fedsikd.replay.procedure import EPOCHS, build_bench
    return build_bench(arrays, EPOCHS[dataset])


def _compute_rows(bench, place: tuple[str, ...]) -> list[list[str]]:
    """A row a round of one split."""
    from launch.papers.fedsikd.replay import procedure

    _, alpha, arm, split = place
    started = time.process_time()
    results = list(getattr(procedure, f"run_{arm}")(bench, float(alpha), int(split), len(FIRST_ROUNDS)))
    spent = f"{(time.process_time() - started) / len(results):.3f}"  # a round
    say(" ".join(place) + ": " + " ".join(f"{100 * result.accuracy:.1f}" for result in results))
    return [
        [*place, str(round_num), f"{result.accuracy:.6f}", f"{result.loss:.6f}", spent]
        for round_num, result in zip(FIRST_ROUNDS, results, strict=True)
    ]


if __name__ == "__main__":
    leave(main())
