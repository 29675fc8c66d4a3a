"""The checks that `make test-*` runs beside the tests: what passes, and that each kind of fault is found and named."""

import contextlib
import copy
import hashlib
import importlib.util
import pathlib
import sys
import types

import numpy as np
import pytest

from launch.runs.tables import write_json
from launch.settings.flags import parse_config
from launch.settings.run_config import build_run_config, flag_values
from models.model_names import MODEL_NAMES

ROOT = pathlib.Path(__file__).parents[1]


def load(path):
    """The module of a check."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / "tests" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def same_bytes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "same_bytes"))
    monkeypatch.setitem(sys.modules, "settings", load("same_bytes/settings.py"))
    return load("same_bytes/compare_revisions.py")


def write_run(folder, metrics="round,loss\n1,0.5\n", rounds=3, weight=1.0):
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    (folder / "metrics.csv").write_text(metrics)
    write_json(folder / "summary.json", {"rounds": rounds})
    np.savez(folder / "checkpoints" / "round_10.npz", np.float32(weight))
    return folder


def test_settings_of_same_bytes_resolve_and_are_small(same_bytes):
    assert len({tuple(sorted(flags)) for flags in same_bytes.SETTINGS.values()}) == len(same_bytes.SETTINGS)
    for name, flags in same_bytes.SETTINGS.items():
        config = parse_config(flags)
        assert name == config.algo or name.startswith(f"{config.algo}_")
        assert (config.rounds, config.run_page) == (same_bytes.ROUNDS, False) and config.num_clients <= 10


def test_same_bytes_shows_the_first_line_that_differs(same_bytes, tmp_path):
    before, here = write_run(tmp_path / "before"), write_run(tmp_path / "here")
    assert same_bytes.find_difference(before, here) == ""
    assert same_bytes.describe_checkpoints(before, here) == "checkpoint too"
    write_run(here, "round,loss\n1,0.6\n", weight=-1.0)
    said = "metrics.csv, line 2:\n    before  1,0.5\n    here    1,0.6"
    assert same_bytes.find_difference(before, here) == said
    assert same_bytes.describe_checkpoints(before, here) == "1 of 1 arrays of the checkpoints differ"
    assert same_bytes.find_difference(before, tmp_path / "none") == "metrics.csv is missing here"


def test_same_bytes_runs_what_is_missing_and_compares(same_bytes, tmp_path, monkeypatch, capsys):
    calls, ends = [], {"old": "", same_bytes.PROJECT_FOLDER.name: ""}
    here = same_bytes.PROJECT_FOLDER.name

    def sweep(place, flagfiles, names, runs, rounds):
        calls.append((place.tree.name, runs, list(names)))
        for name in names:
            run = place.folder / runs / name / "seed_0"
            started = (run / "metrics.csv").read_text() if run.exists() else (flagfiles / f"{name}.flags").read_text()
            write_run(run, f"{started}\n{rounds}{ends[place.tree.name]}", rounds)

    monkeypatch.setattr(same_bytes, "sweep", sweep)
    monkeypatch.setattr(same_bytes, "resolve_revision", lambda revision: revision * 40)
    monkeypatch.setattr(same_bytes, "check_out", lambda commit: contextlib.nullcontext(tmp_path / "old"))
    command = ["--revision=a", f"--keep_reference={tmp_path / 'kept'}", "--only=fedavg", "--resume"]
    assert same_bytes.main(command) == 0
    assert calls == [(tree, runs, ["fedavg"]) for tree in ("old", here) for runs in ("runs", "resumed")]
    calls.clear()
    ends[here] = "!"
    assert same_bytes.main([*command, "--only=fedavg,fedcd"]) == 1  # the reference of fedavg is there already
    assert calls[0] == ("old", "runs", ["fedcd"]) and (here, "runs", ["fedavg", "fedcd"]) in calls
    assert capsys.readouterr().out.endswith("4 of 4 differ: fedavg, fedcd, fedavg, fedcd\n")
    assert same_bytes.main(["--revision=b", *command[1:]]) == 2  # of another commit
    assert same_bytes.main([*command, "--only=nope"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


EXAMPLES = np.arange(24, dtype=np.uint8).reshape(12, 2)


class StandInInterpreter:
    """Answers a file's bytes: class 1 where the sum of an example exceeds their number, or a training that works."""

    def __init__(self, model_content, num_threads):
        self.limit, self.weight = len(model_content), 0.0

    step = 1.0

    def allocate_tensors(self):
        pass

    def get_input_details(self):
        return [{"index": 0}]

    get_output_details = get_input_details

    def set_tensor(self, index, x):
        self.x = x

    def invoke(self):
        pass

    def get_tensor(self, index):
        return np.array([[self.limit, self.x.sum()]])

    def get_signature_runner(self, name):
        return getattr(self, name)

    def train(self, x, y, learning_rate):
        self.weight += self.step
        return {"loss": -self.weight}

    def infer(self, x):
        return {"logits": np.array([self.weight])}

    def get_weights(self, unused):
        return {"weight_0": self.weight}

    def set_weights(self, weight_0):
        self.weight = weight_0


