"""The operators of files whose operators are known."""

import numpy as np
import tensorflow as tf

from models.tflite_export import convert_training_module, find_select_operators, list_operators

WEIGHTS = (np.ones((4, 3), np.float32), np.ones(3, np.float32))


def test_operators_of_all_signatures_count(linear_spec):
    """`train` is not the first of them. Each of four initializes the two variables, if none did before."""
    content = convert_training_module(linear_spec, WEIGHTS, 8).content
    found = list_operators(content)
    assert (found["LOG_SOFTMAX"], found["CALL_ONCE"]) == (1, 4)
    assert found["ASSIGN_VARIABLE"] == 2 * 3  # to initialize, in train and in set_weights
    assert find_select_operators(content) == ()


def test_operators_of_tensorflow_have_its_names():
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [tf.function(lambda x: tf.linalg.det(x) + 1).get_concrete_function(tf.TensorSpec((2, 2)))]
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    content = converter.convert()
    assert list_operators(content) == {"ADD": 1, "FlexMatrixDeterminant": 1}
    assert find_select_operators(content) == ("MatrixDeterminant",)
