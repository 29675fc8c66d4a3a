"""Reads the metadata of exported files with TFLite Support: `check_metadata.py runs/x/export`.

Needs a Python with tflite-support 0.4.4 (`pip install --no-deps tflite-support`, flatbuffers, NumPy below 2, protobuf
below 4, absl-py), which is no part of the project, and knows of a file what its JSON says. Prints a line a file, and
one for each difference. Exit codes: 0 all agree, 1 there is a difference, 2 the folder cannot be checked.
"""

import itertools
import json
import pathlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

sys.modules.setdefault("sounddevice", types.ModuleType("sounddevice"))  # of its recorder, which needs a system library

from tflite_support import metadata  # noqa: E402

TOLERANCE = 1e-5  # of float32
MOST_DESCRIBED = 16  # features in words


def find_differences(path: pathlib.Path, description: Mapping[str, Any]) -> Iterator[str]:
    """A line for everything in which the metadata of a file are not as its JSON says."""
    content = path.read_bytes()
    displayer = metadata.MetadataDisplayer.with_model_buffer(content)
    read = json.loads(displayer.get_metadata_json())
    packed = displayer.get_packed_associated_file_list()
    named = {"card.json", *(["labels.txt"] if description["labels"] else [])}
    named |= {"features.txt"} if description["features"] else set()
    if set(packed) != named:
        yield f"the files in it are {packed}, expected {sorted(named)}"
    if description["labels"]:
        labels = displayer.get_associated_file_buffer("labels.txt").decode().removesuffix("\n").split("\n")
        # What hides or ends a line is written out in the file, so such a name is only counted.
        pairs = list(itertools.zip_longest(labels, description["labels"]))
        if any(own != given and (own is None or given is None or given.isprintable()) for own, given in pairs):
            yield "its labels are others"
    if not read.get("name") or not read.get("description") or not read.get("version"):
        yield "it says nothing of itself"
    if "input" in description:
        [graph] = read["subgraph_metadata"]
        [taken], [given] = graph["input_tensor_metadata"], graph["output_tensor_metadata"]
        yield from find_differences_of_input(taken, description)
        if len(given["dimension_names"]) != len(description["output"]["shape"]):
            yield "its output has other axes"


def find_differences_of_input(taken: Mapping[str, Any], description: Mapping[str, Any]) -> Iterator[str]:
    """The same for the note of the input."""
    if len(taken["dimension_names"]) != len(description["input"]["shape"]):
        yield "its input has other axes"
    if description["input"]["dtype"] == "int32":
        if "process_units" in taken:
            yield "it scales tokens"
        return
    options = taken["process_units"][0]["options"]
    scale, offset = description["preprocessing"]["scale"], description["preprocessing"]["offset"]
    for number in (0.0, 1.0, 200.0):
        if abs((number - options["mean"][0]) / options["std"][0] - (number * scale + offset)) > TOLERANCE * (
            1 + number
        ):
            yield f"its preprocessing makes another number of {number}"
    features = description["features"]
    for place, feature in enumerate(features):
        unit = f" [{feature['unit']}]" if feature["unit"] else ""
        if place < MOST_DESCRIBED and f"{feature['name']}{unit} " not in taken["description"]:
            yield f"it does not describe {feature['name']}"
        lowest, highest = (taken["stats"][end][place] for end in ("min", "max"))
        expected = [feature[end] * scale + offset for end in ("lowest", "highest")]
        if max(abs(lowest - expected[0]), abs(highest - expected[1])) > TOLERANCE * (1 + max(map(abs, expected))):
            yield f"{feature['name']} has another range"


def main(arguments: list[str]) -> int:
    """Checks the folder that the argument names and returns the exit code."""
    paths = sorted(pathlib.Path(arguments[0]).glob("*.tflite")) if len(arguments) == 1 else []
    if not paths:
        print("error: expected a folder that launch.export has written", file=sys.stderr)
        return 2
    is_wrong = False
    for path in paths:
        description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        wrong = list(find_differences(path, description))
        is_wrong |= bool(wrong)
        print(f"{path.name}: {'; '.join(wrong) or 'its metadata are as its JSON says'}")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