@pytest.fixture
def exported(tmp_path):
    """A folder as an export leaves it: a file of 20 bytes, with its JSON and report, and one to train."""
    classes = (EXAMPLES.sum(1) > 20).astype(int)
    np.savez(tmp_path / "test_set.npz", x=EXAMPLES, y=classes, **{"a.tflite": classes})
    (tmp_path / "a.tflite").write_bytes(bytes(20))
    (tmp_path / "a.training.tflite").write_bytes(b"x")
    form = {"preprocessing": {"scale": 1.0, "offset": 0.0}, "input": {"dtype": "float32", "shape": [1, 2]}}
    write_json(tmp_path / "a.json", {"sha256": hashlib.sha256(bytes(20)).hexdigest(), **form})
    training = {"file": "a.training.tflite", "batch_size": 4, "weights": {"weight_0": ""}, "select_operators": []}
    write_json(tmp_path / "a.training.json", {**training, **form})
    (tmp_path / "report.csv").write_text("file,size_bytes,test_accuracy\na.tflite,20,1.0\n")
    return tmp_path


@pytest.fixture
def litert(monkeypatch):
    interpreters = types.SimpleNamespace(Interpreter=StandInInterpreter)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", types.ModuleType("ai_edge_litert"))
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", interpreters)
    return load("litert/check_export.py")


def replace(name, old, new):
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda folder: None, 0, "all files agree"),
        (replace("report.csv", "1.0", "0.5"), 1, "accuracy 1.0000, in the report 0.5000"),
        (replace("report.csv", "a.tflite,20,1.0\n", ""), 1, "report.csv: no file in it"),
        (replace("a.json", '"scale": 1.0', '"scale": 9.0'), 1, "of 12 predictions differ, at most 1 may"),
        (lambda folder: (folder / "a.tflite").write_bytes(bytes(21)), 1, "its sha256 is not that of its JSON"),
        (replace("a.training.json", "weight_0", "weight_7"), 1, "its weights are weight_0, in its JSON weight_7"),
        (replace("a.training.json", "[]", '["Save"]'), 0, "left out, needs Save of TensorFlow"),
        (lambda folder: setattr(StandInInterpreter, "step", 0.0), 1, "the loss did not fall, from -0.0000 to -0.0000"),
        (lambda folder: (folder / "test_set.npz").unlink(), 2, "test_set.npz missing; export the run with"),
    ],
)
def test_litert_agrees_with_the_report(litert, exported, change, code, said, monkeypatch, capsys):
    monkeypatch.setattr(StandInInterpreter, "step", 1.0)
    change(exported)
    assert litert.main([str(exported)]) == code
    assert said in "".join(capsys.readouterr())


KERAS = np.array([[0.0, 4.0], [4.0, 0.0], [1.0, 3.0], [2.0, 1.0]], np.float32)


@pytest.fixture
def models_check(litert, monkeypatch):
    """The check of the models by format; `litert` has put a stand-in in the runtime's place."""
    monkeypatch.setitem(sys.modules, "check_export", litert)
    return load("litert/check_models.py")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (KERAS, 0.0),
        (KERAS + np.array([0.0, 0.04]), 0.01),  # of outputs from 0 to 4
        (np.where(KERAS == 4, np.nan, KERAS), np.inf),  # an answer that is none, where Keras has one
    ],
)
def test_a_difference_is_a_share_of_the_range(models_check, answers, expected):
    assert models_check.compare(answers, KERAS) == pytest.approx(expected)
    alike = np.full((4, 2), 3.0)  # of no range, may differ by nothing
    assert models_check.compare(alike, alike) == 0.0 and models_check.compare(alike + 1e-6, alike) > 1.0


