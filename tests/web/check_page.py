"""Compares what a page answered in a browser with the report of its export: `check_page.py runs/x/export answers.json`.

The export folder has been written by `launch.export --web_page --save_test_set`, the answers by `drive_page.mjs`. For
each visit, model and format, at least 99 % of the classes must be those that the report's machine had; each that is
not is listed, with how far the logits of the two classes lie apart. Prints a table. Exit codes: 0 all is well, 1 a page
differs or misbehaves, 2 the folder cannot be checked.
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
    """Prints a row for one file in one visit; yields a line if too many classes differ."""
    classes, logits = np.array(answer["classes"]), np.array(answer["logits"])
    reported, labels = test_set[name][sample], test_set["y"][sample]
    if not (logits.argmax(axis=1) == classes).all():
        yield f"{name}: the classes are not those of the logits"
    others = np.flatnonzero(classes != reported)
    right, right_in_report = int((classes == labels).sum()), int((reported == labels).sum())
    agreeing = len(sample) - len(others)
    print(f"  {name:<48} {agreeing:>3} of {len(sample)} as in the report, {right} right (report {right_in_report})")
    for i in others:
        margin = logits[i, classes[i]] - logits[i, reported[i]]
        kind = "a tie" if margin == 0 else f"logits {margin:.3g} apart"
        print(f"    test example {sample[i]}: {classes[i]}, in the report {reported[i]}; {kind}")
    if agreeing < AGREEING * len(sample):
        yield f"{name}: {len(others)} of {len(sample)} classes are not the report's"


def check_visit(visit: Mapping[str, Any], test_set: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for everything that is wrong with one visit."""
    yield from visit["problems"]
    print(f"{visit['name']} (build {visit['build'] or 'none'})")
    for stroke in visit["strokes"]:
        print(f"  {stroke['name']}: {stroke['before']} -> {stroke['after']}")
    for training in visit["trainings"]:
        losses = training["losses"]
        print(f"  {training['name']}: loss {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps")
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
