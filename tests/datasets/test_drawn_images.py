"""What pages are told of the pictures of a data set."""

import types

import numpy as np
import pytest
from small_formats import AS_THEY_ARE, format_of

from datasets.drawn_images import describe_image
from datasets.example_format import Preprocessing

WHITE = np.full((2, 5, 4, 1), 200, np.float32)
WHITE[:, 2, 2] = 20
SIXTEENTHS = Preprocessing(1 / 16, 0, (0, 1))


def make_data(test_x, dataset="own", preprocessing=AS_THEY_ARE):
    return types.SimpleNamespace(dataset=dataset, test_x=test_x, format=format_of(test_x, "ab", preprocessing))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            make_data(np.zeros((2, 8, 8, 1), np.uint8), "digits", SIXTEENTHS),
            {"framing": "digits", "paper": 0, "ink": [16], "high": 16, "isWhole": True},
        ),
        (
            make_data(WHITE),
            {"framing": "plain", "paper": 200, "ink": [20], "height": 5, "width": 4, "isWhole": False},
        ),
        (make_data(np.full((2, 4, 4, 3), 9, np.uint8), "cifar10"), {"channels": 3}),
        (make_data(np.zeros((2, 128, 9), np.float32)), None),
        (make_data(np.zeros((2, 4, 4, 2), np.float32)), None),
        (make_data(np.zeros((0, 4, 4, 1), np.float32)), None),
    ],
)
def test_pictures_say_how_they_are_drawn(data, expected):
    described = describe_image(data)
    assert described == expected if expected is None else expected.items() <= described.items()
