"""TensorBoard's view of a run: every number of `metrics.csv` as a scalar, its flags as hyperparameters.

So TensorBoard's tab HParams compares the runs of a sweep, started on the folder that holds them all.

The events are made by TensorBoard itself, not by `tf.summary`: that makes ten tensors of a number, and TensorFlow keeps
every Python number that it was ever given, which grew to 3 kB a round. Imports no TensorFlow.
"""

import io
import pathlib
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from files.writing import name_in_errors
from launch.settings.resuming import CHANGEABLE_ON_RESUME

ALWAYS_SHOWN = frozenset({"rounds"})  # of what a resumed run may change, all of which else is where things lie
FORMAT = "brain.Event:2"  # by which TensorBoard knows the file


class TensorBoardLog:
    """Writes the rows of a `metrics.csv` as scalars, into a file of its own.

    What an earlier process of the run wrote is replaced: it may go on after the checkpoint from which this one resumes.
    """

    def __init__(
        self,
        path: pathlib.Path,
        columns: Sequence[str] = (),
        rows: Iterable[Sequence[str]] = (),
        flags: Mapping[str, Any] | None = None,
    ):
        """Begins the file with the rows so far, and with the run's flags if they are given; otherwise as `add`."""
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        self._path = path / f"events.out.tfevents.{time.time():.0f}"  # TensorBoard reads what is called so
        self._append([Event(wall_time=time.time(), file_version=FORMAT)])
        if flags:
            self._append([self._describe_flags(flags)])
        self.add(columns, rows)

    def _describe_flags(self, flags: Mapping[str, Any]) -> Event:
        """What the run computes as its hyperparameters, for TensorBoard's tab of that name."""
        chosen = {
            name: value for name, value in flags.items() if name in ALWAYS_SHOWN or name not in CHANGEABLE_ON_RESUME
        }
        plain = {
            name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in chosen.items()
        }
        summary = hparams_pb(plain, trial_id=str(self._path.parents[1]))
        return Event(wall_time=time.time(), step=0, summary=summary)

    def add(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Writes rows of the table.

        Args:
          columns: of the table; the first is the round.
          rows: their cells.

        Raises:
          OSError: the file cannot be written.
        """
        with np.errstate(over="ignore"):  # a scalar is a float32, and what is too large for it infinite
            self._append(
                Event(wall_time=time.time(), step=int(round_num), summary=scalar_pb(name, float(cell)))
                for round_num, *cells in rows
                for name, cell in zip(columns[1:], cells, strict=True)
                if cell
            )

    def _append(self, events: Iterable[Event]) -> None:
        content = io.BytesIO()
        writer = RecordWriter(content)
        for event in events:
            writer.write(event.SerializeToString())
        with name_in_errors(self._path), open(self._path, "ab") as file:
            file.write(content.getbuffer())
