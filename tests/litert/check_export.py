"""Runs the exported files of a folder with LiteRT and compares with the report: `check_export.py runs/x/export`.

Needs NumPy and ai-edge-litert only, and knows of a file what its JSON says, as a phone does. The folder is one that
`launch.export --save_test_set` has written. Every file of `report.csv` is run on the whole test set.

Every file for on-device training takes `NUM_STEPS` steps on the first batch of the test set: the loss must fall, and
the weights, taken out and put in again after more steps, must give the same logits as before. A file that needs the
select operators of TensorFlow is named and left out, since this runtime lacks them.

LiteRT's kernels are newer than TensorFlow's and may round otherwise, so predictions may differ for at most
`TOLERANCE` of the examples, or one, and the accuracy by as much. Prints a line a file, and one for each difference.
Exit codes: 0 all agree, 1 there is a difference, 2 the folder cannot be checked.
"""

import csv
import hashlib
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

TOLERANCE = 0.005
NUM_STEPS = 10
LEARNING_RATE = 0.05  # where the run has none
NEEDED = ("report.csv", "test_set.npz")


def preprocess(x: np.ndarray, description: Mapping[str, Any]) -> np.ndarray:
    """Examples as stored, (n, ...), to model inputs in the dtype of the file's input."""
    preprocessing, form = description["preprocessing"], description["input"]
    values = x.astype(np.float32) * np.float32(preprocessing["scale"]) + np.float32(preprocessing["offset"])
    if form["dtype"] == "float32":
        return values
    stored = np.rint(values / np.float32(form["scale"])) + form["zero_point"]
    limits = np.iinfo(form["dtype"])
    return np.clip(stored, limits.min, limits.max).astype(form["dtype"])


def run_inference(content: bytes, inputs: np.ndarray) -> np.ndarray:
    """The outputs of a file for model inputs, (n, ...), one by one, in the dtype of its output."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    [taken], [given] = interpreter.get_input_details(), interpreter.get_output_details()
    outputs = []
    for example in inputs:
        interpreter.set_tensor(taken["index"], example[None])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(given["index"])[0])
    return np.stack(outputs)


def find_differences(folder: pathlib.Path, row: Mapping[str, str], test_set: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for everything in which a file is not as the report says."""
    name = row["file"]
    content = (folder / name).read_bytes()
    description = json.loads((folder / name).with_suffix(".json").read_text(encoding="utf-8"))
    if hashlib.sha256(content).hexdigest() != description["sha256"]:
        yield "its sha256 is not that of its JSON"
    if len(content) != int(row["size_bytes"]):
        yield f"{len(content)} bytes, in the report {row['size_bytes']}"
    inputs = preprocess(test_set["x"], description)
    if [1, *inputs.shape[1:]] != description["input"]["shape"]:
        yield f"the examples have shape {inputs.shape[1:]}, its input {description['input']['shape']}"
        return
    classes = run_inference(content, inputs).argmax(-1)  # outputs in int8 have the order of the logits
    reported, labels = test_set[name], test_set["y"]
    accuracy, reported_accuracy = float(np.mean(classes == labels)), float(row["test_accuracy"])
    num_other, allowed = int(np.sum(classes != reported)), max(1, int(TOLERANCE * len(labels)))
    print(f"{name}: accuracy {accuracy:.4f}, in the report {reported_accuracy:.4f}; {num_other} other predictions")
    if num_other > allowed:
        yield f"{num_other} of {len(labels)} predictions differ, at most {allowed} may"
    if abs(accuracy - reported_accuracy) > allowed / len(labels) + 1e-6:
        yield f"accuracy {accuracy:.4f}, in the report {reported_accuracy:.4f}"


def find_training_faults(
    content: bytes, description: Mapping[str, Any], test_set: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """A line for everything that a file for on-device training does not do."""
    size = description["batch_size"]
    chosen = np.arange(size) % len(test_set["y"])  # a small test set is repeated
    x = preprocess(test_set["x"][chosen], {**description, "input": {"dtype": "float32"}})
    rate = description.get("local_training", {}).get("learning_rate") or LEARNING_RATE
    batch = {"x": x, "y": test_set["y"][chosen].astype(np.int32), "learning_rate": np.float32(rate)}
    interpreter = Interpreter(model_content=content, num_threads=1)
    train, infer, get_weights, set_weights = (
        interpreter.get_signature_runner(name) for name in ("train", "infer", "get_weights", "set_weights")
    )
    losses = [float(train(**batch)["loss"]) for _ in range(NUM_STEPS)]
    print(f"{description['file']}: {NUM_STEPS} steps, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    if not losses[-1] < losses[0]:
        yield f"the loss did not fall, from {losses[0]:.4f} to {losses[-1]:.4f}"
    weights, logits = get_weights(unused=np.int32(0)), infer(x=x[:1])["logits"]
    if sorted(weights) != sorted(description["weights"]):
        yield f"its weights are {', '.join(sorted(weights))}, in its JSON {', '.join(sorted(description['weights']))}"
    for _ in range(NUM_STEPS):
        train(**batch)
    if np.array_equal(infer(x=x[:1])["logits"], logits):
        yield "more steps changed nothing"
    set_weights(**weights)
    if not np.array_equal(infer(x=x[:1])["logits"], logits):
        yield "the weights that were taken out and put in again give other logits"


def check_training_files(folder: pathlib.Path, test_set: Mapping[str, np.ndarray]) -> list[str]:
    """A line for each fault of the folder's files for on-device training."""
    faults = []
    for path in sorted(folder.glob("*.training.json")):
        description = json.loads(path.read_text(encoding="utf-8"))
        if description["select_operators"]:
            print(f"{description['file']}: left out, needs {', '.join(description['select_operators'])} of TensorFlow")
            continue
        content = (folder / description["file"]).read_bytes()
        faults += [f"{description['file']}: {line}" for line in find_training_faults(content, description, test_set)]
    return faults


def check_folder(folder: pathlib.Path) -> list[str]:
    """A line for each difference between the files of a folder and its report, and for each fault in training."""
    with open(folder / "report.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with np.load(folder / "test_set.npz") as arrays:
        test_set = dict(arrays)
    if not rows:
        return ["report.csv: no file in it"]
    differences = [f"{row['file']}: {line}" for row in rows for line in find_differences(folder, row, test_set)]
    return differences + check_training_files(folder, test_set)


def main(arguments: list[str]) -> int:
    """Checks the folder that the one argument names and returns the exit code."""
    if len(arguments) != 1:
        print("error: expected one argument, the export folder of a run", file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        hint = "export the run with --save_test_set first"
        print(f"error: {folder}: {', '.join(missing)} missing; {hint}", file=sys.stderr)
        return 2
    try:
        differences = check_folder(folder)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        print(f"error: {folder}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for line in differences:
        print(f"DIFFERENT {line}", file=sys.stderr)
    print("differences found" if differences else "all files agree with the report")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
