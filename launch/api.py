"""The suite from Python: `fit` trains as `launch.train` does, `load_run` reads a run folder back.

    from launch.api import fit, load_run

    run = fit("fedavg", dataset="digits", rounds=5, epochs=2)
    run.metrics["test_accuracy"]  # a pandas column, by round
    run.predict(images)  # by the model that was trained

Every flag of `launch.train` is an argument of the same name. Imports no TensorFlow before a run needs it.
"""

import contextlib
import dataclasses
import functools
import io
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from datasets.options import quote_name
from files.reading import read_regular
from files.writing import write_whole
from launch.console.progress import be_silent
from launch.console.shown_text import decode_cell
from launch.runs import columns
from launch.runs.client_rounds import read_clients_by_round
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import make_next_folder
from launch.runs.run_records import RunRecordError, read_json, read_settings
from launch.runs.tables import check_columns, iterate_rows, iterate_whole_lines, open_text
from launch.runtimes.runtime import WorkerError, check_not_forked
from launch.settings.data_flags import CLIENT
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import RunConfig, flag_values
from launch.settings.trusted_modules import (
    AGGREGATOR,
    CHILD,
    MODELS,
    SESSION,
    list_modules,
    list_objects,
    list_session_names,
    read_trusted,
)
from launch.training.finished_run import LAST, FinishedRun, choose_models, read_finished_run
from launch.training.given_data import COLUMN_FLAGS, check_inputs, check_values, place_data, read_examples

if TYPE_CHECKING:
    import tensorflow as tf

    from models.model_spec import ModelSpec

GLOBAL = "global"
OWN_OBJECTS = ("model", "teacher_model", "loss")  # flags that take a function of the caller's
_training = threading.Lock()  # TensorFlow's seeds and TFF's context are the process's: one run at a time


