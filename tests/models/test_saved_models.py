"""Weights on disk: bit for bit, whole or not at all, and clear about what does not fit."""

import errno
import os

import numpy as np
import pytest
import tensorflow as tf

from models.catalog import ModelError, build_model_spec
from models.saved_models import load_weights, save_model

SPEC = build_model_spec("auto", (15, 3), "float32", 4)


def random_weights(spec, seed=0):
    generator = np.random.default_rng(seed)
    return tuple(generator.normal(size=weight.shape).astype(np.float32) for weight in spec.build().weights)


def test_round_trip_is_exact(tmp_path):
    for seed in range(2):  # the second save replaces the first
        weights = random_weights(SPEC, seed)
        save_model(SPEC, weights, tmp_path / "models" / "global")
        loaded = load_weights(SPEC, tmp_path / "models" / "global")
        assert isinstance(loaded, tuple)
        assert len(loaded) == len(weights)
        for ours, theirs in zip(loaded, weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert os.listdir(tmp_path / "models" / "global") == ["model.keras"]


def test_other_programs_can_open_it(tmp_path):
    weights = random_weights(SPEC)
    save_model(SPEC, weights, tmp_path)
    model = tf.keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    save_model(SPEC, random_weights(SPEC), tmp_path)
    before = (tmp_path / "model.keras").read_bytes()

    def write_half(model, path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(tf.keras.Sequential, "save", write_half)
    with pytest.raises(OSError, match="disk full") as error:
        save_model(SPEC, random_weights(SPEC, 1), tmp_path)
    assert error.value.filename == str(tmp_path / "model.keras")
    assert os.listdir(tmp_path) == ["model.keras"]
    assert (tmp_path / "model.keras").read_bytes() == before


def check_error(spec, folder, message):
    with pytest.raises(ModelError, match=message) as error:
        load_weights(spec, folder)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path):
    check_error(SPEC, tmp_path, "no such file")


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:-100], lambda content: b"no zip" * 99]
)
def test_damaged_file(tmp_path, damage):
    save_model(SPEC, random_weights(SPEC), tmp_path)
    path = tmp_path / "model.keras"
    path.write_bytes(damage(path.read_bytes()))
    check_error(SPEC, tmp_path, "damaged")


def test_flipped_bytes(tmp_path):
    save_model(SPEC, random_weights(SPEC), tmp_path)
    path = tmp_path / "model.keras"
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
    path.write_bytes(content)
    check_error(SPEC, tmp_path, "could not read them")


@pytest.mark.parametrize(
    "other",
    [
        SPEC.teacher,
        build_model_spec("auto", (15, 3), "float32", 5),
        build_model_spec("perceptron", (15, 3), "float32", 4),
        build_model_spec("auto", (8, 8, 1), "uint8", 4),
    ],
    ids=lambda spec: f"{spec.name}_{spec.num_classes}",
)
def test_weights_of_another_model(tmp_path, other):
    save_model(other, random_weights(other), tmp_path)
    check_error(SPEC, tmp_path, "expected the weights of sensor_student")
