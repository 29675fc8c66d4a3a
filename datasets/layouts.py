"""How the axes and the numbers of a user's examples are read: what is a pixel, a step, a channel, and their scale.

Layouts, by the shape of `x`; all others add or move axes until the last one is that of the channels:
  features: (N, ...), whatever the shape, as one row of numbers.
  sequence: (N, steps, channels), or (N, steps) of one channel.
  sequence_channels_first: (N, channels, steps).
  image: (N, height, width, channels), or grey (N, height, width).
  image_channels_first: (N, channels, height, width), as PyTorch has it.
  tokens: (N, positions), whole numbers that a model looks up; they stay as they are, and get no channel.
  as_stored: the axes as they are; features, and (N, height, width) in uint8, get one for their one channel.
  auto: by shape and dtype, see `resolve_layout`.
"""

import math
import re
from typing import TYPE_CHECKING

from datasets.errors import DatasetError
from datasets.example_format import TASK_NAMES, Preprocessing
from datasets.options import AUTO, FILES, NPZ, declare_options, is_users_own
from tff_algos.settings.config_fields import Needs, setting

if TYPE_CHECKING:
    import numpy as np

AS_STORED = "as_stored"
FEATURES, SEQUENCE, IMAGE = "features", "sequence", "image"
SEQUENCE_CHANNELS_FIRST, IMAGE_CHANNELS_FIRST = "sequence_channels_first", "image_channels_first"
TOKENS = "tokens"
LAYOUTS = (AUTO, FEATURES, SEQUENCE, SEQUENCE_CHANNELS_FIRST, IMAGE, IMAGE_CHANNELS_FIRST, TOKENS, AS_STORED)
NO_SCALE, BYTES = "none", "bytes"
SCALE_FORM = f"{AUTO}, {NO_SCALE}, {BYTES}, or a factor above 0 such as 1/255 or 0.01"
OF_ARRAYS = Needs("dataset", lambda name: name in (FILES, NPZ), "--data=<your file or folder>")
# No picture has more channels: a longer axis is one of pixels.
MOST_CHANNELS = 4
BYTE_SCALE = 1 / 255
# The ranks of `x`, with the axis of the examples, that a layout can be of.
_RANKS = {SEQUENCE: (2, 3), SEQUENCE_CHANNELS_FIRST: (3,), IMAGE: (3, 4), IMAGE_CHANNELS_FIRST: (4,), TOKENS: (2,)}
_AXES = {
    SEQUENCE: "(N, steps, channels) or (N, steps)",
    SEQUENCE_CHANNELS_FIRST: "(N, channels, steps)",
    IMAGE: "(N, height, width, channels) or (N, height, width)",
    IMAGE_CHANNELS_FIRST: "(N, channels, height, width)",
    TOKENS: "(N, positions)",
}


@declare_options
class ArrayOptions:
    """A user's own arrays, and how they are read. See `datasets.npz_labels` for the tasks."""

    npz: str = setting("", "Your own file for --dataset=npz: x, y, and optionally client, x_test, y_test.")
    layout: str = setting(
        AUTO,
        "How the axes of your own arrays are read: features, steps and channels, pixels; auto: by shape and dtype.",
        choices=LAYOUTS,
        needs=OF_ARRAYS,
        of_old_runs=AS_STORED,
    )
    scale: str = setting(
        AUTO,
        f"Factor on your own numbers: {SCALE_FORM}; auto: 1/255 for images in uint8, bytes: for all in uint8.",
        needs=OF_ARRAYS,
        of_old_runs=BYTES,
    )
    task: str = setting(
        AUTO,
        "Task that your own labels are for; auto: guessed from their form.",
        choices=(AUTO, *TASK_NAMES),
        needs=Needs("dataset", is_users_own, "--data=<your file>"),
        of_old_runs="classification",
    )


def resolve_layout(layout: str, shape: tuple[int, ...], is_uint8: bool) -> str:
    """What "auto" means for examples of this shape, without the axis of the examples; another layout is itself.

    One axis: features. Two: a grey image in uint8, else a sequence. Three: an image, whose channels come first if the
    first axis has as many as channels have and the others are longer. More: as stored.
    """
    if layout != AUTO:
        return layout
    if len(shape) == 3:
        is_first = 1 <= shape[0] <= MOST_CHANNELS < min(shape[1:])
        return IMAGE_CHANNELS_FIRST if is_first else IMAGE
    if len(shape) == 2:
        return IMAGE if is_uint8 else SEQUENCE
    return FEATURES if len(shape) == 1 else AS_STORED