class Run:
    """A run folder: its tables, its settings, its models.

    Attributes:
      path: the folder.
      flags: the value of every flag.
      summary: what `summary.json` says; empty if the run is not finished.
    """

    def __init__(self, path: pathlib.Path, trust_module: str = "", of_round: str = LAST):
        self.path = path
        settings = read_settings(path)
        self.flags: dict[str, Any] = settings.flags
        self._algorithm = settings.algorithm.name
        self.summary = read_json(path / columns.SUMMARY_FILE) if (path / columns.SUMMARY_FILE).is_file() else {}
        self._trusted, self._round = read_trusted(trust_module), of_round

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self._algorithm}, {'finished' if self.summary else 'not finished'})"

    @functools.cached_property
    def metrics(self) -> pd.DataFrame:
        """`metrics.csv`: a row a round, by the round's number; NaN where nothing was measured."""
        return self._read_table(columns.METRICS_FILE, columns.ROUND)

    @functools.cached_property
    def timing(self) -> pd.DataFrame:
        """`timing.csv`: seconds and memory, by the round's number."""
        return self._read_table(columns.TIMING_FILE, columns.ROUND)

    @functools.cached_property
    def clients(self) -> pd.DataFrame:
        """`clients.csv`: a row a client; names are texts, exactly as in the data."""
        return self._read_table(columns.CLIENTS_FILE, texts=columns.CLIENT_NAMES)

    @functools.cached_property
    def clients_by_round(self) -> pd.DataFrame:
        """`clients_by_round.csv.gz`: a row for each evaluated client and round, of runs with `clients_by_round`."""
        return self._read_table(columns.CLIENTS_BY_ROUND_FILE, texts=(columns.CLIENT, columns.MODEL))

    @functools.cached_property
    def events(self) -> pd.DataFrame:
        """`events.csv`: what single devices did, of the algorithms that record it; `client` is the row in `clients`."""
        return self._read_table(columns.EVENTS_FILE)

    @functools.cached_property
    def models(self) -> list[str]:
        """The names of the saved models, such as ["global"].

        Raises:
          RunFolderError: the run is not finished, or its models are gone.
        """
        return choose_models(self._finished, "")

    def load_model(self, name: str = "") -> "tf.keras.Model":
        """A model of the run as a Keras model, whose input is preprocessed as in training: `predict` does both.

        Build it anew after each further `fit`: tracing a TFF computation breaks the Keras models made before it.

        Args:
          name: one of `models`; "" for "global", or for the only one.

        Raises:
          FlagError: there is no model of that name.
          RunFolderError: the run is not finished, or its files are damaged.
        """
        return self._load(name)[1]

    def predict(self, x: np.ndarray | pd.DataFrame, name: str = "", batch_size: int = 256) -> np.ndarray:
        """What a model of the run says of examples.

        Args:
          x: examples as the run's data has them before preprocessing (pixels 0..255, unscaled features), shape
            (examples, *shape of an example); or a table with the columns that the run has learned from, in any order,
            texts as texts. Its other columns and its index are left out. Of a run with --text_column also a list of
            texts.
          name: as in `load_model`.
          batch_size: examples at a time.

        Returns:
          The model's outputs, float32 of shape (examples, ...): logits, or numbers in the labels' own unit if the run
          is a regression.

        Raises:
          FlagError: the examples are not those of the run: another shape or kind of numbers, a value or a column that
            is missing, a text that training did not have.
        """
        if self.flags.get("standardize") == CLIENT:
            raise FlagError(
                f"x: each client of the run scales its features by its own numbers (--standardize={CLIENT}), which "
                "other examples do not have; scale them so, and give them to load_model()"
            )
        x = read_examples(x, self._finished.format, bool(self.flags.get("join_spellings")))
        spec, model = self._load(name)
        check_inputs(spec, x)
        parts = [
            spec.task.restore(np.asarray(model(spec.preprocess(x[start : start + batch_size]), training=False)))
            for start in range(0, len(x), batch_size)
        ]
        return np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, spec.task.num_outputs), np.float32)

    @functools.cached_property
    def _finished(self) -> FinishedRun:
        return read_finished_run(str(self.path), of_round=self._round, trusted=self._trusted)

    def _load(self, name: str) -> tuple["ModelSpec", "tf.keras.Model"]:
        if list_session_names(list_objects(self.flags)):  # which a notebook may have defined anew since the last time
            self.__dict__.pop("_finished", None)
        run = self._finished
        _check_process()
        name = name or (self.models[0] if len(self.models) == 1 else GLOBAL)
        choose_models(run, name)
        from launch.runtimes.runtime import quiet_tensorflow

        with quiet_tensorflow(str(self.path / columns.WORKER_LOG)):
            from models.saved_models import load_weights

            spec = run.build_spec()
        spec = run.choose_spec(spec, name)
        model = spec.build()
        model.set_weights(load_weights(spec, run.find_model_folders()[name]))
        return spec, model

    def _read_table(self, name: str, index: str | None = None, texts: Collection[str] = ()) -> pd.DataFrame:
        """A table, of which the columns `texts` hold names, whatever these look like."""
        path = self.path / name
        if not path.is_file():
            raise RunFolderError(f"{path}: no such table; the run is not that far, or its algorithm writes none")
        try:
            packed = path.suffix == ".gz"
            with io.StringIO(read_clients_by_round(path)) if packed else open_text(path) as file:
                names, *rows = list(iterate_rows(file)) or [[]]
                check_columns(names)  # pandas would call the second by another name
                if any(len(row) != len(names) for row in rows):  # and would fill it up
                    raise ValueError("its rows have several lengths")
                file.seek(0)
                content = "".join(iterate_whole_lines(file))
            table = pd.read_csv(io.StringIO(content), converters=dict.fromkeys(texts, decode_cell))
            for column in table.columns.difference(texts):
                if table[column].dtype == object:
                    table[column] = table[column].map(decode_cell, na_action="ignore")
            table = table.rename(columns=decode_cell)
            return table.set_index(index) if index else table
        except (OSError, ValueError, KeyError) as error:
            raise RunFolderError(f"{path}: damaged ({str(error).splitlines()[0]:.200}); restore it") from None


