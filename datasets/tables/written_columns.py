"""All values of a column that may hold numbers written for people, counted by the ways in which they are written."""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datasets.tables.cells import Cells
from datasets.tables.table import Piece, Place
from datasets.tables.written_numbers import COMMA, EITHER, EXCEL_ERRORS, OPEN, POINT, is_odd, read_written

MOST_KINDS = 1000  # of a column; what has more is text
MANY = 20  # different numbers, beside which a bound or a range is no category
WORD, ODD, ERROR = "word", "odd", "error"  # dresses of what is no number


class Kind(NamedTuple):
    """A way in which values are written, see `written_numbers.Written`.

    `read_with` is the decimal mark with which they were read already, `EITHER` if that does not matter; "" if they were
    not.
    """

    dress: str
    mark: str = EITHER
    is_code: bool = False
    is_whole: bool = True
    read_with: str = ""
    is_zero: bool = False


@dataclasses.dataclass
class Found:
    """The first value of a kind, and how many there are."""

    text: str
    place: Place
    count: int = 0


class WrittenColumn:
    """All values of a column, by the ways in which they are written.

    Attributes:
      missing_words: what stands for no value, in small letters.
      kinds: the ways that there are.
      different: the different numbers, as long as they are few.
    """

    def __init__(self, missing_words: frozenset[str]):
        self.missing_words = missing_words
        self.kinds: dict[Kind, Found] = {}
        self.different: set[float] = set()

    def add(self, cells: Cells, piece: Piece) -> None:
        """Looks at the next values; `piece` is what they are of."""
        if len(self.kinds) > MOST_KINDS:
            return
        codes, texts = cells.list_texts()
        is_used = ~cells.is_missing
        numbers = np.full(len(texts), np.nan)
        numbers[codes] = cells.numbers
        kinds: dict[Kind, int] = {}
        of_text = np.full(len(texts), -1)
        for code in np.unique(codes[is_used]):
            text = texts[code]
            if text.strip().lower() not in self.missing_words:
                of_text[code] = kinds.setdefault(self._tell(text, numbers[code]), len(kinds))
        of_row = np.where(is_used, of_text[codes], -1)
        counts = np.bincount(of_row[of_row >= 0], minlength=len(kinds))
        for kind, place in kinds.items():
            if kind not in self.kinds:
                row = int(np.argmax(of_row == place))
                self.kinds[kind] = Found(texts[codes[row]].strip()[:60], piece.locate(row))
            self.kinds[kind].count += int(counts[place])

    def _tell(self, text: str, number: float) -> Kind:
        found = read_written(text)
        if found is None:
            is_error = text.strip().lower() in EXCEL_ERRORS
            return Kind(ERROR if is_error else ODD if is_odd(text) else WORD)
        if len(self.different) <= MANY:
            self.different.add(found.comma if math.isnan(found.point) else found.point)
        read_with = "" if math.isnan(number) else found.mark
        if read_with == OPEN:
            read_with = POINT if number == found.point else COMMA
        is_zero = 0 in (found.point, found.comma)
        return Kind(found.dress, found.mark, found.is_code, found.is_whole, read_with, is_zero)

    def count(self, is_it: Callable[[Kind], bool] = lambda kind: True) -> int:
        """Values of these kinds."""
        return sum(found.count for kind, found in self.kinds.items() if is_it(kind))

    def find(self, is_it: Callable[[Kind], bool]) -> Found | None:
        """The first value of the most frequent of these kinds; None if there is none."""
        found = [found for kind, found in self.kinds.items() if is_it(kind)]
        return max(found, key=lambda each: each.count) if found else None


def is_number(kind: Kind) -> bool:
    """Whether values of a kind are numbers."""
    return kind.dress not in (WORD, ODD, ERROR)
