"""TensorBoard's view of a run: every number of `metrics.csv` as a scalar."""

import pathlib
import shutil

import tensorflow as tf

from launch.runs.round_table import RoundTable


class TensorBoardLog:
    """Writes the rows of a metrics table as scalars.

    What an earlier process of the run wrote is replaced: it may go on after the checkpoint from which this one resumes.
    """

    def __init__(self, path: pathlib.Path, table: RoundTable):
        shutil.rmtree(path, ignore_errors=True)
        self._writer = tf.summary.create_file_writer(str(path))
        self._table = table
        self._written = 0
        self.update()

    def update(self) -> None:
        """Writes the table's new rows."""
        with self._writer.as_default():
            for row in self._table.rows[self._written :]:
                for name, cell in zip(self._table.columns[1:], row[1:], strict=True):
                    if cell:
                        tf.summary.scalar(name, float(cell), step=int(row[0]))
        self._written = len(self._table.rows)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()
