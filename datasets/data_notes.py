"""What a user's own arrays look like, where that may not be what was meant: one line each, with what to do.

Nothing here changes the data. The lines depend on the arrays alone, and cost little beside reading them.
"""

import math
from collections.abc import Sequence

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.example_format import ExampleFormat, is_flat
from datasets.layouts import (
    AUTO,
    BYTE_SCALE,
    FEATURES,
    IMAGE,
    IMAGE_CHANNELS_FIRST,
    MOST_CHANNELS,
    SEQUENCE,
    SEQUENCE_CHANNELS_FIRST,
    resolve_layout,
)
from datasets.names import name_some, note_alike
from datasets.unscaled import find_padding, find_unscaled

# Notes must cost little beside reading: of more examples, evenly spaced ones are taken.
MOST_VALUES = 4_000_000
LEAST_SIDE = 8  # of what may be a picture
# Root mean squares that a usual learning rate does not go with; about 1 is expected.
LARGE, SMALL = 100.0, 0.01
MOST_UNLIKE = 10.0  # times the smallest root mean square or deviation, that the largest may be
# The largest value, where numbers look like the bytes of pictures.
LEAST_OF_BYTES, MOST_OF_BYTES = 128, 255
# The largest value of a picture in uint8 that is too dark to be scaled by 1/255.
SMALL_BYTE = 16
MOST_NAMED = 8
STANDARDIZE = "--standardize=federated"


def note_layout(layout: str, shape: tuple[int, ...], is_uint8: bool) -> tuple[str, ...]:
    """A line if examples whose layout was not given may have another than the one that was chosen.

    Args:
      layout: as given; only "auto" is ever in doubt.
      shape: of one example of the file.
      is_uint8: whether it is in uint8.
    """
    if layout != AUTO or len(shape) not in (2, 3):
        return ()
    chosen, axes = resolve_layout(layout, shape, is_uint8), f"x is (N, {', '.join(map(str, shape))})"
    first, second, last = shape[0], shape[1], shape[-1]
    channels = "1 channel" if first == 1 else f"{first} channels"
    steps = f"{axes}, read as sequences of {first} steps with {last} channels"
    # (whether the shape may mean something else, what it was taken for and may be); the first that is true is said.
    doubts = [
        (
            chosen == IMAGE_CHANNELS_FIRST,
            f"{axes}, read as {channels} of {second} x {last} pixels, channels first; if these are {first} x {second} "
            f"pixels of {last} channels, give --layout={IMAGE}",
        ),
        (
            len(shape) == 3 and last > MOST_CHANNELS and second == last != first,
            f"{axes}, read as {first} x {second} pixels of {last} channels; if these are {first} channels of {second} "
            f"x {last} pixels, give --layout={IMAGE_CHANNELS_FIRST}",
        ),
        (
            chosen == SEQUENCE and min(shape) >= LEAST_SIDE and max(shape) <= 2 * min(shape),
            f"{steps}; if these are grey pictures, give --layout={IMAGE}",
        ),
        (
            chosen == SEQUENCE and first <= 2 * LEAST_SIDE and last >= 4 * first,
            f"{steps}; if these are {first} channels of {last} steps, give --layout={SEQUENCE_CHANNELS_FIRST}",
        ),
        (
            chosen == IMAGE and len(shape) == 2 and min(shape) < LEAST_SIDE,
            f"{axes} in uint8, read as grey pictures of {first} x {last} pixels; if these are sequences of {first} "
            f"steps, give --layout={SEQUENCE}, or --layout={FEATURES}",
        ),
    ]
    return tuple(text for is_doubtful, text in doubts if is_doubtful)[:1]


def note_content(arrays: ArrayDataset, scale: str | None, is_standardized: bool = False) -> tuple[str, ...]:
    """A line each if the numbers are of a size that training does not cope with, and what `note_labels` says.

    Args:
      arrays: the data.
      scale: what --scale was, since one that was given is not in doubt; None if the flag does nothing here, so that the
        loader is named instead; "" if there is no loader either.
      is_standardized: whether features are scaled in any case, so that their size is not in doubt.
    """
    example_format = arrays.format
    is_in_doubt = not (example_format.takes_tokens or is_standardized)
    numbers = note_numbers(arrays.train_x, example_format, scale) if is_in_doubt else ()
    if not example_format.labels.is_by_class:
        return numbers
    counts = (np.bincount(y, minlength=example_format.num_classes) for y in (arrays.train_y, arrays.test_y))
    return (*numbers, *note_labels(example_format.class_names, *counts))


def note_labels(
    class_names: Sequence[str], train: np.ndarray, test: np.ndarray, everywhere: np.ndarray | None = None
) -> tuple[str, ...]:
    """A line each if the test part has classes that the train part lacks, and if classes differ in spelling only.

    Args:
      class_names: in their order.
      train: train examples of each class, int64, shape (classes,).
      test: test examples of each.
      everywhere: examples of each in the data; None for those of both parts.
    """
    unseen, notes = np.flatnonzero((train == 0) & (test > 0)), ()
    if len(unseen):
        names = name_some([class_names[label] for label in unseen], MOST_NAMED)
        notes = (
            f"{test[unseen].sum():,} of {test.sum():,} test examples are of classes that no train example has "
            f"({names}); no model can be right on these",
        )
    counts = dict(zip(class_names, (train + test if everywhere is None else everywhere).tolist(), strict=True))
    return (*notes, *note_alike("classes", class_names, counts))


