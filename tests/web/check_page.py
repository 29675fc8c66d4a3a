"""Compares what a page answered in a browser with the report of its export: `check_page.py runs/x/export answers.json`.

The export folder has been written by `launch.export --web_page --save_test_set`, the answers by `drive_page.mjs`. For
each visit, model and format, at least 99 % of the classes must be those that the report's machine had; each that is
not is listed, with how far the logits of the two classes lie apart. What training files did in the page, TensorFlow's
interpreter does again with the same examples: the losses must agree. Prints a table. Exit codes: 0 all is well, 1 a
page differs or misbehaves, 2 the folder cannot be checked.
"""

import json
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from visits import AGREEING, check_export, compare_answers

NEAR = 0.01  # of the range of a model's numbers
TRAINING_TOLERANCE = 1e-3  # of a loss, after ten steps on another processor


def compare_file(
    name: str, answer: Mapping[str, Any], sample: np.ndarray, test_set: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Prints a row for one file in one visit; yields a line if too many classes differ."""
    if "classes" not in answer:
        yield from compare_numbers(name, np.array(answer["logits"]), test_set[name][sample])
        return
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


def compare_numbers(name: str, numbers: np.ndarray, reported: np.ndarray) -> Iterator[str]:
    """The same of a model whose outputs are numbers, which may differ by a hundredth of their range."""
    reported = reported.reshape(numbers.shape)
    furthest = np.abs(numbers - reported).max(axis=1)
    share = float(np.mean(furthest <= NEAR * np.ptp(reported)))
    print(f"  {name:<48} {share:.0%} as in the report, at most {furthest.max():.3g} from it")
    if share < AGREEING:
        yield f"{name}: {1 - share:.0%} of the numbers are not the report's"


def check_training(
    folder: pathlib.Path, training: Mapping[str, Any], sample: np.ndarray, test_set: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Prints a row for one training file in one visit; yields a line if its losses are not those of TensorFlow.

    Those of a file with dropout, whose masks are drawn anew, are not compared.
    """
    import tensorflow as tf  # here, since only pages with training files need it

    from models.tflite_export import list_operators

    name, losses = training["name"], training["losses"]
    description = json.loads((folder / name).with_suffix(".json").read_text(encoding="utf-8"))
    scale, offset = (np.float32(description["preprocessing"][key]) for key in ("scale", "offset"))
    chosen = sample[training["chosen"]]
    x = test_set["x"][chosen].astype(np.float32) * scale + offset
    batch = {"x": x, "y": test_set["y"][chosen].astype(np.int32), "learning_rate": np.float32(training["rate"])}
    content = (folder / name).read_bytes()
    interpreter = tf.lite.Interpreter(model_content=content)
    train, get_weights, set_weights = map(interpreter.get_signature_runner, ("train", "get_weights", "set_weights"))
    steps = len(losses) // 2
    expected = [float(train(**batch)["loss"]) for _ in range(steps)]
    set_weights(**get_weights(unused=np.int32(0)))  # the next round
    expected += [float(train(**batch)["loss"]) for _ in range(steps)]
    furthest = float(np.max(np.abs(np.array(losses) - expected)))
    optimizer = description["local_training"]["optimizer"]
    print(f"  {name}: {optimizer}, loss {losses[0]:.4f} to {losses[-1]:.4f}, at most {furthest:.2g} from TensorFlow's")
    is_drawn = any("RANDOM" in operator.upper() for operator in list_operators(content))
    if not is_drawn and not np.allclose(losses, expected, rtol=TRAINING_TOLERANCE, atol=TRAINING_TOLERANCE):
        yield f"{name}: losses {losses}, by TensorFlow's interpreter {expected}"


def check_visit(folder: pathlib.Path, visit: Mapping[str, Any], test_set: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for everything that is wrong with one visit."""
    yield from visit["problems"]
    print(f"{visit['name']} (build {visit['build'] or 'none'})")
    for stroke in visit["strokes"]:
        print(f"  {stroke['name']}: {stroke['before']} -> {stroke['after']}")
    sample = np.array(visit["sample"]["indices"])
    for training in visit["trainings"]:
        yield from check_training(folder, training, sample, test_set)
    yield from compare_answers(visit, test_set, compare_file)


if __name__ == "__main__":
    sys.exit(check_export(sys.argv[1:], check_visit))
