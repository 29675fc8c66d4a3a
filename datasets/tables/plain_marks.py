"""Whether the marks in a column of plain numbers begin decimals: that of 1.5 does, that of 1.230 may part thousands."""

import dataclasses
import re
import typing

from datasets.tables.cells import Cells

if typing.TYPE_CHECKING:
    import pyarrow

_NUM_QUICK = 1000  # texts that are looked at before the others


@dataclasses.dataclass
class PlainMarks:
    """What the marks of a column can mean, as far as it was looked at.

    Attributes:
      mark: which they are, "." or ",".
      is_sure: whether some mark surely begins decimals; then nothing more is looked at.
      sample: the first number with a mark; "" if there is none.
      has_none: whether some number has none.
      ends_in_zero: whether some number ends in a zero behind its mark.
    """

    mark: str
    is_sure: bool = False
    sample: str = ""
    has_none: bool = False
    ends_in_zero: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the marks may stand between groups of three digits."""
        return bool(self.sample) and not self.is_sure

    @property
    def is_strange(self) -> bool:
        """Whether no program writes decimals so: 1.230 beside 900, which would be 900.000, or the other 1.23."""
        return self.is_open and self.has_none and self.ends_in_zero

    def add(self, cells: Cells) -> None:
        """Looks at the next values, of a column of the form "text"."""
        if self.is_sure:
            return
        import pyarrow

        texts = cells.values.dictionary if isinstance(cells.values, pyarrow.DictionaryArray) else cells.values
        if self.mark.encode() not in bytes(texts.buffers()[2] or b""):  # of whole numbers, in no time
            self.has_none = True
            return
        self._look(texts.slice(0, _NUM_QUICK))
        if not self.is_sure and len(texts) > _NUM_QUICK:
            self._look(texts)

    def _look(self, texts: "pyarrow.Array") -> None:
        import pyarrow.compute

        marked = texts.filter(pyarrow.compute.match_substring(texts, self.mark))
        self.has_none |= len(marked) < len(texts) - texts.null_count
        if len(marked):
            grouped = rf"^\s*[+-]?[1-9]\d{{0,2}}{re.escape(self.mark)}\d{{3}}\s*$"
            self.is_sure = not pyarrow.compute.all(pyarrow.compute.match_substring_regex(marked, grouped)).as_py()
            self.sample = self.sample or marked[0].as_py().strip()
            self.ends_in_zero |= pyarrow.compute.any(pyarrow.compute.match_substring_regex(marked, r"0\s*$")).as_py()
