"""Border checks of `ArrayDataset` and `ExampleFormat`, the digest, the held-out part.

How axes and scales are read, and in which words that is said.
"""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_formats import format_of, make_format

from datasets.arrays import TrainBlocks, hold_out_test_part, make_array_dataset
from datasets.cifar import CIFAR10_FORMAT
from datasets.data_notes import note_content, note_layout
from datasets.dataset import DatasetOptions
from datasets.digits import DIGITS_FORMAT
from datasets.example_format import ExampleFormat, LabelFormat, Preprocessing
from datasets.formats.npz import open_npz
from datasets.har import HAR_FORMATS
from datasets.layouts import LAYOUTS, arrange, choose_preprocessing, describe_examples, parse_factor, resolve_layout
from datasets.mnist import MNIST_FORMAT


def make(x=None, y=None, test_x=None, test_y=None, names=("a", "b"), clients=None, **fields):
    x = np.zeros((4, 3, 1), np.float32) if x is None else x
    y = np.array([0, 1, 0, 1]) if y is None else y
    test = (x if test_x is None else test_x, y if test_y is None else test_y)
    return make_array_dataset("toy", (x, y), test, format_of(x, names), clients, **fields)


def test_labels_become_int32_and_clients_become_positions():
    arrays = make(y=np.array([0, 1, 0, 1], np.uint8), clients=np.array([7, 3, 7, 9]))
    assert arrays.train_y.dtype == np.int32
    assert arrays.train_clients.tolist() == [1, 0, 1, 2]
    assert arrays.client_names == ("client_3", "client_7", "client_9")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": np.zeros((4, 3), np.uint8)}, "channel axis"),
        ({"x": np.zeros(4, np.float32)}, "input_shape="),
        ({"x": np.zeros((4, 3, 1))}, "float64"),
        ({"y": np.array([0, 1, 0])}, "a label for each example"),
        ({"y": np.array([0, 1, 0, 2])}, r"labels 0\.\.2, expected 0\.\.1"),
        ({"y": np.array([0, 1, 0, -1])}, r"labels -1\.\.1"),
        ({"x": np.zeros((0, 3, 1), np.float32), "y": np.zeros(0, int)}, "empty"),
        ({"test_x": np.zeros((4, 2, 1), np.float32)}, "expected the same"),
        ({"names": ("a",), "y": np.zeros(4, int)}, "at least 2"),
        ({"clients": np.array([1, 2])}, "client for each train example"),
        ({"blocks": TrainBlocks(np.zeros(3, int), 1)}, r"blocks are int64 \(3,\) .* an integer for each train example"),
        ({"blocks": TrainBlocks(np.zeros(4), 1)}, "blocks are float64"),
        ({"blocks": TrainBlocks(np.zeros(4, int), -1)}, "overlap=-1, expected"),
        ({"blocks": TrainBlocks(np.zeros(4, int), 1), "is_ordered_by_time": True}, "none of examples in order of time"),
    ],
)
def test_what_does_not_fit_is_reported_in_one_line(fields, message):
    assert_refused(message, make, **fields)


@pytest.mark.parametrize(("shape", "dtype"), [((2, 1), "float32"), ((3, 1), "uint8"), ((3,), "float32")])
def test_arrays_are_what_their_format_says(shape, dtype):
    part = np.zeros((4, 3, 1), np.float32), np.arange(4) % 2
    message = rf"^toy, train part: x is float32 \(4, 3, 1\), .* says {dtype} and"
    assert_refused(message, make_array_dataset, "toy", part, part, make_format(shape, dtype, 2))


def test_the_first_example_that_is_not_finite_is_named():
    x = np.zeros((4, 3, 1), np.float32)
    x[2, 1], x[3, 0] = np.nan, np.inf
    assert_refused(r"2 examples .* first is example 2", make, x=x)


def test_digest_is_that_of_the_content_and_dropped_examples_are_no_part_of_it():
    changed = np.zeros((4, 3, 1), np.float32)
    changed[3, 2] = 1e-30
    others = ({}, {"x": changed}, {"names": ("a", "c")}, {"clients": np.array([0, 0, 1, 1])})
    blocks = [
        {"blocks": TrainBlocks(np.array(values), overlap)} for values, overlap in (([0, 0, 1, 1], 1), ([0] * 4, 1))
    ]
    others += (*blocks, {"blocks": TrainBlocks(np.array([0] * 4), 2)})
    assert len({make(**fields).source_digest for fields in others}) == 7
    rest = make(num_dropped=5)
    assert rest.num_dropped == 5 and rest.source_digest == make().source_digest