@pytest.mark.parametrize(
    ("task", "expected"),
    [("classification", 0.75), ("multi_label", 0.75), ("regression", None)],
)
def test_the_same_is_chosen_by_the_task(models_check, task, expected):
    """Of four classes one is another; of eight switches, of which four are at 0, the first two are turned on."""
    answers = KERAS.copy()
    answers[0] = [5.0, 4.0] if task == "classification" else [0.5, 4.0]
    answers[1] = [4.0, 0.5] if task == "multi_label" else answers[1]
    assert models_check.compute_agreement(answers, KERAS, task) == expected


@pytest.mark.parametrize(
    ("change", "export_format", "fault"),
    [
        (0.0, "float32", ""),
        (1e-3, "float32", "differs from Keras by 0.00025 of the range, at most 1e-05 may"),
        (1e-3, "float16", ""),
        (0.1, "float16", "differs from Keras by 0.025 of the range, at most 0.01 may"),
        (1.0, "int8", ""),  # which shows in the classes
        (np.nan, "int8", "answers with something that is no number, or Keras does"),
    ],
)
def test_float_files_are_near_keras(models_check, change, export_format, fault):
    answers = KERAS + np.float32(change)
    found = models_check.judge_inference(answers, answers, KERAS, export_format, 1.0, 0.95)
    assert "; ".join(found.faults) == fault and not found.warnings


def test_a_loss_of_classes_is_listed_and_a_state_is_wrong(models_check):
    found = models_check.judge_inference(KERAS, KERAS, KERAS, "int8", 0.94, 0.95)
    assert found.warnings == ["chooses as Keras for 94.0 % of the examples, of which the export warns"]
    assert not found.faults and found.row.same_class == "0.940"
    found = models_check.judge_inference(KERAS, KERAS + 1, KERAS, "dynamic", 1.0, 0.95)
    assert found.faults == ["answers otherwise when it is asked again"]
    absent = {"int8: take dynamic": [], "two\nlines": ["cannot be made, not for a reason in a line: two\nlines"]}
    for reason, faults in absent.items():
        assert models_check.judge_absence({"refused": reason}, "int8").faults == faults


@pytest.mark.parametrize(
    ("losses", "inferred", "trained", "fault"),
    [
        ([1.0, 0.9], 0.0, 1e-6, ""),
        ([1.0, 1.1], 0.0, None, ""),  # dropout
        ([1.0, 1.0], 0.0, 0.0, "the loss did not fall, from 1.0000 to 1.0000"),
        ([1.0, float("nan")], 0.0, None, "a loss is no number"),
        ([1.0, 0.9], 0.02, 0.0, "infer differs from Keras by 0.02 of the range, at most 1e-05 may"),
        ([1.0, 0.9], 0.0, 0.02, "trains otherwise than Keras, by 0.02 of the range, at most 1e-05 may"),
    ],
)
def test_a_file_that_trains_does_as_keras(models_check, losses, inferred, trained, fault):
    assert "; ".join(models_check.judge_training(losses, inferred, trained).faults) == fault


@pytest.fixture
def made_models(tmp_path):
    """A folder as `make_models.py` leaves it: a model whose float32 file of 9 bytes answers as Keras."""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    outputs = np.stack([np.full(4, 9.0), x.sum(1)], axis=1)  # of the stand-in
    np.savez(tmp_path / "a.npz", x=x, outputs=outputs)
    (tmp_path / "a.float32.tflite").write_bytes(bytes(9))
    refused = {each: {"file": "", "refused": "no, take float32"} for each in ("float16", "dynamic", "int8", "qat_int8")}
    files = {"float32": {"file": "a.float32.tflite", "select_operators": []}, **refused}
    files["training"] = {"file": "a.float32.tflite", "select_operators": ["Save"]}
    known = {"training_steps": 1, "training_rate": 0.1, "least_agreement": 0.95}
    write_json(tmp_path / "models.json", [{"model": "a", "task": "classification", **known, "files": files}])
    return tmp_path


