"""What Keras cannot write is said before the first round, in a line, and the weights alone are saved."""

import dataclasses
import types

import numpy as np
import pytest
from made_up_process import MadeUpProcess
from small_formats import make_spec

from launch.training import best_round, saving_check
from launch.training.saving_check import check_saving
from models.model_spec import Quantization
from models.saved_models import load_weights
from models.saving_trial import SavingTrial

OURS = make_spec("perceptron", (4,), "float32", 3)


def name(spec_name, **changes):
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

    monkeypatch.setattr(saving_check, "try_saving", try_one)
    return names


def test_our_own_models_need_no_trial(tried, capsys):
    assert check_saving(make_config(trains_teacher=True), OURS) == OURS
    assert not tried and not capsys.readouterr().out


def test_each_model_of_a_run_is_tried_once_and_has_a_line(tried, capsys):
    spec = name("mine:bad", peers=(name("mine:good"), name("mine:bad"), OURS, name("mine:odd")))
    spec = dataclasses.replace(spec, teacher=name("mine:teacher_bad"))
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
    spec = name("mine:bad", quantization=Quantization(name("mine:bad"), (0,)))
    checked = check_saving(make_config(qat_start_round=start), spec)
    assert len(tried) == number and not checked.has_keras_file
    assert checked.quantization.float_spec.has_keras_file is (start == 1)


class Process(MadeUpProcess):
    """Its state is a model's weights."""

    def get_models(self, state):
        return {"global": state}


def test_a_failure_at_the_end_is_a_line_and_leaves_the_weights(monkeypatch, tmp_path, capsys):
    def fail(spec, weights, folder):
        raise RuntimeError("in get_config")

    monkeypatch.setattr("models.saved_models.save_keras_file", fail)
    weights = tuple(np.full(shape, 0.5, np.float32) for shape in OURS.weight_shapes)
    best_round.save_models(tmp_path, OURS, Process(), weights)
    assert capsys.readouterr().out == (
        f"note     {tmp_path}/global/weights.npz holds the weights of perceptron, and there is no model.keras, since "
        "Keras failed to write it: RuntimeError: in get_config\n"
    )
    for ours, expected in zip(load_weights(OURS, tmp_path / "global"), weights, strict=True):
        np.testing.assert_array_equal(ours, expected)