@hypothesis_settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.integers(0, 9))
def test_held_out_part_is_stratified_and_disjoint(labels, seed):
    labels = np.array(labels)
    train, test = hold_out_test_part(labels, 0.2, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label in np.unique(labels):
        size = np.count_nonzero(labels == label)
        assert np.count_nonzero(labels[test] == label) == int(size * 0.2 + 0.5) < size


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input_dtype": "float64"}, "input_dtype=float64"),
        ({"input_shape": ()}, "input_shape="),
        ({"input_shape": (3, 0)}, "input_shape="),
        ({"class_names": ("a",)}, "at least 2"),
    ],
)
def test_a_format_that_no_data_set_has_is_refused(fields, message):
    values = {"input_shape": (3,), "input_dtype": "float32", "class_names": ("a", "b")}
    ExampleFormat(**values)
    assert_refused(message, ExampleFormat, **{**values, **fields})


@hypothesis_settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=60), st.integers(0, 3))
def test_clients_keep_an_example_of_those_held_out(examples, seed):
    labels, clients = np.array(examples).T
    drawn_train, drawn_test = hold_out_test_part(labels, 0.2, seed)
    train, test = hold_out_test_part(labels, 0.2, seed, clients)
    assert sorted([*train, *test]) == list(range(len(labels)))
    sizes, drawn_sizes = (np.bincount(labels[part], minlength=4) for part in (test, drawn_test))
    assert np.all(sizes <= drawn_sizes) and np.all((sizes > 0) == (drawn_sizes > 0))
    lost = np.setdiff1d(clients, clients[drawn_train])
    if not len(lost):  # the draw is that without clients, so that files are divided as ever
        np.testing.assert_array_equal(test, drawn_test)
    still_lost = np.setdiff1d(clients, clients[train])
    assert set(still_lost) <= set(lost)
    num_train = np.bincount(clients[train], minlength=13)
    for label in np.unique(labels[np.isin(clients, still_lost)]):  # of which nobody has another example to give
        assert sizes[label] == 1 and num_train[clients[train][labels[train] == label]].max(initial=0) <= 1


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 40), np.tile(np.arange(40) % 2, (3, 1)).T])
def test_labels_that_are_no_classes_are_held_out_at_random(labels):
    """Stratified by their values, single numbers would all stay; rows have no order to stratify by."""
    train, test = hold_out_test_part(labels, 0.2, seed=1)
    assert len(test) == 8 and sorted([*train, *test]) == list(range(40))
    same, _ = hold_out_test_part(np.zeros(40, int), 0.2, seed=1)
    np.testing.assert_array_equal(train, same)


@pytest.mark.parametrize(
    ("labels", "y", "class_names", "message"),
    [
        (LabelFormat("regression", (), 1), [0.5, np.nan], (), "a label is NaN or infinite"),
        (LabelFormat("multi_label", (2,), 2), [[0, 1], [1, 2]], (), r"labels 0\.\.2, expected 0\.\.1"),
        (LabelFormat("multi_label", (2,), 2), [[0, 1], [1, 0]], ("a",), "1 class names, expected 2, one an output, or"),
        (LabelFormat("next_token", (2,), 3), [[0, 1], [3, 2]], (), r"labels 0\.\.3, expected 0\.\.2"),
        (LabelFormat("binary"), [0, 1], ("a", "b", "c"), "3 classes, expected 2 for --task=binary"),
        (
            LabelFormat("regression", (2,), 2),
            [0.5, 1],
            (),
            r"y is float32 .*, expected float32 \(2, 2\), a label for each",
        ),
    ],
)
def test_labels_must_be_those_of_the_task(labels, y, class_names, message):
    part = np.zeros((2, 3), np.float32), np.array(y)
    make = lambda: make_array_dataset("toy", part, part, format_of(part[0], class_names, labels=labels))
    assert_refused(message, make)  # some are refused by the format already


@pytest.mark.parametrize(
    "arguments", [("ranking",), ("multi_label", (), 2), ("classification", (2,)), ("regression", (), 1, (1.0, 2.0))]
)
def test_a_format_of_labels_must_fit_its_task(arguments):
    assert_refused(r"expected one of|do not fit|expected 1 numbers", LabelFormat, *arguments)


