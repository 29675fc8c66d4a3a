"""What a file must answer to be written, and when one is warned of."""

import contextlib
import re

import numpy as np
import pytest

from launch.tflite.file_check import (
    ALIKE,
    TAKE_QAT,
    check_alone,
    check_answers,
    find_way_out,
    warn_of_difference,
    warn_of_loss,
)
from models.model_names import ModelError

EXPECTED = np.array([[1.0, -2.0], [0.5, 4.0], [3.0, 0.0]], np.float32)  # the largest is 4


def answers(by_order=0.0, by_format=0.0):
    there = EXPECTED + np.float32(by_format)
    back = there.copy()
    back[1, 0] += by_order
    return np.stack([there, back])


@pytest.mark.parametrize("export_format", ["float32", "float16", "dynamic", "int8", "training"])
def test_a_good_file_and_one_that_keeps_a_state(export_format):
    check_answers(answers(), EXPECTED, export_format)
    check_answers(answers(by_order=0.003), EXPECTED, export_format)
    with pytest.raises(ModelError, match="its answers depend on the examples before"):
        check_answers(answers(by_order=0.005), EXPECTED, export_format)


def test_a_model_that_mixes_the_examples_of_a_batch():
    check_alone(answers(by_format=0.03), EXPECTED)
    check_alone(answers(by_order=0.5, by_format=0.5), EXPECTED)  # a state: the file's own answers show it
    with pytest.raises(ModelError, match="depends on the others of its batch, and a file takes one at a time"):
        check_alone(answers(by_format=0.05), EXPECTED)


@pytest.mark.parametrize(
    ("export_format", "difference", "is_refused"),
    [
        ("float32", 0.03, False),
        ("float32", 0.05, True),
        ("training", 0.05, True),
        ("float16", 0.3, False),
        ("float16", 0.5, True),
        ("dynamic", 3.0, False),
        ("int8", 3.0, False),
    ],
)
def test_a_float_file_that_is_another_model(export_format, difference, is_refused):
    """Of quantized files a warning is given, by their accuracy."""
    refused = pytest.raises(ModelError, match=r"its outputs differ from Keras's by 0.* of the largest")
    with refused if is_refused else contextlib.nullcontext():
        check_answers(answers(by_format=difference), EXPECTED, export_format)


def test_answers_that_are_no_numbers():
    broken = answers()
    broken[:, 0, 0] = np.nan
    with pytest.raises(ModelError, match=r"^its outputs are no numbers for 1 of 3 examples for which Keras's are$"):
        check_answers(broken, EXPECTED, "float32")
    with pytest.raises(
        ModelError, match=r"; a number of the model, such as an epsilon, is beyond float16; take float32$"
    ):
        check_answers(broken, EXPECTED, "float16")
    with pytest.raises(ModelError, match="its answers depend on the examples before"):
        check_answers(np.stack([EXPECTED, broken[1]]), EXPECTED, "float16")
    unknown = EXPECTED.copy()
    unknown[0, 0] = np.nan
    check_answers(broken, unknown, "float32")  # Keras has none either
    check_answers(np.full((2, 3, 2), np.nan, np.float32), np.full((3, 2), np.inf, np.float32), "float32")


@pytest.mark.parametrize(
    ("export_format", "change", "said"),
    [
        ("float32", 0.003, ""),
        ("float32", 0.4, "1 of 3 test examples, by up to 10 % of the largest output; a layer of the model computes"),
        ("float16", 0.03, ""),
        ("float16", 0.06, "1 of 3 test examples, by up to 1.5 % of the largest output; take float32"),
        ("float32", np.nan, "1 of 3 test examples, by up to nan % of the largest output"),
        ("dynamic", 0.4, ""),
        ("int8", 0.4, ""),
    ],
)
def test_single_examples_that_a_float_file_answers_otherwise(export_format, change, said):
    outputs = EXPECTED.copy()
    outputs[2, 1] += change
    warning = warn_of_difference(export_format, outputs, EXPECTED)
    assert bool(warning) == bool(said) and said in warning
    assert warning[:45] in ("", "answers otherwise than Keras's model for 1 of")


def test_examples_that_keras_itself_has_no_answer_to_give_no_warning():
    unknown = EXPECTED.copy()
    unknown[2] = np.nan
    assert warn_of_difference("float32", EXPECTED, unknown) == ""
    assert warn_of_difference("float32", EXPECTED, np.full_like(EXPECTED, np.inf)) == ""


@pytest.mark.parametrize(
    ("export_format", "agreement", "lost", "way_out"),
    [
        ("int8", 0.95, 0.04, None),
        ("int8", 0.94, 0.0, "--representative_examples or another --representative_client.*--quantize=qat.*dynamic"),
        ("int8", 0.955, 0.045, "--representative_client"),
        ("int8", 0.96, -0.1, None),
        ("dynamic", 0.7, 0.1, "take float16"),
        ("float16", 0.7, 0.1, "take float32"),
        ("qat_int8", 0.7, 0.1, "take dynamic"),
        ("float32", 0.7, 0.1, None),
    ],
)
def test_a_warning_names_the_way_out(export_format, agreement, lost, way_out):
    warning = warn_of_loss(export_format, agreement, lost, 0.5)
    assert bool(warning) == (way_out is not None)
    assert way_out is None or re.search(way_out, warning)
    assert way_out is None or f"{100 * agreement:.1f} % of the test set, {-100 * lost:+.1f} points" in warning


def test_a_file_that_is_larger_than_float32():
    """An LSTM of 500 steps had 10 kB in float32 and 8 MB in int8."""
    assert warn_of_loss("int8", 1.0, 0.0, 799.2) == "is 799 times the size of float32; take dynamic"
    assert warn_of_loss("int8", 1.0, 0.0, 1.9) == warn_of_loss("int8", 1.0, 0.0, None) == ""
    assert warn_of_loss("int8", 0.5, 0.5, 4).endswith(
        "or take dynamic; it is 4 times the size of float32; take dynamic"
    )


@pytest.mark.parametrize(
    ("ranges", "training", "way_out"),
    [
        (
            (200, 200), "train with --quantize=qat",
            "give more than --representative_examples=200 or another --representative_client, train with "
            "--quantize=qat, or take dynamic",
        ),
        (  # there are no more, and the run was trained so already
            (60, 200), TAKE_QAT,
            "give another --representative_client (all 60 train examples set the ranges), take qat_int8, or take "
            "dynamic",
        ),
        (  # a model that TF-MOT cannot quantize
            (7, 7, True), "",
            "give more than --representative_examples=7 or other clients' examples, without --representative_client, "
            "or take dynamic",
        ),
    ],
)  # fmt: skip
def test_the_way_out_is_one_that_is_left(ranges, training, way_out):
    assert find_way_out("int8", training, *ranges) == way_out
    assert warn_of_loss("int8", 0.949, 0.0, 0.5, way_out=way_out).endswith(f"; {way_out}")
    assert find_way_out("dynamic", training, *ranges) == "take float16"


@pytest.mark.parametrize("export_format", ["float16", "dynamic", "int8", "qat_int8"])
def test_tokens_and_labels_that_differ_are_warned_of_though_the_metric_is_as_good(export_format):
    assert "token for 94.0 % of the tokens" in warn_of_loss(
        export_format, 0.94, 0.0, 0.5, "token accuracy", alike=ALIKE["next_token"]
    )
    assert "answer for 90.0 % of the labels" in warn_of_loss(
        export_format, 0.9, 0.0, 0.5, "AUC", alike=ALIKE["multi_label"]
    )
