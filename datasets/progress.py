"""A bar for work on files that may take long."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
_SHOWN_AFTER_S = 5.0


def show_progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a bar on the terminal from the fifth second on; without a terminal there is none.

    Args:
      items: what is worked on, one by one.
      what: they are, before the bar.
      total: how many there are; None if they say so themselves, or nobody knows.
    """
    return iter(tqdm(items, what, total, leave=False, file=sys.stderr, disable=None, delay=_SHOWN_AFTER_S))
