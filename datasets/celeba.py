"""CelebA by celebrity, as LEAF cuts it: whether somebody smiles.

Source: Liu, Luo, Wang and Tang, Deep Learning Face Attributes in the Wild, 2015; Caldas et al., LEAF, 2018. 9,343
celebrities with 200,288 images in all. LEAF's scripts make the JSON of images that are asked for at their authors'
page, so that nothing is downloaded here. The images are made 84x84 pixels (`--image_size`), as in LEAF's own model.
"""

import dataclasses
import os

from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.leaf import DEFAULT_SIZE, IMAGE_NAMES, find_leaf_files, open_leaf

CLASS_NAMES = ("not smiling", "smiling")
FILES = KnownFiles(
    "celeba",
    # Any data set of LEAF's has such files, so that the folder must have the name.
    lambda folder: folder if os.path.basename(folder) == "celeba" and find_leaf_files(folder) else None,
    wanted="LEAF's data/celeba/data (train and test, or all_data, and raw/img_align_celeba)",
)


def choose_celeba_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the size and colour asked for."""
    size = options.image_size or DEFAULT_SIZE
    channels = 1 if options.image_colour == "grey" else 3
    return ExampleFormat((size, size, channels), "uint8", CLASS_NAMES, Preprocessing(1 / 255, feature_range=(0.0, 1.0)))


def load_celeba(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a celebrity. Raises DatasetError: missing, or not of LEAF's form."""
    source = open_leaf(FILES.find_or_fetch(options), options, "celeba", IMAGE_NAMES)
    found = source.format.class_names
    if not all(map(str.isdigit, found)):
        # Labels that are texts name themselves.
        return source
    if len(found) > len(CLASS_NAMES):
        raise DatasetError(f"label {found[-1]} in the data, expected 0..{len(CLASS_NAMES) - 1}")
    return dataclasses.replace(source, format=dataclasses.replace(source.format, class_names=CLASS_NAMES))
