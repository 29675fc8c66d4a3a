"""Weights on disk: bit for bit, whole or not at all, and clear about what does not fit."""

import dataclasses
import errno
import functools
import os
import re
import zipfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_optimization as tfmot
from model_answers import rebuild
from small_formats import make_format, make_spec

from models.catalog import ModelError
from models.model_spec import ModelSpec
from models.quantization import build_quantized_spec
from models.saved_models import load_weights, save_model
from models.stateless_dropout import StatelessDropout

LAYERS = tf.keras.layers
SPEC = make_spec("auto", (15, 3), "float32", 4)


def build_nested():
    inner = tf.keras.Sequential([tf.keras.Input((8,)), StatelessDropout(0.5, 1), LAYERS.Dense(4)], name="inner")
    layers = [LAYERS.TimeDistributed(StatelessDropout(0.1, 2)), LAYERS.LSTM(8), inner]
    return tf.keras.Sequential([tf.keras.Input((15, 3)), *layers])


def build_batch_norm():
    layers = [LAYERS.Conv2D(6, 3), LAYERS.BatchNormalization(), LAYERS.ReLU(), LAYERS.GlobalAveragePooling2D()]
    return tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *layers, StatelessDropout(0.5), LAYERS.Dense(4)])


def build_frozen():
    frozen = [LAYERS.Conv2D(6, 3, trainable=False), LAYERS.BatchNormalization(trainable=False), LAYERS.ReLU()]
    return tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *frozen, LAYERS.Flatten(), LAYERS.Dense(4)])


BATCH_NORM = ModelSpec("batch_norm", build_batch_norm, make_format((8, 8, 1), "float32", 4))
QUANTIZED = {
    "sensor": make_spec("auto", (15, 3), "float32", 4, quantize="qat"),
    "batch_norm": build_quantized_spec(BATCH_NORM),
}
TRAVELLING = {
    "sensor_student": SPEC,
    "nested": ModelSpec("nested", build_nested, make_format((15, 3), "float32", 4)),
    "batch_norm": BATCH_NORM,
    **{f"quantized_{name}": spec for name, spec in QUANTIZED.items()},
    "frozen": build_quantized_spec(ModelSpec("frozen", build_frozen, make_format((8, 8, 1), "float32", 4))),
}


@functools.cache
def list_variables(spec):
    return [(tuple(each.shape), each.dtype.as_numpy_dtype) for each in spec.build().weights]


def random_weights(spec, seed=0):
    generator = np.random.default_rng(seed)
    return tuple(generator.normal(size=shape).astype(dtype) for shape, dtype in list_variables(spec))


def test_round_trip_is_exact(tmp_path):
    for seed in range(2):  # the second save replaces the first
        weights = random_weights(SPEC, seed)
        save_model(SPEC, weights, tmp_path / "models" / "global")
        loaded = load_weights(SPEC, tmp_path / "models" / "global")
        assert isinstance(loaded, tuple)
        np.testing.assert_equal(loaded, weights)
    assert os.listdir(tmp_path / "models" / "global") == ["model.keras"]


@pytest.mark.parametrize("name", TRAVELLING)
def test_other_programs_can_open_it(tmp_path, monkeypatch, name):
    """Without a class of ours; a quantization-aware model inside TF-MOT's scope."""
    spec = TRAVELLING[name]
    weights = tuple(np.abs(weight) for weight in random_weights(spec))
    save_model(spec, weights, tmp_path)
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        packages = re.findall(r'"module": "(\w+)', archive.read("config.json").decode())
    assert set(packages) <= {"keras", "tensorflow_model_optimization"}
    model = rebuild(spec, weights)
    with monkeypatch.context() as patch, tfmot.quantization.keras.quantize_scope():
        patch.delitem(tf.keras.saving.get_custom_objects(), "federated_suite>StatelessDropout")
        opened = tf.keras.models.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(5, *spec.format.input_shape)).astype(np.float32)
    np.testing.assert_allclose(opened(x), model(x), rtol=1e-4, atol=1e-4)
    assert {layer.rate for layer in opened.submodules if isinstance(layer, LAYERS.Dropout)} == {
        layer.rate for layer in model.submodules if isinstance(layer, StatelessDropout)
    }
    np.testing.assert_equal(load_weights(spec, tmp_path), weights)


@pytest.mark.parametrize("spec", [SPEC, *QUANTIZED.values()], ids=["float", *QUANTIZED])
def test_files_of_earlier_versions_are_read(tmp_path, spec):
    """They have our dropout, and quantization-aware layers list all their weights."""
    weights = random_weights(spec)
    rebuild(spec, weights).save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        assert b"StatelessDropout" in archive.read("config.json")
    np.testing.assert_equal(load_weights(spec, tmp_path), weights)


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


