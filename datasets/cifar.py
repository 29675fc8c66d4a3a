"""CIFAR-10 and CIFAR-100, from the official batches, or where others publish them.

CIFAR-10 is read from its folder, its archive or an npz file.
Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. 50,000 train and 10,000 test images of
32x32 pixels in colour, 5,000 and 1,000 of each of ten classes.

A batch file is a pickled dictionary: `data`, uint8 (images, 3072), a row the red, then the green, then the blue values
of an image, row by row; lists of labels.

An npz file has `x_train`, `x_test`, uint8 (images, 32, 32, 3), and `y_train`, `y_test`.
A source with fewer images is taken as a subset, and the data set's name then says so wherever it
is reported.

CIFAR-100 from TFF's file, with its 500 clients, or from the official batches, which name no clients.

Source: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009: 50,000 + 10,000 images of 32x32 in 100
classes, of which five at a time are of one of 20 kinds. TFF's clients of 100 images are those of Reddi et al., Adaptive
Federated Optimization, 2021, by Pachinko Allocation (see `datasets.partitioners`). Its 100 test clients
are others than the train clients that have the same numbers, so here they are called "test 0" and so on.

Two variants (`--cifar100_form`): "whole" is the image as it is, uint8, which a phone scales by 1/255 as CIFAR-10's.
"cropped" is that of TFF's baseline and of the paper without its random distortion: the middle 24x24 pixels, less their
mean and divided by their deviation over the image, float32. Whoever uses such a model must do the same to an image.
"""

import os
import tarfile
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.client_source import TEST, VALIDATION, ClientSource
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles, RemoteFile, look_for
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.npz import read_npz_file
from datasets.formats.tff import Decoder, get_class, open_records, open_tff
from datasets.tff_database import Features, TffDatabase
from files.reading import explain_errors, read_regular
from files.unpickling import read_pickled_dictionary

_VALUES_PER_IMAGE = 3 * 32 * 32


