"""Which stored examples a user's model cannot take, in one line before anything is trained."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format

from datasets.example_format import Padding, Preprocessing
from launch.settings.run_config import build_run_config
from launch.training.announcements import find_largest_input
from launch.training.model_inputs import _find_looked_up, check_model_inputs, scale_features
from models.input_dtypes import settle_input
from models.model_names import ModelError
from models.model_spec import ModelSpec
from tff_algos.settings.config_fields import ConfigError

L = tf.keras.layers
SHAPE = (4,)


def build(dtype):
    x = tf.keras.Input(SHAPE, dtype=dtype)
    return tf.keras.Model(x, L.Dense(3)(tf.cast(x, tf.float32)))


def build_lookup():
    x = tf.keras.Input(SHAPE)
    return tf.keras.Model(x, L.Dense(3)(L.Concatenate()([L.Embedding(9, 2)(x[:, 1]), x])))


@pytest.fixture
def make_whole(make_federation):
    """A function (scale) -> two clients and a test set of whole numbers from 0 to 8, scaled by it."""

    def make(scale=1.0):
        data = change_format(make_federation([3, 2]), preprocessing=Preprocessing(scale))
        for client in data.clients:
            write(client, np.arange(client.num_train * 4) % 9)
        data.test_x[:] = np.arange(data.test_x.size).reshape(data.test_x.shape) % 9
        return data

    return make


def write(client, numbers):
    np.asarray(numbers, np.float32).tofile(f"{client.path}.train.x")


def make_spec(data, model):
    example_format, dtype = settle_input(model(), data.format, SHAPE)
    return ModelSpec("own:build", model, example_format, input_dtype=dtype)


def test_whole_numbers_are_taken_and_said(make_whole, capsys):
    data = make_whole(scale=0.125)
    spec = make_spec(data, lambda: build("uint8"))
    check_model_inputs(data, spec)
    assert "own:build: its Input has dtype uint8: it gets the stored numbers as they are" in capsys.readouterr().out
    assert float(tf.reduce_max(spec.preprocess(data.test_x))) == 8


@pytest.mark.parametrize(("dtype", "is_read"), [("uint8", False), ("int32", False), ("int8", True)])
def test_files_are_read_only_where_a_stored_number_can_be_none_of_the_dtype(make_whole, monkeypatch, dtype, is_read):
    data, read = change_format(make_whole(), input_dtype="uint8"), []
    monkeypatch.setattr("launch.training.model_inputs._iterate_examples", lambda data: read.append(data) or ())
    check_model_inputs(data, make_spec(data, lambda: build(dtype)))
    assert bool(read) == is_read


@pytest.mark.parametrize(("number", "found"), [(300, "300"), (-4, "-4"), (0.25, "0.25")])
def test_numbers_that_are_none_of_the_dtype_are_refused(make_whole, number, found):
    data = make_whole()
    write(data.clients[1], [1, 2, 3, 4, 5, 6, 7, number])
    with pytest.raises(ModelError) as error:
        check_model_inputs(data, make_spec(data, lambda: build("uint8")))
    assert str(error.value) == (
        f"model=own:build: its Input has dtype uint8, but client_1 has {found}, expected whole numbers from 0 to 255; "
        "start with tf.keras.Input((4,)), and cast inside"
    )


def test_what_a_model_looks_up_of_scaled_numbers_is_refused(make_whole, capsys):
    data = make_whole(scale=0.125)
    with pytest.raises(ModelError) as error:
        check_model_inputs(data, make_spec(data, build_lookup))
    line = str(error.value)
    assert line.startswith(
        "model=own:build: makes whole numbers (int32) of its inputs, but feature 1 has 0.125, expect"
    )
    assert 'tf.keras.Input((4,), dtype="int32"), which gets the stored numbers' in line and "\n" not in line
    # Nothing is lost.
    for data in (make_whole(), make_whole(scale=2.0)):
        check_model_inputs(data, make_spec(data, build_lookup))
    assert not capsys.readouterr().out


def test_a_teachers_and_fractions_that_a_model_cuts_off_are_said(make_whole, make_federation, capsys):
    data = make_federation([3, 2])
    check_model_inputs(data, make_spec(data, build_lookup))
    assert "own:build makes whole numbers (int32) of its inputs, but feature 1 has " in capsys.readouterr().out
    student = ModelSpec("perceptron", None, data.format, teacher=make_spec(data, lambda: build("int32")))
    with pytest.raises(ModelError, match=r"^teacher_model=own:build: its Input has dtype int32, but client_0 has "):
        check_model_inputs(data, student)


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_a_scaling_leaves_alone_what_gets_the_stored_numbers(make_federation, dtype):
    assert _find_looked_up(None, [], make_spec(make_federation([3]), lambda: build(dtype))) == (0, 1, 2, 3)


NEW_FOLDER = types.SimpleNamespace(is_new=True)
FLAGS = {"algo": "fedavg", "model": "mine:build", "standardize": "federated"}
# A number, a switch, an index, another number.
TABLE = np.array([[2, 1, 150, 5], [4, 0, 7, 9]], np.float32)
# Sequences that end in zeros, of which the second has one between others.
STEPS = np.array([[[3], [5], [0], [0]], [[7], [0], [9], [0]]], np.float32)
# Two channels, whose padding is -1 in both; a 0 in both is a measurement.
PAIRS = np.array([[[4, 5], [-1, -1], [0, 0]], [[8, 5], [-1, -1], [-1, -1]]], np.float32)


@pytest.fixture
def scale(tff_runtime, make_federation, linear_spec, capsys):
    """(examples, layer of the model, or None, flags, fields of the format) -> (scaled data, what was said)."""

    def build_one(shape, layer):
        inputs = tf.keras.Input(shape)
        outputs = L.Dense(3)(L.Flatten()(inputs))
        return tf.keras.Model(inputs, outputs if layer is None else outputs + 0.0 * layer(inputs))

    def run(x, layer=None, fields=None, **flags):
        data = make_federation([1, 1])
        for client, part in zip(data.clients, x, strict=True):
            part.tofile(f"{client.path}.train.x")
        fields = {"input_shape": x.shape[1:], **(fields or {})}
        spec = change_format(dataclasses.replace(linear_spec, teacher=None), **fields)
        spec = dataclasses.replace(spec, build=lambda: build_one(x.shape[1:], layer))
        config = build_run_config({**FLAGS, **flags})
        return scale_features(config, NEW_FOLDER, change_format(data, **fields), spec)[0], capsys.readouterr().out

    return run


def mask(*values):
    """Steps of these values are masked, by a layer each."""

    def apply(x):
        masked = [L.Masking(value)(x) for value in values]
        return L.Dense(3)(L.GlobalAveragePooling1D()(sum(masked[1:], masked[0])))

    return apply


def look_up(x):
    return L.Dense(3)(L.Flatten()(L.Embedding(200, 2)(x[:, 2:3])))


def test_categories_and_switches_are_left_alone(scale):
    data, said = scale(TABLE, fields={"categories": (2,)})
    assert data.feature_means == (3.0, 0.0, 0.0, 7.0) and data.feature_deviations == (1.0, 1.0, 1.0, 2.0)
    assert "scaling  2 means and deviations" in said and "feature 1 (0 or 1), feature 2 (category)" in said
    # An index of 150 is no reason to scale.
    assert find_largest_input(data) == 5.0


def test_what_a_model_looks_up_is_left_alone_or_refused(scale):
    data, said = scale(TABLE, look_up)
    assert data.feature_means == (3.0, 0.0, 0.0, 7.0) and "feature 2 (looked up)" in said
    # --unscaled=nothing would be refused here.
    assert "scales them, too" not in said
    with pytest.raises(ConfigError, match=r"unscaled=nothing: expected auto, .* \(feature 2\)"):
        scale(TABLE, look_up, unscaled="nothing")
    client = {"standardize": "client", "partition": "natural"}
    with pytest.raises(ConfigError, match=r"federated, which leaves alone what the model looks up \(feature 2\)"):
        scale(TABLE, look_up, **client)
    scale(TABLE, look_up, {"categories": (2,)}, **client)


def test_zeros_that_a_model_masks_are_padding_anywhere(scale):
    data, said = scale(STEPS, mask(0.0))
    assert data.feature_padding == Padding(0.0, True) and "50.0 % of the steps" in said and "masks these" in said
    assert data.feature_means == (5.0, 5.0, 9.0, 0.0) and data.feature_deviations == (2.0, 1.0, 1.0, 1.0)
    # Without a Masking layer a 0 between others may be a measurement: that is said, and so is what decides it.
    data, said = scale(STEPS)
    assert data.feature_padding is None and data.feature_means == (5.0, 2.5, 4.5, 0.0)
    assert "50.0 % of the steps are 0, also between others" in said and "--unscaled=0" in said


def test_the_value_of_the_mask_is_that_of_the_padding(scale):
    data, said = scale(PAIRS, mask(-1.0))
    # 4, 8 and a measured 0 in channel 0, 5, 5 and 0 in the other.
    assert data.feature_padding == Padding(-1.0, True) and data.feature_means == pytest.approx((4, 10 / 3))
    assert "scaled as measurements" not in said
    assert "50.0 % of the steps hold nothing but -1: the model masks these" in said
    client = {"standardize": "client", "partition": "natural", "unscaled": "categories"}
    assert "note     the model masks -1, but --unscaled=categories" in scale(PAIRS, mask(-1.0), **client)[1]


def test_steps_of_another_number_than_the_padding_are_told(scale):
    # 3 of 6 steps.
    x = np.array([[[4, 5], [-1, -1], [-1, -1]], [[8, 5], [6, 2], [-1, -1]]], np.float32)
    line = "50.0 % of the steps hold nothing but -1 at the ends of sequences and are scaled as measurements; if they"
    data, said = scale(x)
    assert data.feature_padding is None and f"{line} are padding, give --unscaled=-1" in said
    assert f"{line} are padding, let the model mask -1, not 0" in scale(x, mask(0.0))[1]
    for scaled in (scale(x, unscaled="-1"), scale(x, unscaled="categories"), scale(-x)):
        assert line not in scaled[1]


def test_a_mask_that_cannot_be_kept_is_one_line(scale):
    for values, flags, expected in (
        ((0.0, -1.0), {}, "none: Masking layers look for -1 and 0, not for one"),
        ((float("nan"),), {}, "none: a Masking layer looks for NaN"),
        ((-1.0,), {"unscaled": "0"}, "-1, which a Masking layer of the model looks for"),
        ((-1.0,), {"standardize": "client", "partition": "natural"}, "-1, which a Masking layer"),
    ):
        with pytest.raises(ConfigError, match=f"expected {expected}"):
            scale(PAIRS, mask(*values), **flags)
