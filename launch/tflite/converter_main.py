"""`python -m launch.tflite.converter_main`: the process that converts models and first runs each file.

It answers the requests of `launch.tflite.converter_process`: {"task": ..., ...}. An answer is {} if it is done, or says
what was wrong: {"refused": ...} for the model, {"failed": ...} for the disk.
"""

import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from files.reading import describe
from launch.tflite.bounded_process import open_answers, serve_requests

CONVERT, RUN = "convert", "run"
FILE, INPUTS, ANSWERS = "file.tflite", "inputs.npy", "answers.npy"


def main() -> int:
    """Answers until there are no more requests."""
    answers = open_answers()
    from launch.runtimes.quick_import import import_quickly

    import_quickly("tensorflow")
    import models.tflite_converter  # noqa: F401  now, not when the first request has come

    serve_requests(answer_request, answers)
    return 0


def answer_request(request: Mapping[str, Any]) -> dict[str, str]:
    """Does a task."""
    from models.model_names import ModelError

    try:
        {CONVERT: _convert, RUN: _run}[request["task"]](request)
    except ModelError as error:
        return {"refused": str(error)}
    except OSError as error:
        place = error.filename or request.get("folder") or request["job"][0]  # a full disk's error names no file
        return {"failed": f"{place}: {describe(error)}"}
    return {}


def _convert(request: Mapping[str, Any]) -> None:
    """{"job": the fields of a ConverterJob}: does it."""
    from models.tflite_converter import ConverterJob, run_converter

    run_converter(ConverterJob(*request["job"]))


def _run(request: Mapping[str, Any]) -> None:
    """{"folder": ...} with FILE and INPUTS in it: writes what the file answers into ANSWERS."""
    import numpy as np

    from launch.tflite.exported_file import compute_in_two_orders
    from models.model_names import ModelError

    folder = pathlib.Path(request["folder"])
    content, inputs = (folder / FILE).read_bytes(), np.load(folder / INPUTS)
    try:
        answers = compute_in_two_orders(content, inputs)
    except (RuntimeError, ValueError) as error:  # the interpreter's words for what it cannot do
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        reason = reason.partition("Failed to apply the default")[0].rstrip(".")
        raise ModelError(f"TFLite's interpreter cannot run it: {reason}; do that step with other operations") from error
    np.save(folder / ANSWERS, answers)


if __name__ == "__main__":
    sys.exit(main())
