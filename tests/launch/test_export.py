"""The export command: a run's files and report, and what stops it in the midst."""

import base64
import contextlib
import functools
import hashlib
import importlib
import json
import re
import sys
import tomllib
import types
from types import SimpleNamespace

import numpy as np
import pytest

from launch import export
from launch.runs.run_records import read_rows
from launch.tflite.converter_process import MODULE, ConverterProcess, run_bounded
from launch.tflite.embedded_card import read_card, split_file
from launch.tflite.export_measurement import ExportedFile
from launch.tflite.web_page import BUILDS
from models.model_names import EXPORT_FORMATS, ModelError

ENDS = ("js", "wasm")


@pytest.fixture(scope="module", autouse=True)
def short_timing():
    """And pictures that are there, since how they look has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("launch.tflite.export_measurement.TIMED_RUNS", 5)
        patch.setattr("launch.tflite.export_models.draw_confusions", lambda counts, names, title, path: path.touch())
        yield


@pytest.fixture(scope="module", autouse=True)
def one_converter(tmp_path_factory):
    """One process of the converter for all exports here, since each start takes seconds."""
    log_path = str(tmp_path_factory.mktemp("converter") / "log")
    with run_bounded(MODULE, log_path) as process, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "launch.export.run_converter_process",
            lambda folder, log_path: contextlib.nullcontext(ConverterProcess(process, folder)),
        )
        yield


@pytest.fixture(scope="module")
def student_run(tmp_path_factory, write_finished_run):
    """A quantization-aware FedSiKD run of perceptrons that was not trained."""
    run_dir = tmp_path_factory.mktemp("student") / "run"
    return write_finished_run(run_dir, algo="fedsikd", model="perceptron", quantize="qat")


@pytest.fixture(scope="module")
def exported(student_run):
    """Its export folder, with everything that can be asked for; a Flower app is beside the run."""
    arguments = [f"--run_dir={student_run}", "--save_test_set", "--debug_quantization"]
    arguments += ["--on_device_training=full", f"--flower_app={student_run.parent / 'app'}"]
    assert export.main([*arguments, "--representative_client=client_1", "--representative_examples=7"]) == 0
    return student_run / "export"


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory, write_finished_run):
    """A FedAvg run of perceptrons that was not trained, with an export of before."""
    run_dir = write_finished_run(tmp_path_factory.mktemp("plain") / "run", algo="fedavg", model="perceptron")
    (run_dir / "export").mkdir()
    (run_dir / "export" / "global.float32.tflite").write_bytes(b"of before")
    return run_dir


def test_every_format_is_written_with_its_json(exported):
    files = [f"global.{name}" for name in (*EXPORT_FORMATS, "training")]
    written = {path.name for path in exported.iterdir()}
    assert written == {
        *(f"{name}.tflite" for name in files),
        *(f"{name}.json" for name in files),
        *(f"global.{name}.confusions.png" for name in EXPORT_FORMATS),
        "global.int8.layers.csv",
        *["card.md", "card.json", "labels.txt", "test_set.npz"],
        *["report.md", "report.csv", "report_clients.csv", "report_teachers.csv"],
    }
    assert (exported / "labels.txt").read_text().split() == list("0123456789")


def test_a_flower_app_has_the_training_file_and_what_it_begins_with(exported):
    app = exported.parents[1] / "app"
    files = {str(path.relative_to(app)) for path in app.rglob("*") if path.is_file()}
    modules = ("__init__.py", "client_app.py", "join.py", "server_app.py", "model.json")
    demo = {f"demo/node_{node}.npz" for node in range(1, 5)}
    assert files == demo | {"README.md", "pyproject.toml"} | {f"federated_app/{name}" for name in modules}
    for path in app.rglob("*.py"):
        compile(path.read_text(), path, "exec")
    model = json.loads((app / "federated_app" / "model.json").read_text())
    assert base64.b64decode(model["training_file"]) == (exported / "global.training.tflite").read_bytes()
    training = json.loads((exported / "global.training.json").read_text())
    assert (model["weights"], model["num_classes"], "table" in model) == (list(training["weights"]), 10, False)
    settings = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    assert (settings["learning-rate"], settings["local-epochs"]) == (0.003, 5)
    readme = (app / "README.md").read_text()
    assert "uint8 of shape (examples, 8 x 8 x 1)" in readme and "- the teacher's part of the loss" in readme


def test_a_node_of_the_app_trains_the_file_on_its_own_examples(exported, drive_flower_app):
    app = exported.parents[1] / "app"
    client_app, server_app = drive_flower_app(app)
    settings = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    context = SimpleNamespace(run_config=settings, node_config={"data": str(app / "demo" / "node_1.npz")})
    client = client_app.app.make(context)
    start = server_app.read_start()
    trained, num_examples, metrics = client.fit(start, {"round": 1})
    again, *_ = client.fit(start, {"round": 1})
    other, *_ = client.fit(start, {"round": 2})
    assert num_examples == 72 and 0 < metrics["loss"] < 3  # of 90, a fifth is held out
    assert all((a == b).all() for a, b in zip(trained, again, strict=True))
    assert not all((a == b).all() for a, b in zip(trained, other, strict=True))
    (loss, num, at_start), (loss_then, _, then) = client.evaluate(start, {}), client.evaluate(trained, {})
    assert num == 18 and loss_then < loss and then["accuracy"] > at_start["accuracy"]


def test_the_server_of_the_app_takes_means_alone_where_it_sees_sums_alone(exported, drive_flower_app, tmp_path):
    app = exported.parents[1] / "app"
    _, server_app = drive_flower_app(app)
    settings = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    settings = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    settings |= {"Krum.num_malicious_clients": 1, "FedAvgM.server_momentum": 0.5, "strategy": "Krum"}
    start = server_app.read_start()
    given = server_app.make_strategy(settings, start, tmp_path)
    assert given["num_malicious_clients"] == 1 and "server_momentum" not in given
    given["evaluate_fn"](3, start, {})
    with np.load(tmp_path / "round_3.npz") as file:
        assert all((file[name] == array).all() for name, array in zip(server_app.NAMES, start, strict=True))
    with pytest.raises(ValueError, match=r"^strategy='Krum' with secure=True: expected one of FedAvg, FedAvgM, "):
        server_app.make_strategy({**settings, "secure": True}, start, tmp_path)


@pytest.fixture
def drive_flower_app(monkeypatch):
    """(app) -> its modules client_app and server_app, with stand-ins for Flower, which is not installed here."""

    def open_app(app):
        import tensorflow as tf

        def name_arguments(**given):
            return given

        strategy = SimpleNamespace(Krum=name_arguments)
        stand_ins = {
            "ai_edge_litert.interpreter": {"Interpreter": tf.lite.Interpreter},
            "flwr.client": {"NumPyClient": type("NumPyClient", (), {"to_client": lambda client: client})},
            "flwr.client.mod": {"secaggplus_mod": None},
            "flwr.clientapp": {"ClientApp": lambda make, mods: SimpleNamespace(make=make)},
            "flwr.common": {"ndarrays_to_parameters": list},
            "flwr.server": {"LegacyContext": None, "ServerConfig": None, "strategy": strategy},
            "flwr.server.workflow": {"DefaultWorkflow": None, "SecAggPlusWorkflow": None},
            "flwr.serverapp": {"ServerApp": lambda: SimpleNamespace(main=lambda: lambda function: function)},
        }
        for name, content in stand_ins.items():
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
            monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0]))
        monkeypatch.syspath_prepend(str(app))
        names = [f"federated_app.{name}" for name in ("client_app", "server_app")]
        for name in [*names, "federated_app.join", "federated_app"]:
            monkeypatch.delitem(sys.modules, name, raising=False)
        found = [importlib.import_module(name) for name in names]
        for name in [*names, "federated_app.join", "federated_app"]:
            monkeypatch.delitem(sys.modules, name)
        return found

    return open_app


def test_the_layers_of_int8_are_measured(exported):
    rows = read_rows(exported / "global.int8.layers.csv")
    assert [row["operator"] for row in rows if row["operator"] != "RESHAPE"] == ["FULLY_CONNECTED"] * 3
    assert rows[-1]["layer"] == "output" and rows[-1]["elements"] == "10"
    assert all(float(row["error_in_steps"]) < 5 for row in rows), rows
    assert "| global.int8.tflite | output | FULLY_CONNECTED |" in (exported / "report.md").read_text()


def test_json_says_what_a_phone_needs(exported):
    content = (exported / "global.int8.tflite").read_bytes()
    expected = {
        "file": "global.int8.tflite",
        "format": "int8",
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "input": {"shape": [1, 8, 8, 1], "dtype": "float32", "scale": None, "zero_point": None},
        "preprocessing": {
            "formula": "float32(x) * scale + offset",
            "scale": 1 / 16,
            "offset": 0.0,
            "stored_dtype": "uint8",
        },
        "representative_client": "client_1",
        "representative_clients": 1,
        "representative_examples": 7,
        "features": [],  # of pictures
        "labels": list("0123456789"),
        "dataset": "digits",
        "algorithm": "fedsikd",
        "round": 1,
        "source_model": "global",
    }
    described = json.loads((exported / "global.int8.json").read_text())
    assert {name: described[name] for name in expected} == expected and described["output"]["shape"] == [1, 10]
    assert described["card_bytes"] > len(content) - len(split_file(content).model)  # the metadata are in the model
    assert json.loads((exported / "global.dynamic.json").read_text())["representative_client"] is None
    trains = json.loads((exported / "global.training.json").read_text())
    assert list(trains["signatures"]) == ["get_weights", "infer", "set_weights", "train"]
    assert (trains["trained"], trains["select_operators"]) == ("full", [])
    assert trains["weights"]["weight_0"] == "hidden_1/kernel"
    assert trains["signatures"]["train"]["inputs"]["x"]["shape"] == [trains["batch_size"], 8, 8, 1]


def test_every_file_carries_its_part_of_the_card(exported):
    card = json.loads((exported / "card.json").read_bytes())
    files = {file["file"]: file for file in card["files"]}
    read = {path.name: read_card(path.read_bytes()) for path in exported.glob("*.tflite")}
    assert read == {name: {**card, "files": [file]} for name, file in files.items()}
    assert "accuracy" not in files["global.training.tflite"]
    assert card["data_set"]["licence"] == "CC BY 4.0, on its UCI page"
    assert "| global.int8.tflite | " in (exported / "card.md").read_text()


def test_the_card_has_the_reports_numbers(exported):
    card = json.loads((exported / "card.json").read_bytes())
    [row] = [row for row in read_rows(exported / "report.csv") if row["format"] == "int8"]
    with np.load(exported / "test_set.npz") as test_set:
        y, predictions = test_set["y"], test_set["global.int8.tflite"]
    [file] = [file for file in card["files"] if file["format"] == "int8"]
    clients = [each for each in read_rows(exported / "report_clients.csv") if each["file"] == file["file"]]
    own = sorted(float(each["test_accuracy"]) for each in clients)
    reached = file["accuracy"]
    assert [each["accuracy"] for each in reached.pop("worst_clients")] == pytest.approx(own, abs=1e-6)
    assert reached == {
        "global": pytest.approx(float(row["test_accuracy"]), abs=1e-6),
        "test_examples": len(y),
        "mean_of_clients": pytest.approx(float(row["client_test_accuracy"]), abs=1e-6),
        "worst_tenth_of_clients": pytest.approx(own[0], abs=1e-6),  # a tenth of 3 is one
        "clients": 3,
    }
    assert file["model_bytes"] == int(row["size_bytes"]) - int(row["card_bytes"])
    by_class = [np.mean(predictions[y == label] == label) for label in range(10)]
    assert [each["accuracy"] for each in file["accuracy_by_class"]] == pytest.approx(by_class)


def test_report_agrees_with_the_files(exported):
    rows = {row["format"]: row for row in read_rows(exported / "report.csv")}
    assert list(rows) == list(EXPORT_FORMATS)
    with np.load(exported / "test_set.npz") as test_set:
        x, y, predictions = test_set["x"], test_set["y"], test_set["global.qat_int8.tflite"]
    file = ExportedFile((exported / "global.qat_int8.tflite").read_bytes())
    logits = file.compute_outputs(x.astype(np.float32) / np.float32(16))
    np.testing.assert_array_equal(logits.argmax(axis=1), predictions)
    assert float(rows["qat_int8"]["test_accuracy"]) == pytest.approx(np.mean(predictions == y), abs=1e-6)
    assert float(rows["float32"]["top1_agreement"]) == 1
    assert float(rows["float32"]["largest_logit_difference"]) < 1e-4
    assert float(rows["float16"]["largest_logit_difference"]) < 0.05
    assert all(float(row["top1_agreement"]) > 0.85 for row in rows.values())
    assert rows["int8"]["keras_test_accuracy"] == rows["float32"]["keras_test_accuracy"]
    assert float(rows["int8"]["share_of_float32"]) < 0.5
    clients = [row for row in read_rows(exported / "report_clients.csv") if row["file"] == "global.float32.tflite"]
    assert [row["client"] for row in clients] == ["client_0", "client_1", "client_2"]
    mean = np.mean([float(row["test_accuracy"]) for row in clients])
    assert float(rows["float32"]["client_test_accuracy"]) == pytest.approx(mean, abs=1e-5)
    assert rows["float32"]["num_clients"] == "3"


def test_student_stands_beside_its_teacher(exported):
    teacher, *students = read_rows(exported / "report_teachers.csv")
    assert (teacher["model"], teacher["format"]) == ("teacher_0", "float32")
    assert [row["format"] for row in students] == list(EXPORT_FORMATS)
    assert all(int(teacher["parameters"]) > int(row["parameters"]) for row in students)
    ratios = [int(teacher["size_bytes"]) / int(row["size_bytes"]) for row in students]
    assert [float(row["times_smaller"]) for row in students] == pytest.approx(ratios, rel=1e-5)


def test_a_teacher_and_a_clients_model_with_integer_inputs(student_run, exported, capsys):
    """Each export replaces the one before, and leaves what a person has put there."""
    (exported / "README.md").write_text("mine")
    (exported / "mine.int8.tflite").write_bytes((exported / "global.int8.tflite").read_bytes())
    assert export.main([f"--run_dir={student_run}", "--model=teacher_0", "--formats=float16"]) == 0
    assert "removed  20 files of an earlier export, which this one does not have: " in capsys.readouterr().out
    assert not read_rows(exported / "report_clients.csv")
    assert export.main([f"--run_dir={student_run}", "--model=client_2", "--formats=int8", "--io=int8"]) == 0
    [row] = read_rows(exported / "report.csv")
    assert (row["file"], row["input_dtype"], row["num_clients"]) == ("client_2.int8.tflite", "int8", "1")
    assert (row["model"], row["representative_client"]) == ("client_2", "client_2")
    description = json.loads((exported / "client_2.int8.json").read_text())
    assert description["source_model"] == "global"
    assert description["input"]["scale"] == pytest.approx(1 / 255, rel=0.1)
    reports = ["report.md", "report.csv", "report_clients.csv", "report_teachers.csv"]
    assert {path.name for path in exported.iterdir()} == {
        *(f"client_2.int8.{ending}" for ending in ("tflite", "json", "confusions.png")),
        *("card.md", "card.json", "labels.txt", *reports),
        *("README.md", "mine.int8.tflite"),
    }
    *_, last_row, report = capsys.readouterr().out.splitlines()
    assert last_row.startswith("client_2.int8.tflite") and report == f"report   {exported / 'report.md'}"


def test_a_page_is_written_beside_its_files(plain_run, monkeypatch, tmp_path, capsys):
    runtime = tmp_path / "core"
    for name in ("package.json", "dist/index.js", *(f"wasm/{stem}.{end}" for stem in BUILDS.values() for end in ENDS)):
        (runtime / name).parent.mkdir(parents=True, exist_ok=True)
        (runtime / name).write_text('{"version": "2.5.3"}')
    monkeypatch.setattr("launch.tflite.web_page.RUNTIME", runtime)
    exported = plain_run / "export"
    arguments = ["--formats=float32,int8", "--web_page", "--save_test_set", "--representative_examples=20"]
    assert export.main([str(plain_run), *arguments]) == 0
    assert capsys.readouterr().out.splitlines()[-2] == f"page     {exported / 'page.html'}"
    page = (exported / "page.html").read_text()
    content = json.loads(re.search(r'id="page-data">(.*?)</script>', page)[1])
    (exported / "page.html").unlink()
    [model] = content["models"]
    assert [file["format"] for file in model["files"]] == ["float32", "int8"]
    with np.load(exported / "test_set.npz") as test_set:
        reported, labels = test_set["global.float32.tflite"], test_set["y"]
    chosen = content["sample"]["indices"]
    assert len(set(chosen)) == 100 and content["sample"]["labels"] == labels[chosen].tolist()
    assert model["files"][0]["predictions"] == reported[chosen].tolist()


@pytest.fixture
def convert_by(monkeypatch):
    """(function) -> has each conversion done by it, of the conversion as it is and its arguments."""
    from launch.tflite import written_files

    convert_model = written_files.convert_model
    return lambda convert: monkeypatch.setattr(
        written_files, "convert_model", functools.partial(convert, convert_model)
    )


def fail_in(formats, error):
    """A conversion that fails in these formats."""

    def convert(convert_model, spec, weights, export_format, *arguments, **options):
        if export_format in formats:
            raise error
        return convert_model(spec, weights, export_format, *arguments, **options)

    return convert


def make_another_model(convert_model, spec, weights, *arguments, **options):
    """A converter whose file answers otherwise: here of weights that are all zero."""
    return convert_model(spec, tuple(0 * weight for weight in weights), *arguments, **options)


@pytest.mark.parametrize(
    ("convert", "exit_code", "expected"),
    [
        (fail_in(["float32", "int8"], ModelError("it refuses")), 2, "error: global.float32.tflite: it refuses; nor"),
        (fail_in(["int8"], KeyboardInterrupt()), 130, "stopped"),
        (fail_in(["int8"], OSError(28, "No space left on device")), 1, "error: No space left on device"),
        (
            make_another_model,
            2,
            "error: global.float32.tflite: float32 of perceptron: its outputs differ from Keras's",
        ),
    ],
)
def test_what_stops_in_the_midst_leaves_nothing(plain_run, convert_by, capfd, convert, exit_code, expected):
    convert_by(convert)
    formats = "float32" if convert is make_another_model else "float32,int8"
    exported = plain_run / "export"
    before = {path: path.read_bytes() for path in exported.iterdir()}
    assert export.main([f"--run_dir={plain_run}", f"--formats={formats}"]) == exit_code
    message = capfd.readouterr().err
    assert message.startswith(expected) and message.count("\n") == 1
    assert {path: path.read_bytes() for path in exported.iterdir()} == before
    assert before and not list(plain_run.glob(".*export"))


@pytest.mark.parametrize(("formats", "exit_code"), [(["--formats=float32,int8"], 1), ([], 0)])
def test_a_format_that_cannot_be_is_a_line_and_the_others_are_written(plain_run, convert_by, capfd, formats, exit_code):
    """Only who asked for it by name gets an exit code."""
    convert_by(fail_in(["int8", "float16", "dynamic"], ModelError("int8 of perceptron: the converter crashed")))
    exported = plain_run / "export"
    assert export.main([f"--run_dir={plain_run}", *formats]) == exit_code
    said = capfd.readouterr()
    assert "warning  global.int8.tflite cannot be made: int8 of perceptron: the converter crashed\n" in said.out
    assert said.err.partition(" cannot be made")[0] == ("error: global.int8.tflite" if exit_code else "")
    assert [row["format"] for row in read_rows(exported / "report.csv")] == ["float32"]
    assert "- global.int8.tflite cannot be made: int8 of perceptron" in (exported / "report.md").read_text()


OWN_MODELS = """
import tensorflow as tf
L = tf.keras.layers


