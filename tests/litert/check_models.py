"""Runs the files of `make_models.py` with LiteRT and compares with Keras: `check_models.py build/litert_models`.

Needs NumPy and ai-edge-litert only. Prints a table of models and formats and
leaves it in the folder as `models.csv` and `models.md`. A cell has, for each of 200 examples:

    float32, float16    the largest difference of an output, as a share of the range of Keras's outputs
    dynamic, int8,      the same, and the share of the examples for which the same class is chosen
    qat_int8
    training            the largest difference after five steps on a batch, to five of Keras's

Wrong, and said in a line each, is a difference above `MOST`, a share of classes below that at which the export itself
warns (only listed, as the export does), a training in which the loss does not fall, a file that answers otherwise when
it is asked again, and a file that could not be made for a reason that is not one line. With the committed table, a
file that it has and that is not made any more is wrong, too.

    --write   puts the table of all models into docs/results/measured/litert_models.csv

Exit codes: 0 all as it should be, 1 something is wrong, 2 the folder cannot be checked.
"""

import argparse
import csv
import json
import pathlib
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from check_export import run_inference

ROOT = pathlib.Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "results" / "measured" / "litert_models.csv"
FORMATS = ("float32", "float16", "dynamic", "int8", "qat_int8", "training")
# Largest differences as shares of the range of Keras's outputs.
MOST = {"float32": 1e-5, "float16": 1e-2}
MOST_TRAINED = 1e-5  # of a file that trains, before the first step and after the last
MOST_SHOWN = 200  # characters of a reason in the table
COLUMNS = ("model", "format", "size_kb", "largest_difference", "same_class", "reason")


class Row(NamedTuple):
    """A line of the table; "" for what there is not."""

    model: str
    format: str
    size_kb: str = ""
    largest_difference: str = ""
    same_class: str = ""
    reason: str = ""


class Found(NamedTuple):
    """What a file is like: its row, what is wrong with it, and what the export would warn of."""

    row: Row
    faults: list[str]
    warnings: list[str]


def compare(answers: np.ndarray, keras: np.ndarray) -> float:
    """The largest difference as a share of the range of Keras's outputs; infinite where one alone is no number."""
    is_number = np.isfinite(keras)
    if not np.array_equal(is_number, np.isfinite(answers)) or not is_number.any():
        return float("inf")
    spread = float(np.ptp(keras[is_number])) or float(np.finfo(np.float32).tiny)
    return float(np.abs(answers[is_number] - keras[is_number]).max()) / spread


def compute_agreement(answers: np.ndarray, keras: np.ndarray, task: str) -> float | None:
    """The share of examples, positions or labels for which the same is chosen; None of a regression.

    Args:
      answers: a file's outputs, (n, *output_shape).
      keras: those of its model.
      task: "classification", "binary", "multi_label", "regression" or "next_token".
    """
    if task == "regression":
        return None
    if task in ("binary", "multi_label"):
        return float(np.mean((answers > 0) == (keras > 0)))
    return float(np.mean(answers.argmax(-1) == keras.argmax(-1)))


def judge_inference(
    answers: np.ndarray, again: np.ndarray, keras: np.ndarray, export_format: str, agreement: float | None, least: float
) -> Found:
    """What outputs say of a file, without its model and size.

    Args:
      answers: of the file, (n, *output_shape).
      again: its outputs for the same examples, asked for in the opposite order.
      keras: of its model.
      export_format: but "training".
      agreement: see `compute_agreement`.
      least: the agreement below which the export warns.
    """
    difference, faults = compare(answers, keras), []
    if not np.array_equal(again, answers, equal_nan=True) and compare(again, answers) > MOST["float32"]:
        faults.append("answers otherwise when it is asked again")
    if not difference <= MOST.get(export_format, np.inf):
        faults.append(f"differs from Keras by {difference:.2g} of the range, at most {MOST[export_format]:g} may")
    if not np.isfinite(difference):
        faults.append("answers with something that is no number, or Keras does")
    row = Row("", export_format, "", f"{difference:.1e}", "" if agreement is None else f"{agreement:.3f}")
    is_lossy = agreement is not None and agreement < least
    warned = (
        f"chooses as Keras for {100 * agreement:.1f} % of the examples, of which the export warns" if is_lossy else ""
    )
    return Found(row, faults, [warned] if warned else [])


def judge_training(losses: Sequence[float], inferred: float, trained: float | None) -> Found:
    """What a file for training is like.

    Args:
      losses: before each step.
      inferred: difference to Keras before the first step, as of `compare`.
      trained: the same after the last step; None where dropout makes each training another, and its losses rise and
        fall by chance.
    """
    faults = []
    if not np.isfinite(losses).all():
        faults.append("a loss is no number")
    if trained is not None and not losses[-1] < losses[0]:
        faults.append(f"the loss did not fall, from {losses[0]:.4f} to {losses[-1]:.4f}")
    if not inferred <= MOST_TRAINED:
        faults.append(f"infer differs from Keras by {inferred:.2g} of the range, at most {MOST_TRAINED:g} may")
    if trained is not None and not trained <= MOST_TRAINED:
        faults.append(f"trains otherwise than Keras, by {trained:.2g} of the range, at most {MOST_TRAINED:g} may")
    shown = f"{inferred if trained is None else trained:.1e}"
    return Found(Row("", "training", "", shown), faults, [])


