"""Compares what the page of a text model answered with the report: `check_text.py runs/x/export answers.json`.

The export folder has been written by `launch.export --web_page --save_test_set`, the answers by `drive_text.mjs`. For
each visit and format, at least 99 % of the tokens must be those that the report's machine had. Prints a table. Exit
codes: 0 all is well, 1 a page differs or misbehaves, 2 the folder cannot be checked.
"""

import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from visits import AGREEING, check_export, compare_answers


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


def check_visit(folder: pathlib.Path, visit: Mapping[str, Any], test_set: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for everything that is wrong with one visit."""
    yield from visit["problems"]
    print(f"{visit['name']} (build {visit['build'] or 'none'}): after {visit['typed']!r} comes {visit['next']}")
    for export_format, line in visit["lines"].items():
        print(f"  completed by {export_format}: {line!r}")
    yield from compare_answers(visit, test_set, compare_file)


if __name__ == "__main__":
    sys.exit(check_export(sys.argv[1:], check_visit))
