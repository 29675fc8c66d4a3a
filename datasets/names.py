"""Names that users give: of classes, of clients, of kinds of devices."""

import re
from collections.abc import Iterable, Sequence

from datasets.errors import DatasetError

# Characters that are no part of a name: they end a line (a class a line, a client a row), or steer a terminal. Half a
# surrogate pair is no character at all and cannot be written as UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def name_some(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def check_names(where: str, kind: str, names: Iterable[str]) -> None:
    """Raises DatasetError if a name holds a line break or another control character.

    Args:
      where: what holds the names, at the start of the error.
      kind: what is called so, such as "class".
      names: any texts; `""` is one.
    """
    for name in names:
        found = _CONTROL.search(str(name))
        if found:
            raise DatasetError(
                f"{where}: the {kind} {ascii(name)[:80]} holds the control character {ascii(found[0])[1:-1]}; "
                "expected names of one line of text; take it out"
            )