def note_numbers(x: np.ndarray, example_format: ExampleFormat, scale: str | None) -> tuple[str, ...]:
    """A line if the numbers are of a size that training does not cope with.

    Args:
      x: examples as stored, no tokens; some of them are enough.
      example_format: of these.
      scale: see `note_content`.
    """
    factor = example_format.preprocessing.scale
    highest = float(x.max())
    where = {None: "a scale of {} in its loader's Preprocessing", "": STANDARDIZE}.get(scale, "--scale={}")
    is_in_doubt = scale in (None, "", AUTO)
    # Bytes are scaled by their type, whatever their largest value is.
    if x.dtype == np.uint8 and factor == BYTE_SCALE:
        if not (is_in_doubt and 0 < highest <= SMALL_BYTE):
            return ()
        fix = where.format("none" if highest == 1 else f"1/{highest:.0f}")
        return (
            f"the largest value in uint8 is {highest:.0f}, so that scaled by 1/255 no number exceeds "
            f"{highest * factor:.2g}; {fix} is for such numbers",
        )
    # The numbers of each feature or channel, shape (examples or pixels, features or channels), of measurements only:
    # no scaling would change the size of others.
    taken = x[:: max(1, math.ceil(x.size / MOST_VALUES))]
    is_features = is_flat(x.shape[1:])
    exempt, _ = find_unscaled(AUTO, example_format, lambda: [taken])
    numbers = taken.astype(np.float64)
    if exempt.padding is not None:
        numbers[find_padding(taken, exempt.padding)] = np.nan
    columns = numbers.reshape(len(taken), -1) if is_features else numbers.reshape(-1, x.shape[-1])
    measured = np.setdiff1d(np.flatnonzero(~np.isnan(columns).all(axis=0)), exempt.places)
    notes = _note_categories(columns, example_format)
    if not len(measured):
        return notes
    columns = columns[:, measured]
    lowest, highest = float(np.nanmin(columns)), float(np.nanmax(columns))
    may_be_bytes = factor == 1 and lowest >= 0 and LEAST_OF_BYTES <= highest <= MOST_OF_BYTES
    is_whole = may_be_bytes and (x.ndim > 3 or bool(((columns == np.rint(columns)) | np.isnan(columns)).all()))
    if is_whole and float((np.nanmax(columns, axis=0) >= LEAST_OF_BYTES).mean()) >= 0.25:
        if not is_in_doubt:
            return ()
        end = "scales them" if scale == "" else "brings them to 0..1"
        fix = where.format("1/255")
        return (*notes, f"the values go from {lowest:g} to {highest:g}, and are used as they are; {fix} {end}")
    noun, names = "feature" if is_features else "channel", example_format.feature_names
    titles = [f"{noun} {names[index]}" if names else f"{noun} {index} (counted from 0)" for index in measured]
    return (*notes, *_note_scales(columns, factor, titles))


def _note_categories(columns: np.ndarray, example_format: ExampleFormat) -> tuple[str, ...]:
    """A line if indices of categories are too large for a model that takes them for numbers."""
    large = [index for index in example_format.categories if columns[:, index].max() > LARGE]
    if not large:
        return ()
    names = name_some([example_format.name_feature(index) for index in large])
    return (
        f"indices of categories up to {columns[:, large].max():,.0f} ({names}), which no scaling suits: a model of "
        f"your own can look them up (Embedding), for others leave such columns out by --drop_columns",
    )


def _note_scales(columns: np.ndarray, factor: float, titles: Sequence[str]) -> tuple[str, ...]:
    """A line if measurements, NaN where there is padding, are of unlike or unusual sizes."""
    means, deviations = np.nanmean(columns, axis=0), np.nanstd(columns, axis=0)
    sizes = np.sqrt(np.nanmean(columns**2, axis=0))
    largest = float(sizes.max()) * abs(factor)
    # A column that never changes has no scale to compare.
    changing = np.flatnonzero(np.nanmin(columns, axis=0) < np.nanmax(columns, axis=0))
    at, other = int(sizes.argmax()), None
    for scales in (sizes, deviations) if len(changing) else ():
        high, low = (int(changing[find(scales[changing])]) for find in (np.argmax, np.argmin))
        if scales[high] > MOST_UNLIKE * scales[low]:
            at, other = high, low
            break
    if other is None and not largest > LARGE and not 0 < largest < SMALL:
        return ()
    text = f"{titles[at]} has a mean of {means[at]:.3g} and a deviation of {deviations[at]:.3g}"
    if other is not None:
        text += f", {titles[other]} of {means[other]:.3g} and {deviations[other]:.3g}"
    return (f"{text}; training expects about 1: give {STANDARDIZE}",)
