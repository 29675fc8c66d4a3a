"""Which files of an export folder an earlier export has written, so that a later one takes their place.

A report is of one export, so files that it does not know would contradict it: cards and latencies of another time, a
page of other formats. What a person has put there stays, also a copy of a file under a name of their own. Imports no
TensorFlow.
"""

import json
import os
import pathlib
import re
from collections.abc import Collection

from files.reading import read_regular
from launch.runs.columns import (
    LABELS_FILE,
    MAX_JSON,
    REPORT_CLIENTS,
    REPORT_PAGE,
    REPORT_TABLE,
    REPORT_TEACHERS,
    TEST_SET_FILE,
    WEB_PAGE,
)
from launch.runs.file_names import encode_name
from launch.tflite.embedded_card import CARD_NAME
from launch.tflite.model_card import CARD_PAGE
from models.model_names import EXPORT_FORMATS

OF_ALL = frozenset(
    (
        *(CARD_NAME, CARD_PAGE, LABELS_FILE, TEST_SET_FILE, WEB_PAGE),
        *(REPORT_PAGE, REPORT_TABLE, REPORT_CLIENTS, REPORT_TEACHERS),
    )
)
_OF_ONE = re.compile(
    rf"(?P<model>.+)\.(?P<format>{'|'.join((*EXPORT_FORMATS, 'training'))})"
    r"\.(?:tflite|json|confusions\.png|layers\.csv)"
)


def find_former_files(folder: pathlib.Path, models: Collection[str]) -> list[str]:
    """The names of the files, and links, of an export folder that earlier exports have written, in order.

    Those of all files together are known by their names, those of one file if it is of one of the models, or if the
    former card names it: a run that went on may have other models since. Folders are none.

    Args:
      folder: of the export; it need not exist.
      models: the names of the run's models and clients.
    """
    listed, stems = _read_listed(folder / CARD_NAME), set(map(encode_name, models))

    def is_ours(name: str) -> bool:
        found = _OF_ONE.fullmatch(name)
        is_known = found and (found["model"] in stems or f"{found['model']}.{found['format']}.tflite" in listed)
        return name in OF_ALL or bool(is_known)

    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(
            entry.name for entry in entries if is_ours(entry.name) and not entry.is_dir(follow_symlinks=False)
        )


def _read_listed(card: pathlib.Path) -> set[str]:
    """The files that a card names; none if it is not there or damaged."""
    try:
        return {file["file"] for file in json.loads(read_regular(card, MAX_JSON))["files"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
