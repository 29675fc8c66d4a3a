"""Which stored examples a user's model cannot take, in one line before anything is trained."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format

from datasets.example_format import Preprocessing
from launch.training.feature_scaling import _find_looked_up
from launch.training.model_inputs import check_model_inputs
from models.input_dtypes import settle_input
from models.model_names import ModelError
from models.model_spec import ModelSpec

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
    form, dtype = settle_input(model(), data.format, SHAPE)
    return ModelSpec("own:build", model, form, input_dtype=dtype)


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
    for data in (make_whole(), make_whole(scale=2.0)):  # nothing is lost
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
    spec = make_spec(make_federation([3]), lambda: build(dtype))
    assert _find_looked_up(None, [], spec) == (0, 1, 2, 3)
