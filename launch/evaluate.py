"""`python -m launch.evaluate runs/...` evaluates a finished run's models again: on its test sets, or on your file.

Without --npz: every model on the global test set, and on the own test split of each client that uses it. With --npz:
every model on the examples of that file. With --round=best: the models of the best round. Prints a table and writes it
into the run folder.
Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.formats.npz import read_examples
from datasets.layouts import AUTO
from datasets.tables.cells import BOOLEAN_WORDS
from launch.command_line import parse_flags, run_command, take_run_dir
from launch.console.progress import say
from launch.console.shown_text import align_columns, escape_hidden
from launch.console.stop_signals import leave
from launch.runs.columns import BEST, EVALUATION, UNDEFINED, WORKER_LOG
from launch.runs.file_names import encode_name
from launch.runs.stored_data import has_test_set
from launch.runs.tables import format_cell, write_json, write_table
from launch.runs.task_columns import count_reasons, format_value
from launch.runtimes.runtime import quiet_tensorflow
from launch.settings.data_flags import CLIENT
from launch.settings.errors import FlagError
from launch.settings.trusted_modules import read_trusted
from launch.training.federation import find_attackers
from launch.training.finished_run import (
    FinishedRun,
    FinishedRunFlags,
    choose_models,
    read_finished_run,
    say_if_unchecked,
)
from launch.training.run_runtime import settle_device_again
from tff_algos.settings.config_fields import setting

if TYPE_CHECKING:
    from launch.training.evaluation import Evaluation

USAGE = "python -m launch.evaluate <run folder> [--round=best] [--npz=<file>] [--model=<name>] [--flag=value ...]"


class EvaluationRow(NamedTuple):
    """One model on one test set.

    Attributes:
      cells: by the columns of the table: the model, its test set ("global", a client or a file), the number of its
        examples, the task's main metric, the mean loss, the task's other metrics.
      undefined: the metrics that these examples leave undefined, and why, as `Evaluation.undefined` has it.
    """

    cells: dict[str, Any]
    undefined: Mapping[str, str] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Flags(FinishedRunFlags):
    """The flags of this command."""

    npz: str = setting("", "Your own examples: x_test and y_test, or x and y if the file has no test set.")


def read_npz_examples(path: str, example_format: ExampleFormat, layout: str = AUTO) -> tuple[np.ndarray, np.ndarray]:
    """A user's examples as the run was trained on them: (x, y), with y as the run's labels are stored.

    Labels of classes are strings, or integers: indices into the file's own `class_names` or, without them, the run's.

    Raises:
      DatasetError: the file cannot be read, its examples are not of the run's kind, or it has a class that the run does
        not know.
    """
    examples = read_examples(path, example_format, layout)
    if not example_format.labels.is_by_class:
        return examples.x, examples.y
    return examples.x, _convert_labels(path, examples.y, examples.class_names, list(example_format.class_names))


def _convert_labels(path: str, y: np.ndarray, listed: Sequence[str] | None, names: list[str]) -> np.ndarray:
    """The labels of a file as indices into `names`, the classes of the run, int32; they are matched by their names.

    Args:
      path: the file.
      y: its labels, text or integers.
      listed: its own names of classes, None if it has none.
      names: the run's.

    Raises:
      DatasetError: a label has no name, or the run does not know the class.
    """
    if y.dtype.kind == "U":
        used, indices = np.unique(y, return_inverse=True)
        classes = used.tolist()
        unlisted = sorted(set(classes) - set(classes if listed is None else listed))
        if unlisted:
            raise DatasetError(f"{path}: label {unlisted[0]!r} is not among its class_names; add it there")
    else:
        classes, indices = names if listed is None else listed, y
        if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= len(classes):
            whose = "the run's classes" if listed is None else "its class_names"
            found = f"{y.min()}..{y.max()}" if y.dtype.kind in "iu" else y.dtype
            raise DatasetError(
                f"{path}: expected labels 0..{len(classes) - 1} as integers, places in {whose}, or the names of the "
                f"run's classes; found {found}"
            )
    classes = [_name_truth(name, names) for name in classes]
    # A class that no example has may be unknown to the run.
    for name in (classes[index] for index in np.unique(indices)):
        if name not in names:
            raise DatasetError(f"{path}: class {name!r} is unknown to the run{_suggest_class(name, names)}")
    to_run = np.array([names.index(name) if name in names else -1 for name in classes], np.int32)
    return to_run[indices.astype(np.int64)]


def _name_truth(name: str, names: Sequence[str]) -> str:
    """What the run calls a class: earlier versions called yes and no in tables true and false."""
    truth = BOOLEAN_WORDS.get(name.strip().lower())
    if name in names or truth is None or set(names) != {"false", "true"}:
        return name
    return "true" if truth else "false"


def _suggest_class(name: str, names: Sequence[str]) -> str:
    """What the run's classes are, or the one that was probably meant: spelled with other capitals or spaces around."""
    near = [known for known in names if known.strip().casefold() == name.strip().casefold()]
    if near:
        return f"; it calls it {near[0]!r}: spell it so"
    shown = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"; expected classes among {shown}"


