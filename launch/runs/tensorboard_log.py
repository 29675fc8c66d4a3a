"""TensorBoard's view of a run: every number of `metrics.csv` as a scalar."""

import contextlib
import errno
import os
import pathlib
import shutil
from collections.abc import Iterator

import tensorflow as tf

from launch.runs.round_table import RoundTable


class TensorBoardLog:
    """Writes the rows of a metrics table as scalars.

    What an earlier process of the run wrote is replaced: it may go on after the checkpoint from which this one resumes.
    """

    def __init__(self, path: pathlib.Path, table: RoundTable):
        shutil.rmtree(path, ignore_errors=True)
        self._path = path
        with _as_os_errors(path):
            self._writer = tf.summary.create_file_writer(str(path))
        self._table = table
        self._written = 0
        self.update()

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
