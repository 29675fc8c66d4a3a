"""`launch.check` and a run with own code: what breaks the contract is told by cause and fix, with the author's line."""

import importlib
import pathlib
import re
import sys

import pytest

import launch.check
import launch.train
from launch.settings.errors import FlagError

SOURCE = (pathlib.Path(__file__).parents[2] / "examples" / "fed_dyn.py").read_text(encoding="utf-8")
TRAIN = "train_locally(model_spec, pulled, start, x, y, client.seed, rate, correction=correction)"
RESULT = "LocalResult(gradient, np.float32(1), np.float32(1), np.float32(1), np.True_)"
# The same, but for the training, whose graph takes most of the time.
LIGHT = SOURCE.replace(TRAIN, RESULT).replace("import train_locally", "import LocalResult")
READ = '        x, y = read_split(client.path, "train", model_spec)\n'
SENT = "return Sent(ClientUpdate(result, client.group, client.weight), kept=kept)"
FINISH = "        aggregate, alpha = outcome.aggregate, self.config.alpha\n"
INVITE = """    def invite(self, *arguments):
        return [each._replace(own=(np.int32(1),)) for each in super().invite(*arguments)]

"""
MISTAKES = {  # what is replaced by what, and what is then said
    "numpy": (READ, f"{READ}        np.mean(x)\n", "NumPy needs numbers, .*line .*`np.mean.x.`.; traceback: "),
    "branch": (READ, f"{READ}        if y[0] > 3:\n            y = y\n", "write tf.where or tf.cond .*line .*`if y"),
    "split": ('"train"', '"training"', "no split 'training', expected one of train, validation, test .*line "),
    "told": ("told.kept", "told.keept", "no attribute 'keept'; it has client, models, own, kept .*line "),
    "kept_parts": (", kept=build_zeros)", ")", "reads told.kept, but build_parts was given no kept=, .*line .*`def"),
    "kept_sent": (", kept=kept)", ")", "the work sends no kept=, but build_parts was given kept="),
    "order": ("correction=correction", "correction=correction[::-1]", r"correction.0. has shape \(10,\), expected .64"),
    "nothing": (SENT, "Sent", "the work gave NoneType, expected Sent.ClientUpdate"),
    "blank": ("    def finish(", f"{INVITE}    def finish(", "own_blank, for an empty slot, has ..,"),
    "setting": ("above=0)", "abov=0)", "setting takes no abov, expected of minimum, above, .*line "),
    "plain": ("@dataclasses.dataclass(frozen=True)", "", "FedDynConfig declares alpha but is no dataclass; write @"),
    "lost": ("return stepped._replace(models", "stepped._replace(models", "finish gave NoneType, expected stepped"),
}  # fmt: skip


@pytest.fixture
def write(tmp_path, monkeypatch):
    """(name, text) -> writes a module that can be imported in this test alone; caches are the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        names.append(name)
        sys.modules.pop(name, None)
        importlib.invalidate_caches()

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_an_algorithm_passes_and_each_mistake_is_a_line_with_the_authors_place(write, capsys):
    write("dyn_right", LIGHT)
    assert launch.check.main(["dyn_right", "--alpha=0.2"]) == 0
    assert capsys.readouterr().out.startswith("dyn_right:ALGORITHM: two rounds")
    for name, (before, after, message) in MISTAKES.items():
        write(f"dyn_{name}", (SOURCE if name == "order" else LIGHT).replace(before, after))
        assert launch.check.main([f"dyn_{name}:ALGORITHM"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and f"dyn_{name}:ALGORITHM: " in error
        assert re.search(message, error), name


def test_a_run_is_checked_once_and_an_error_of_a_later_round_keeps_its_folder(write, tmp_path, capsys, no_plots):
    late = f"        if state.round_num == 2:\n            raise KeyError('third')\n{FINISH}"
    run_dir, arguments = tmp_path / "run", ("--num_clients=3", "--epochs=1", "--model=perceptron", "--norun_page")
    write("dyn_late", LIGHT.replace(FINISH, late))
    given = ("--algo=dyn_late:ALGORITHM", f"--run_dir={run_dir}", "--rounds=3", *arguments)
    assert launch.train.main(given) == 2
    error = capsys.readouterr().err
    assert re.match(
        r"error: --algo=dyn_late:ALGORITHM, round 3: KeyError: 'third' .dyn_late.py, line \d+: `raise", error
    )
    path = error.partition("; traceback: ")[2].partition("; what it has done is kept in ")[0]
    assert "KeyError: 'third'\nround 3\n" in pathlib.Path(path).read_text()
    assert len((run_dir / "metrics.csv").read_text().splitlines()) == 3
    assert len(list((tmp_path / "cache/federated_suite/checked").iterdir())) == 1
    write("dyn_late", LIGHT.replace(FINISH, late.replace("== 2", "== 1")))
    assert launch.train.main((given[0], f"--run_dir={tmp_path / 'new'}", *arguments)) == 2
    assert "error: --algo=dyn_late:ALGORITHM: next: KeyError" in capsys.readouterr().err
    assert not (tmp_path / "new" / "metrics.csv").exists()


def make_model(input_shape, num_classes):
    pass


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (make_model, "model"),
        (lambda labels, outputs: 0, "loss"),
        (lambda updates, weights: 0, "aggregator"),
        (type("Own", (type("ListAggregator", (), {}),), {}), "aggregator"),
        (type("Loss", (), {})(), "loss"),
    ],
)
def test_the_kind_of_an_object_is_told_by_its_class_or_its_arguments(found, kind):
    assert launch.check.find_kind("x:y", found) == kind
    with pytest.raises(FlagError, match=r"x:y: expected an Algorithm, .*, got int; give --kind=algo, model"):
        launch.check.find_kind("x:y", 3)


DRAWN = """
import numpy as np
from datasets.arrays import make_array_dataset
from datasets.catalog import Dataset
from datasets.example_format import ExampleFormat
def load(options):
    x, y = np.random.default_rng().normal(size=(80, 2)).astype(np.float32), np.arange(80) % 2
    return make_array_dataset("own", (x[:60], y[:60]), (x[60:], y[60:]),
        ExampleFormat((2,), "float32", ("a", "b")))
DATA = Dataset("own", loader=load)
WRONG = Dataset("own", loader=load, partition="by_hand")
"""


def test_a_file_or_module_is_taken_for_the_one_object_in_it(write, tmp_path):
    write("one_model", "import os\ndef _help(): pass\ndef build(shape, number): pass\n")
    write("two_models", "def first(shape, number): pass\ndef second(shape, number): pass\n")
    for typed in ("one_model", str(tmp_path / "one_model.py"), f"{tmp_path / 'one_model.py'}:build"):
        assert launch.check.find_name(typed) == "one_model:build"
    with pytest.raises(FlagError, match=r"two_models holds first, second; expected one of them, as two_models:first$"):
        launch.check.find_name("two_models")
    with pytest.raises(FlagError, match=r"nowhere\.py: no such file"):
        launch.check.find_name("nowhere.py")


def test_a_loader_that_draws_anew_and_a_rows_own_partition_are_named(write, capsys):
    write("drawn_data", DRAWN)
    assert launch.check.main(["drawn_data:DATA"]) == 2
    assert "drawn_data:DATA: its loader gives other data when it is called again; draw by" in capsys.readouterr().err
    assert launch.check.main(["drawn_data:WRONG"]) == 2
    assert "--dataset=drawn_data:WRONG: expected a row whose partition is one of iid, " in capsys.readouterr().err
