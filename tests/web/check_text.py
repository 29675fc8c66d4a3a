"""Compares what the page of a text model answered with the report: `check_text.py runs/x/export answers.json`.

The export folder has been written by `launch.export --web_page --save_test_set`, the answers by `drive_text.mjs`. For
each visit and format, at least 99 % of the tokens must be those that the report's machine had. Prints a table. Exit
codes: 0 all is well, 1 a page differs or misbehaves, 2 the folder cannot be checked.
"""

import json
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

AGREEING = 0.99


def compare_file(
    name: str, answer: Mapping[str, Any], sample: np.ndarray, test_set: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Prints a row for one file in one visit; yields a line if too many tokens differ."""
    tokens, labels = np.array(answer["tokens"]), test_set["y"][sample]
    counted = labels > 0  # the rest is padding
    agreeing = int((tokens == test_set[name][sample])[counted].sum())
    correct, number = int((tokens == labels)[counted].sum()), int(counted.sum())
    print(f"  {name:<32} {agreeing} of {number} tokens as in the report, {correct} right")
    if (answer["total"], answer["correct"], answer["agreeing"]) != (number, correct, agreeing):
        yield f"{name}: the page counts {answer['correct']} right of {answer['total']}"
    if agreeing < AGREEING * number:
        yield f"{name}: {number - agreeing} of {number} tokens are not the report's"


def check_visit(visit: Mapping[str, Any], test_set: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for everything that is wrong with one visit."""
    yield from visit["problems"]
    print(f"{visit['name']} (build {visit['build'] or 'none'}): after {visit['typed']!r} comes {visit['next']}")
    for export_format, line in visit["lines"].items():
        print(f"  completed by {export_format}: {line!r}")
    sample = np.array(visit["sample"]["indices"])
    if test_set["y"][sample].tolist() != visit["sample"]["labels"]:
        yield "the labels of the examples are not those of the test set"
    if not visit["answers"]:
        yield "it answered nothing"
    for model, files in visit["answers"].items():
        for export_format, answer in files.items():
            yield from compare_file(f"{model}.{export_format}.tflite", answer, sample, test_set)


def main(arguments: list[str]) -> int:
    """Checks the answers that the arguments name and returns the exit code."""
    if len(arguments) != 2:
        print("error: expected an export folder and a file of answers", file=sys.stderr)
        return 2
    folder, answers_path = map(pathlib.Path, arguments)
    try:
        answers = json.loads(answers_path.read_text(encoding="utf-8"))
        with np.load(folder / "test_set.npz") as arrays:
            test_set = dict(arrays)
        print(f"{folder / 'page.html'}: {answers['size']:,} bytes")
        problems = [f"{visit['name']}: {line}" for visit in answers["visits"] for line in check_visit(visit, test_set)]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"error: {folder}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for line in problems:
        print(f"WRONG {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
