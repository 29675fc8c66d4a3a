"""The evaluation command on a user's file, and its one-line errors; a whole run is evaluated in test_train.py."""

import dataclasses
import json

import numpy as np
import pytest

from datasets.arrays import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from launch import evaluate
from launch.runs.checksums import write_checksums
from launch.runs.errors import RunFolderError
from launch.runs.file_names import encode_name
from launch.runs.run_folder import RunFolder
from launch.runs.tables import format_cell, write_json, write_table
from launch.runs.task_columns import count_reasons, find_task_columns

FORMAT = ExampleFormat((2, 2, 1), "uint8", ("cat", "dog"), Preprocessing(1 / 255))


@pytest.fixture
def save(tmp_path):
    def save_arrays(**arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        return str(path)

    return save_arrays


NAMED = dataclasses.replace(FORMAT, class_names=("cat", "dog", "eel"))
PICTURES = np.zeros((4, 2, 2))
ONE = PICTURES[:1]


def test_examples_become_those_of_the_run(save):
    x, y = evaluate.read_npz_examples(save(x=np.full((3, 2, 2), 200.0), y=np.array(["dog", "cat", "dog"])), FORMAT)
    assert (x.shape, x.dtype, x.max()) == ((3, 2, 2, 1), np.uint8, 200)
    assert (y.tolist(), y.dtype) == ([1, 0, 1], np.int32)


def test_a_run_of_an_earlier_version_knows_yes_and_no(save):
    labels = {"x": np.zeros((3, 2, 2)), "y": np.array(["Yes", "No", "true"])}
    _, y = evaluate.read_npz_examples(save(**labels), dataclasses.replace(FORMAT, class_names=("false", "true")))
    assert y.tolist() == [1, 0, 1]
    with pytest.raises(DatasetError, match="class 'true' is unknown to the run"):
        evaluate.read_npz_examples(save(**labels), dataclasses.replace(FORMAT, class_names=("No", "Yes")))


def test_the_runs_layout_counts(save):
    pixels = np.arange(12).reshape(1, 3, 2, 2)
    colour = dataclasses.replace(FORMAT, input_shape=(2, 2, 3))
    x, _ = evaluate.read_npz_examples(save(x=pixels, y=np.array(["dog"])), colour, "image_channels_first")
    np.testing.assert_array_equal(x[0, :, :, 1], pixels[0, 1])
    with pytest.raises(DatasetError, match=r"examples have the shape \(3, 2, 2\), expected numbers of shape"):
        evaluate.read_npz_examples(save(x=pixels, y=np.array(["dog"])), colour)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        # Integers are indices into the file's own class_names, whatever order the run has.
        ({"y": [0, 1, 2, 0], "class_names": ["eel", "dog", "cat"]}, [2, 1, 0, 2]),
        ({"y": [0, 1, 1, 0], "class_names": ["eel", "cat"]}, [2, 0, 0, 2]),  # some of the classes
        ({"y": [0, 1, 1, 0], "class_names": ["eel", "cat", "dog", "cow"]}, [2, 0, 0, 2]),  # one that no example has
        ({"y": np.array([2, 0, 0, 2], np.uint64), "class_names": ["eel", "cat", "dog"]}, [1, 2, 2, 1]),
        # Without class_names they are the run's, some of which may be missing.
        ({"y": [0.0, 2.0, 2.0, 0.0]}, [0, 2, 2, 0]),
        # Strings are names, with or without class_names.
        ({"y": ["eel", "cat", "cat", "dog"]}, [2, 0, 0, 1]),
        ({"y": ["eel", "cat", "cat", "eel"], "class_names": ["eel", "cow", "cat"]}, [2, 0, 0, 2]),
        # A test set counts alone, as the help says.
        ({"x": None, "x_test": PICTURES[:2], "y_test": [1, 0]}, [1, 0]),
        ({"y": [1, 0, 1, 1], "x_test": ONE, "y_test": [2]}, [2]),
        ({"y": [1, 0, 1, 1], "extra": [3]}, [1, 0, 1, 1]),
    ],
)
def test_classes_go_by_their_names(save, arrays, expected):
    arrays = {name: np.array(each) for name, each in ({"x": PICTURES} | arrays).items() if each is not None}
    x, y = evaluate.read_npz_examples(save(**arrays), NAMED)
    assert (y.tolist(), y.dtype, len(x)) == (expected, np.int32, len(expected))


