"""What a scaling of features leaves as it is, since it is no measurement: categories, switches and padding.

Categories the data name themselves (`ExampleFormat.categories`). Switches are features or channels that hold nothing
but 0 and 1, such as one-hot columns of arrays. Padding are the steps that fill sequences up to one length. No server
sees the examples, so what is switches and padding follows from counts that are added up over the clients.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.example_format import ExampleFormat, Padding, count_features
from datasets.layouts import AUTO
from datasets.names import name_some
from datasets.unscaled_flag import CATEGORIES, NOTHING

# Of one channel, a 0 may well be a measurement. Padding it is, where zeros at the ends are so many times those within.
LEAST_RATIO = 10
OTHER_FILLS = (-1.0, -9.0, -99.0, -999.0, -9999.0)  # numbers besides 0 that people fill sequences up with


class StepCounts(NamedTuple):
    """Steps all of whose channels have the value of the padding, and all steps.

    Attributes:
      at_ends: before the first and after the last other step.
      within: between two other steps.
      total: all steps there are.
    """

    at_ends: int = 0
    within: int = 0
    total: int = 0


class Unscaled(NamedTuple):
    """What stays as it is: places of features or channels in ascending order, and steps, if any."""

    places: tuple[int, ...] = ()
    padding: Padding | None = None


def choose_padding(unscaled: str, example_format: ExampleFormat, masked: float | None = None) -> Padding | None:
    """The steps that may be padding; None where there can be none.

    Args:
      unscaled: what `--unscaled` says.
      example_format: of the examples.
      masked: the value that the model's Masking layer looks for, if it has such a layer.
    """
    if not example_format.is_series or unscaled in (CATEGORIES, NOTHING):
        return None
    if unscaled != AUTO:
        return Padding(float(np.float32(unscaled)), True)
    if masked is not None:
        return Padding(float(np.float32(masked)), True)
    return None if example_format.has_whole_steps else Padding(0.0, example_format.input_shape[1] > 1)


def find_padding(x: np.ndarray, padding: Padding) -> np.ndarray:
    """Which steps are padding: bool (examples, steps), of x (examples, steps, channels)."""
    holds = (x == np.float32(padding.value)).all(axis=-1)
    if padding.is_anywhere:
        return holds
    before = np.logical_and.accumulate(holds, axis=1)
    return before | np.logical_and.accumulate(holds[:, ::-1], axis=1)[:, ::-1]


def count_steps(x: np.ndarray, value: float) -> StepCounts:
    """The counts of these examples, (examples, steps, channels)."""
    at_ends = int(find_padding(x, Padding(value, False)).sum())
    everywhere = int(find_padding(x, Padding(value, True)).sum())
    return StepCounts(at_ends, everywhere - at_ends, x.shape[0] * x.shape[1])


def is_padding(padding: Padding, counts: StepCounts) -> bool:
    """Whether such steps are padding, by the counts over the clients, where nobody has said so."""
    if padding.is_anywhere:
        return counts.at_ends + counts.within > 0
    return counts.at_ends > LEAST_RATIO * counts.within


def find_other_fill(example_format: ExampleFormat, parts: Iterable[np.ndarray], advice: str) -> str:
    """`describe_other_fill` of examples that can be looked at, as stored, part by part."""
    if choose_padding(AUTO, example_format) is None:
        return ""
    counts = dict.fromkeys(OTHER_FILLS, StepCounts())
    for x in parts:
        for value, before in counts.items():
            now = count_steps(x, value) if (x == value).any() else StepCounts(total=x.shape[0] * x.shape[1])
            counts[value] = StepCounts(*map(sum, zip(before, now, strict=True)))
    return describe_other_fill(counts, advice)


def describe_other_fill(counts: Mapping[float, StepCounts], advice: str = "give --unscaled={:g}") -> str:
    """A line about steps that are scaled but may be padding, of a number that is none of it by itself; "" for none.

    Args:
      counts: of each of `OTHER_FILLS`.
      advice: what to do if it is, with a place for the number.
    """
    found = {value: each for value, each in counts.items() if each.at_ends and is_padding(Padding(value, False), each)}
    if not found:
        return ""
    value, most = max(found.items(), key=lambda item: item[1].at_ends)
    return (
        f"{100 * most.at_ends / most.total:.1f} % of the steps hold nothing but {value:g} at the ends of sequences and "
        f"are scaled as measurements; if they are padding, {advice.format(value)}"
    )


def count_no_switches(x: np.ndarray, padding: Padding | None = None) -> np.ndarray:
    """Of each feature or channel, how many values are neither 0 nor 1: int64 (features,); padding does not count.

    Args:
      x: as stored, shape (examples, *input_shape).
      padding: of sequences.
    """
    is_other = (x != 0) & (x != 1)
    if padding is not None:
        # Steps that fill up say nothing of a channel.
        is_other &= ~find_padding(x, padding)[..., np.newaxis]
    return is_other.reshape(-1, count_features(x.shape[1:])).sum(axis=0)


def choose_places(
    unscaled: str, example_format: ExampleFormat, no_switches: Sequence[int], looked_up: Iterable[int] = ()
) -> tuple[int, ...]:
    """The features or channels that stay as they are.

    Args:
      unscaled: what `--unscaled` says.
      example_format: of the examples.
      no_switches: of each, the values that are neither 0 nor 1, over all clients.
      looked_up: those that the model uses as whole numbers.
    """
    if unscaled == NOTHING:
        return ()
    switches = find_switches(example_format, no_switches)
    return tuple(sorted({*example_format.categories, *looked_up, *switches}))


def find_switches(example_format: ExampleFormat, no_switches: Sequence[int]) -> tuple[int, ...]:
    """The features or channels without any other value than 0 and 1; images have none."""
    places = tuple(index for index, number in enumerate(no_switches) if not number)
    if len(example_format.input_shape) > 2:
        return ()
    # The steps are all of one channel: it is a switch as a whole, or none.
    if example_format.is_series and example_format.input_shape[1] == 1:
        return places if len(places) == len(no_switches) else ()
    return places


def find_unscaled(
    unscaled: str, example_format: ExampleFormat, iterate: Callable[[], Iterable[np.ndarray]]
) -> tuple[Unscaled, StepCounts]:
    """What stays as it is of examples that can be looked at, before there is a model, and the counts of padding.

    Args:
      unscaled: what `--unscaled` says.
      example_format: of the examples.
      iterate: gives the examples as stored, part by part, the same at each call.
    """
    if unscaled == NOTHING:
        return Unscaled(), StepCounts()
    # Padding comes first: zeros that fill up would make every channel look like a switch.
    padding, counts = choose_padding(unscaled, example_format), StepCounts()
    if padding is not None:
        for x in iterate():
            counts = StepCounts(*map(sum, zip(counts, count_steps(x, padding.value), strict=True)))
        if unscaled == AUTO and not is_padding(padding, counts):
            padding = None
    no_switches = np.zeros(count_features(example_format.input_shape), np.int64)
    for x in iterate() if len(example_format.input_shape) <= 2 else ():
        no_switches += count_no_switches(x, padding)
        # More examples would not change that.
        if no_switches.all():
            break
    places = choose_places(unscaled, example_format, no_switches)
    return Unscaled(places, None if len(places) == len(no_switches) else padding), counts


def explain_place(example_format: ExampleFormat, index: int, looked_up: Sequence[int] = ()) -> str:
    """Why a feature stays as it is: "category", "looked up" or "0 or 1"."""
    if index in example_format.categories:
        return "category"
    return "looked up" if index in looked_up else "0 or 1"


def describe_places(example_format: ExampleFormat, places: Sequence[int], looked_up: Sequence[int] = ()) -> str:
    """Which features stay as they are, and why, such as "city (category), feature 2 (0 or 1) and 3 more"."""
    return name_some(
        [
            f"{example_format.name_feature(index)} ({explain_place(example_format, index, looked_up)})"
            for index in places
        ]
    )


def describe_padding(padding: Padding, counts: StepCounts, is_masked: bool = False) -> str:
    """The share of steps that are padding, with the flag that decides it otherwise.

    Args:
      padding: of the steps.
      counts: of the examples.
      is_masked: whether the model masks them.
    """
    number = counts.at_ends + (counts.within if padding.is_anywhere else 0)
    where = "" if padding.is_anywhere else " at the ends of sequences"
    why = "the model masks these" if is_masked else "these are taken for padding"
    otherwise = "" if is_masked else f"; if they are measurements, give --unscaled={CATEGORIES}"
    return (
        f"{100 * number / max(counts.total, 1):.1f} % of the steps hold nothing but {padding.value:g}{where}: {why}, "
        f"they stay as they are and are in no mean or deviation{otherwise}"
    )