def test_tokens_are_whole_numbers_from_0_on():
    tokens, names = np.arange(6, dtype=np.int32).reshape(2, 3), ("a", "b")
    part, example_format = (tokens, np.arange(2)), format_of(tokens, names, takes_tokens=True)
    assert make_array_dataset("toy", part, part, example_format).train_x.dtype == np.int32
    assert_refused("input_dtype=int32: expected uint8 or float32", format_of, tokens, names)
    wrong, message = (tokens - 1, part[1]), "expected tokens, uint8 or int32, of at least 0"
    assert_refused(message, make_array_dataset, "toy", wrong, part, example_format)


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
    ("shape", "preprocessing", "layout", "text"),
    [
        *(
            (example_format.input_shape, example_format.preprocessing, "auto", text)
            for example_format, text in (
                (DIGITS_FORMAT, "images of 8 x 8 pixels, 1 channel, scaled by 1/16"),
                (MNIST_FORMAT, "images of 28 x 28 pixels, 1 channel, scaled by 1/255"),
                (CIFAR10_FORMAT, "images of 32 x 32 pixels, 3 channels, scaled by 1/255"),
                (HAR_FORMATS["statistics"], "561 features or steps of 1 channel, as they are"),
                (HAR_FORMATS["inertial"], "sequences of 128 steps, 9 channels, as they are"),
            )
        ),
        ((1,), Preprocessing(0.5, 1.0), "auto", "1 feature, scaled by 1/2 and shifted by 1"),
        ((24, 1), Preprocessing(), "features", "24 features, as they are"),
        ((24, 1), Preprocessing(), "sequence", "sequences of 24 steps, 1 channel, as they are"),
        ((5, 8, 9, 3), Preprocessing(), "auto", "arrays of 5 x 8 x 9 values, 3 channels, as they are"),
    ],
)
def test_what_was_understood_in_words(shape, preprocessing, layout, text):
    assert describe_examples(shape, preprocessing, layout) == text


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
    return note_content(open_npz(str(path), DatasetOptions(scale=scale)), scale)


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
        # The root mean squares of 1, 2, 3 and 8, 8, 8 are 2.16 and 8, the deviations 0.816 and 0.
        (np.column_stack([np.arange(60) % 3 + 1, np.full(60, 8)]) * 1.0, "auto", ""),
        (np.column_stack([np.arange(60) % 3, np.arange(60) % 3 * 9.9]) * 1.0, "auto", ""),
        (
            np.column_stack([np.arange(60) % 3, np.arange(60) % 3 * 10.1]) * 1.0,
            "auto",
            r"^feature 1 .* a mean of 10.1 and a deviation of 8.25, feature 0 .* of 1 and 0.816; .*=federated$",
        ),
        (NORMAL + np.array([30, 0, 0, 0, 0]), "auto", "feature 0 .* --standardize=federated$"),
    ],
)
def test_numbers_of_a_size_that_training_does_not_take_are_noted(tmp_path, x, scale, said):
    notes = note(tmp_path, x, scale)
    assert len(notes) == bool(said)
    assert all(re.search(said, each) for each in notes), notes


def test_no_size_is_noted_where_features_are_standardized(tmp_path):
    np.savez(tmp_path / "mine.npz", x=NORMAL * 3e5, y=Y)
    assert not note_content(open_npz(str(tmp_path / "mine.npz"), DatasetOptions()), "auto", is_standardized=True)


def test_test_labels_that_training_never_saw_are_noted(tmp_path):
    names = ["ant", "bee", "cow", "dog", "eel"]
    (said,) = note(tmp_path, NORMAL, x_test=NORMAL[:4], y_test=[0, 3, 4, 4], class_names=names)
    assert said.startswith("3 of 4 test examples are of classes that no train example has (dog, eel)")
    assert not note(tmp_path, NORMAL, x_test=NORMAL[:4], y_test=[0, 1, 2, 2], class_names=names)


def test_a_loaders_numbers_are_scaled_in_the_loader(tmp_path):
    np.savez(tmp_path / "mine.npz", x=BYTES[..., None] * 1.0, y=Y)
    (said,) = note_content(open_npz(str(tmp_path / "mine.npz"), DatasetOptions()), None)
    assert said.endswith("a scale of 1/255 in its loader's Preprocessing brings them to 0..1")
