"""--keep_best: which round is best, and that its models are the same however often the run was stopped."""

import dataclasses
import json
import types

import numpy as np
import pytest
from made_up_process import Killed, MadeUpProcess, die_in
from small_formats import make_spec

from launch.runs.checksums import write_checksums
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import build_run_config
from launch.training import finished_run, run_models
from launch.training.run_models import check_saving
from launch.training.training_run import check_best_can_be_chosen
from models.model_spec import Quantization
from models.saved_models import load_weights
from models.saving_trial import SavingTrial
from tff_algos.settings.config_fields import ConfigError

# Of the rounds 1 to 6 on validation examples.
ACCURACIES = (0.3, 0.5, 0.5, 0.4, 0.7, 0.6)

TASK = find_task_columns("classification")


class Process(MadeUpProcess):
    """The one model is called `best`, as a model or client may be."""

    def get_models(self, state):
        return {"best": (state,)}

    def client_model(self, state):
        return [f"of_round_{state[0]}"]


def evaluate_state(state, previous, with_shared):
    del previous, with_shared
    # Test accuracies fall where those on validation examples rise: they must not count.
    value = ACCURACIES[state[0] - 1]
    return dict.fromkeys(TASK.evaluation, 1 - value) | {"client_validation_accuracy": value}


def save_state(folder, spec, process, state):
    del spec
    [(name, (round_num,))] = process.get_models(state).items()
    (folder / name).mkdir()
    (folder / name / "model.keras").write_text(str(round_num[0]))


@pytest.fixture
def make_loop(open_loop, monkeypatch):
    monkeypatch.setattr(run_models, "save_models", save_state)

    def make(evaluate=evaluate_state, **values):
        return open_loop(Process(), evaluate, names=["=client, 0"], **{"rounds": 6, "keep_best": True, **values})

    return make


def read_best(tmp_path):
    best = tmp_path / "run" / "models" / "best"
    states = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("best_*"))
    return (best / "best" / "model.keras").read_text(), (best / "clients.csv").read_text(), states


OF_ROUND_5 = ("5", 'client,model\n"\'=client, 0",of_round_5\n', ["best_5.npz"])


def test_the_models_of_the_best_round_are_kept(make_loop, tmp_path):
    make_loop().run()
    assert read_best(tmp_path) == OF_ROUND_5


@pytest.mark.parametrize("rounds_per_checkpoint", [1, 2, 4])
@pytest.mark.parametrize("fatal_round", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("is_saved_on_the_way_out", [True, False])
def test_a_resumed_run_keeps_the_same(make_loop, tmp_path, rounds_per_checkpoint, fatal_round, is_saved_on_the_way_out):
    broken = make_loop(die_in(evaluate_state, fatal_round, Killed), rounds_per_checkpoint=rounds_per_checkpoint)
    if not is_saved_on_the_way_out:
        save = broken._save
        # As after SIGKILL: only the regular checkpoints are there.
        broken._save = lambda: save() if broken.round_num % rounds_per_checkpoint == 0 else None
    with pytest.raises(Killed):
        broken.run()
    make_loop(rounds_per_checkpoint=rounds_per_checkpoint).run()
    *stored, states = read_best(tmp_path)
    # That of an older checkpoint, too.
    assert stored == [*OF_ROUND_5[:2]] and set(states) <= {"best_2.npz", "best_5.npz"}


def test_what_was_kept_after_the_last_checkpoint_does_not_count(make_loop, tmp_path):
    """The run is killed in round 6 with a checkpoint of round 4, and goes on to round 4 alone: round 2 is the best."""

    broken = make_loop(die_in(evaluate_state, 6, Killed), rounds_per_checkpoint=4)
    save = broken._save
    # As after SIGKILL, which leaves no time to save on the way out.
    broken._save = lambda: save() if broken.round_num % 4 == 0 else None
    with pytest.raises(Killed):
        broken.run()
    assert read_best(tmp_path)[0] == "5"
    make_loop(rounds=4).run()
    assert read_best(tmp_path) == ("2", 'client,model\n"\'=client, 0",of_round_2\n', ["best_2.npz"])


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"PK")])
def test_a_lost_state_is_one_line(make_loop, tmp_path, damage):
    make_loop(rounds=3).run()
    damage(tmp_path / "run" / "checkpoints" / "best_2.npz")
    with pytest.raises(RunFolderError, match=r"best_2\.npz: gone or damaged, but round 2 is the best so far"):
        make_loop()


@pytest.mark.parametrize(("name", "value", "without"), [("keep_best", True, "false"), ("patience", 3, "0")])
def test_no_accuracy_chooses_or_ends_where_none_is_known_or_private(name, value, without):
    data = types.SimpleNamespace(clients=[types.SimpleNamespace(num_validation=0)])
    check_best_can_be_chosen(build_run_config({"algo": "fedavg"}), data)
    with pytest.raises(ConfigError, match=f"{name}={value}: expected clients with validation examples; raise"):
        check_best_can_be_chosen(build_run_config({"algo": "fedavg", name: value}), data)
    private = ["--dp_epsilon=8", "--participation=bernoulli", "--client_weighting=equal", "--cohort_size=5"]
    with pytest.raises(FlagError, match=f"--{name}={value}: expected {without} with private updates"):
        parse_config(["--algo=fedavg", f"--{name}={value}", *private])