def test_models_by_format_are_a_table(models_check, made_models, monkeypatch, capsys):
    committed = made_models / "committed.csv"
    monkeypatch.setattr(models_check, "COMMITTED", committed)
    assert models_check.main([str(made_models), "--write"]) == 0
    lines = committed.read_text().splitlines()
    assert lines[:3] == [
        ",".join(models_check.COLUMNS),
        "a,float32,0.0,0.0e+00,1.000,",
        'a,float16,,,,"no, take float32"',
    ]
    assert lines[-1] == "a,training,0.0,,,needs Save of TensorFlow"
    cells = "0.0e+00 1.000, 0.0 kB | (1) | (1) | (1) | (1) | (2), 0.0 kB"
    assert f"| a | {cells} |\n\n1. no, take float32\n2. needs Save" in capsys.readouterr().out
    assert models_check.main([str(made_models)]) == 0
    committed.write_text(committed.read_text().replace("a,int8,,", "a,int8,1.0,0.01"))
    assert models_check.main([str(made_models)]) == 1
    assert capsys.readouterr().err == (
        "WRONG a.int8: the committed table has this file, now there is none: no, take float32\n"
    )


def test_every_model_of_the_package_is_in_the_table_of_models():
    text = (ROOT / "tests/litert/make_models.py").read_text()
    assert not [name for name in MODEL_NAMES if f'Case("{name}"' not in text]


def write_compared_run(folder, temperature, seed):
    """A finished run of one round whose test accuracy is a tenth of the temperature and of the seed."""
    flags = {"algo": "fedsikd", "temperature": temperature, "seed": seed, "rounds": 1}
    folder.mkdir(parents=True)
    write_json(folder / "config.json", {"flags": flag_values(build_run_config(flags)), "data": {}})
    write_json(folder / "summary.json", {"rounds": 1})
    row = f"1,6,{2 * temperature},{temperature / 10 + seed / 10}"
    (folder / "metrics.csv").write_text(f"round,bytes_down,bytes_up,test_accuracy\n{row}\n")


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """(folder of runs, what a browser answers of their page): two temperatures, three seeds 0.1 apart."""
    folder = tmp_path_factory.mktemp("compared")
    for temperature in (2.0, 3.0):
        for seed in range(3):
            write_compared_run(folder / f"T{temperature:g}" / f"seed_{seed}", temperature, seed)
    table = {"all": 6, "afterReset": 6, "filtered": 3, "count": "3 of 6", "once": ["0.5", "0.4"]}
    table["twice"] = ["0.4", "0.5"]
    # Deviation 0.1, standard error 0.0577, quantile 4.3027: half width 0.2484.
    groups = [["temperature", "Mean", "95 % interval", "Seeds"]]
    groups += [["3", "0.4000", "0.1516 to 0.6484", "3"], ["2", "0.3000", "0.0516 to 0.5484", "3"]]
    # Each seed is 0.1 better, for 12 bytes in place of 10.
    answer = {
        "baseline": "2",
        "leads": [["3", "", "better: +10.0 points", "3 seeds, for 1.2 \u00d7 the bytes"]],
    }
    answer |= {"ends": 300, "filters": 400, "other": "3", "changed": ["2"]}
    visit = {"name": "desktop", "seconds": 1.0, "problems": [], "hover": "0.3", "pictures": [], "groups": groups}
    visit |= {"answer": answer, "height": 800}
    return folder, visit | {"buttons": ["Seed", "Download plot as a png", "Zoom in"], "table": table}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda visit: None, ""),
        (lambda visit: visit["groups"][1].__setitem__(2, "0.1516 to 0.6485"), "group 3: "),
        (lambda visit: visit["groups"].pop(), "group 2: None"),
        (lambda visit: visit["answer"].update(filters=200), "the filters stand before the answer"),
        (lambda visit: visit["answer"]["leads"][0].__setitem__(2, "undecided: +10.0 points"), "3: undecided"),
        (lambda visit: visit["answer"]["leads"][0].__setitem__(3, "3 seeds, for 2.0 \u00d7 the bytes"), "1.200 times"),
        (lambda visit: visit["answer"].update(baseline="3"), "the baseline is 3, expected 2"),
        (lambda visit: visit.update(hover=""), "a pointer over a curve reads nothing"),
        (lambda visit: visit.update(pictures=[0]), "a plot is not shown"),
        (lambda visit: visit["buttons"].append("Share chart..."), "a button says Share chart..."),
        (lambda visit: visit.update(problems=["request: x"]), "request: x"),
        (lambda visit: visit["table"].update(once=["0.4", "0.5"]), "does not sort"),
        (lambda visit: visit["table"].update(filtered=6), "a filter leaves 6 of 6"),
    ],
)
def test_a_page_of_compare_shows_what_the_reports_compute(answers, change, expected, tmp_path, capsys):
    folder, visit = answers
    changed = copy.deepcopy(visit)
    change(changed)
    write_json(tmp_path / "answers.json", {"size": 1, "visits": [changed]})
    code = load("web/check_compare.py").main([str(tmp_path / "answers.json"), f"--runs={folder}/T*"])
    error = capsys.readouterr().err
    assert (code, error) == (0, "") if not expected else code == 1 and expected in error, error
    assert error.startswith("WRONG desktop: " if expected else "")


