"""Random examples in the format of known data sets, as data sets of one's own: nothing is downloaded.

`--dataset=launch.benchmarks.random_examples:mnist_60000` is 60,000 random images like MNIST's. `drive.py` lends this
module to other checkouts, which may not have it, so that both train on the same bytes.
"""

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.character_text import choose_character_format
from datasets.cifar import CIFAR10_FORMAT
from datasets.dataset import Dataset, DatasetOptions
from datasets.example_format import ExampleFormat
from datasets.mnist import MNIST_FORMAT

FORMATS = {"mnist": MNIST_FORMAT, "cifar10": CIFAR10_FORMAT, "shakespeare": choose_character_format(DatasetOptions())}
LEAST_TEST = 10
# Fewer than of images: each example is 80 steps of a recurrent model.
TEXT_SMOKE_SIZES = (60, 12)


def __getattr__(name: str) -> Dataset:
    """The data set `<format>_<number of training examples>`."""
    known, _, number = name.rpartition("_")
    if known not in FORMATS or not number.isdecimal():
        raise AttributeError(name)
    return Dataset(
        f"random_{name}",
        loader=lambda options: draw_examples(f"random_{name}", FORMATS[known], int(number), options.seed),
        format=FORMATS[known],
        smoke_sizes=TEXT_SMOKE_SIZES if FORMATS[known].takes_tokens else Dataset.smoke_sizes,
    )


def draw_examples(name: str, example_format: ExampleFormat, num_examples: int, seed: int) -> ArrayDataset:
    """So many examples to train on, and a tenth as many to test on; a pure function of its arguments."""
    num_test = max(LEAST_TEST, num_examples // 10)
    generator, num_examples = np.random.default_rng(seed), num_examples + num_test
    if example_format.takes_tokens:
        text = generator.integers(
            1, example_format.labels.num_outputs, (num_examples, example_format.input_shape[0] + 1), np.int32
        )
        # 0 is padding, which is not drawn.
        x, y = text[:, :-1], text[:, 1:]
    else:
        x = generator.integers(0, 256, (num_examples, *example_format.input_shape), np.uint8)
        y = generator.integers(0, example_format.num_classes, num_examples, np.int32)
    return make_array_dataset(
        name,
        (x[num_test:], y[num_test:]),
        (x[:num_test], y[:num_test]),
        example_format,
    )
