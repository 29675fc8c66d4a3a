"""TensorBoard: every run writes its event files itself; here those that are missing are made from `metrics.csv`."""

import pathlib

from launch.runs.columns import METRICS_FILE, TENSORBOARD
from launch.runs.round_table import RoundTable
from launch.trackers.run_contents import State, find_state, read_rounds_after


def write_missing_event_files(run_dir: pathlib.Path) -> bool:
    """Writes the event files of a run that has none, as one that was copied without; returns whether it did.

    Raises:
      FlagError: `metrics.csv` is damaged.
      RunFolderError: it lacks a round.
      OSError: the folder cannot be written.
    """
    folder = run_dir / TENSORBOARD
    if find_state(run_dir) is State.GOING_ON or any(folder.glob("events.out.*")):
        return False
    rounds = read_rounds_after(run_dir, 0)
    if not rounds:
        return False
    from launch.runs.tensorboard_log import TensorBoardLog

    TensorBoardLog(folder, RoundTable(run_dir / METRICS_FILE, rounds[-1].number)).close()
    return True