@pytest.fixture
def stored_run(tmp_path, write_run):
    """A finished run with a model called `best` at its end and, kept of its best round, `global`."""
    path = write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, 6)
    config = json.loads((path / "config.json").read_text())
    data = {"input_shape": [4], "input_dtype": "float32", "scale": 1.0, "offset": 0.0, "class_names": ["a", "b"]}
    write_json(path / "config.json", {**config, "data": data})
    write_table(path / "clients.csv", ["client", "model"], [["client_0", "best"]])
    # One of them Keras cannot write.
    for name, file in (("best", "model.keras"), ("best/global", "weights.npz")):
        (path / "models" / name).mkdir(parents=True)
        (path / "models" / name / file).write_text(name)
    write_table(path / "models" / "best" / "clients.csv", ["client", "model"], [["client_0", "global"]])
    best = {"round": 2, "client_validation_accuracy": 0.5}
    write_json(path / "summary.json", {"rounds": 6, "kept_best": best, "fedavg": {}})
    folder = RunFolder(path, is_new=False)
    write_checksums(folder)
    folder.close()
    return path


def test_a_model_that_is_called_best_is_told_from_the_best_round(stored_run):
    last = finished_run.read_finished_run(str(stored_run))
    best = finished_run.read_finished_run(str(stored_run), of_round="best")
    assert (last.rounds, finished_run.choose_models(last, ""), dict(last.client_models)) == (
        *(6, ["best"]),
        {"client_0": "best"},
    )
    assert (best.rounds, finished_run.choose_models(best, ""), dict(best.client_models)) == (
        *(2, ["global"]),
        {"client_0": "global"},
    )


@pytest.mark.parametrize("name", ["best/global/weights.npz", "best/model.keras", "best/clients.csv"])
def test_what_is_kept_has_sums(stored_run, name):
    (stored_run / "models" / name).write_text("changed")
    with pytest.raises(RunFolderError, match=f"models/{name}: has changed since the run ended"):
        for of_round in ("last", "best"):
            run = finished_run.read_finished_run(str(stored_run), of_round=of_round)
            finished_run.choose_models(run, "")


def test_a_run_that_kept_none_says_how_to(stored_run):
    (stored_run / "checksums.sha256").unlink()
    write_json(stored_run / "summary.json", {"rounds": 6, "fedavg": {}})
    with pytest.raises(FlagError, match=r"--round=best: .* has kept no best round; train with --keep_best"):
        finished_run.read_finished_run(str(stored_run), of_round="best")


OURS = make_spec("perceptron", (4,), "float32", 3)


def rename(spec_name, **changes):
    return dataclasses.replace(OURS, name=spec_name, teacher=None, **changes)


def make_config(trains_teacher=False, qat_start_round=1):
    return types.SimpleNamespace(
        algorithm=types.SimpleNamespace(trains_teacher=trains_teacher), qat_start_round=qat_start_round
    )


@pytest.fixture
def tried(monkeypatch):
    """The names of those that were tried; of which those that end in `bad` cannot be written."""
    names = []

    def try_one(spec):
        names.append(spec.name)
        if spec.name.endswith("bad"):
            return SavingTrial("layer scale (Scale) has no get_config; write it")
        return SavingTrial(unread="its get_config is wrong") if spec.name.endswith("odd") else SavingTrial()

    monkeypatch.setattr(run_models, "try_saving", try_one)
    return names


def test_our_own_models_need_no_trial(tried, capsys):
    assert check_saving(make_config(trains_teacher=True), OURS) == OURS
    assert not tried and not capsys.readouterr().out


def test_each_model_of_a_run_is_tried_once_and_has_a_line(tried, capsys):
    # One function stands for two of the models, and is tried once.
    spec = rename("mine:bad", peers=(rename("mine:good"), rename("mine:bad"), OURS, rename("mine:odd")))
    spec = dataclasses.replace(spec, teacher=rename("mine:teacher_bad"))
    checked = check_saving(make_config(trains_teacher=True), spec)
    assert sorted(tried) == ["mine:bad", "mine:good", "mine:odd", "mine:teacher_bad"]
    assert not checked.has_keras_file and not checked.teacher.has_keras_file
    assert [peer.has_keras_file for peer in checked.peers] == [True, False, True, True]
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3 and all(line.startswith("note     mine:") for line in said)
    assert (
        "note     mine:bad: models/<name>/ will hold its weights alone, weights.npz in place of model.keras (evaluate, "
        "export, predict and --resume read them all the same), since layer scale (Scale) has no get_config; write it"
    ) in said
    assert check_saving(make_config(), spec).teacher.has_keras_file and "mine:teacher_bad" not in tried[4:]


@pytest.mark.parametrize(("start", "number"), [(1, 1), (3, 2)])
def test_the_float_model_is_tried_if_a_run_may_end_with_it(tried, start, number):
    spec = rename("mine:bad", quantization=Quantization(rename("mine:bad"), (0,)))
    checked = check_saving(make_config(qat_start_round=start), spec)
    assert len(tried) == number and not checked.has_keras_file
    assert checked.quantization.float_spec.has_keras_file is (start == 1)


class WeightsProcess(MadeUpProcess):
    """Its state is a model's weights."""

    def get_models(self, state):
        return {"global": state}


def test_a_failure_at_the_end_is_a_line_and_leaves_the_weights(monkeypatch, tmp_path, capsys):
    def fail(spec, weights, path):
        raise RuntimeError("in get_config")

    monkeypatch.setattr("models.saved_models._write_keras_file", fail)
    weights = tuple(np.full(shape, 0.5, np.float32) for shape in OURS.weight_shapes)
    run_models.save_models(tmp_path, OURS, WeightsProcess(), weights)
    assert capsys.readouterr().out.startswith(
        f"note     {tmp_path}/global/weights.npz holds the weights of perceptron, and there is no model.keras, since "
        "Keras failed to write it: RuntimeError: in get_config ("
    )
    for ours, expected in zip(load_weights(OURS, tmp_path / "global"), weights, strict=True):
        np.testing.assert_array_equal(ours, expected)
