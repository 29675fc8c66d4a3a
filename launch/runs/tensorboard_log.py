"""TensorBoard's view of a run: every number of `metrics.csv` as a scalar, its flags as hyperparameters.

So TensorBoard's tab HParams compares the runs of a sweep, started on the folder that holds them all.
"""

import contextlib
import errno
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from launch.runs.round_table import RoundTable
from launch.settings.resuming import CHANGEABLE_ON_RESUME

ALWAYS_SHOWN = frozenset({"rounds"})  # of what a resumed run may change, all of which else is where things lie


class TensorBoardLog:
    """Writes the rows of a metrics table as scalars.

    What an earlier process of the run wrote is replaced: it may go on after the checkpoint from which this one resumes.
    """

    def __init__(self, path: pathlib.Path, table: RoundTable, flags: Mapping[str, Any] | None = None):
        """Begins the file, with the run's flags if they are given. Raises OSError if that cannot be done."""
        shutil.rmtree(path, ignore_errors=True)
        self._path = path
        with _as_os_errors(path):
            self._writer = tf.summary.create_file_writer(str(path))
        self._table = table
        self._written = 0
        if flags:
            self._write_flags(flags)
        self.update()

    def _write_flags(self, flags: Mapping[str, Any]) -> None:
        """Writes what the run computes as its hyperparameters, for TensorBoard's tab of that name."""
        from tensorboard.plugins.hparams import api

        chosen = {
            name: value for name, value in flags.items() if name in ALWAYS_SHOWN or name not in CHANGEABLE_ON_RESUME
        }
        plain = {
            name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in chosen.items()
        }
        with _as_os_errors(self._path), self._writer.as_default():
            api.hparams(plain, trial_id=str(self._path.parent))

    def update(self) -> None:
        """Writes the table's new rows. Raises OSError if that cannot be done."""
        with _as_os_errors(self._path), self._writer.as_default():
            for row in self._table.rows[self._written :]:
                for name, cell in zip(self._table.columns[1:], row[1:], strict=True):
                    if cell:
                        tf.summary.scalar(name, float(cell), step=int(row[0]))
            self._written = len(self._table.rows)
            self._writer.flush()

    def close(self) -> None:
        """Ends the file. Raises OSError if that cannot be done."""
        with _as_os_errors(self._path):
            self._writer.close()


@contextlib.contextmanager
def _as_os_errors(path: pathlib.Path) -> Iterator[None]:
    """Turns TensorFlow's errors of a full disk or a folder that cannot be written into OSError, which names `path`."""
    try:
        yield
    except tf.errors.OpError as error:
        number = errno.ENOSPC if isinstance(error, tf.errors.ResourceExhaustedError) else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error
