"""Weights as tuples: first values, types, stacking, updates."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from small_formats import make_format
from small_runs import assert_same

from models.model_spec import ModelSpec
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.weights import (
    add_deltas,
    build_stacked_type,
    build_type,
    initialize_weights,
    is_float,
    stack_models,
    take_model,
)


def build_counting_model():
    """A dense layer with a counter, as quantization-aware training adds them."""
    layer = tf.keras.layers.Dense(2)
    model = tf.keras.Sequential([tf.keras.Input((3,)), layer])
    layer.add_weight(name="counter", shape=(), dtype=tf.int32, initializer="ones", trainable=False)
    return model


COUNTING_SPEC = ModelSpec("counting", build_counting_model, make_format((3,), "float32", 2))


def test_first_weights_are_a_function_of_seed_and_purpose(linear_spec):
    first = initialize_weights(linear_spec, 5)
    tf.keras.utils.set_random_seed(99)
    linear_spec.build()  # draws from the global generator
    assert_same(initialize_weights(linear_spec, 5), first)
    assert not np.array_equal(initialize_weights(linear_spec, 6)[0], first[0])
    assert not np.array_equal(initialize_weights(linear_spec, 5, "teacher weights")[0], first[0])


def test_first_weights_have_the_order_and_types_of_the_model():
    kernel, bias, counter = weights = initialize_weights(COUNTING_SPEC, 5)
    assert [(w.shape, w.dtype) for w in weights] == [((3, 2), np.float32), ((2,), np.float32), ((), np.int32)]
    assert np.any(kernel != 0) and not bias.any() and counter == 1
    for each in (weights, COUNTING_SPEC.build().weights):
        assert [is_float(weight) for weight in each] == [True, True, False]


@pytest.mark.parametrize("make", [np.array, tf.constant])
def test_deltas_are_added_at_a_rate_to_float_weights_alone(make):
    """The integer between the float weights has no delta, so the second delta belongs to the third weight."""
    weights = (make([[1.0], [2.0]], "float32"), make([3, 4], "int32"), make(5.0, "float32"))
    deltas = (make([[10.0], [20.0]], "float32"), make(8.0, "float32"))
    moved = add_deltas(weights, deltas, 0.5)
    for got, expected, weight in zip(moved, ([[6.0], [12.0]], [3, 4], 9.0), weights, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == weight.dtype
    np.testing.assert_array_equal(add_deltas(weights, iter(deltas))[0], [[11.0], [22.0]])


def test_deltas_keep_float32_at_a_rate_of_float64():
    """NumPy 1 makes float64 of a float32 scalar times a float64 one."""
    (moved,) = add_deltas((np.array(1.0, np.float32),), (np.array(2.0, np.float32),), np.float64(0.5))
    assert moved == 2.0 and moved.dtype == np.float32 and isinstance(moved, np.ndarray)


def test_a_stacked_model_is_taken_out_as_it_was_put_in():
    models = [initialize_weights(COUNTING_SPEC, seed) for seed in (1, 2)]
    # Counters differ, so that one of the other model would show.
    models[1] = (*models[1][:2], np.int32(7))
    stacked = stack_models(models)
    assert [array.shape for array in stacked] == [(2, 3, 2), (2, 2), (2,)]
    for index, model in enumerate(models):
        taken = take_model(stacked, index)
        assert_same(taken, model)
        assert [(type(array), array.dtype) for array in taken] == [(np.ndarray, array.dtype) for array in model]
    assert stack_models([(), ()]) == take_model((), 1) == (), "a run without teachers has no weights of theirs"


def test_types_have_shapes_integers_and_containers():
    weights = initialize_weights(COUNTING_SPEC, 5)
    for found, stack in ((build_type(weights), ()), (build_stacked_type(weights, 4), (4,))):
        shapes = [(np.float32, (*stack, 3, 2)), (np.float32, (*stack, 2)), (np.int32, stack)]
        assert found == tff.StructWithPythonType([tff.TensorType(*each) for each in shapes], tuple)
    members = [("result", np.int32), ("group", np.str_), ("weight", tff.StructWithPythonType([], tuple))]
    assert build_type(ClientUpdate(np.int32(1), "", ())) == tff.StructWithPythonType(members, ClientUpdate)
