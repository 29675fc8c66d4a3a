"""Pixels of one image, from a file or from bytes in memory: grey or colour, in a size that is asked for, all alike."""

import dataclasses
import warnings
from typing import IO

import numpy as np

from datasets.errors import DatasetError

GREY, COLOUR, AUTO = "grey", "colour", "auto"
CHANNELS = {GREY: 1, COLOUR: 3}
_GREY_MODES = ("1", "L", "LA", "La")  # Pillow's names for how an image stores a pixel
_PUBLISHED_GREY_MODES = ("1", "L", "I;16")
_COLOUR_MODES = ("RGB", "RGBA", "RGBa", "RGBX", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV")
FIX = "--image_size=<pixels> resizes all, --image_colour=grey or colour converts them"


@dataclasses.dataclass(frozen=True)
class ImageForm:
    """What images are brought to.

    Attributes:
      size: side in pixels; 0: as they are.
      colour: "grey", "colour", or "auto" as the files are.
      shape: (height, width, channels) that each must have then; () before the first is known.
      first: what the first was called, for errors.
      is_published: whether they are of a published data set: as its files have them, not turned as EXIF says, of any
        mode of pixels, and resized as Pillow does by itself (bicubic).
    """

    size: int = 0
    colour: str = AUTO
    shape: tuple[int, ...] = ()
    first: str = "the first image"
    is_published: bool = False

    def fix(self, pixels: np.ndarray) -> "ImageForm":
        """The form that all further images must have, once one is read."""
        return self if self.shape else dataclasses.replace(self, shape=pixels.shape)


def read_image(file: str | IO[bytes], where: str, form: ImageForm) -> np.ndarray:
    """Uint8, shape (height, width, 1 or 3).

    Raises:
      DatasetError: it cannot be read, or is not of the form.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(file) as opened:
                if not form.is_published and opened.mode not in (*_GREY_MODES, *_COLOUR_MODES):
                    raise DatasetError(
                        f"{where}: its pixels are {opened.mode}, expected 8 bits a channel, grey or colour; convert it"
                    )
                is_grey = opened.mode in (_PUBLISHED_GREY_MODES if form.is_published else _GREY_MODES)
                colour = (GREY if is_grey else COLOUR) if form.colour == AUTO else form.colour
                image = opened if form.is_published else PIL.ImageOps.exif_transpose(opened)
                image = image.convert("L" if colour == GREY else "RGB")
    except DatasetError:
        raise
    except PIL.UnidentifiedImageError:
        raise DatasetError(f"{where}: no image, or a damaged one; expected a PNG or JPEG; take it out") from None
    except (FileNotFoundError, PermissionError) as error:
        raise DatasetError(f"{where}: cannot be read ({error.strerror})") from None
    except Exception as error:  # Pillow's decoders raise whatever a damaged file makes them
        raise DatasetError(f"{where}: a damaged image ({error}); take it out, or get it again") from None
    if form.size:
        resampling = PIL.Image.Resampling.BICUBIC if form.is_published else PIL.Image.Resampling.BILINEAR
        image = image.resize((form.size, form.size), resampling)
    pixels = np.asarray(image, np.uint8).reshape(image.height, image.width, CHANNELS[colour])
    if form.shape and pixels.shape != form.shape:
        raise DatasetError(
            f"{where}: {describe_pixels(pixels.shape)}, expected {describe_pixels(form.shape)} as "
            f"{form.first} has; {FIX}"
        )
    return pixels


def describe_pixels(shape: tuple[int, ...]) -> str:
    """The form of an image in words."""
    height, width, channels = shape
    return f"{width} x {height} pixels in {GREY if channels == 1 else COLOUR}"