def load_run(run_dir: str | os.PathLike, trust_module: str = "", round: str = LAST) -> Run:
    """Reads a run folder, finished or not.

    Args:
      run_dir: the folder.
      trust_module: modules of yours that the run names and that may be imported to build its models, with commas
        between them.
      round: whose models `load_model` gives: "last", or "best" of a run with `keep_best`.

    Raises:
      RunFolderError: it is no path, there is no run in that folder, or its records are damaged.
    """
    if not isinstance(run_dir, str | os.PathLike):
        kind = type(run_dir).__name__
        raise RunFolderError(
            f"run_dir: expected the path of a run's folder, such as 'runs/fedavg_digits_001', got {kind}"
        )
    path = pathlib.Path(run_dir).expanduser()
    if not (path / columns.CONFIG_FILE).is_file():
        raise RunFolderError(f"{path}: no run there; expected the folder of a run, such as runs/fedavg_digits_001")
    try:
        return Run(path, trust_module, round)
    except RunRecordError as error:
        raise RunFolderError(str(error)) from None


def fit(
    algo: str,
    *,
    data: str | os.PathLike | pd.DataFrame | Mapping[str, Any] | None = None,
    model: str | Callable[[tuple[int, ...], int], "tf.keras.Model"] | None = None,
    verbose: bool = True,
    **flags: Any,
) -> Run:
    """Trains, evaluates and records a run, as `launch.train` does with the same flags.

    Args:
      algo: the algorithm, as --algo takes it.
      data: your own data: a path (see --data), a table, or arrays {"x": ..., "y": ..., "client": ...} as of an npz
        file. Tables and arrays are kept in runs/data, named by their contents, so that the run can be evaluated,
        exported and resumed.
      model: a name, as --model takes it, or a function (input shape, number of outputs) -> Keras model with logits. One
        of the script or notebook itself trains and predicts in this process, but no command can import it.
      verbose: whether the lines of `launch.train` are printed.
      flags: any other flag of `launch.train`, by its name: `rounds=5`, `epochs=2`, `keep_best=True`.

    Returns:
      The finished run.

    Raises:
      ValueError: of a subclass whose message is one line: a wrong flag, or data or a model that cannot be used.
      RunStopped: the run ended early; the message says how to go on.
    """
    _check_process()
    given = {**flags, **({} if model is None else {"model": model}), "algo": algo}
    check_values(flags)
    # Nothing is written yet: a wrong flag is to leave no file behind.
    named, contents = place_data(data, flags)
    given |= named
    with _train_alone(), _keep(contents) as runs:
        # Flags that are left out depend on what is in the data, such as whether clients are named.
        config = parse_config([_spell(name, value) for name, value in given.items() if value is not None])
        config = _train(config, verbose, runs)
    trusted = list_modules(flag_values(config))  # the caller has named them
    return Run(pathlib.Path(config.run_dir), ",".join(trusted))


def _check_process() -> None:
    """Raises FlagError in a process that TensorFlow cannot run in."""
    try:
        check_not_forked()
    except WorkerError as error:
        raise FlagError(str(error)) from None


@contextlib.contextmanager
def _train_alone() -> Iterator[None]:
    """Raises FlagError while another thread trains."""
    if not _training.acquire(blocking=False):
        raise FlagError(
            "fit: another fit of this process is still training, expected one at a time; wait for it, or train in "
            'processes of their own, started by multiprocessing.get_context("spawn")'
        )
    try:
        yield
    finally:
        _training.release()


def _train(config: RunConfig, verbose: bool, runs: list[pathlib.Path]) -> RunConfig:
    """Trains, in a new folder if the config names none; returns the config with the folder, which `runs` gets, too."""
    made = None
    if not config.run_dir:
        made = make_next_folder(config)
        config = dataclasses.replace(config, run_dir=str(made))
    runs.append(pathlib.Path(config.run_dir))
    from launch.training.training_run import run_training

    try:
        with contextlib.nullcontext() if verbose else be_silent():
            run_training(config)
    finally:
        if made is not None:
            with contextlib.suppress(OSError):  # it holds a run by now, or is gone
                made.rmdir()
    return config


