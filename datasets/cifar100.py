"""CIFAR-100 from TFF's file, with its 500 clients, or from the official batches, which name no clients.

Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009: 50,000 + 10,000 images of 32x32 in 100
classes, of which five at a time are of one of 20 kinds. TFF's clients of 100 images are those of Reddi et al., Adaptive
Federated Optimization, 2021, by Pachinko Allocation (see `datasets.partitioners`). Its 100 test clients
are others than the train clients that have the same numbers, so here they are called "test 0" and so on.

Two forms (`--cifar100_form`): "whole" is the image as it is, uint8, which a phone scales by 1/255 as CIFAR-10's.
"cropped" is that of TFF's baseline and of the paper without its random distortion: the middle 24x24 pixels, less their
mean and divided by their deviation over the image, float32. Whoever uses such a model must do the same to an image.
"""

import os
from collections.abc import Mapping

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.cifar10 import read_batch, read_batch_files
from datasets.client_source import TEST, VALIDATION, ClientSource
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_missing, locate_downloaded, search_dirs
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.tff import Decoder, get_class, open_records, open_tff
from datasets.options import CIFAR100_FORMS
from datasets.tff_database import Features, TffDatabase

# The kinds and, of each, its classes.
CLASSES_OF_KIND = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
CLASS_NAMES = tuple(sorted(name for names in CLASSES_OF_KIND.values() for name in names))
KIND_NAMES = tuple(CLASSES_OF_KIND)
KIND_OF_CLASS = tuple(
    next(kind for kind, names in enumerate(CLASSES_OF_KIND.values()) if name in names) for name in CLASS_NAMES
)


FOLDER_NAME = "cifar-100-python"
REMOTE_FILE = RemoteFile(
    "cifar100.sqlite.lzma", ("https://storage.googleapis.com/tff-datasets-public/cifar100.sqlite.lzma",)
)
TFF_FILES = ("cifar100.sqlite", REMOTE_FILE.name)
# Nobody has to fetch it, since TFF's file has the same images; the digest tells whether it is whole.
ARCHIVE_NAME = "cifar-100-python.tar.gz"
_WANTED = f"{REMOTE_FILE.name} or {ARCHIVE_NAME}"
_SIDE, _CROPPED_SIDE = 32, 24
_IMAGES_PER_CLASS = {"train": 500, "test": 100}


def choose_cifar100_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the form asked for. Raises DatasetError: there is no such form."""
    if options.cifar100_form not in CIFAR100_FORMS:
        raise DatasetError(f"cifar100_form={options.cifar100_form}: expected one of {', '.join(CIFAR100_FORMS)}")
    if options.cifar100_form == "cropped":
        return ExampleFormat((_CROPPED_SIDE, _CROPPED_SIDE, 3), "float32", CLASS_NAMES)
    return ExampleFormat((_SIDE, _SIDE, 3), "uint8", CLASS_NAMES, Preprocessing(1 / 255, feature_range=(0.0, 1.0)))


def load_cifar100(options: DatasetOptions) -> "ArrayDataset | ClientSource":
    """The catalog's loader.

    Raises:
      DatasetError: the files are missing and cannot be downloaded, or are damaged or not CIFAR-100.
    """
    example_format = choose_cifar100_format(options)  # before a download
    path = find_cifar100(options.data_dir)
    if path is None:
        path = fetch_missing(REMOTE_FILE, "cifar100", options, _WANTED)
    if os.path.basename(path) in TFF_FILES:
        return open_tff(path, options, "cifar100", form="cifar100")
    contents = read_batch_files(path, FOLDER_NAME, ("train", "test"))
    parts = {}
    for part, per_class in _IMAGES_PER_CLASS.items():
        where = f"{path}: {part}"
        images, labels = read_batch(where, contents[part], "CIFAR-100", ("fine_labels",))
        counts = np.bincount(labels, minlength=len(CLASS_NAMES)) if labels.min(initial=0) >= 0 else np.zeros(0)
        if len(counts) != len(CLASS_NAMES) or (counts != per_class).any():
            raise DatasetError(f"{where}: expected {per_class} images of each of {len(CLASS_NAMES)} classes")
        parts[part] = shape_images(images, options.cifar100_form), labels
    return make_array_dataset("cifar100", parts["train"], parts["test"], example_format, reading=_describe(options))


def choose_cifar100_partition(options: DatasetOptions) -> str:
    """Natural, unless the official batches are what is there."""
    path = find_cifar100(options.data_dir)
    return "natural" if path is None or os.path.basename(path) in TFF_FILES else ""


def locate_cifar100(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor."""
    return locate_downloaded(find_cifar100(data_dir), "cifar100", _WANTED, data_dir)


def find_cifar100(data_dir: str | None) -> str | None:
    """Path of TFF's file, of the official folder or of its archive, from the first folder that has one; or None."""
    for folder in search_dirs(data_dir, "cifar100"):
        for name in (*TFF_FILES, FOLDER_NAME, ARCHIVE_NAME):
            path = os.path.join(folder, name)
            if os.path.isdir(path) if name == FOLDER_NAME else os.path.isfile(path):
                return path
    return None


def open_cifar100(database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str) -> ClientSource:
    """A file of TFF's form with `image`, `label` and `coarse_label`."""
    example_format = choose_cifar100_format(options)

    def decode(features: Features) -> tuple[np.ndarray, int]:
        image = features["image"]
        if not isinstance(image, np.ndarray) or image.dtype != np.int64 or image.shape != (_SIDE * _SIDE * 3,):
            raise ValueError(f"image is not {_SIDE * _SIDE * 3} whole numbers")
        if image.min() < 0 or image.max() > 255:
            raise ValueError("image holds numbers that are not 0..255")
        pixels = image.astype(np.uint8).reshape(1, _SIDE, _SIDE, 3)
        return shape_images(pixels, options.cifar100_form)[0], get_class(features, "label", len(CLASS_NAMES))

    return open_records(
        database,
        parts,
        name,
        example_format,
        Decoder(("image", "label"), decode, ["cifar100", options.cifar100_form]),
        _describe(options),
        prefixes={TEST: "test ", VALIDATION: "validation "},
    )


def shape_images(images: np.ndarray, form: str) -> np.ndarray:
    """Images, uint8 (n, 32, 32, 3), in the form that is named; see the module."""
    if form == "whole":
        return images
    rim = (_SIDE - _CROPPED_SIDE) // 2
    cropped = images[:, rim:-rim, rim:-rim].astype(np.float32)
    # As TensorFlow's per_image_standardization: an even image is not divided by nothing.
    least = np.float32(1 / np.sqrt(cropped[0].size))
    means = cropped.mean((1, 2, 3), keepdims=True)
    return (cropped - means) / np.maximum(cropped.std((1, 2, 3), keepdims=True), least)


def _describe(options: DatasetOptions) -> str:
    """How the examples were understood; "" leaves it to their shape."""
    if options.cifar100_form == "whole":
        return ""
    return "the middle 24 x 24 pixels of images, 3 channels, standardised image by image"