def clash(*labels, x=PICTURES, **arrays):
    return {"x": x, "y": labels or [0, 1, 1, 0], **arrays}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": PICTURES}, "'y' is missing"),
        ({"data": PICTURES}, "array 'x' is missing; it has nothing that could be used"),
        ({"y_test": [1]}, "array 'x_test' is missing; it has y_test; expected x_test and y_test, or x and y"),
        (clash(x_test=ONE), "array 'y_test' is missing; it has x, y, x_test; expected x_test and y_test, or x and y"),
        (clash(0, 0), "one label for each example"),
        ({"x": PICTURES[:0], "y": np.zeros(0, int)}, "0 examples"),
        (clash(x=np.zeros((4, 5))), "expected numbers of shape"),
        (clash(x=PICTURES + 0.5), "whole numbers 0..255"),
        (clash(x=PICTURES * np.nan), "whole numbers 0..255"),
        (clash(x=PICTURES - 1), "whole numbers 0..255"),
        (clash(0, 0.5, 1, 1), r"y\[1\] is 0.5 .float64., expected whole numbers"),
        (clash(0, 1, 3, 0), "expected labels 0..2 as integers, places in the run's classes.* found 0..3"),
        (clash(0, 1, -1, 0), "found -1..1"),
        (clash("cat", "dog", "cow", "cat"), "class 'cow' is unknown to the run; expected classes among"),
        (clash("Cat", "dog", "dog", "dog"), "class 'Cat' is unknown to the run; it calls it 'cat': spell it so"),
        (clash(class_names=["cow", "cat"]), "class 'cow' is unknown to the run; expected classes among"),
        (clash(class_names=["cat", " DOG"]), "class ' DOG' is unknown to the run; it calls it 'dog'"),
        (clash(0, 1, 2, 0, class_names=["eel", "cat"]), "expected labels 0..1 as integers, places in its class_names"),
        (clash("eel", "cat", "cat", "dog", class_names=["eel", "cat"]), "label 'dog' is not among its class_names"),
        (clash(class_names=["cat", "cat"]), "expected a list of different strings"),
        (clash(class_names=[0, 1]), "class_names is int64 .*expected a list of different strings"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(save, arrays, message):
    with pytest.raises(DatasetError, match=message):
        evaluate.read_npz_examples(save(**{name: np.array(each) for name, each in arrays.items()}), NAMED)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_numbers_that_are_none_are_refused(save, value):
    path = save(x=np.full((3, 2, 2), value), y=np.zeros(3, int))
    with pytest.raises(DatasetError, match="expected finite numbers"):
        evaluate.read_npz_examples(path, dataclasses.replace(FORMAT, input_dtype="float32"))


@pytest.fixture
def stored_run(write_run, tmp_path):
    """A finished run without data files and models."""
    run_dir = write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, 2)
    config = json.loads((run_dir / "config.json").read_text())
    write_json(run_dir / "config.json", {**config, "data": FORMAT.to_json()})
    write_json(run_dir / "summary.json", {"rounds": 2, "fedavg": {}})
    (run_dir / "clients.csv").write_text("client,model\nclient_0,global\n")
    return run_dir


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", {"data": {}}, "config.json: damaged, its data lacks input_shape"),
        ("config.json", {"data": 3}, "config.json: damaged, does not describe the data"),
        ("config.json", {"flags": []}, "no run to read there"),
        ("summary.json", {"fedavg": None}, "summary.json or clients.csv is damaged"),
        ("summary.json", {}, "its saved models are gone"),
    ],
)
def test_a_damaged_run_is_one_line(stored_run, name, content, message, capsys):
    before = json.loads((stored_run / name).read_text())
    write_json(stored_run / name, {**before, **content})
    assert evaluate.main([f"--run_dir={stored_run}"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_flag_of_the_data_names_the_one_for_examples_of_ones_own(capsys):
    assert evaluate.main(["--data=mine.csv"]) == 2
    said = "--data: is a flag of launch.train; --npz=<file> evaluates on examples of your own"
    assert capsys.readouterr().err == f"error: {said}\n"


def make_row(model, test_set, examples, reached, loss=0.25, undefined=(), metric="accuracy", **further):
    cells = {"model": model, "test_set": test_set, "examples": examples, metric: reached, "loss": loss}
    return evaluate.EvaluationRow(cells | further, dict(undefined))


def test_files_and_models_that_are_asked_for_have_tables_of_their_own(stored_run):
    run, rows = evaluate.read_finished_run(str(stored_run)), [make_row("global", "global", 1, 0.5)]
    asked = [("",), ("a/b.npz",), ("", "global"), ("a/B 1.npz", "../../outside"), ("", "x" * 300)]
    *names, longest = [evaluate.write_evaluation(run, rows, *options).name for options in asked]
    names += [evaluate.write_evaluation(run._replace(is_best=True), rows, *asked[i]).name for i in (0, 3)]
    outside = "_+b~201_of_~2e.~2f..~2foutside.csv"
    first = ["evaluation.csv", "evaluation_b.csv", "evaluation_of_global.csv", f"evaluation{outside}"]
    assert names == [*first, "evaluation-best.csv", f"evaluation-best{outside}"]
    assert len(longest) < 130 and {path.name for path in stored_run.glob("evaluation*.csv")} == {*names, longest}


def test_sums_of_models_are_found_whatever_their_folders_are_called(stored_run):
    for name in ("~2e.~2fx", "of an earlier\u2028version"):
        (stored_run / "models" / name).mkdir(parents=True)
        (stored_run / "models" / name / "model.keras").touch()
    folder = RunFolder(stored_run, is_new=False)
    write_checksums(folder)
    folder.close()
    run = evaluate.read_finished_run(str(stored_run))
    assert len(evaluate.choose_models(run, "")) == 2
    (stored_run / "models" / "~2e.~2fx" / "model.keras").write_text("another")
    with pytest.raises(RunFolderError, match="has changed"):
        evaluate.choose_models(run, "../x")


def test_a_table_is_aligned_and_metrics_that_are_undefined_say_why(stored_run):
    task = find_task_columns("binary")
    rows = [
        make_row("global", "client_10", 1234, 0.5, 0.25, metric="binary_accuracy", auc=0.75, f1=0.5),
        make_row("b", "b", 2, 1.0, 0.5, {"auc": "are all of one class"}, "binary_accuracy", auc=np.nan, f1=np.nan),
    ]
    assert list(evaluate.format_table(rows)) == [
        "model   test_set   examples  binary_accuracy    loss     auc      f1",
        "global  client_10     1,234           0.5000  0.2500  0.7500  0.5000",
        "b       b                 2           1.0000  0.5000     nan     nan",
    ]
    counts = count_reasons(row.undefined for row in rows)
    one = "AUC is undefined for 1 of 2 test sets, whose test examples are all of one class"
    assert task.say_undefined(counts, 2, "test sets") == [one] and count_reasons([rows[0].undefined]) == {}
    path = evaluate.write_evaluation(evaluate.read_finished_run(str(stored_run)), rows, "")
    assert path.read_text().splitlines() == [
        "model,test_set,examples,binary_accuracy,loss,auc,f1,undefined",
        "global,client_10,1234,0.5,0.25,0.75,0.5,",
        "b,b,2,1,0.5,nan,nan,auc: its test examples are all of one class",
    ]
    assert json.loads(path.with_suffix(".json").read_text())[1]["auc"] is None


@pytest.fixture
def run_on_a_file(write_finished_run, tmp_path):
    """(run folder, its npz)."""
    rng = np.random.default_rng(0)
    npz = tmp_path / "data" / "mine.npz"
    npz.parent.mkdir()
    np.savez(npz, x=rng.normal(size=(90, 3)).astype(np.float32), y=np.arange(90) % 3)
    flags = {"algo": "fedavg", "dataset": "npz", "npz": str(npz), "model": "perceptron", "partition": "iid"}
    return write_finished_run(tmp_path / "run", **flags), npz


def test_a_file_that_has_moved_or_changed_says_what_to_do(run_on_a_file, tmp_path, capsys):
    run_dir, npz = run_on_a_file
    assert evaluate.main([str(run_dir)]) == 0  # the folder alone is enough
    of_run = capsys.readouterr().out
    (tmp_path / "elsewhere").mkdir()
    moved = npz.rename(tmp_path / "elsewhere" / npz.name)
    assert evaluate.main([str(run_dir)]) == 2
    assert (
        "was trained on it; put it back, or name the folder where it is now with --data_dir" in capsys.readouterr().err
    )
    assert evaluate.main([str(run_dir), f"--data_dir={moved.parent}"]) == 0
    assert capsys.readouterr().out == of_run
    assert evaluate.read_finished_run(str(run_dir), npz=str(moved)).load_data().num_train.sum() > 0
    arrays = dict(np.load(moved))
    np.savez(npz, **{**arrays, "x": arrays["x"] + 1})
    assert evaluate.main([str(run_dir)]) == 2
    error = capsys.readouterr().err
    assert f"{npz}: has changed since {run_dir} was trained on it; put the former file back" in error
    assert f"on the new one: python -m launch.evaluate --run_dir={run_dir} --npz={npz}" in error
    assert error.count("\n") == 1


def test_models_are_found_by_the_names_that_they_have(stored_run):
    names = ["../../outside", "Ward", "ward", "", "x" * 300, "a\u202eb", "=cmd()"]
    write_table(stored_run / "clients.csv", ["client", "model"], [[format_cell(name)] * 2 for name in names])
    folders = [*map(encode_name, names), "Of an earlier version"]
    for folder in folders:
        (stored_run / "models" / folder).mkdir(parents=True)
        (stored_run / "models" / folder / "model.keras").write_text(folder)
    run = evaluate.read_finished_run(str(stored_run))
    assert run.client_models == {name: name for name in names}
    found = run.find_model_folders()
    assert found == dict(
        zip([*names, folders[-1]], [stored_run / "models" / folder for folder in folders], strict=True)
    )
    assert evaluate.choose_models(run, "") == sorted([*names, folders[-1]])
    assert evaluate.choose_models(run, "../../outside") == ["../../outside"]
