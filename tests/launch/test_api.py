"""The way in from Python: what `fit` asks `launch.train` for, and what `load_run` reads back.

That `fit` trains and that `predict` is the model that was trained is shown by the notebook's test in tests/examples.
"""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys
import threading
import types

import numpy as np
import pandas as pd
import pytest

from launch.api import fit, load_run
from launch.console.progress import say
from launch.runs.errors import RunFolderError
from launch.runs.tables import format_cell, format_lines, write_json
from launch.settings.errors import FlagError
from launch.settings.run_config import build_run_config, flag_values
from launch.training import training_run


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The configs that `fit` would train, instead of training; each leaves a run folder."""
    configs = []

    def record(config):
        configs.append(config)
        write_json(tmp_path / config.run_dir / "config.json", {"flags": flag_values(config), "data": {}})
        say("a line of training")

    monkeypatch.setattr(training_run, "run_training", record)
    monkeypatch.chdir(tmp_path)
    return configs


def build_small(input_shape, num_outputs):
    raise AssertionError("only its name is needed")


@dataclasses.dataclass
class Row:
    """As a data set or an algorithm is declared."""


def decorate(function):
    @functools.wraps(function)
    def decorated(*arguments):
        return function(*arguments)

    return decorated


def test_a_function_is_the_one_that_its_name_imports(asked, monkeypatch):
    """Another one under that name would be trained in its place."""
    with pytest.raises(FlagError, match=f"--model: build_small of {__name__} is another function than the one given"):
        fit("fedavg", model=decorate(build_small))
    again = types.FunctionType(build_small.__code__, vars(sys.modules[__name__]), "build_small")
    fit("fedavg", model=again)  # as after its module was imported anew
    assert [config.model for config in asked] == [f"{__name__}:build_small"]
    monkeypatch.setattr(again, "__module__", "__mp_main__")  # as in a child of multiprocessing
    fit("fedproto", models=[again, "perceptron"])
    assert asked[1].algorithm.models == "__main__:build_small,perceptron"


def test_arguments_are_the_flags_of_train(asked, capsys):
    given = {"rounds": 3, "epochs": 2, "keep_best": True, "fairness": np.True_}
    run = fit("fedavg", **given, model=build_small, client_dir="/srv/clients")
    expected = {"algo": "fedavg", **given, "fairness": True, "model": f"{__name__}:build_small"}
    expected = flag_values(build_run_config({**expected, "client_dir": "/srv/clients"}))
    assert {**flag_values(asked[0]), "run_dir": ""} == expected
    assert str(run.path) == asked[0].run_dir == "runs/fedavg_digits_001"
    assert run._trusted == {__name__}, "the caller has named it"
    assert capsys.readouterr().out == "a line of training\n"
    quiet = fit("fedavg", run_dir="mine", verbose=False, model=None)
    assert (str(quiet.path), quiet.flags["model"], capsys.readouterr().out) == ("mine", "auto", "")


def test_clients_of_data_in_memory_are_the_clients_of_the_first_run(asked):
    """The default of --partition is read from the data, which must be there by then. Listed columns are quoted."""
    table = pd.DataFrame({"a, b": [0.1, 0.2], "user": ["u", "v"], "label": ["yes", "no"]})
    fit("fedavg", data=table)
    fit("fedavg", data=table.set_index("user"), feature_columns=["a, b"])
    fit("fedavg", data={"x": [[0.1], [0.2]], "y": [0, 1], "client": [3, 4]})
    other = table.assign(user=[1.5, 2.5]).rename(columns={"user": "b", "label": "y"})
    fit("fedavg", data=other, label_column=["y"], feature_columns=other.columns[:2])
    assert [config.partition for config in asked] == ["natural", "natural", "natural", "dirichlet"]
    assert [config.feature_columns for config in asked] == ["", '"a, b"', "", '"a, b",b']


def test_a_second_thread_is_refused_at_once_and_the_output_stays(asked, monkeypatch, tmp_path):
    """The first is still training when the second comes, and ends first."""
    begun, is_refused, before = threading.Event(), threading.Event(), sys.stdout

    def train(config):
        begun.set()
        assert is_refused.wait(10)
        write_json(tmp_path / config.run_dir / "config.json", {"flags": flag_values(config), "data": {}})

    monkeypatch.setattr(training_run, "run_training", train)
    first = threading.Thread(target=fit, args=("fedavg",), kwargs={"run_dir": "first", "verbose": False})
    first.start()
    assert begun.wait(10)
    with pytest.raises(FlagError, match="another fit of this process is still training") as raised:
        fit("fedavg", run_dir="second", verbose=False)
    is_refused.set()
    first.join()
    assert "\n" not in str(raised.value)
    assert sys.stdout is before and not (tmp_path / "second").exists()
    assert fit("fedavg", run_dir="second", verbose=False).path.name == "second"


def test_a_fork_of_a_process_that_computes_is_refused(asked, monkeypatch, tmp_path):
    """As if the parent had computed: what TensorFlow keeps is there in the child, its threads are not."""
    context = types.SimpleNamespace(_context=types.SimpleNamespace(_initialized=True))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    for is_computing in (True, False):
        context._context._initialized = is_computing
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            try:
                fit("fedavg", run_dir="child")
                os.write(writes, b"trained")
            except FlagError as error:
                os.write(writes, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        said = os.read(reads, 1000).decode()
        os.close(reads)
        os.close(writes)
        expected = (
            f"TensorFlow runs in process {os.getpid()}, which this one was forked from" if is_computing else "trained"
        )
        assert said.startswith(expected) and "\n" not in said
        assert (tmp_path / "child").exists() is not is_computing
    fit("fedavg", run_dir="parent")


@pytest.mark.parametrize("damage", [lambda path: None, lambda path: path.write_bytes(bytes(4)), os.unlink])
def test_arrays_and_tables_are_kept_by_their_contents_and_anew_when_these_have_changed(asked, tmp_path, damage):
    arrays = {"x": np.arange(12.0).reshape(6, 2), "y": [0, 1, 0, 1, 0, 1]}
    fit("fedavg", data=arrays)
    damage(pathlib.Path(asked[0].npz))
    fit("fedavg", data=dict(arrays))
    table = pd.DataFrame({"a": [0.1, 0.2], "label": ["yes", "no"]})
    fit("fedavg", data=table, label_column="label")
    fit("fedavg", data=tmp_path / "given.csv")
    first, second, third, fourth = asked
    assert first.dataset == "npz" and first.npz == second.npz
    with np.load(first.npz) as stored:
        np.testing.assert_equal(dict(stored), arrays)
    pd.testing.assert_frame_equal(pd.read_parquet(third.data), table)
    assert fourth.data == str(tmp_path / "given.csv")
    assert len(list((tmp_path / "runs" / "data").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rouns": 3}, "--rouns: unknown flag; did you mean --rounds"),
        ({"rounds": 0}, "--rounds=0: expected an integer"),
        ({"data": 3}, "data: expected a path, a pandas table or arrays"),
        ({"data": {"x": [[0], [1]], "file": [0, 1]}}, "data: expected arrays of the names x, y, .*, got 'file'"),
        ({"data": {"x": [[0], [0, 1]], "y": [0, 1]}}, "data: x is no array"),
        ({"model": lambda shape, classes: None}, "--model: expected a function with a name at the top .* got <lambda>"),
        ({"model": functools.partial(build_small)}, "--model: expected a function .* got an object of partial; write"),
        ({"models": [build_small, (3).__add__]}, "--models: expected a function with a name at the top of its module"),
        ({"aggregator": build_small}, r'--aggregator: expected text, as "my_module:AGGREGATOR", got function'),
        ({"dataset": Row()}, r'--dataset: expected text, as "my_module:DATASET", got Row'),
        ({"rounds": build_small}, "--rounds: expected a text or a number"),
        ({"loss": lambda labels, outputs: None}, "--loss: expected a function with a name at the top of its module"),
        ({"data": {"x": [[1.0], [2.0]], "y": [0, 1]}, "rounds": 0}, "--rounds=0: expected an integer"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(asked, arguments, message, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=message) as raised:
        fit("fedavg", **arguments)
    assert "\n" not in str(raised.value)
    assert not asked and not any(tmp_path.iterdir())
    monkeypatch.setattr(training_run, "run_training", lambda config: 1 / 0)  # a run that cannot begin
    with pytest.raises(ZeroDivisionError):
        fit("fedavg", data={"x": [[1.0], [2.0]], "y": [0, 1]})
    assert not any(tmp_path.iterdir())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")  # another run, which is refused and needs no such data
    with pytest.raises(ZeroDivisionError):
        fit("fedavg", data={"x": [[1.0], [2.0]], "y": [0, 1]}, run_dir=str(tmp_path / "other"))
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_run_that_was_stopped_keeps_its_data(tmp_path, monkeypatch):
    def stop(config):
        (pathlib.Path(config.run_dir) / "config.json").write_text(f'{{"npz": "{config.npz}"}}')
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training_run, "run_training", stop)
    with pytest.raises(KeyboardInterrupt):
        fit("fedavg", data={"x": [[1.0], [2.0]], "y": [0, 1]})
    assert len(list(tmp_path.glob("runs/data/*.npz"))) == 1


@pytest.fixture
def write_tables(tmp_path):
    """{file: text} -> the run with these tables in its folder."""

    def write(**tables):
        config = build_run_config({"algo": "fedavg", "rounds": 2})
        write_json(tmp_path / "config.json", {"flags": flag_values(config), "data": {}})
        for name, text in tables.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return load_run(tmp_path)

    return write


def test_tables_of_a_run(write_tables, tmp_path):
    with pytest.raises(RunFolderError, match="no run there; expected the folder of a run"):
        load_run(tmp_path)
    with pytest.raises(RunFolderError, match=r"^run_dir: expected the path of a run's folder, .*, got int$"):
        load_run(3)
    run = write_tables(metrics="round,test_accuracy\n1,0.5\n2,\n")
    pd.testing.assert_frame_equal(
        run.metrics, pd.DataFrame({"test_accuracy": [0.5, np.nan]}, index=pd.Index([1, 2], name="round"))
    )
    assert (run.summary, run.flags["rounds"]) == ({}, 2)
    assert repr(run) == f"Run({str(tmp_path)!r}, fedavg, not finished)"
    for name, said in (("clients", r"clients.csv: no such table"), ("models", "the run is not finished")):
        with pytest.raises(RunFolderError, match=said):
            getattr(run, name)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"config.json: cannot be read"):
        load_run(tmp_path)


NAMES = ["-8341", "0042", "NA", "+49151", "None", "17", "nan", "1e5", "1_000", " 7", "=1+1", "@x", "'-1", 'a, "b"']
NAMES += ["Zoë", r"\u0041"]


def test_clients_have_the_names_of_the_data(write_tables):
    """Written as results are: a spreadsheet takes no name for a formula. Numbers stay numbers, and gaps are NaN."""
    rows = [[format_cell(cell) for cell in (name, i, "1", None if i else 0.5, "-x")] for i, name in enumerate(NAMES)]
    columns = ["client", "num_train", "model", "accuracy", format_cell("-own")]
    events = "round,time_s,client,what,model\n1,0.5,3,start,0\n"
    run = write_tables(clients=format_lines([columns, *rows]), events=events)
    assert run.clients["client"].tolist() == NAMES
    assert run.clients["model"].tolist() == ["1"] * len(NAMES)
    assert run.clients["num_train"].dtype == np.int64 and run.clients["accuracy"].dtype == np.float64
    assert run.clients["-own"].tolist() == ["-x"] * len(NAMES)
    assert run.events[["client", "model"]].to_numpy().tolist() == [[3, 0]]  # numbers of a row and of a version


DAMAGED_TABLES = {
    "two columns are called loss": "round,loss,loss\n1,2,3\n",
    "its rows have several lengths": "round,loss\n1,2,3\n2,3,4\n",
    "field larger than field limit": f"round,loss\n1,{'0' * 200_000}\n",
    "No columns to parse from file": "",
    "None of .* are in the columns": "loss\n1\n",
}


@pytest.mark.parametrize("expected", DAMAGED_TABLES)
def test_damaged_tables_of_a_run_are_one_line(write_tables, expected):
    with pytest.raises(RunFolderError, match=rf"metrics\.csv: damaged \(.*{expected}"):
        _ = write_tables(metrics=DAMAGED_TABLES[expected]).metrics


def test_importing_it_loads_no_tensorflow():
    program = "import sys, launch.api; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
