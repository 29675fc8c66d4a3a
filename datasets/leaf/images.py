"""The images that LEAF's files name: in a folder beside, opened and resized when they are asked for."""

import os

import numpy as np

from datasets.errors import DatasetError

DEFAULT_SIZE = 84  # as LEAF's own model of CelebA has them
_FOLDERS = (
    os.path.join("raw", "img_align_celeba"),
    os.path.join("data", "raw", "img_align_celeba"),
    "img_align_celeba",
    "images",
    "raw",
)


def find_image_folder(path: str) -> str:
    """The folder of images: `raw/img_align_celeba`, `img_align_celeba`, `images` or `raw`, beside the files or above.

    Raises:
      DatasetError: there is none.
    """
    start = os.path.abspath(path)
    above = (start, os.path.dirname(start), os.path.dirname(os.path.dirname(start)))
    found = next(
        (
            os.path.join(each, folder)
            for each in above
            for folder in _FOLDERS
            if os.path.isdir(os.path.join(each, folder))
        ),
        None,
    )
    if found is None:
        raise DatasetError(f"{path}: names images, but has no folder of them; put it there as {_FOLDERS[0]}")
    return found


class ImageFolder:
    """Reads images by their names.

    Attributes:
      shape: of an image: (size, size, 3), or (size, size, 1) in grey.
    """

    def __init__(self, folder: str, size: int, colour: str):
        self._folder = folder
        self.shape = (size, size, 1 if colour == "grey" else 3)

    def read(self, names: np.ndarray) -> np.ndarray:
        """uint8, shape (images, *shape).

        Args:
          names: uint8, shape (images, bytes), a row the name of a file, padded by zeros.

        Raises:
          DatasetError: an image is missing or damaged.
        """
        import PIL.Image

        images = np.empty((len(names), *self.shape), np.uint8)
        for row, padded in enumerate(names):
            name = padded.tobytes().rstrip(b"\0").decode()
            path = os.path.join(self._folder, name)
            try:
                with PIL.Image.open(path) as image:
                    image = image.convert("L" if self.shape[2] == 1 else "RGB").resize(self.shape[1::-1])
                    images[row] = np.asarray(image).reshape(self.shape)
            except FileNotFoundError:
                raise DatasetError(f"{path}: no such image, though the data name it") from None
            except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
                raise DatasetError(f"{path}: no image, or a damaged one ({error})") from None
        return images
