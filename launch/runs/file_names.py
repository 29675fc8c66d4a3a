"""The name of a file for a string that a user chose: of a client, a model, a data set, a file; and back again.

Such a string may hold anything: "ward 1/2", "../../outside", an emoji, 300 letters. The file's name for it is
reversible and short, has nothing that a path, a shell, a line of a record or a file system takes for something else,
and differs from those of all other strings, also where a file system ignores case:

  a-z 0-9 _ - .      stay as they are, as in `global` and `cluster_0`; not - and . at the start, nor . at the end
  A-Z                become + and the small letter: "Ward" is +ward
  other bytes        of its UTF-8 become ~ and two hexadecimal digits: "a/b" is a~2fb
  ""                 becomes ~
  what gets longer   than 100 bytes keeps its start, and ends in ~~ and a digest of the whole string

Imports no TensorFlow.
"""

import hashlib
import re
from collections.abc import Iterable

LONGEST = 100  # bytes; a file's own suffixes come behind it, and file systems take 143 to 255
_EMPTY, _CUT = "~", "~~"
_DIGEST_LENGTH = 32
_SPELLED = re.compile("[^a-z0-9_.-]")
_AT_AN_END = re.compile(r"^[.-]|\.\Z")  # which hides a file, begins a flag, or gets lost on Windows
_SPELLING = re.compile(r"\+([a-z])|~([0-9a-f]{2})|~")
_WHOLE_PIECES = re.compile(r"([a-z0-9_.-]|\+[a-z]|~[0-9a-f]{2})*")


def encode_name(name: str) -> str:
    """The file's name for any string, as above."""
    # Latin-1 has a letter for each byte, so that the bytes can be searched as text.
    letters = name.encode("utf-8", "surrogatepass").decode("latin-1")
    text = _AT_AN_END.sub(_spell, _SPELLED.sub(_spell, letters)) or _EMPTY
    if len(text) <= LONGEST:
        return text
    start = _WHOLE_PIECES.match(text[: LONGEST - len(_CUT) - _DIGEST_LENGTH])
    return f"{start[0]}{_CUT}{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST_LENGTH]}"


def _spell(match: re.Match) -> str:
    letter = match[0]
    return f"+{letter.lower()}" if "A" <= letter <= "Z" else f"~{ord(letter):02x}"


def decode_names(file_names: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """The strings that `encode_name` made these names of files of.

    A file of an earlier version may be called as its string was; such a name is its own string.

    Args:
      file_names: without suffixes.
      known: strings that may be meant; of names that were cut, only these can tell.
    """
    encoded = {encode_name(name): name for name in known}
    return [encoded[name] if name in encoded else _decode(name) for name in file_names]


def _decode(file_name: str) -> str:
    try:
        name = _SPELLING.sub(_read_spelling, file_name).encode("latin-1").decode("utf-8", "surrogatepass")
    except UnicodeError:
        return file_name
    return name if encode_name(name) == file_name else file_name


def _read_spelling(match: re.Match) -> str:
    if match[2]:
        return chr(int(match[2], 16))
    return match[1].upper() if match[1] else ""
