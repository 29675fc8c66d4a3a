"""EMNIST by writer: digits, or digits and letters, 28x28, as TFF and LEAF publish them.

Source: Cohen, Afshar, Tapson and van Schaik, EMNIST: an extension of MNIST to handwritten letters, 2017; by writer as
LEAF cut it (Caldas et al., LEAF: A Benchmark for Federated Settings, 2018). 3,383 writers of digits, 341,873 + 40,832
images; 3,400 writers of all 62 characters, 671,585 + 77,483. As in `tff.simulation.baselines.emnist` a pixel is a
number from 0 (ink) to 1 (background), the inverse of MNIST's.
"""

import string
from collections.abc import Mapping

import numpy as np

from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles, RemoteFile, look_for
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.tff import Decoder, get_class, open_records, open_tff
from datasets.tff_database import Features, TffDatabase

REMOTE_FILE = RemoteFile(
    "emnist_all.sqlite.lzma", ("https://storage.googleapis.com/tff-datasets-public/emnist_all.sqlite.lzma",)
)
FILES = KnownFiles("emnist", look_for("emnist_all.sqlite", REMOTE_FILE.name), (REMOTE_FILE,))
ALL_NAMES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
CLASS_NAMES = {"digits": ALL_NAMES[:10], "all": ALL_NAMES}
_SIDE = 28


def choose_emnist_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the characters asked for."""
    names = CLASS_NAMES[options.emnist_labels]
    return ExampleFormat((_SIDE, _SIDE, 1), "float32", names, Preprocessing(feature_range=(0.0, 1.0)))


def load_emnist(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a writer.

    Raises:
      DatasetError: the file is missing and cannot be downloaded, or is damaged or of another form.
    """
    return open_tff(FILES.find_or_fetch(options), options, "emnist", schema="emnist")


def open_emnist(database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str) -> ClientSource:
    """A file of TFF's form with `pixels` and `label`."""
    example_format = choose_emnist_format(options)
    num_classes = example_format.num_classes
    hint = "; for letters give --emnist_labels=all" if options.emnist_labels == "digits" else ""

    def decode(features: Features) -> tuple[np.ndarray, int]:
        pixels = features["pixels"]
        if not isinstance(pixels, np.ndarray) or pixels.shape != (_SIDE * _SIDE,):
            raise ValueError(f"pixels are not {_SIDE * _SIDE} numbers")
        if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
            raise ValueError("pixels are not numbers from 0 to 1")
        return pixels.reshape(_SIDE, _SIDE, 1), get_class(features, "label", num_classes, hint)

    decoder = Decoder(("pixels", "label"), decode, ["emnist", num_classes])
    reading = "images of 28 x 28 pixels, 1 channel, from 0 (ink) to 1 (background)"
    return open_records(database, parts, name, example_format, decoder, reading)