def read_batch_files(source: str, folder_name: str, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of the batches of these names, from the official folder, or the archive of it.

    Raises:
      DatasetError: one is missing or cannot be read, or the archive is damaged or truncated.
    """
    contents = {}
    if os.path.isdir(source):
        for name in names:
            with explain_errors(source, DatasetError, f"{name} cannot be read", "unpack it again"):
                contents[name] = read_regular(os.path.join(source, name))
        return contents
    wanted = {f"{folder_name}/{name}": name for name in names}
    try:
        # In one pass: to go back in the archive would mean to decompress it again.
        with tarfile.open(source, "r:gz") as archive:
            for member in archive:
                if member.name in wanted and member.isfile():
                    contents[wanted[member.name]] = archive.extractfile(member).read()
            # Only at its end gzip compares its sum.
            while archive.fileobj.read(2**20):
                pass
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{source}: damaged or truncated archive ({error}); delete it to have it downloaded"
        ) from None
    missing = [name for name in wanted.values() if name not in contents]
    if missing:
        raise DatasetError(f"{source}: {missing[0]} is missing; expected the official archive, download it again")
    return contents


def read_batch(
    where: str, content: bytes, title: str = "CIFAR-10", label_key: str = "labels"
) -> tuple[np.ndarray, np.ndarray]:
    """The images, uint8 (n, 32, 32, 3), and labels, int64 (n,), of an official batch file.

    Args:
      where: what errors call the file.
      content: its bytes.
      title: of the data set.
      label_key: of the labels in it.

    Raises:
      DatasetError: damaged, truncated or no such batch.
    """
    try:
        batch = read_pickled_dictionary(content, "bytes")
        data, labels = batch[b"data"], np.array(batch[label_key.encode()])
    except Exception as error:
        # A damaged pickle can raise almost anything.
        reason = f"no {error} in it" if isinstance(error, KeyError) else error
        raise DatasetError(f"{where}: damaged, truncated or not a batch of {title} ({reason})") from None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(data), _VALUES_PER_IMAGE):
        found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DatasetError(f"{where}: data is {found}, expected uint8 (images, {_VALUES_PER_IMAGE})")
    if labels.shape != data.shape[:1] or labels.dtype.kind not in "iu":
        raise DatasetError(f"{where}: labels are {labels.dtype} {labels.shape}, expected {len(data)} integers")
    # A row holds the red, then the green, then the blue plane.
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


CIFAR10_FORMAT = ExampleFormat(
    (32, 32, 3),
    "uint8",
    ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
)
FOLDER_NAME = "cifar-10-batches-py"
BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
NPZ_FILES = ("cifar10.npz", "cifar10_subset.npz")
REMOTE_FILE = RemoteFile(
    "cifar-10-python.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
CIFAR10_FILES = KnownFiles(
    "cifar10",
    look_for(FOLDER_NAME, REMOTE_FILE.name, *NPZ_FILES),
    (REMOTE_FILE,),
    f"{REMOTE_FILE.name} or {NPZ_FILES[0]}",
)
PARTS = ("train", "test")
IMAGES_PER_CLASS = {"train": 5000, "test": 1000}


def load_cifar10(options: DatasetOptions) -> ArrayDataset:
    """CIFAR-10 with its official parts, uint8, shape (32, 32, 3), named "cifar10", or after its sizes if a subset.

    Raises:
      DatasetError: a source is missing and cannot be downloaded, or is damaged, truncated or not CIFAR-10.
    """
    source = CIFAR10_FILES.find_or_fetch(options)
    parts = _read_source(source)
    for part in PARTS:
        _check_part(source, part, *parts[part])
    return make_array_dataset(
        name_images(*(len(parts[part][0]) for part in PARTS)),
        *((x, y.reshape(-1)) for x, y in (parts[part] for part in PARTS)),
        CIFAR10_FORMAT,
    )


def name_images(num_train: int, num_test: int) -> str:
    """ "cifar10", or for fewer images than there are a name that says how many."""
    num_classes = CIFAR10_FORMAT.num_classes
    if (num_train, num_test) == tuple(num_classes * IMAGES_PER_CLASS[part] for part in PARTS):
        return "cifar10"
    return f"cifar10 subset ({num_train:,} + {num_test:,} images)"


def _read_source(source: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Part -> (images (n, 32, 32, 3), labels), still unchecked where they come from an npz file."""
    if source.endswith(".npz"):
        arrays = read_npz_file(source, [f"{kind}_{part}" for kind in "xy" for part in PARTS])
        return {part: (arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS}
    contents = read_batch_files(source, FOLDER_NAME, (*BATCHES["train"], *BATCHES["test"]))
    parts = {}
    for part in PARTS:
        batches = [read_batch(f"{source}: {name}", contents[name]) for name in BATCHES[part]]
        parts[part] = tuple(np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return parts


def _check_part(source: str, part: str, x: np.ndarray, y: np.ndarray) -> None:
    """Raises DatasetError unless these are images and labels of CIFAR-10, all of them or fewer."""
    shape, num_classes = CIFAR10_FORMAT.input_shape, CIFAR10_FORMAT.num_classes
    if x.dtype != np.uint8 or x.shape[1:] != shape:
        raise DatasetError(f"{source}: x_{part} is {x.dtype} {x.shape}, expected uint8 (images, 32, 32, 3)")
    if y.dtype.kind not in "iu" or y.size != len(x) or y.shape not in ((len(x),), (len(x), 1)):
        raise DatasetError(
            f"{source}: y_{part} is {y.dtype} {y.shape}, expected an integer for each of {len(x)} images"
        )
    most = IMAGES_PER_CLASS[part]
    if not 1 <= len(x) <= num_classes * most:
        raise DatasetError(f"{source}: {len(x):,} {part} images, expected 1 to {num_classes * most:,}")
    if y.min() < 0 or y.max() >= num_classes:
        raise DatasetError(f"{source}: labels {y.min()}..{y.max()} in y_{part}, expected 0..{num_classes - 1}")
    counts = np.bincount(y.reshape(-1), minlength=num_classes)
    if counts.max() > most:
        raise DatasetError(
            f"{source}: {counts.max():,} {part} images of label {counts.argmax()}, CIFAR-10 has {most:,} of each: "
            f"another data set?"
        )


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
CIFAR100_CLASS_NAMES = tuple(sorted(name for names in CLASSES_OF_KIND.values() for name in names))
KIND_NAMES = tuple(CLASSES_OF_KIND)
KIND_OF_CLASS = tuple(
    next(kind for kind, names in enumerate(CLASSES_OF_KIND.values()) if name in names) for name in CIFAR100_CLASS_NAMES
)


CIFAR100_FOLDER_NAME = "cifar-100-python"
CIFAR100_REMOTE_FILE = RemoteFile(
    "cifar100.sqlite.lzma", ("https://storage.googleapis.com/tff-datasets-public/cifar100.sqlite.lzma",)
)
TFF_FILES = ("cifar100.sqlite", CIFAR100_REMOTE_FILE.name)
# Nobody has to fetch it, since TFF's file has the same images; the digest tells whether it is whole.
ARCHIVE_NAME = "cifar-100-python.tar.gz"
CIFAR100_FILES = KnownFiles(
    "cifar100",
    look_for(*TFF_FILES, CIFAR100_FOLDER_NAME, ARCHIVE_NAME),
    (CIFAR100_REMOTE_FILE,),
    f"{CIFAR100_REMOTE_FILE.name} or {ARCHIVE_NAME}",
)
_SIDE, _CROPPED_SIDE = 32, 24
_CIFAR100_IMAGES_PER_CLASS = {"train": 500, "test": 100}


def choose_cifar100_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the variant asked for; see the module."""
    if options.cifar100_form == "cropped":
        return ExampleFormat((_CROPPED_SIDE, _CROPPED_SIDE, 3), "float32", CIFAR100_CLASS_NAMES)
    return ExampleFormat(
        (_SIDE, _SIDE, 3), "uint8", CIFAR100_CLASS_NAMES, Preprocessing(1 / 255, feature_range=(0.0, 1.0))
    )


def load_cifar100(options: DatasetOptions) -> "ArrayDataset | ClientSource":
    """The catalog's loader.

    Raises:
      DatasetError: the files are missing and cannot be downloaded, or are damaged or not CIFAR-100.
    """
    example_format = choose_cifar100_format(options)
    path = CIFAR100_FILES.find_or_fetch(options)
    if os.path.basename(path) in TFF_FILES:
        return open_tff(path, options, "cifar100", schema="cifar100")
    contents = read_batch_files(path, CIFAR100_FOLDER_NAME, ("train", "test"))
    parts = {}
    for part, per_class in _CIFAR100_IMAGES_PER_CLASS.items():
        where = f"{path}: {part}"
        images, labels = read_batch(where, contents[part], "CIFAR-100", "fine_labels")
        # A negative label would make numpy.bincount raise.
        counts = np.bincount(labels, minlength=len(CIFAR100_CLASS_NAMES)) if labels.min(initial=0) >= 0 else np.zeros(0)
        if len(counts) != len(CIFAR100_CLASS_NAMES) or (counts != per_class).any():
            raise DatasetError(f"{where}: expected {per_class} images of each of {len(CIFAR100_CLASS_NAMES)} classes")
        parts[part] = shape_images(images, options.cifar100_form), labels
    return make_array_dataset("cifar100", parts["train"], parts["test"], example_format, reading=_describe(options))


def choose_cifar100_partition(options: DatasetOptions) -> str:
    """Natural, unless the official batches are what is there."""
    path = CIFAR100_FILES.find(options.data_dir)
    return "natural" if path is None or os.path.basename(path) in TFF_FILES else ""


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
        return shape_images(pixels, options.cifar100_form)[0], get_class(features, "label", len(CIFAR100_CLASS_NAMES))

    return open_records(
        database,
        parts,
        name,
        example_format,
        Decoder(("image", "label"), decode, ["cifar100", options.cifar100_form]),
        _describe(options),
        # Test clients are others than the train clients of the same numbers.
        prefixes={TEST: "test ", VALIDATION: "validation "},
    )


def shape_images(images: np.ndarray, variant: str) -> np.ndarray:
    """Images, uint8 (n, 32, 32, 3), as the variant has them; see the module."""
    if variant == "whole":
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
