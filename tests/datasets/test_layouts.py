"""How axes and scales are read, and in which words that is said."""

import re

import numpy as np
import pytest
from refusals import assert_refused

from datasets.cifar import CIFAR10_FORMAT
from datasets.data_notes import note_content, note_layout
from datasets.digits import DIGITS_FORMAT
from datasets.example_format import Preprocessing
from datasets.formats.npz import load_npz_arrays
from datasets.har import HAR_FORMATS
from datasets.layouts import LAYOUTS, arrange, choose_preprocessing, describe_examples, parse_factor, resolve_layout
from datasets.mnist import MNIST_FORMAT

Y = np.arange(60) % 3


@pytest.mark.parametrize(
    ("shape", "is_uint8", "layout"),
    [
        ((16,), True, "features"),
        ((28, 28), True, "image"),
        ((28, 28), False, "sequence"),
        ((28, 28, 1), False, "image"),
        ((3, 32, 32), True, "image_channels_first"),
        ((1, 28, 28), False, "image_channels_first"),
        ((4, 9, 30), False, "image_channels_first"),
        ((3, 32, 3), True, "image"),  # both ends may be channels: as ever
        ((3, 4, 32), True, "image"),
        ((13, 64, 64), False, "image"),
        ((5, 8, 8, 3), True, "as_stored"),
    ],
)
def test_a_layout_that_is_not_given_goes_by_shape_and_dtype(shape, is_uint8, layout):
    assert resolve_layout("auto", shape, is_uint8) == layout
    assert all(resolve_layout(given, shape, is_uint8) == given for given in LAYOUTS if given != "auto")


@pytest.mark.parametrize(
    ("layout", "shape", "arranged", "of_first"),  # the last: of the first example, by its own axes
    [
        ("features", (2, 3, 4), (2, 12, 1), lambda x: x.reshape(12, 1)),
        ("sequence", (2, 3), (2, 3, 1), lambda x: x[:, None]),
        ("sequence", (2, 3, 4), (2, 3, 4), lambda x: x),
        ("sequence_channels_first", (2, 3, 4), (2, 4, 3), lambda x: x.T),
        ("image", (2, 3, 4), (2, 3, 4, 1), lambda x: x[..., None]),
        ("image", (2, 3, 4, 5), (2, 3, 4, 5), lambda x: x),
        ("image_channels_first", (2, 3, 4, 5), (2, 4, 5, 3), lambda x: x.transpose(1, 2, 0)),
        ("as_stored", (2, 3), (2, 3, 1), lambda x: x[:, None]),
        ("as_stored", (2, 3, 4), (2, 3, 4), lambda x: x),
        ("as_stored", (2, 3, 4, 5, 6), (2, 3, 4, 5, 6), lambda x: x),
    ],
)
def test_the_channels_come_last(layout, shape, arranged, of_first):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = arrange(x, layout, "x")
    assert found.shape == arranged
    np.testing.assert_array_equal(found[0], of_first(x[0]))


@pytest.mark.parametrize(
    ("layout", "shape", "expected"),
    [
        ("sequence", (2, 3, 4, 5), "steps, channels"),
        ("sequence_channels_first", (2, 3), "channels, steps"),
        ("image", (2, 3), "height, width, channels"),
        ("image_channels_first", (2, 3, 4), "channels, height, width"),
    ],
)
def test_a_layout_of_other_axes_is_refused(layout, shape, expected):
    assert_refused(rf"x has shape .*{expected}.* with --layout={layout}", arrange, np.zeros(shape), layout, "x")


@pytest.mark.parametrize(
    ("text", "factor"),
    [("1/255", 1 / 255), ("0.01", 0.01), ("2", 2.0), ("1e-2", 0.01), ("3/1.5", 2.0), ("1E3", 1000.0)],
)
def test_a_factor_is_a_number_or_a_fraction(text, factor):
    assert parse_factor(text) == factor


@pytest.mark.parametrize(
    "text", ["", "x", "1/0", "0", "-1", "nan", "inf", "1/2/3", "1_0", "1e999999999", ".", "1/", "٣"]
)
def test_what_is_no_factor_is_refused(text):
    with pytest.raises(ValueError, match="a factor above 0 such as 1/255"):
        parse_factor(text)


@pytest.mark.parametrize(
    ("scale", "shape", "is_uint8", "factor", "feature_range"),
    [
        ("auto", (8, 8, 1), True, 1 / 255, (0.0, 1.0)),
        ("auto", (16, 1), True, 1.0, (0.0, 255.0)),
        ("auto", (16, 4), True, 1.0, (0.0, 255.0)),
        ("auto", (8, 8, 1), False, 1.0, None),
        ("bytes", (16, 1), True, 1 / 255, (0.0, 1.0)),
        ("bytes", (16, 1), False, 1.0, None),
        ("none", (8, 8, 1), True, 1.0, (0.0, 255.0)),
        ("1/16", (8, 8, 1), True, 1 / 16, (0.0, 255 / 16)),
        ("0.5", (16, 1), False, 0.5, None),
    ],
)
def test_only_pictures_in_uint8_are_scaled_unasked(scale, shape, is_uint8, factor, feature_range):
    assert choose_preprocessing(scale, shape, is_uint8) == Preprocessing(factor, feature_range=feature_range)