def _spell(name: str, value: Any) -> str:
    """An argument as it is typed: --name=value."""
    if isinstance(value, bool | np.bool_):
        return f"--{name}={str(bool(value)).lower()}"
    if callable(value):
        return f"--{name}={_spell_function(name, value)}"
    if isinstance(value, list | tuple | np.ndarray | pd.Index):
        texts = [_spell_function(name, each) if callable(each) else str(each) for each in value]
        return f"--{name}={','.join(map(quote_name, texts) if name in COLUMN_FLAGS else texts)}"
    if dataclasses.is_dataclass(value):  # such as the row of an algorithm
        raise FlagError(f'--{name}: expected text, as "my_module:{name.upper()}", got {type(value).__name__}')
    return f"--{name}={value}"


def _spell_function(name: str, function: Callable) -> str:
    """A function of the caller's as the text by which it is imported: "module:NAME".

    Raises:
      FlagError: no import would find it, or would find another one.
    """
    if name not in OWN_OBJECTS and not name.endswith(MODELS):
        expected = f'text, as "my_module:{name.upper()}"' if name.endswith(AGGREGATOR) else "a text or a number"
        raise FlagError(f"--{name}: expected {expected}, got {type(function).__name__}")
    module, named = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not named.isidentifier() or not module:  # a lambda, a method, a function inside another, a model
        what = named or f"an object of {type(function).__name__}"
        written = "build(input_shape, num_outputs), which returns a new Keras model"
        if name == "loss":
            written = "compute(labels, outputs), which returns the loss of each example"
        raise FlagError(
            f"--{name}: expected a function with a name at the top of its module, got {what}; "
            f"write there: def {written}"
        )
    module = SESSION if module == CHILD else module
    found = getattr(sys.modules.get(module), named, function)
    if found is not function and _take_apart(found) != _take_apart(function):
        raise FlagError(
            f"--{name}: {named} of {module} is another function than the one given, as after a decorator or a second "
            f"definition, and the run would train that one; give {module}.{named}, or this one a name of its own"
        )
    return f"{module}:{named}"


def _take_apart(function: Any) -> tuple:
    """What a function does: equal after its module was imported anew, if nothing has changed there."""
    names = ("__code__", "__defaults__", "__kwdefaults__")
    closure = getattr(function, "__closure__", None) or ()
    return (*(getattr(function, name, None) for name in names), [cell.cell_contents for cell in closure])


@contextlib.contextmanager
def _keep(contents: Mapping[pathlib.Path, bytes]) -> Iterator[list[pathlib.Path]]:
    """Writes the files that are not there yet, or have changed; if the block fails, as by a wrong flag, they go.

    It gives a list for the folders of runs that may need the files: if the config of one names them, they stay.
    """
    runs: list[pathlib.Path] = []
    new = {path: content for path, content in contents.items() if not _is_kept(path, content)}
    folders = [folder for path in new for folder in path.parents if not folder.exists()]
    try:
        for path, content in new.items():
            write_whole(path, content)
        yield runs
    except BaseException:
        if any(_names(folder, path) for folder in runs for path in new):
            raise
        for path in new:
            path.unlink(missing_ok=True)
        for folder in folders:  # the innermost first
            with contextlib.suppress(OSError):  # something else is in it by now
                folder.rmdir()
        raise


def _names(run_dir: pathlib.Path, path: pathlib.Path) -> bool:
    """Whether a run that has begun was given the file, so that it can go on with it."""
    with contextlib.suppress(OSError):
        return path.name.encode() in read_regular(run_dir / columns.CONFIG_FILE)
    return False


def _is_kept(path: pathlib.Path, content: bytes) -> bool:
    with contextlib.suppress(OSError):  # there is none yet, or a pipe in its place
        return read_regular(path, len(content)) == content
    return False
