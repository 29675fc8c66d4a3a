"""The way in from Python: what `fit` asks `launch.train` for, and what `load_run` reads back.

That `fit` trains and that `predict` is the model that was trained is shown by the notebook's test in tests/examples.
"""

import dataclasses
import functools
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pandas as pd
import pytest

from launch.api import _keep, fit, load_run
from launch.console.progress import say
from launch.runs.errors import RunFolderError
from launch.runs.tables import format_cell, write_json, write_table
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
    run = fit("fedavg", rounds=3, epochs=2, keep_best=True, fairness=np.True_, model=build_small)
    expected = build_run_config(
        {
            "algo": "fedavg",
            "rounds": 3,
            "epochs": 2,
            "keep_best": True,
            "fairness": True,
            "model": f"{__name__}:build_small",
        }
    )
    config = {**flag_values(asked[0]), "run_dir": ""}
    assert config == flag_values(expected)
    assert str(run.path) == asked[0].run_dir == "runs/fedavg_digits_001"
    assert capsys.readouterr().out == "a line of training\n"


def test_modules_that_the_caller_names_are_trusted(asked):
    assert fit("fedavg", model=build_small, client_dir="/srv/clients")._trusted == {__name__}


def test_a_quiet_run_in_a_folder_by_name(asked, capsys):
    run = fit("fedavg", run_dir="mine", verbose=False, model=None)
    assert str(run.path) == "mine" and run.flags["model"] == "auto"
    assert capsys.readouterr().out == ""


def test_clients_of_data_in_memory_are_the_clients_of_the_first_run(asked):
    """The default of --partition is read from the data, which must be there by then."""
    table = pd.DataFrame({"a": [0.1, 0.2], "user": ["u", "v"], "label": ["yes", "no"]})
    fit("fedavg", data=table)
    fit("fedavg", data=table.set_index("user"))
    fit("fedavg", data={"x": [[0.1], [0.2]], "y": [0, 1], "client": [3, 4]})
    fit("fedavg", data=table.assign(user=[1.5, 2.5]).rename(columns={"user": "b", "label": "y"}), label_column=["a"])
    assert [config.partition for config in asked] == ["natural", "natural", "natural", "iid"]


def test_columns_that_are_listed_are_quoted(asked, tmp_path):
    table = pd.DataFrame({"a, b": [0.1, 0.2], "c": [1, 2], "label": [0, 1]})
    fit("fedavg", data=table, feature_columns=["a, b", "c"])
    fit("fedavg", data=table, feature_columns=table.columns[:2])
    assert [config.feature_columns for config in asked] == ['"a, b",c'] * 2


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


