"""A CSV file that grows at its end, so that a row costs the same however many there are. Imports no TensorFlow.

A kill or a full disk in the middle of a write leaves a last line without its end. Readers leave that line out, see
`launch.runs.tables.iterate_whole_lines`, and whoever writes next begins where the last whole line ends.
"""

import errno
import os
import pathlib
from collections.abc import Iterable, Sequence

from files.writing import name_in_errors, write_whole
from launch.runs.shown_text import encode_cell
from launch.runs.tables import format_lines


class GrowingTable:
    """The file. It has none of what was there before, until `keep` says so.

    Args:
      path: the file.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._size_bytes = 0  # of the whole lines that this object knows of

    def keep(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Begins with these rows. The file is written anew, atomically, unless it holds just them already.

        Args:
          columns: the names of the columns.
          rows: formatted cells, each row as long as `columns`.

        Raises:
          OSError: the file cannot be read or written.
        """
        content = format_lines([[encode_cell(name) for name in columns], *rows]).encode()
        if not self._is_own_file() or self.path.read_bytes() != content:
            write_whole(self.path, content)
        self._size_bytes = len(content)

    def append(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Adds rows at the end; the first ones make the file. Arguments and errors are those of `keep`."""
        if not self._size_bytes:
            self.keep(columns, rows)
            return
        content = format_lines(rows).encode()
        with name_in_errors(self.path), open(self.path, "r+b") as file:
            if file.seek(0, os.SEEK_END) < self._size_bytes:
                raise OSError(errno.EIO, "another program has cut it while the run went on", str(self.path))
            file.truncate(self._size_bytes)  # what a write left that failed half-way
            file.seek(self._size_bytes)
            file.write(content)
        self._size_bytes += len(content)

    def _is_own_file(self) -> bool:
        """Whether a write changes no other file, as it would by a link, or where a folder was copied by hard links."""
        return self.path.is_file() and not self.path.is_symlink() and self.path.stat().st_nlink == 1
