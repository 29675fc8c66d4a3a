"""CelebA by celebrity, as LEAF cuts it: whether somebody smiles.

Source: Liu, Luo, Wang and Tang, Deep Learning Face Attributes in the Wild, 2015; Caldas et al., LEAF, 2018. 9,343
celebrities with 200,288 images in all. LEAF's scripts make the JSON of images that are asked for at their authors'
page, so that nothing is downloaded here. The images are made 84x84 pixels (`--image_size`), as in LEAF's own model.
"""

import dataclasses

from datasets.client_source import ClientSource
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import describe_missing, search_dirs
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.leaf import DEFAULT_SIZE, IMAGE_NAMES, find_leaf_files, open_leaf

CLASS_NAMES = ("not smiling", "smiling")
FOLDER = "celeba"
_WANTED = "LEAF's data/celeba/data (train and test, or all_data, and raw/img_align_celeba)"


def choose_celeba_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the size and colour asked for."""
    size = options.image_size or DEFAULT_SIZE
    channels = 1 if options.image_colour == "grey" else 3
    return ExampleFormat((size, size, channels), "uint8", CLASS_NAMES, Preprocessing(1 / 255, feature_range=(0.0, 1.0)))


def load_celeba(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a celebrity. Raises DatasetError: missing, or not of LEAF's form."""
    folder = find_celeba(options.data_dir)
    if folder is None:
        raise DatasetError(f"celeba: {describe_missing(FOLDER, _WANTED, options.data_dir)}")
    source = open_leaf(folder, options, "celeba", IMAGE_NAMES)
    found = source.format.class_names
    if not all(map(str.isdigit, found)):
        return source  # its labels are texts
    if len(found) > len(CLASS_NAMES):
        raise DatasetError(f"label {found[-1]} in the data, expected 0..{len(CLASS_NAMES) - 1}")
    return dataclasses.replace(source, format=dataclasses.replace(source.format, class_names=CLASS_NAMES))


def locate_celeba(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    folder = find_celeba(data_dir)
    return DatasetLocation(folder is not None, folder or describe_missing(FOLDER, _WANTED, data_dir))


def find_celeba(data_dir: str | None) -> str | None:
    """The first folder `celeba` that has LEAF's files; None if none has."""
    return next(filter(find_leaf_files, search_dirs(data_dir, FOLDER)[::2]), None)
