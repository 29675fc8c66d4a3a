"""Seeds as commands take them: whole numbers and ranges of them, with commas between."""

import re
from collections.abc import Iterable

from launch.settings.errors import FlagError

MOST = 10**4  # runs of a range: more are a slip of the hand
EXPECTED = "expected whole numbers with commas between them, or ranges, as 0,1,2 or 0-4"


def read_seeds(texts: Iterable[str], flag: str, may_be_none: bool = False) -> tuple[str, ...]:
    """The seeds, each once, in the order given; "0-4" means 0, 1, 2, 3 and 4.

    Args:
      texts: what stands between the commas.
      flag: where it was given, without dashes.
      may_be_none: whether there need not be any.

    Raises:
      FlagError: a text is neither a number nor a range, or a range ends before it begins or is far too long; or
        there is none.
    """
    texts = [text.strip() for text in texts]
    if not texts and not may_be_none:
        raise FlagError(f"--{flag} is empty: {EXPECTED}")
    seeds: list[int] = []
    for text in texts:
        match = re.fullmatch("([0-9]{1,12})(?:-([0-9]{1,12}))?", text)
        if match is None:
            raise FlagError(f"--{flag}={','.join(texts)}: {EXPECTED}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise FlagError(f"--{flag}={','.join(texts)}: {text} ends before it begins; did you mean {last}-{first}?")
        if last - first >= MOST:
            count = f"{last - first + 1:,} seeds"
            raise FlagError(f"--{flag}={','.join(texts)}: {text} are {count}; expected at most {MOST:,}")
        seeds += range(first, last + 1)
    return tuple(map(str, dict.fromkeys(seeds)))
