"""What a file puts out, compared with Keras's model."""

import numpy as np

from launch.tflite.export_measurement import compute_agreement, compute_alike, warn_of_no_numbers
from models.task import build_task

NAN = np.nan


def test_outputs_with_a_nan_agree_with_nothing():
    """The largest of NaNs is the first, so that a file of NaNs would agree wherever Keras says the first class."""
    task = build_task("classification", 2)
    outputs = np.array([[NAN, NAN], [2, 1], [NAN, NAN], [0, 1]], np.float32)
    reference = np.array([[1, 0], [3, 0], [NAN, 1], [5, 1]], np.float32)
    assert compute_agreement(task, outputs, reference) == 0.25
    assert compute_agreement(build_task("regression", 1), outputs, reference) is None


def test_answers_alike_by_hand():
    """Of tokens those that are no padding, here 0; of labels those that either gives; of numbers none."""
    tokens = build_task("next_token", 3, label_shape=(4,))
    labels = np.array([[2, 1, 1, 0]], np.int32)
    reference = np.array([[[1, 0, 0], [0, 2, 1], [0, 1, 2], [3, 0, 0]]], np.float32)
    outputs = np.array([[[1, 0, 0], [0, 2, 1], [0, 3, 2], [0, 9, 0]]], np.float32)
    assert compute_alike(tokens, labels, outputs, reference) == 2 / 3
    assert compute_alike(tokens, np.zeros((1, 4), np.int32), outputs, reference) is None
    # Both give the first label; one alone the second and the third; nobody the others, which would be 7 of 10 alike.
    many, none = build_task("multi_label", 10, (10,)), np.full((1, 7), -1.0)
    first, second = np.array([[1.0, 2, -1]]), np.array([[3.0, -2, 1]])
    ours, theirs = (np.concatenate([part, none], axis=1).astype(np.float32) for part in (first, second))
    assert compute_alike(many, np.ones((1, 10), np.uint8), ours, theirs) == 1 / 3
    ours[0, 9] = NAN
    assert compute_alike(many, np.ones((1, 10), np.uint8), ours, theirs) == 1 / 4
    assert compute_alike(build_task("regression", 1), np.ones(4), np.ones((4, 1)), np.ones((4, 1))) is None
    classes = build_task("classification", 2)
    assert compute_alike(classes, np.zeros(2), np.array([[1, 0], [0, 1.0]]), np.array([[1, 0], [1.0, 0]])) == 0.5


def test_where_keras_has_no_answer_no_file_is_blamed():
    """Of the four rows Keras has three, of which the file answers two alike."""
    outputs = np.array([[NAN, NAN], [2, 1], [NAN, NAN], [0, 1]], np.float32)
    reference = np.array([[1, 0], [3, 0], [NAN, 1], [0, 2]], np.float32)
    classes = build_task("classification", 2)
    assert compute_alike(classes, np.zeros(4), outputs, reference) == 2 / 3
    assert compute_alike(classes, np.zeros(1), outputs[2:3], reference[2:3]) is None
    many = build_task("multi_label", 2, (2,))
    assert compute_alike(many, np.ones((4, 2)), outputs, reference) == 2 / 6  # of rows with 2, 2, 1 and 1


def test_answers_of_keras_that_are_no_numbers_give_a_warning():
    said = warn_of_no_numbers(np.array([[1, NAN], [-np.inf, 1], [0, 1]], np.float32))
    assert said.startswith("has no answer but NaN for 1 of 3 test examples, in Keras as in its files")
    assert warn_of_no_numbers(np.ones((3, 2))) == warn_of_no_numbers(np.ones((0, 2))) == ""
