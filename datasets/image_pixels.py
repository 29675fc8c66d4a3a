"""Pixels of one image, from a file or from bytes in memory: grey or colour, in a size that is asked for, all alike."""

import dataclasses
import warnings
from typing import IO

import numpy as np

from datasets.errors import DatasetError

GREY, COLOUR, AUTO = "grey", "colour", "auto"
CHANNELS = {GREY: 1, COLOUR: 3}
_GREY_MODES = ("1", "L", "LA", "La")  # Pillow's names for how an image stores a pixel
_COLOUR_MODES = ("RGB", "RGBA", "RGBa", "RGBX", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV")
_ROTATED = (5, 6, 7, 8)  # orientations of EXIF that swap height and width
_ORIENTATION = 0x0112
FIX = "--image_size=<pixels> resizes all, --image_colour=grey or colour converts them"


@dataclasses.dataclass(frozen=True)
class ImageForm:
    """What images are brought to.

    Attributes:
      size: side in pixels; 0: as they are.
      colour: "grey", "colour", or "auto" as the files are.
      shape: (height, width, channels) that each must have then; () before the first is known.
      first: what the first was called, for errors.
    """

    size: int = 0
    colour: str = AUTO
    shape: tuple[int, ...] = ()
    first: str = "the first image"

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
                colour = _find_colour(opened.mode, where, form)
                image = PIL.ImageOps.exif_transpose(opened).convert("L" if colour == GREY else "RGB")
    except DatasetError:
        raise
    except Exception as error:  # Pillow's decoders raise whatever a damaged file makes them
        raise DatasetError(f"{where}: {_explain(error)}") from None
    if form.size:
        image = image.resize((form.size, form.size), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(image.height, image.width, CHANNELS[colour])
    if form.shape and pixels.shape != form.shape:
        raise DatasetError(
            f"{where}: {describe_pixels(pixels.shape)}, expected {describe_pixels(form.shape)} as "
            f"{form.first} has; {FIX}"
        )
    return pixels


def look_at_image(path: str, form: ImageForm) -> tuple[int, int, int]:
    """The shape that `read_image` gives, from the head of the file alone.

    Raises:
      DatasetError: it is no image, or one of a kind that is not read.
    """
    import PIL.Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(path) as opened:
                mode, (width, height) = opened.mode, opened.size
                # Of a PNG, Pillow would read all pixels to look for what may stand behind them.
                has_exif = opened.format != "PNG" or "exif" in opened.info
                is_rotated = has_exif and opened.getexif().get(_ORIENTATION) in _ROTATED
    except Exception as error:
        raise DatasetError(f"{path}: {_explain(error)}") from None
    channels = CHANNELS[_find_colour(mode, path, form)]
    if form.size:
        return form.size, form.size, channels
    return (width, height, channels) if is_rotated else (height, width, channels)


def _find_colour(mode: str, where: str, form: ImageForm) -> str:
    if mode not in (*_GREY_MODES, *_COLOUR_MODES):
        raise DatasetError(f"{where}: its pixels are {mode}, expected 8 bits a channel, grey or colour; convert it")
    if form.colour != AUTO:
        return form.colour
    return GREY if mode in _GREY_MODES else COLOUR


def describe_pixels(shape: tuple[int, ...]) -> str:
    """The form of an image in words."""
    height, width, channels = shape
    return f"{width} x {height} pixels in {GREY if channels == 1 else COLOUR}"


def _explain(error: Exception) -> str:
    import PIL

    if isinstance(error, PIL.UnidentifiedImageError):
        return "no image, or a damaged one; expected a PNG or JPEG; take it out"
    if isinstance(error, FileNotFoundError | PermissionError):
        return f"cannot be read ({error.strerror})"
    return f"a damaged image ({error}); take it out, or get it again"
