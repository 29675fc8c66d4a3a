"""Made-up examples of each kind of data, drawn by a fixed seed: every class, label or number has a pattern of its own.

Few steps of training set such classes far apart, so that a file's answers seldom hang on the rounding of a near tie. A
fifth of the classes are of other examples, so that a loss is left that a file for training can lower.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from datasets.example_format import ExampleFormat, LabelFormat, Preprocessing, TextFormat

NUM_CLASSES = 5
NUM_TRAIN, NUM_TEST = 600, 200
NOISE, WRONG_LABELS = 0.5, 0.2
_CLASSES = tuple(map(str, range(NUM_CLASSES)))
_AS_THEY_ARE, _GREY = Preprocessing(), Preprocessing(1 / 16, -0.25)


class Examples(NamedTuple):
    """Examples as stored, (n, *input_shape), and their labels, (n, *label_shape), to train with and to test."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Kind(NamedTuple):
    """A kind of data: what is known of its examples, and how they are drawn with their labels."""

    format: ExampleFormat
    draw: Callable[[np.random.Generator, int, ExampleFormat], tuple[np.ndarray, np.ndarray]]


def draw_examples(kind: str) -> Examples:
    """The examples of a kind of `KINDS`; the same in every call."""
    example_format, draw = KINDS[kind]
    x, y = draw(np.random.default_rng(0), NUM_TRAIN + NUM_TEST, example_format)
    return Examples(x[:NUM_TRAIN], y[:NUM_TRAIN], x[NUM_TRAIN:], y[NUM_TRAIN:])


def _draw_classes(generator, number, example_format):
    num_classes = max(2, example_format.num_classes)
    y = generator.integers(0, num_classes, number).astype(np.int32)
    x = _add_noise(generator, _draw_patterns(generator, num_classes, example_format)[y], example_format)
    return x, np.where(generator.random(number) < WRONG_LABELS, np.roll(y, 1), y)


def _draw_padded(generator, number, example_format):
    """Classes of sequences that end early, with steps of 0 after their end."""
    x, y = _draw_classes(generator, number, example_format)
    lengths = generator.integers(len(x[0]) // 2, len(x[0]) + 1, number)
    x[np.arange(len(x[0])) >= lengths[:, np.newaxis]] = 0
    return x, y


def _draw_categories(generator, number, example_format):
    """Classes of numbers behind two columns of categories, of 7 and 4, which tell the class, too."""
    x, y = _draw_classes(generator, number, example_format)
    x[:, 0, 0], x[:, 1, 0] = (y + generator.integers(0, 3, number)) % 7, y % 4
    return x, y


def _draw_many_labels(generator, number, example_format):
    """Each label adds its pattern."""
    y = generator.integers(0, 2, (number, example_format.num_outputs)).astype(np.uint8)
    patterns = _draw_patterns(generator, example_format.num_outputs, example_format)
    return _add_noise(generator, np.tensordot(y.astype(float), patterns, 1), example_format), y


def _draw_numbers(generator, number, example_format):
    """Each number is how much there is of its pattern."""
    y = generator.normal(size=(number, example_format.num_outputs)).astype(np.float32)
    patterns = _draw_patterns(generator, example_format.num_outputs, example_format)
    return _add_noise(generator, np.tensordot(y, patterns, 1), example_format), y


def _draw_token_classes(generator, number, example_format):
    """A class's tokens are mostly its own three; the last quarter may be padding."""
    y = generator.integers(0, NUM_CLASSES, number).astype(np.int32)
    (positions,) = example_format.input_shape
    x = 1 + 3 * y[:, np.newaxis] + generator.integers(0, 5, (number, positions))
    x[:, 3 * positions // 4 :] *= generator.integers(0, 2, (number, 1))
    return x.astype(example_format.input_dtype), y


def _draw_texts(generator, number, example_format):
    """Each token is mostly the one before plus a step, which is of the text."""
    vocabulary, (positions,) = example_format.num_outputs, example_format.input_shape
    steps = generator.integers(1, 4, (number, 1)) * (1 + np.arange(positions + 1))
    steps += generator.integers(0, 10, (number, positions + 1)) == 0
    texts = 1 + (generator.integers(0, vocabulary, (number, 1)) + steps) % (vocabulary - 1)
    return texts[:, :-1].astype(example_format.input_dtype), texts[:, 1:].astype(np.int32)


def _draw_patterns(generator, number, example_format):
    return generator.normal(size=(number, *example_format.input_shape))


def _add_noise(generator, x, example_format):
    x = x + NOISE * generator.normal(size=x.shape)
    if example_format.input_dtype == "float32":
        return x.astype(np.float32)
    return np.clip(8 + 3 * x, 0, 16).astype(np.uint8)


def _describe(shape, dtype="float32", preprocessing=_AS_THEY_ARE, class_names=_CLASSES, **fields):
    return ExampleFormat(shape, dtype, class_names, preprocessing, **fields)


KINDS = {
    "images": Kind(_describe((8, 8, 1), "uint8", _GREY), _draw_classes),
    "pictures": Kind(_describe((16, 16, 3), "uint8", _GREY), _draw_classes),
    "large_pictures": Kind(_describe((32, 32, 3), "uint8", _GREY), _draw_classes),
    "sequences": Kind(_describe((20, 6)), _draw_classes),
    "padded": Kind(_describe((20, 6)), _draw_padded),
    "table": Kind(_describe((10, 1), are_features=True), _draw_classes),
    "switch": Kind(
        _describe((10, 1), are_features=True, labels=LabelFormat("binary"), class_names=("off", "on")), _draw_classes
    ),
    "categories": Kind(_describe((10, 1), are_features=True, categories=(0, 1)), _draw_categories),
    "labels": Kind(
        _describe((8, 8, 1), "uint8", _GREY, (), labels=LabelFormat("multi_label", (4,), 4)), _draw_many_labels
    ),
    "numbers": Kind(_describe((20, 6), class_names=(), labels=LabelFormat("regression", (2,), 2)), _draw_numbers),
    "tokens": Kind(_describe((12,), "int32", takes_tokens=True), _draw_token_classes),
    "words": Kind(
        _describe((12,), "int32", takes_tokens=True, text=TextFormat("review", tuple(map(str, range(20))))),
        _draw_token_classes,
    ),
    "texts": Kind(
        _describe((16,), "int32", class_names=(), labels=LabelFormat("next_token", (16,), 30), takes_tokens=True),
        _draw_texts,
    ),
}
