"""A model card inside a `.tflite` file: a zip archive after the model's bytes, as TFLite Metadata has it.

A FlatBuffer is read from its start and a zip archive from its end, so runtimes see the model and unzip sees the card.
Beside it are the files that the model's own metadata name (see `standard_metadata`).
Imports no TensorFlow.
"""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from models.model_names import ModelError

CARD_NAME = "card.json"  # in the archive, and beside the exported files
MODEL_SHA256 = "model_sha256"
_IDENTIFIER = b"TFL3"  # bytes 4 to 8 of every TFLite file
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the zip format has no earlier time; a fixed one makes the same card the same bytes
_HEADER = b"PK\x03\x04"


class CardedFile(NamedTuple):
    """A file in its two parts: the model, with its metadata, and the card's bytes."""

    model: bytes
    card: bytes


def embed_card(model: bytes, card: bytes, associated: Mapping[str, bytes] | None = None) -> bytes:
    """The file that holds both: the model's bytes unchanged, and after them a zip archive with the card.

    Args:
      model: a TFLite file.
      card: the card's bytes.
      associated: further files of the archive, by their names.
    """
    file = io.BytesIO(model)
    file.seek(0, io.SEEK_END)
    # Mode "w" begins at the file's position; "a" would look for an archive in the model's last bytes.
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {CARD_NAME: card, **(associated or {})}.items():
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return file.getvalue()


def split_file(content: bytes) -> CardedFile:
    """The inverse of `embed_card`.

    Raises:
      ModelError: no TFLite file, one without a card, or a damaged one; a line for the user without the file's name.
    """
    if content[4:8] != _IDENTIFIER:
        raise ModelError("no TFLite file; expected one that launch.export has written")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            info = archive.getinfo(CARD_NAME)
            card = archive.read(info)
            # The archive begins behind the model, with the first of its files.
            start = min(each.header_offset for each in archive.infolist())
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, EOFError, ValueError, NotImplementedError, RuntimeError):
        # zipfile has no error of its own for every way in which bytes can be wrong.
        is_cut = _HEADER in content and CARD_NAME.encode() in content
        raise ModelError(
            "damaged: a part of its card is gone; copy the file again, or export again"
            if is_cut
            else "there is no card in it; files of launch.export have one, others and older ones have none"
        ) from None
    return CardedFile(content[:start], card)


def read_card(content: bytes) -> dict[str, Any]:
    """The card in a file, which is found to be that of the model in it.

    Raises:
      ModelError: as `split_file`; or the card is no JSON object, or says that it is of another model.
    """
    model, card = split_file(content)
    try:
        read = json.loads(card)
        [file] = read["files"]
        digest = file[MODEL_SHA256]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError("damaged: its card is not as launch.export writes it; export again") from None
    if digest != hashlib.sha256(model).hexdigest():
        raise ModelError("damaged: the model is not the one that its card describes; copy the file again")
    return read