@pytest.mark.parametrize(("num_other", "code"), [(0, 0), (1, 0), (2, 1)])
def test_a_page_answers_as_the_report(num_other, code, tmp_path, capsys, monkeypatch):
    """Of 100 examples one may be of another class."""
    y = np.arange(100) % 2
    np.savez(tmp_path / "test_set.npz", y=y, **{"global.int8.tflite": y})
    logits = np.stack([1 - y, y], axis=1).astype(float)
    logits[:num_other] = [0.0, 0.5]
    logits[1:num_other] = [0.5, 0.0]
    answers = {"global": {"int8": {"classes": logits.argmax(axis=1).tolist(), "logits": logits.tolist()}}}
    visit = {"name": "file", "build": "compat", "strokes": [], "trainings": [], "answers": answers, "problems": []}
    visit["sample"] = {"indices": list(range(100)), "labels": y.tolist()}
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "web"))
    check_page = load("web/check_page.py")

    def check(**changes):
        write_json(tmp_path / "answers.json", {"size": 1, "visits": [visit | changes]})
        return check_page.check_export([str(tmp_path), str(tmp_path / "answers.json")], check_page.check_visit)

    assert check() == code
    assert f"{100 - num_other} of 100 as in the report" in capsys.readouterr().out
    assert check(problems=["request: http://127.0.0.1/x"]) == 1
    assert check(sample={"indices": list(range(100)), "labels": [1] * 100}) == 1
    assert check_page.check_export([str(tmp_path)], check_page.check_visit) == 2


PAGE = """# Page

```kotlin
// A comment.

import a.B

val x = 1
```

```kotlin
dependencies { }
```
"""


@pytest.mark.parametrize("fault", ["none", "the page's own", "not found"])
def test_kotlin_of_a_page_compiles_and_a_planted_error_does_not(fault, tmp_path, monkeypatch, capsys):
    kotlin = load("kotlin/check_kotlin.py")
    planted = kotlin.list_wrong_lines((ROOT / "tests" / "kotlin" / "planted.kt").read_text())
    errors = [kotlin.CompileError("page_4.kt", 9, ""), *(kotlin.CompileError("planted.kt", n, "") for n in planted)]
    own = [kotlin.CompileError("page_4.kt", 8, "unresolved reference 'y'.")] if fault == "the page's own" else []
    answers = [[], own, errors[: -1 if fault == "not found" else None]]
    sources = []

    def compile_kotlin(jars, folders, output, classes=()):
        sources.append(sorted(path.name for path in folders[0].glob("*.kt")))
        return answers.pop(0)

    monkeypatch.setattr(kotlin, "find_jars", lambda: tmp_path)
    monkeypatch.setattr(kotlin, "compile_kotlin", compile_kotlin)
    (tmp_path / "page.md").write_text(PAGE)
    assert kotlin.main([str(tmp_path / "page.md")]) == (0 if fault == "none" else 1)
    out, error = capsys.readouterr()
    assert sources[1] == ["page_4.kt"] and len(planted) == 9
    if fault == "none":
        assert error == "" and "page.md:4: a file" in out and "page.md:12: of Gradle, left out" in out
    expected = {"none": "", "the page's own": "page.md:8: unresolved reference 'y'.", "not found": "a planted error"}
    assert expected[fault] in error
    assert kotlin.main([str(tmp_path / "no.md")]) == 2
    assert len(kotlin.list_blocks("docs/android.md", (ROOT / "docs" / "android.md").read_text())) == 3
    assert len(kotlin.read_blocks(str(ROOT / "examples" / "android"))) == 4