def test_a_missing_or_damaged_file(tmp_path):
    check_error(SPEC, tmp_path, "no such file")
    save_model(SPEC, random_weights(SPEC), tmp_path)
    path = tmp_path / "model.keras"
    content, half = path.read_bytes(), path.stat().st_size // 2
    overwritten = content[:half] + bytes(64) + content[half + 64 :]
    damages = {b"": "damaged", content[:-100]: "damaged", b"no zip" * 99: "damaged", overwritten: "could not read them"}
    for damaged, message in damages.items():
        path.write_bytes(damaged)
        check_error(SPEC, tmp_path, message)


@pytest.mark.parametrize(
    "other",
    [
        SPEC.teacher,
        make_spec("auto", (15, 3), "float32", 5),
        make_spec("perceptron", (15, 3), "float32", 4),
        make_spec("auto", (8, 8, 1), "uint8", 4),
    ],
    ids=lambda spec: f"{spec.name}_{spec.task.num_outputs}",
)
def test_weights_of_another_model(tmp_path, other):
    save_model(other, random_weights(other), tmp_path)
    check_error(SPEC, tmp_path, "expected the weights of sensor_student")


ARRAYS = dataclasses.replace(SPEC, has_keras_file=False)


def test_weights_alone_are_read_back_and_by_plain_tensorflow(tmp_path):
    save_model(SPEC, random_weights(SPEC, 1), tmp_path)
    weights = random_weights(SPEC)
    assert save_model(ARRAYS, weights, tmp_path) == ""
    assert os.listdir(tmp_path) == ["weights.npz"]  # and no model of before
    with np.load(tmp_path / "weights.npz") as stored:
        np.testing.assert_equal(rebuild(SPEC, [*stored.values()]).get_weights(), weights)
    np.testing.assert_equal(load_weights(SPEC, tmp_path), weights)
    save_model(SPEC, weights, tmp_path)
    assert os.listdir(tmp_path) == ["model.keras"]


@pytest.mark.parametrize("error", [KeyError("units"), SystemExit(3), OSError("Unable to create link"), MemoryError()])
def test_what_no_trial_foresaw_leaves_the_weights(tmp_path, monkeypatch, error):
    def fail(model, path):
        raise error

    save_model(SPEC, random_weights(SPEC), tmp_path)
    monkeypatch.setattr(tf.keras.Sequential, "save", fail)
    weights = random_weights(SPEC, 1)
    reason = save_model(SPEC, weights, tmp_path)
    assert reason and "\n" not in reason
    assert os.listdir(tmp_path) == ["weights.npz"]
    np.testing.assert_equal(load_weights(SPEC, tmp_path), weights)


def test_arrays_of_another_model_or_damaged(tmp_path):
    weights = random_weights(SPEC)
    path = tmp_path / "weights.npz"
    save_model(ARRAYS, weights[:-1], tmp_path)
    check_error(SPEC, tmp_path, "weights.npz: expected the weights of sensor_student, 8 arrays .*, found 7")
    save_model(ARRAYS, (*weights[:-1], np.zeros(5, np.float32)), tmp_path)
    check_error(SPEC, tmp_path, r"weight_7 as float32 of shape \(4,\), found float32 of shape \(5,\)")
    save_model(ARRAYS, (*weights[:-1], np.array([None] * 4)), tmp_path)  # which would be unpickled
    check_error(SPEC, tmp_path, r"weight_7 as float32 of shape \(4,\), found object")
    path.write_bytes(path.read_bytes()[:-100])
    check_error(SPEC, tmp_path, "weights.npz: expected the weights of sensor_student")


class Blocks(LAYERS.Layer):
    """Keras trains the layers in a list of lists, and leaves them out of its files without a word."""

    def __init__(self, **options):
        super().__init__(**options)
        self.blocks = [[LAYERS.Dense(4)]]

    def call(self, x):
        return self.blocks[0][0](x)


def test_a_file_of_before_that_lacks_weights_is_refused(tmp_path):
    """Fresh ones stood in for them, and the model answered by chance."""

    def build():
        return tf.keras.Sequential([tf.keras.Input((4,)), Blocks()])

    spec = ModelSpec("theirs:build", build, make_format((4,), "float32", 4))
    model = build()
    model.save(tmp_path / "model.keras")
    check_error(spec, tmp_path, "could not read them: Keras has left out .*kernel:0 as it wrote them")
