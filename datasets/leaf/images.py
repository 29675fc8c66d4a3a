"""The images that LEAF's files name: in a folder beside, decoded once, into a store of their own."""

import os

import numpy as np

from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.example_store import StoreWriter
from datasets.image_pixels import CHANNELS, COLOUR, GREY, ImageForm, count_at_once, read_image
from datasets.progress import show_progress
from datasets.stored_source import Description, Reading, open_reading

DEFAULT_SIZE = 84  # as LEAF's own model of CelebA has them
_FOLDERS = (
    os.path.join("raw", "img_align_celeba"),
    os.path.join("data", "raw", "img_align_celeba"),
    "img_align_celeba",
    "images",
    "raw",
)


def open_named_images(path: str, source: ClientSource, options: DatasetOptions) -> ClientSource:
    """The clients of a source with an image in place of each name.

    The images lie in `raw/img_align_celeba`, `img_align_celeba`, `images` or `raw`, beside the files or above.

    Args:
      path: of the files that name images.
      source: of what is in them: an example is a name, uint8, shape (bytes,), padded by zeros.
      options: size and colour.

    Raises:
      DatasetError: there is no such folder, or an image is missing or damaged.
    """
    start = os.path.abspath(path)
    above = (start, os.path.dirname(start), os.path.dirname(os.path.dirname(start)))
    places = [os.path.join(each, folder) for each in above for folder in _FOLDERS]
    folder = next(filter(os.path.isdir, places), None)
    if folder is None:
        raise DatasetError(f"{path}: names images, but has no folder of them; put it there as {_FOLDERS[0]}")
    colour, size = GREY if options.image_colour == GREY else COLOUR, options.image_size or DEFAULT_SIZE
    shape = (size, size, CHANNELS[colour])
    parts = []  # (client, split, paths of its images, their labels)
    for split in source.num_examples:
        for client, name in enumerate(source.client_names):
            x, y = source.read(client, split)
            names = [each.tobytes().rstrip(b"\0").decode() for each in x]
            parts.append((name, split, [os.path.join(folder, each) for each in names], y))
    files = sorted({image for _, _, images, _ in parts for image in images})
    missing = next((file for file in files if not os.path.isfile(file)), None)
    if missing:
        raise DatasetError(f"{missing}: no such image, though the data name it")

    def write(writer: StoreWriter) -> Description:
        form = ImageForm(size, colour, is_published=True)
        for client, split, images, y in show_progress(parts, "images of clients"):
            step = count_at_once(shape)
            for start in range(0, max(1, len(images)), step):  # a user without examples stays
                some = images[start : start + step]
                x = np.empty((len(some), *shape), np.uint8)
                for row, image in enumerate(some):
                    x[row] = read_image(image, image, form)
                writer.append(x, y[start : start + step], client, split)
        preprocessing = Preprocessing(1 / 255, feature_range=(0.0, 1.0))
        return Description(ExampleFormat(shape, "uint8", source.format.class_names, preprocessing), notes=source.notes)

    return open_reading(Reading(source.name, path, files, ["leaf images", source.digest, shape], write))