def arrange(x: "np.ndarray", layout: str, label: str) -> "np.ndarray":
    """The examples with the axis of the channels last, of one channel if they had none; tokens have no channels.

    Args:
      x: numbers, shape (examples, ...), of at least two axes.
      layout: one of `LAYOUTS` but "auto".
      label: what an error begins with.

    Raises:
      DatasetError: the layout is not of so many axes.
    """
    if x.ndim not in _RANKS.get(layout, (x.ndim,)):
        raise DatasetError(f"{label} has shape {x.shape}, expected {_AXES[layout]} with --layout={layout}")
    if layout == TOKENS:
        return x
    if layout in (SEQUENCE_CHANNELS_FIRST, IMAGE_CHANNELS_FIRST):
        return x.transpose(0, *range(2, x.ndim), 1)
    if layout == FEATURES:
        return x.reshape(len(x), math.prod(x.shape[1:]), 1)
    has_channels = {SEQUENCE: x.ndim == 3, IMAGE: x.ndim == 4}.get(layout)
    if has_channels is None:  # as stored
        has_channels = x.ndim > 3 or (x.ndim == 3 and x.dtype != "uint8")
    return x if has_channels else x[..., None]


def parse_factor(scale: str) -> float:
    """The number that a scale is written as: 0.01, 1e-2 or 1/100.

    Raises:
      ValueError: it is no such number, or not above 0.
    """
    number = r"[0-9.]+(?:e[+-]?[0-9]+)?"
    if not re.fullmatch(f"{number}(?:/{number})?", scale, re.IGNORECASE):
        raise ValueError(f"expected {SCALE_FORM}")
    over, _, under = scale.partition("/")
    try:
        factor = float(over) / float(under or 1)
    except (ZeroDivisionError, ValueError):
        raise ValueError(f"expected {SCALE_FORM}") from None
    # Beyond, products of float32 are infinite or 0.
    if not 1e-30 <= factor <= 1e30:
        raise ValueError(f"expected {SCALE_FORM}")
    return factor


def choose_preprocessing(
    scale: str, shape: tuple[int, ...], is_uint8: bool, takes_tokens: bool = False
) -> Preprocessing:
    """What is done to the stored numbers before a model sees them.

    Args:
      scale: "auto" (1/255 for pictures in uint8), "none", "bytes" (1/255 for all that is in uint8) or a factor.
      shape: of one arranged example.
      is_uint8: whether the examples are in uint8, which bounds their values.
      takes_tokens: whether they are tokens, which stay as they are.

    Raises:
      DatasetError: a scale for tokens.
    """
    if takes_tokens:
        if scale not in (AUTO, NO_SCALE):
            raise DatasetError(f"scale={scale}: tokens are looked up, not scaled; leave it out")
        return Preprocessing()
    factor = 1.0
    if scale == BYTES or (scale == AUTO and len(shape) >= 3):
        factor = BYTE_SCALE if is_uint8 else 1.0
    elif scale not in (AUTO, NO_SCALE):
        factor = parse_factor(scale)
    if not is_uint8:
        return Preprocessing(factor)
    return Preprocessing(factor, feature_range=(0.0, 1.0 if factor == BYTE_SCALE else 255 * factor))


def describe_examples(shape: tuple[int, ...], preprocessing: Preprocessing, layout: str = AUTO) -> str:
    """Examples in words, for example "images of 32 x 32 pixels, 3 channels, scaled by 1/255".

    Args:
      shape: of one example, as stored; what (16, 1) are, the layout alone tells.
      preprocessing: of the examples.
      layout: how they were read; "auto" if that is not known.
    """
    if layout == TOKENS:
        return f"sequences of {_count(shape[0], 'token')}"
    sizes = [f"{size:,}" for size in shape]
    if len(shape) == 1 or (shape[1:] == (1,) and layout in (AUTO, AS_STORED, FEATURES)):
        text = _count(shape[0], "feature")
        text += " or steps of 1 channel" if len(shape) == 2 and layout != FEATURES else ""
    elif len(shape) == 2:
        text = f"sequences of {_count(shape[0], 'step')}, {_count(shape[1], 'channel')}"
    elif len(shape) == 3:
        text = f"images of {' x '.join(sizes[:2])} pixels, {_count(shape[2], 'channel')}"
    else:
        text = f"arrays of {' x '.join(sizes[:-1])} values, {_count(shape[-1], 'channel')}"
    scale, offset = preprocessing.scale, preprocessing.offset
    if (scale, offset) == (1.0, 0.0):
        return f"{text}, as they are"
    whole = round(1 / scale) if scale else 0
    factor = f"1/{whole}" if whole > 1 and 1 / whole == scale else f"{scale:g}"
    return f"{text}, scaled by {factor}" + (f" and shifted by {offset:g}" if offset else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