def judge_absence(file: Mapping[str, Any], export_format: str) -> Found:
    """What is said of a file that could not be made."""
    reason = file.get("refused", file.get("failed", ""))
    faults = (
        [] if "refused" in file and "\n" not in reason else [f"cannot be made, not for a reason in a line: {reason}"]
    )
    return Found(Row("", export_format, reason=textwrap.shorten(reason, MOST_SHOWN, placeholder=" ...")), faults, [])


def run_training(content: bytes, arrays: Mapping[str, np.ndarray], steps: int, rate: float):
    """(losses, outputs before, outputs after) of a file that trains on one batch."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    train, infer = interpreter.get_signature_runner("train"), interpreter.get_signature_runner("infer")
    batch = {"x": arrays["train_x"], "y": arrays["train_y"], "learning_rate": np.float32(rate)}

    def infer_all():
        return np.stack([infer(x=example[None])["logits"][0] for example in arrays["x"]])

    before = infer_all()
    losses = [float(train(**batch)["loss"]) for _ in range(steps)]
    after = infer_all()
    return [*losses, float(train(**batch)["loss"])], before, after


def check_file(folder: pathlib.Path, model: Mapping[str, Any], export_format: str, arrays: Mapping[str, Any]) -> Found:
    """What one file of a model is like, or why there is none."""
    file = model["files"][export_format]
    if "select_operators" not in file:
        return judge_absence(file, export_format)
    content = (folder / file["file"]).read_bytes()
    if file["select_operators"]:
        found = Found(
            Row("", export_format, reason=f"needs {', '.join(file['select_operators'])} of TensorFlow"), [], []
        )
    elif export_format == "training":
        losses, before, after = run_training(content, arrays, model["training_steps"], model["training_rate"])
        keras_after = arrays.get("trained_outputs")
        trained = None if keras_after is None else compare(after, keras_after)
        found = judge_training(losses, compare(before, arrays["outputs"]), trained)
    else:
        keras = arrays["qat_outputs" if export_format == "qat_int8" else "outputs"]
        x = arrays["x"]
        answers, again = run_inference(content, x), run_inference(content, x[::-1])[::-1]
        agreement = compute_agreement(answers, keras, model["task"])
        found = judge_inference(answers, again, keras, export_format, agreement, model["least_agreement"])
    return found._replace(row=found.row._replace(size_kb=f"{len(content) / 1000:.1f}"))


def check_folder(folder: pathlib.Path) -> Iterator[Found]:
    """What every file of the folder is like, or why there is none, in the order of the table."""
    for model in json.loads((folder / "models.json").read_text(encoding="utf-8")):
        with np.load(folder / f"{model['model']}.npz") as file:
            arrays = dict(file)
        for export_format in FORMATS:
            found = check_file(folder, model, export_format, arrays)
            yield found._replace(row=found.row._replace(model=model["model"], format=export_format))


def list_gone(rows: Sequence[Row], committed: Sequence[Mapping[str, str]]) -> list[str]:
    """A line for each file that the committed table has, of a model in `rows`, and that is not made any more."""
    had = {(row["model"], row["format"]) for row in committed if row["largest_difference"]}
    return [
        f"{row.model}.{row.format}: the committed table has this file, now there is none: {row.reason}"
        for row in rows
        if not row.largest_difference and (row.model, row.format) in had
    ]


def describe_rows(rows: Sequence[Row]) -> str:
    """The table as Markdown: a line a model, and below it why there is no file of a format."""
    lines = ["| model | " + " | ".join(FORMATS) + " |", "|---|" + "---:|" * len(FORMATS)]
    cells = {(row.model, row.format): row for row in rows}
    reasons: dict[str, list[str]] = {}
    for model in dict.fromkeys(row.model for row in rows):
        shown = []
        for export_format in FORMATS:
            row = cells[model, export_format]
            numbers = " ".join(filter(None, (row.largest_difference, row.same_class)))
            if row.reason:
                reasons.setdefault(row.reason, []).append(f"{model}.{export_format}")
                numbers = f"({list(reasons).index(row.reason) + 1})"
            shown.append(f"{numbers}, {row.size_kb} kB" if row.size_kb else numbers)
        lines.append(f"| {model} | " + " | ".join(shown) + " |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    return "\n".join(lines)


def write_rows(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Writes the table as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])


def main(arguments: list[str]) -> int:
    """Checks the folder that the arguments name and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parsed = parser.parse_args(arguments)
    try:
        found = list(check_folder(parsed.folder))
        rows = [each.row for each in found]
        write_rows(rows, parsed.folder / "models.csv")
        (parsed.folder / "models.md").write_text(describe_rows(rows) + "\n", encoding="utf-8")
        committed = []
        if COMMITTED.exists() and not parsed.write:
            with open(COMMITTED, newline="", encoding="utf-8") as file:
                committed = list(csv.DictReader(file))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        print(f"error: {parsed.folder}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(describe_rows(rows))
    for each in found:
        for line in each.warnings:
            print(f"WARNED {each.row.model}.{each.row.format}: {line}")
    faults = [f"{each.row.model}.{each.row.format}: {line}" for each in found for line in each.faults]
    faults += list_gone(rows, committed)
    for line in faults:
        print(f"WRONG {line}", file=sys.stderr)
    if parsed.write:
        write_rows(rows, COMMITTED)
    print(f"{len(faults)} faults" if faults else "all models answer as Keras")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
