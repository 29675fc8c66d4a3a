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
_KEPT = "[a-z0-9_.-]"
_PIECE = re.compile(rf"{_KEPT}|\+[a-z]|~[0-9a-f]{{2}}")


def encode_name(name: str) -> str:
    """The file's name for any string, as above."""
    text = "".join(map(_encode_byte, name.encode("utf-8", "surrogatepass"))) or _EMPTY
    if text[0] in ".-":
        text = _encode_plainly(text[0]) + text[1:]
    if text[-1] == ".":
        text = text[:-1] + _encode_plainly(".")
    return text if len(text) <= LONGEST else _cut(name, text)


def _encode_byte(byte: int) -> str:
    letter = chr(byte)
    if re.fullmatch(_KEPT, letter):
        return letter
    return f"+{letter.lower()}" if "A" <= letter <= "Z" else _encode_plainly(letter)


def _encode_plainly(letter: str) -> str:
    return f"~{ord(letter):02x}"


def _cut(name: str, text: str) -> str:
    most = LONGEST - len(_CUT) - _DIGEST_LENGTH
    kept = ""
    for piece in _PIECE.findall(text):  # no piece is cut in two
        if len(kept) + len(piece) > most:
            break
        kept += piece
    return f"{kept}{_CUT}{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST_LENGTH]}"


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
        name = b"".join(map(_decode_piece, _PIECE.findall(file_name))).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return file_name
    return name if encode_name(name) == file_name else file_name


def _decode_piece(piece: str) -> bytes:
    if piece[0] == "~":
        return bytes.fromhex(piece[1:])
    return piece.removeprefix("+").upper().encode() if piece[0] == "+" else piece.encode()