def test_arrays_and_tables_are_kept_by_their_contents(asked, tmp_path):
    arrays = {"x": np.arange(12.0).reshape(6, 2), "y": [0, 1, 0, 1, 0, 1]}
    fit("fedavg", data=arrays)
    fit("fedavg", data=dict(arrays))
    table = pd.DataFrame({"a": [0.1, 0.2], "label": ["yes", "no"]})
    fit("fedavg", data=table, label_column="label")
    fit("fedavg", data=tmp_path / "given.csv")
    first, second, third, fourth = asked
    assert first.dataset == "npz" and first.npz == second.npz
    with np.load(first.npz) as stored:
        np.testing.assert_array_equal(stored["x"], arrays["x"])
        np.testing.assert_array_equal(stored["y"], arrays["y"])
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
        ({"loss": functools.partial(build_small)}, "--loss: expected a function with a name at the top of its module"),
        ({"data": {"x": [[1.0], [2.0]], "y": [0, 1]}, "rounds": 0}, "--rounds=0: expected an integer"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(asked, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message) as raised:
        fit("fedavg", **arguments)
    assert "\n" not in str(raised.value)
    assert not asked and not any(tmp_path.iterdir())


def test_a_run_that_cannot_begin_leaves_no_folder(monkeypatch, tmp_path):
    def refuse(config):
        raise ValueError("no")

    monkeypatch.setattr(training_run, "run_training", refuse)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no"):
        fit("fedavg")
    assert not any((tmp_path / "runs").iterdir())


def test_tables_of_a_run(tmp_path):
    config = build_run_config({"algo": "fedavg", "rounds": 2})
    write_json(tmp_path / "config.json", {"flags": flag_values(config), "data": {}})
    write_table(tmp_path / "metrics.csv", ["round", "test_accuracy"], [["1", "0.5"], ["2", ""]])
    run = load_run(tmp_path)
    assert run.metrics.index.tolist() == [1, 2]
    assert run.metrics["test_accuracy"].iloc[0] == 0.5 and np.isnan(run.metrics["test_accuracy"].iloc[1])
    assert run.summary == {} and run.flags["rounds"] == 2
    assert repr(run) == f"Run({str(tmp_path)!r}, fedavg, not finished)"
    with pytest.raises(RunFolderError, match=r"clients.csv: no such table"):
        _ = run.clients
    with pytest.raises(RunFolderError, match="the run is not finished"):
        _ = run.models


NAMES = [
    "-8341",
    "0042",
    "NA",
    "+49151",
    "None",
    "17",
    "nan",
    "1e5",
    "1_000",
    " 7",
    "=1+1",
    "@x",
    "'-1",
    'a, "b"',
    "Zoë",
    r"\u0041",
]


def test_clients_have_the_names_of_the_data(tmp_path):
    """Written as results are: a spreadsheet takes no name for a formula. Numbers stay numbers, and gaps are NaN."""
    config = build_run_config({"algo": "fedavg", "rounds": 2})
    write_json(tmp_path / "config.json", {"flags": flag_values(config), "data": {}})
    rows = [[format_cell(cell) for cell in (name, i, "1", None if i else 0.5, "-x")] for i, name in enumerate(NAMES)]
    write_table(tmp_path / "clients.csv", ["client", "num_train", "model", "accuracy", "-own"], rows)
    write_table(
        tmp_path / "events.csv", ["round", "time_s", "client", "what", "model"], [["1", "0.5", "3", "start", "0"]]
    )
    run = load_run(tmp_path)
    assert run.clients["client"].tolist() == NAMES
    assert run.clients["model"].tolist() == ["1"] * len(NAMES)
    assert run.clients["num_train"].dtype == np.int64 and run.clients["accuracy"].dtype == np.float64
    assert run.clients["-own"].tolist() == ["-x"] * len(NAMES)
    assert run.events[["client", "model"]].to_numpy().tolist() == [[3, 0]]  # numbers of a row and of a version


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(bytes(4)), os.unlink])
def test_data_that_were_kept_are_kept_anew_when_they_have_changed(tmp_path, damage):
    path = tmp_path / "data" / "0123.csv"

    def keep():
        with _keep({path: b"a,b\n"}):
            pass

    keep()
    damage(path)
    keep()
    assert path.read_bytes() == b"a,b\n"
    before = path.stat().st_ino
    keep()
    assert path.stat().st_ino == before


DAMAGED_TABLES = {
    "two columns are called loss": "round,loss,loss\n1,2,3\n",
    "its rows have several lengths": "round,loss\n1,2,3\n2,3,4\n",
    "field larger than field limit": f"round,loss\n1,{'0' * 200_000}\n",
    "No columns to parse from file": "",
    "None of .* are in the columns": "loss\n1\n",
}


@pytest.mark.parametrize("expected", DAMAGED_TABLES)
def test_damaged_tables_of_a_run_are_one_line(tmp_path, expected):
    flags = flag_values(build_run_config({"algo": "fedavg"}))
    write_json(tmp_path / "config.json", {"flags": flags, "data": {}})
    (tmp_path / "metrics.csv").write_text(DAMAGED_TABLES[expected])
    with pytest.raises(RunFolderError, match=rf"metrics\.csv: damaged \(.*{expected}"):
        _ = load_run(tmp_path).metrics


def test_no_run_there(tmp_path):
    with pytest.raises(RunFolderError, match="no run there; expected the folder of a run"):
        load_run(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"config.json: cannot be read"):
        load_run(tmp_path)


def test_importing_it_loads_no_tensorflow():
    program = "import sys, launch.api; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
