"""What the checks of an export's pages share: what a browser saw, beside what the export has written."""

import json
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Visit, Arrays = Mapping[str, Any], Mapping[str, np.ndarray]
AGREEING = 0.99  # share of the answers that must be those of the report's machine


def compare_answers(
    visit: Visit, test_set: Arrays, compare_file: Callable[[str, Mapping[str, Any], np.ndarray, Arrays], Iterator[str]]
) -> Iterator[str]:
    """A line for everything that is wrong with the answers of a visit; each file's are compared by `compare_file`."""
    sample = np.array(visit["sample"]["indices"])
    if test_set["y"][sample].tolist() != visit["sample"]["labels"]:
        yield "the labels of the examples are not those of the test set"
    if not visit["answers"]:
        yield "it answered nothing"
    for model, files in visit["answers"].items():
        for export_format, answer in files.items():
            yield from compare_file(f"{model}.{export_format}.tflite", answer, sample, test_set)


def check_export(arguments: list[str], check_visit: Callable[[pathlib.Path, Visit, Arrays], Iterator[str]]) -> int:
    """Checks each visit of a page whose folder and file of answers the arguments name, and returns the exit code."""
    if len(arguments) != 2:
        print("error: expected an export folder and a file of answers", file=sys.stderr)
        return 2
    folder, answers_path = map(pathlib.Path, arguments)
    try:
        answers = json.loads(answers_path.read_text(encoding="utf-8"))
        with np.load(folder / "test_set.npz") as arrays:
            test_set = dict(arrays)
        print(f"{folder / 'page.html'}: {answers['size']:,} bytes")
        problems = [
            f"{visit['name']}: {line}" for visit in answers["visits"] for line in check_visit(folder, visit, test_set)
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"error: {folder}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for line in problems:
        print(f"WRONG {line}", file=sys.stderr)
    return 1 if problems else 0
