"""`python -m reproductions.fedsikd.replay` replays what FedSiKD's published scripts do, into a CSV file.

The study was made once: docs/results/fedsikd_published_code.md tells what it found, and the CSV file beside it has its
numbers. The file is written after every split, and a split that it has already is not made again. MNIST and HAR are
read as by `launch.train`, HAR as windows of 128 steps of 9 channels.

Exit codes: 0 done, 1 the file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import dataclasses
import itertools
import os
import pathlib
import time
from collections.abc import Sequence

from datasets.catalog import DatasetOptions, load_arrays
from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.console.progress import say
from launch.console.stop_signals import leave
from launch.runs.columns import ROUND, TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from launch.runtimes.runtime import quiet_tensorflow
from launch.settings.errors import FlagError
from reproductions.fedsikd.measures import ALPHAS, FIRST_ROUNDS
from tff_algos.settings.config_fields import setting

PROGRAM = "python -m reproductions.fedsikd.replay"
DATASETS = ("mnist", "har")
SPLITS = {"client_0": 10, "leaders": 10, "fl_hc": 10, "fedavg": 3}  # of each arm
COLUMNS = ("dataset", "dirichlet_alpha", "arm", "split", ROUND, TEST_ACCURACY, TEST_LOSS, "cpu_s")


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    csv: str = setting("", "CSV file of the numbers; it is completed.")
    data_dir: str = setting(lambda: os.environ.get("FL_DATA_DIR", ""), "Where to look for the data first.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(_run, lambda: format_command_help(f"{PROGRAM} --csv=<file>", list_fields(Flags)), argv)


def _run(arguments: Sequence[str]) -> None:
    values = parse_flags(Flags, arguments)
    path = pathlib.Path(values.csv)
    if not values.csv or path.is_dir():
        raise FlagError("--csv is missing: expected a file for the numbers, such as replay.csv")
    try:
        rows = [[row[name] for name in COLUMNS] for row in read_rows(path)] if path.is_file() else []
    except (KeyError, ValueError) as error:
        raise FlagError(f"--csv={path}: no table of a replay ({error}); name another file") from None
    there = {tuple(row[:4]) for row in rows}
    for dataset in DATASETS:
        bench = None
        for alpha, arm in itertools.product(ALPHAS, SPLITS):
            for split in map(str, range(SPLITS[arm])):
                if (dataset, alpha, arm, split) not in there:
                    bench = bench or _load_bench(dataset, values.data_dir)
                    rows += _compute_rows(bench, dataset, alpha, arm, split)
                    write_table(path, COLUMNS, rows)


def _load_bench(dataset: str, data_dir: str):
    arrays = load_arrays(dataset, DatasetOptions(data_dir=data_dir or None, har_features="inertial"))
    # One thread repeats its results bit for bit, and the models are too small for more.
    os.environ |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
    with quiet_tensorflow(os.devnull):
        from reproductions.fedsikd.replay.procedure import EPOCHS, build_bench
    return build_bench(arrays, EPOCHS[dataset])


def _compute_rows(bench, dataset: str, alpha: str, arm: str, split: str) -> list[list[str]]:
    """A row a round of one split."""
    from reproductions.fedsikd.replay.procedure import replay

    started = time.process_time()
    results = list(replay(arm, bench, float(alpha), int(split), len(FIRST_ROUNDS)))
    spent = f"{(time.process_time() - started) / len(results):.3f}"  # a round
    say(f"{dataset} {alpha} {arm} {split}: " + " ".join(f"{100 * result.metric:.1f}" for result in results))
    return [
        [dataset, alpha, arm, split, str(round_num), f"{result.metric:.6f}", f"{result.mean_loss:.6f}", spent]
        for round_num, result in zip(FIRST_ROUNDS, results, strict=True)
    ]


if __name__ == "__main__":
    leave(main())
