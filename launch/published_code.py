"""`python -m launch.published_code` replays what FedSiKD's published scripts do, and sets it beside the printed rows.

The numbers go into a CSV file after every split, so that a stopped command goes on where it was; `--page` makes a page
of the file. MNIST and HAR are read as by `launch.train`; HAR's windows, 128 steps of 9 channels.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import os
import pathlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from datasets.catalog import DatasetOptions, load_arrays
from launch.command_line import format_command_help, parse_flags, run_main
from launch.papers.fedsikd.published_code import (
    ALPHAS,
    ARMS,
    CLIENT_0,
    DATASETS,
    FEDAVG,
    FL_HC,
    LEADERS,
    PLANNED_SPLITS,
    REPLAY_FILE,
    ROUNDS,
    Place,
    Run,
    list_missing,
    read_replay,
    write_replay,
)
from launch.papers.fedsikd.published_code_page import format_page
from launch.progress import format_duration, say
from launch.runs.tables import write_text
from launch.runtimes.runtime import quiet_tensorflow
from launch.settings.flags import FlagError
from launch.stop_signals import leave

if TYPE_CHECKING:
    from launch.training.published_code import Bench

PROGRAM = "python -m launch.published_code"


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_list("datasets", list(DATASETS), "Data sets.", flag_values=values)
    absl_flags.DEFINE_list("alphas", list(ALPHAS), "Concentrations of the Dirichlet split.", flag_values=values)
    absl_flags.DEFINE_list(
        "arms",
        list(ARMS),
        "What to compute: client_0 (what 'FedAvg' does), leaders (what 'FedSiKD' and 'RandomCluster' do), fl_hc (how "
        "we read 'FL+HC'), fedavg (FedAvg of all clients).",
        flag_values=values,
    )
    absl_flags.DEFINE_integer(
        "splits",
        PLANNED_SPLITS[LEADERS],
        "Splits of all arms but fedavg.",
        lower_bound=0,
        flag_values=values,
    )
    absl_flags.DEFINE_integer(
        "fedavg_splits",
        PLANNED_SPLITS[FEDAVG],
        "Splits of fedavg, in which all clients train.",
        lower_bound=0,
        flag_values=values,
    )
    absl_flags.DEFINE_string("csv", str(REPLAY_FILE), "CSV file of the numbers; it is completed.", flag_values=values)
    absl_flags.DEFINE_string("page", "", "Markdown page to make of the file; empty: none.", flag_values=values)
    absl_flags.DEFINE_bool("train", True, "--notrain only makes the page of the numbers there are.", flag_values=values)
    absl_flags.DEFINE_string(
        "data_dir", os.environ.get("FL_DATA_DIR", ""), "Where to look for the data first.", flag_values=values
    )
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(_run, lambda: format_command_help(f"{PROGRAM} [--flag=value ...]", define_flags()), argv)


def _run(arguments: Sequence[str]) -> None:
    values = parse_flags(define_flags(), arguments)
    for name, known in (("datasets", DATASETS), ("alphas", ALPHAS), ("arms", ARMS)):
        given = values[name].value
        if not given or not set(given) <= set(known):
            raise FlagError(f"--{name}={','.join(given)}: expected some of {','.join(known)}")
    path = pathlib.Path(values.csv)
    if path.is_dir():
        raise FlagError(f"--csv={path}: is a folder; expected a file")
    try:
        replay = read_replay(path)
    except ValueError as error:
        raise FlagError(f"--csv={error}; name another file, or move this one away") from None
    if not values.train and not values.page:
        raise FlagError("--notrain: nothing is left to do; name a --page, such as page.md")
    if values.train:
        _complete(replay, path, _list_cells(values, replay), values.data_dir)
    if values.page:
        write_text(pathlib.Path(values.page), format_page(replay))
        say(f"page: {values.page}")


def _list_cells(values: absl_flags.FlagValues, replay) -> list[tuple[Place, int]]:
    """What is to be computed: first what is replayed, then FedAvg of all clients beside it."""
    splits = {**dict.fromkeys(ARMS, values.splits), FEDAVG: values.fedavg_splits}
    return [
        (place, split)
        for arms in ((CLIENT_0, LEADERS), (FL_HC,), (FEDAVG,))  # the cheap ones first
        for dataset in dict.fromkeys(values.datasets)
        for alpha in dict.fromkeys(values.alphas)
        for arm in arms
        if arm in values.arms
        for place in [Place(dataset, alpha, arm)]
        for split in list_missing(replay, place, splits[arm])
    ]


def _complete(replay: dict[Place, dict[int, Run]], path: pathlib.Path, cells, data_dir: str) -> None:
    """Computes the cells one by one and writes the file after each."""
    say(f"{len(cells)} cells to compute, {sum(map(len, replay.values()))} in {path}")
    benches: dict[str, Bench] = {}
    started = time.perf_counter()
    for done, (place, split) in enumerate(cells, 1):
        if place.dataset not in benches:
            benches[place.dataset] = _load_bench(place.dataset, data_dir)
        run = _compute_run(benches[place.dataset], place, split)
        replay.setdefault(place, {})[split] = run
        write_replay(replay, path)
        left = format_duration((time.perf_counter() - started) / done * (len(cells) - done))
        accuracies = " ".join(f"{100 * accuracy:.1f}" for accuracy in run.accuracies)
        say(f"{done}/{len(cells)} {' '.join(place)} split {split}: {accuracies} ({run.cpu_s:.0f} s CPU), {left} left")


def _load_bench(dataset: str, data_dir: str) -> "Bench":
    arrays = load_arrays(dataset, DatasetOptions(data_dir=data_dir or None, har_features="inertial"))
    # One thread repeats its results bit for bit, and the models are too small for more.
    os.environ |= dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
    with quiet_tensorflow(os.devnull):
        from launch.training.published_code import EPOCHS, build_bench
    return build_bench(arrays, EPOCHS[dataset])


def _compute_run(bench: "Bench", place: Place, split: int) -> Run:
    from launch.training import published_code as procedure

    run_arm = {
        CLIENT_0: procedure.run_client_0,
        LEADERS: procedure.run_leaders,
        FL_HC: procedure.run_fl_hc,
        FEDAVG: procedure.run_fedavg,
    }
    started = time.process_time()
    results = list(run_arm[place.arm](bench, float(place.alpha), split, len(ROUNDS)))
    accuracies, losses = zip(*results, strict=True)
    return Run(accuracies, losses, time.process_time() - started)


if __name__ == "__main__":
    leave(main())