def build_lstm(shape, num_classes):
    inputs = tf.keras.Input(shape)
    rows = L.Reshape(shape[:-1])(inputs)
    return tf.keras.Model(inputs, L.Dense(num_classes)(L.LSTM(6, name="reader")(rows)))


class Keeping(L.Layer):
    def build(self, shape):
        self.seen = self.add_weight("seen", (), initializer="zeros", trainable=False)

    def call(self, x):
        self.seen.assign_add(tf.reduce_sum(x))
        return x + self.seen


class Alone(L.Layer):
    def call(self, x):
        return tf.matmul(tf.squeeze(x), tf.eye(64)) if x.shape[0] == 1 else x


def build_alone(shape, num_classes):
    return tf.keras.Sequential([tf.keras.Input(shape), L.Flatten(), Alone(name="alone"), L.Dense(num_classes)])


def build_keeping(shape, num_classes):
    return tf.keras.Sequential([tf.keras.Input(shape), L.Flatten(), Keeping(), L.Dense(num_classes)])
"""


@pytest.fixture
def own_run(tmp_path, monkeypatch, write_finished_run):
    """The name of a builder in OWN_MODELS -> a run of that model, untrained."""
    (tmp_path / "own_models_to_export.py").write_text(OWN_MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FL_TRUST_MODULE", "own_models_to_export")

    def write(name):
        return write_finished_run(tmp_path / name, algo="fedavg", model=f"own_models_to_export:{name}")

    return write


@pytest.mark.slow
def test_a_recurrent_model_is_exported(own_run, capfd):
    """Each file answers the same in any order, as the export itself checks; the float ones as Keras."""
    run_dir = own_run("build_lstm")
    assert export.main([str(run_dir), "--formats=float16,int8", "--representative_examples=20"]) == 0
    assert "cannot be made" not in capfd.readouterr().out
    rows = {row["format"]: row for row in read_rows(run_dir / "export" / "report.csv")}
    assert list(rows) == ["float16", "int8"]
    assert float(rows["float16"]["largest_logit_difference"]) < 0.01
    assert (rows["int8"]["representative_client"], rows["int8"]["representative_clients"]) == ("", "3")


@pytest.mark.parametrize(
    ("name", "arguments", "endings", "reason"),
    [
        ("build_keeping", ["--formats=float32"], ["float32"], "its answers depend on the examples before"),
        # It ended in a traceback when its multiply-accumulates were counted.
        (
            "build_alone",
            ["--formats=float32,int8", "--on_device_training=full"],
            ["float32", "int8", "training"],
            r"layer alone \(Alone\) fails",
        ),
    ],
)
def test_a_model_that_cannot_be_a_file_is_a_line_for_each(own_run, capfd, name, arguments, endings, reason):
    run_dir = own_run(name)
    assert export.main([str(run_dir), *arguments]) == 2
    said = capfd.readouterr()
    assert re.findall(rf"warning  global\.(\w+)\.tflite cannot be made: .*{reason}", said.out) == endings
    assert said.err.startswith("error: global.float32.tflite: ") and said.err.count("\n") == 1
    assert not (run_dir / "export").exists()


def test_a_damaged_model_is_one_line(tmp_path, write_finished_run, capfd):
    run_dir = write_finished_run(tmp_path / "run", algo="fedavg", model="perceptron")
    (run_dir / "models" / "global" / "model.keras").write_text("")
    assert export.main([f"--run_dir={run_dir}"]) == 2
    message = capfd.readouterr().err
    assert "damaged, not a Keras file" in message and message.count("\n") == 1
    assert not (run_dir / "export").exists()