@pytest.mark.parametrize(
    ("example_format", "text"),
    [
        (DIGITS_FORMAT, "images of 8 x 8 pixels, 1 channel, scaled by 1/16"),
        (MNIST_FORMAT, "images of 28 x 28 pixels, 1 channel, scaled by 1/255"),
        (CIFAR10_FORMAT, "images of 32 x 32 pixels, 3 channels, scaled by 1/255"),
        (HAR_FORMATS["statistics"], "561 features or steps of 1 channel, as they are"),
        (HAR_FORMATS["inertial"], "sequences of 128 steps, 9 channels, as they are"),
    ],
)
def test_what_was_understood_in_words(example_format, text):
    assert describe_examples(example_format.input_shape, example_format.preprocessing) == text


def test_rare_forms_in_words():
    assert describe_examples((1,), Preprocessing(0.5, 1.0)) == "1 feature, scaled by 1/2 and shifted by 1"
    assert describe_examples((24, 1), Preprocessing(), "features") == "24 features, as they are"
    assert describe_examples((24, 1), Preprocessing(), "sequence") == "sequences of 24 steps, 1 channel, as they are"
    assert describe_examples((5, 8, 9, 3), Preprocessing()) == "arrays of 5 x 8 x 9 values, 3 channels, as they are"


@pytest.mark.parametrize(
    ("shape", "is_uint8", "flag"),
    [
        ((3, 32, 32), True, "--layout=image"),
        ((13, 64, 64), False, "--layout=image_channels_first"),
        ((28, 28), False, "--layout=image"),
        ((20, 30), False, "--layout=image"),
        ((9, 128), False, "--layout=sequence_channels_first"),
        ((128, 6), True, "--layout=sequence"),
        ((28, 28), True, ""),
        ((128, 9), False, ""),
        ((32, 32, 3), True, ""),
        ((28, 28, 1), False, ""),
        ((7, 7), False, ""),
        ((561,), False, ""),
    ],
)
def test_a_shape_that_may_be_another_layout_is_noted_with_the_flag(shape, is_uint8, flag):
    notes = note_layout("auto", shape, is_uint8)
    assert len(notes) == bool(flag)
    assert all(note.partition("give ")[2].split(",")[0] == flag for note in notes)
    assert not note_layout("image", shape, is_uint8), "a layout that is given is not in doubt"


def note(tmp_path, x, scale="auto", **others):
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, y=Y, **others)
    return note_content(load_npz_arrays(str(path), scale=scale), scale)


RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(60, 5))
BYTES = RNG.integers(0, 256, (60, 8, 8))


@pytest.mark.parametrize(
    ("x", "scale", "said"),
    [
        (NORMAL * [1, 1, 1e6, 1, 1], "auto", "feature 2 .* --standardize=federated$"),
        (NORMAL + 2000 * np.eye(5)[1], "auto", "feature 1 .counted from 0. has a mean of 2e.03"),
        (NORMAL * 3e5, "auto", "--standardize=federated$"),
        (NORMAL * 1e-5, "auto", "--standardize=federated$"),
        (NORMAL[:, None] * [1, 1e5, 1, 1, 1], "auto", "channel 1 .* --standardize=federated$"),
        (BYTES * 1.0, "auto", "from 0 to 255, .*--scale=1/255"),
        (BYTES[..., None] * 1.0, "auto", "from 0 to 255, .*--scale=1/255"),
        (BYTES.reshape(60, 64) * 1.0, "auto", "from 0 to 255, .*--scale=1/255"),
        (BYTES.reshape(60, 64).astype(np.uint8), "auto", "from 0 to 255, .*--scale=1/255"),
        (BYTES[..., None] * 1.0, "1/255", ""),
        (BYTES[..., None] * 1.0, "none", ""),  # what is given is not in doubt
        ((BYTES > 99).astype(np.uint8), "bytes", ""),
        (BYTES.astype(np.uint8), "auto", ""),
        ((BYTES > 99).astype(np.uint8), "auto", "largest value in uint8 is 1, .*--scale=none"),
        ((BYTES // 16).astype(np.uint8), "auto", "largest value in uint8 is 15, .*--scale=1/15"),
        ((BYTES > 99).astype(np.uint8), "none", ""),
        ((NORMAL > 0).astype(np.uint8), "auto", ""),
        (NORMAL, "auto", ""),
        (NORMAL * 20 + 30, "auto", ""),  # ages, temperatures
        (NORMAL * 0, "auto", ""),
    ],
)
def test_numbers_of_a_size_that_training_does_not_take_are_noted(tmp_path, x, scale, said):
    notes = note(tmp_path, x, scale)
    assert len(notes) == bool(said)
    assert all(re.search(said, each) for each in notes), notes


def test_no_size_is_noted_where_features_are_standardized(tmp_path):
    np.savez(tmp_path / "mine.npz", x=NORMAL * 3e5, y=Y)
    assert not note_content(load_npz_arrays(str(tmp_path / "mine.npz")), "auto", is_standardized=True)


def test_test_labels_that_training_never_saw_are_noted(tmp_path):
    names = ["ant", "bee", "cow", "dog", "eel"]
    (said,) = note(tmp_path, NORMAL, x_test=NORMAL[:4], y_test=[0, 3, 4, 4], class_names=names)
    assert said.startswith("3 of 4 test examples are of classes that no train example has (dog, eel)")
    assert not note(tmp_path, NORMAL, x_test=NORMAL[:4], y_test=[0, 1, 2, 2], class_names=names)


def test_a_loaders_numbers_are_scaled_in_the_loader(tmp_path):
    np.savez(tmp_path / "mine.npz", x=BYTES[..., None] * 1.0, y=Y)
    (said,) = note_content(load_npz_arrays(str(tmp_path / "mine.npz")), None)
    assert said.endswith("a scale of 1/255 in its loader's Preprocessing brings them to 0..1")
