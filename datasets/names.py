"""Names that users give, of classes, clients, kinds of devices; and those that are alike but for how they are spelled.

People mean one thing by cat and Cat, `>50K` and `>50K.`, 7 and 007; a table, a folder or an array has several. Nothing
here changes data by itself.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from datasets.errors import DatasetError

# Characters that are no part of a name: they end a line (a class a line, a client a row), or steer a terminal. Half a
# surrogate pair is no character at all and cannot be written as UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def sort_key(name: str) -> tuple[int, int, str]:
    """Orders names: those that are whole numbers by these, the others after them by their text."""
    is_number = name.isascii() and name.isdigit() and len(name) < 19
    return (0, int(name), name) if is_number else (1, 0, name)


def name_some(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


MOST_LETTERS = 60  # of a value, in errors


def shorten(text: str) -> str:
    """A text for an error: of a longer one its beginning and three dots."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


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


# Comparing more names takes longer than reading the data.
MOST_COMPARED = 100_000
MOST_SHOWN = 5  # groups in a line
JOIN_FIX = "spell each in one way, or, in a table, give --join_spellings"
# So many classes of one letter are an alphabet, in which a and A differ.
_MANY_LETTERS = 20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_ENDS = " .,;:'\"`"  # that say nothing at the ends of a name
_TRUTH = {
    **dict.fromkeys(("y", "yes", "t", "true", "1", "on"), "yes"),
    **dict.fromkeys(("n", "no", "f", "false", "0", "off"), "no"),
}


def fold_spelling(name: str) -> str:
    """What is left of a name without what people spell differently; alike names have the same.

    Without forms of Unicode (composed, full width, blanks of other widths, characters that are not seen), case, blanks
    and quotes around, full stops at the end, what parts words, and zeros in front of numbers. Signs stay: A-, C++ and
    -1 are none of A, C and 1.
    """
    text = name.lower()
    # Nearly all names are plain ASCII, and there may be many: the slow way is for the others.
    if not (name.isascii() and name.isprintable()):
        text = unicodedata.normalize("NFKC", name)
        text = unicodedata.normalize("NFKC", text.casefold())
        text = "".join(letter for letter in text if unicodedata.category(letter) not in ("Cf", "Cc"))
    text = " ".join(text.split()).strip(_ENDS) or text
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        return "0" if not number else f"{number.normalize():f}"
    text = re.sub(r"(?<=[^\W\d_])[\s_-]+(?=[^\W_])|(?<=\d)[\s_-]+(?=[^\W\d_])", "", text)
    # 1-1 is not 11.
    text = re.sub(r"(?<=\d)[\s_-]+(?=\d)", "-", text)
    text = re.sub(r"\s*([<>=+/&|])\s*", r"\1", text)
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", text)


def find_alike(names: Sequence[str], counts: Mapping[str, int] | None = None) -> list[tuple[str, ...]]:
    """Groups of names that are one thing, each with the one that stays first: the most frequent, of several the first.

    Words for yes and no, such as T, Y, 1 and true, are alike where all names are such words.

    Args:
      names: different ones, in any order.
      counts: how often each stands in the data; None for no difference.
    """
    if len(names) > MOST_COMPARED:
        return []
    truths = [_TRUTH.get(name.strip().casefold()) for name in names]
    is_truth = len(names) > 2 and set(truths) == {"yes", "no"}
    letters = sum(len(name) == 1 and name.isalpha() for name in names)
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=sort_key):
        if is_truth:
            key = _TRUTH[name.strip().casefold()]
        else:
            key = name if letters > _MANY_LETTERS and len(name) == 1 else fold_spelling(name)
        groups.setdefault(key, []).append(name)
    found = [group for group in groups.values() if len(group) > 1]
    return [tuple(sorted(group, key=lambda name: -(counts or {}).get(name, 0))) for group in found]


def find_joined(names: Sequence[str], counts: Mapping[str, int]) -> dict[str, str]:
    """Each name that is to be joined with another, and the one whose spelling stays; see `find_alike`."""
    return {name: group[0] for group in find_alike(names, counts) for name in group[1:]}


def note_alike(kind: str, names: Sequence[str], counts: Mapping[str, int], noun: str = "examples") -> tuple[str, ...]:
    """A line if several names seem to be one thing.

    Args:
      kind: what they are names of, in the plural, such as "classes".
      names: of all.
      counts: see `find_alike`.
      noun: what is counted.
    """
    groups = find_alike(names, counts)
    if not groups:
        return ()
    shown = [" = ".join(f"{name!r} ({counts.get(name, 0):,})" for name in group) for group in groups]
    left = len(names) - sum(len(group) - 1 for group in groups)
    return (
        f"{kind} that are spelled in several ways, with their {noun}: {name_some(shown, MOST_SHOWN)}; {len(names):,} "
        f"{kind} would be {left:,}; {JOIN_FIX}",
    )


def describe_joined(what: str, joined: Mapping[str, str]) -> str:
    """Which spellings were joined, in words; "" for none."""
    if not joined:
        return ""
    shown = [f"{name!r} as {keeper!r}" for name, keeper in joined.items()]
    return f"spellings of {what} joined: {name_some(shown, MOST_SHOWN)}"
