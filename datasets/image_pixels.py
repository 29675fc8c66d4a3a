"""Pixels of one image, from a file or from bytes in memory: grey or colour, in a size that is asked for, all alike."""

import dataclasses
import functools
import math
import typing
import warnings
from typing import IO

import numpy as np

from datasets.errors import DatasetError

if typing.TYPE_CHECKING:
    import PIL.Image

GREY, COLOUR, AUTO = "grey", "colour", "auto"
CHANNELS = {GREY: 1, COLOUR: 3}
_GREY_MODES = ("1", "L", "LA", "La")  # Pillow's names for how an image stores a pixel
_COLOUR_MODES = ("RGB", "RGBA", "RGBa", "RGBX", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV")
# Those that hold pixels. Others run a program on what the file says, such as PostScript, or only name what they hold.
_FORMATS = (
    *("PNG", "JPEG", "GIF", "BMP", "DIB", "PPM", "TIFF", "WEBP", "AVIF", "JPEG2000"),
    *("TGA", "ICO", "PCX", "PSD", "QOI", "SGI"),
)
_OF_SEVERAL = ("GIF", "PNG", "TIFF", "WEBP", "AVIF")
# Pillow warns above it, too: a file of 200 kB can claim that many pixels.
MAX_PIXELS = 2**30 // 12
BYTES_AT_ONCE = 64 * 2**20  # of pixels, where images are read several at a time
FIX = "--image_size=<pixels> resizes all, --image_colour=grey or colour converts them"


@dataclasses.dataclass(frozen=True)
class ImageLayout:
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

    def fix(self, pixels: np.ndarray) -> "ImageLayout":
        """The layout that all further images must have, once one is read."""
        return self if self.shape else dataclasses.replace(self, shape=pixels.shape)


def read_image(file: str | IO[bytes], where: str, layout: ImageLayout) -> np.ndarray:
    """Uint8, shape (height, width, 1 or 3). What an image says of itself is checked before its pixels are unpacked.

    Raises:
      DatasetError: it cannot be read, holds several pictures, has too many pixels, or is not of the layout.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with warnings.catch_warnings():
            # `_check_head` is stricter than the warning.
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)
            with PIL.Image.open(file, formats=_list_formats()) as opened:
                colour = _check_head(opened, where, layout)
                image = opened if layout.is_published else PIL.ImageOps.exif_transpose(opened)
                image = image.convert("L" if colour == GREY else "RGB")
    except DatasetError:
        raise
    except PIL.UnidentifiedImageError:
        raise DatasetError(f"{where}: no image, or a damaged one; expected a PNG or JPEG; take it out") from None
    except (FileNotFoundError, PermissionError) as error:
        raise DatasetError(f"{where}: cannot be read ({error.strerror})") from None
    except Exception as error:
        # Pillow's decoders raise whatever a damaged file makes them.
        raise DatasetError(f"{where}: a damaged image ({error}); take it out, or get it again") from None
    if layout.size:
        resampling = PIL.Image.Resampling.BICUBIC if layout.is_published else PIL.Image.Resampling.BILINEAR
        image = image.resize((layout.size, layout.size), resampling)
    pixels = np.asarray(image, np.uint8).reshape(image.height, image.width, CHANNELS[colour])
    _check_shape(pixels.shape, where, layout)
    return pixels


@functools.cache
def _list_formats() -> tuple[str, ...]:
    """Of the formats that are read those that this Pillow knows; init loads the modules of all."""
    import PIL.Image

    PIL.Image.init()
    return tuple(name for name in _FORMATS if name in PIL.Image.OPEN)


def _check_head(opened: "PIL.Image.Image", where: str, layout: ImageLayout) -> str:
    """The colour in which an opened image is read. Raises DatasetError if it is not to be unpacked."""
    width, height = opened.size
    if width * height > MAX_PIXELS:
        raise DatasetError(
            f"{where}: a damaged image (Image size ({width * height} pixels) exceeds limit of {MAX_PIXELS} pixels); "
            "take it out, or make it smaller"
        )
    # Published sets have grey images with an alpha channel read as coloured ones; so they stay.
    grey_modes = ("1", "L") if layout.is_published else _GREY_MODES
    if opened.mode not in (*_GREY_MODES, *_COLOUR_MODES):
        raise DatasetError(
            f"{where}: its pixels are {opened.mode}, expected 8 bits a channel, grey or colour; convert it"
        )
    if _holds_several(opened):
        raise DatasetError(f"{where}: holds several pictures, expected one; save the one that is meant, or take it out")
    colour = (GREY if opened.mode in grey_modes else COLOUR) if layout.colour == AUTO else layout.colour
    if layout.shape and not layout.size and sorted(opened.size) != sorted(layout.shape[:2]):
        _check_shape((height, width, CHANNELS[colour]), where, layout)
    return colour


def _holds_several(opened: "PIL.Image.Image") -> bool:
    """Whether a file is an animation or a stack. A smaller page of a TIFF, or a JPEG's second, is a preview."""
    if opened.format not in _OF_SEVERAL or not getattr(opened, "is_animated", False):
        return False
    if opened.format != "TIFF":
        return True
    size = opened.size
    opened.seek(1)
    is_alike = opened.size == size
    # The pixels are read from the page at hand.
    opened.seek(0)
    return is_alike


def _check_shape(shape: tuple[int, ...], where: str, layout: ImageLayout) -> None:
    if layout.shape and shape != layout.shape:
        raise DatasetError(
            f"{where}: {describe_pixels(shape)}, expected {describe_pixels(layout.shape)} as {layout.first} has; {FIX}"
        )


def count_at_once(shape: tuple[int, ...]) -> int:
    """How many images of a shape may be in memory at once: at least one."""
    return max(1, BYTES_AT_ONCE // max(1, math.prod(shape)))


def describe_pixels(shape: tuple[int, ...]) -> str:
    """The layout of an image in words."""
    height, width, channels = shape
    return f"{width} x {height} pixels in {GREY if channels == 1 else COLOUR}"