def evaluate_run(run: FinishedRun, names: Sequence[str], npz: str) -> list[EvaluationRow]:
    """Evaluates the models of a run on the test sets that the module's docstring names.

    Raises:
      DatasetError: the data cannot be read, or are not those of the run.
      ModelError: a saved model cannot be read.
    """
    examples = read_npz_examples(npz, run.format, run.config.layout) if npz else None
    federation = None if npz else run.load_data()
    with quiet_tensorflow(str(run.path / WORKER_LOG)):
        # Here, since TensorFlow takes seconds and a wrong request is answered before.
        from launch.training.evaluation import build_evaluator, choose_finally_evaluated
        from models.input_dtypes import find_misfit
        from models.saved_models import load_weights

        settle_device_again(run.config)
    spec = run.build_spec()
    rows, folders, asked = [], run.find_model_folders(), ()
    if federation is not None:
        attackers = find_attackers(run.config, federation)
        asked = choose_finally_evaluated(federation, run.config.finally_evaluated_clients, run.config.seed, attackers)
    for name in names:
        model_spec = run.choose_spec(spec, name)
        evaluate, weights = build_evaluator(model_spec), load_weights(model_spec, folders[name])
        if examples is not None:
            if misfit := find_misfit(model_spec.input_dtype, model_spec.format, examples[0]):
                raise DatasetError(
                    f"{npz}: x has {misfit}, since the Input of {model_spec.name} has dtype {model_spec.input_dtype}"
                )
            rows.append(_make_row(name, pathlib.Path(npz).name, evaluate(weights, *examples)))
            continue
        rows.append(_make_row(name, "global", evaluate(weights, federation.test_x, federation.test_y)))
        # A model is measured on the clients that use it, as in the run.
        users = [client for client in asked if run.client_models.get(client.name) == name]
        rows += [
            _make_row(name, client.name, evaluate(weights, *federation.read_split(client, "test")))
            for client in users
            if federation.count(client, "test")
        ]
    return rows


def _make_row(model: str, test_set: str, evaluation: "Evaluation") -> EvaluationRow:
    known = {"model": model, "test_set": test_set, "examples": len(evaluation.loss)}
    main = {evaluation.kind.main_metric.name: evaluation.metric}
    return EvaluationRow(known | main | {"loss": evaluation.mean_loss} | evaluation.metrics, evaluation.undefined)


def format_table(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    """The rows as lines of aligned columns, without reasons."""
    texts = []
    for model, test_set, examples, *values in (row.cells.values() for row in rows):
        texts.append([escape_hidden(model), escape_hidden(test_set), f"{examples:,}", *map(format_value, values)])
    return align_columns([list(rows[0].cells), *texts], 2)


def write_evaluation(run: FinishedRun, rows: Sequence[EvaluationRow], npz: str, model_name: str = "") -> pathlib.Path:
    """Writes the rows as .csv and .json and returns the former's path.

    Their name is `evaluation`, then `-best` for the models of the best round, `_<file>` for a user's file, and
    `_of_<model>` if one model was asked for, the last two as `encode_name` has them.
    """
    stem = EVALUATION + (f"-{BEST}" if run.is_best else "")
    stem += f"_{encode_name(pathlib.Path(npz).stem)}" if npz else ""
    stem += f"_of_{encode_name(model_name)}" if model_name else ""
    path = run.path / f"{stem}.csv"
    cells = [row.cells for row in rows]
    if any(row.undefined for row in rows):
        cells = [row.cells | {UNDEFINED: run.task.describe_undefined(row.undefined)} for row in rows]
    write_table(path, list(cells[0]), [list(map(format_cell, row.values())) for row in cells])
    write_json(run.path / f"{stem}.json", cells)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "evaluate", USAGE, Flags, argv)


def _run(arguments: Sequence[str]) -> None:
    values = parse_flags(Flags, take_run_dir(arguments), "--npz=<file> evaluates on examples of your own")
    if not values.run_dir:
        raise FlagError("--run_dir is missing: expected the folder of a finished run, such as runs/fedavg_digits_001")
    npz = os.path.expanduser(values.npz)
    trusted = read_trusted(values.trust_module)
    run = read_finished_run(values.run_dir, values.data_dir, "", values.round, trusted, values.client_dir)
    if npz and run.config.standardize == CLIENT:
        raise FlagError(
            f"--npz={npz}: expected none, since each client of the run scales its features by its own numbers"
        )
    if not npz and not has_test_set(run.data):
        raise FlagError(
            f"--run_dir={run.path}: the run has no test examples on this machine; give some by --npz=<file>"
        )
    rows = evaluate_run(run, choose_models(run, values.model), npz)
    say_if_unchecked(run)
    print("\n".join(format_table(rows)))
    path = write_evaluation(run, rows, npz, values.model)
    counts = count_reasons(row.undefined for row in rows)
    for line in run.task.say_undefined(counts, len(rows), "test sets"):
        say(f"note     {line}")
    print(f"written to {path}")


if __name__ == "__main__":
    leave(main())
