"""What is measured of a sample: classes, features, examples that are there twice."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from datasets.client_source import TEST, TRAIN
from datasets.inspection.sample import Sample
from datasets.layouts import AUTO
from datasets.unscaled import (
    StepCounts,
    Unscaled,
    describe_padding,
    explain_place,
    find_other_fill,
    find_padding,
    find_unscaled,
)

CHUNK = 2**20


class FeatureRange(NamedTuple):
    """Of one feature or channel, as stored: its name, lowest, highest, mean, population deviation."""

    name: str
    lowest: float
    highest: float
    mean: float
    deviation: float

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every example."""
        return self.lowest == self.highest


class Repeats(NamedTuple):
    """Examples whose numbers are those of another one.

    Attributes:
      in_train: train examples that are like an earlier train example.
      with_other_labels: of these, those whose label is another one.
      in_both: test examples that are like a train example.
      clients: places of clients at least half of whose test examples are among their own train examples.
    """

    in_train: int
    with_other_labels: int
    in_both: int
    clients: tuple[int, ...]


class MajorityShares(NamedTuple):
    """How many examples are of the most frequent class, as shares; None where there are none, or no clients.

    Attributes:
      of_test: of the test examples, those of the class that is most frequent among the train examples.
      of_client: of a client's train examples, those of its own most frequent class; the mean over the clients.
    """

    of_test: float | None
    of_client: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class Measures:
    """What was measured of a sample.

    Attributes:
      class_counts: examples of each class, int64, shape (classes,), in the train part and in the test part; None where
        labels are no classes.
      majority: what follows from them; None likewise.
      labels: lowest, highest, mean and deviation of the labels of a regression; None for other tasks.
      features: of each feature or channel; () for tokens.
      largest_token: of tokens; None for numbers.
      repeats: examples that are there twice.
      unscaled: why a scaling of features leaves one as it is, by its name, see `datasets.unscaled.explain_place`.
      padding: the steps that a scaling leaves as they are, in words; "" if there are none. The ranges are without them.
      other_fill: steps that a scaling takes for measurements but that may be padding, in words; "" if there are none.
      num_uniform: examples whose numbers are all the same, such as a black image; 0 of examples of a single number.
    """

    class_counts: tuple[np.ndarray, np.ndarray] | None
    majority: MajorityShares | None
    labels: FeatureRange | None
    features: tuple[FeatureRange, ...]
    largest_token: int | None
    repeats: Repeats
    num_uniform: int
    unscaled: Mapping[str, str] = dataclasses.field(default_factory=dict)
    padding: str = ""
    other_fill: str = ""


def measure(sample: Sample, unscaled: str = AUTO) -> Measures:
    """The measures of a sample; `unscaled` is what `--unscaled` says."""
    labels, example_format = sample.format.labels, sample.format
    takes_tokens = example_format.takes_tokens
    rows = sample.x.reshape(len(sample.x), -1)
    is_number = labels.task == "regression"
    kept, counts, names = Unscaled(), StepCounts(), []
    if not takes_tokens:
        names = name_features(sample)
        kept, counts = find_unscaled(unscaled, example_format, lambda: [sample.x])
    return Measures(
        _count_classes(sample) if labels.is_by_class else None,
        find_majority(sample) if labels.is_by_class else None,
        _describe_range("labels", sample.y.reshape(-1).astype(np.float64)) if is_number else None,
        () if takes_tokens else measure_features(sample, kept),
        int(sample.x.max()) if takes_tokens else None,
        find_repeats(sample),
        int((rows == rows[:, :1]).all(axis=1).sum()) if rows.shape[1] > 1 else 0,
        {name: explain_place(example_format, i) for i, name in enumerate(names) if i in kept.places},
        describe_padding(kept.padding, counts) if kept.padding and any(counts[:2]) else "",
        find_other_fill(example_format, [sample.x], "give --standardize=federated --unscaled={:g}")
        if unscaled == AUTO and not (kept.padding and any(counts[:2]))
        else "",
    )


def _count_classes(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    num_classes = sample.format.num_classes
    is_test = sample.choose(TEST)
    return tuple(np.bincount(sample.y[chosen], minlength=num_classes) for chosen in (~is_test, is_test))


def find_majority(sample: Sample) -> MajorityShares:
    """The shares of the most frequent classes, of equals the lowest."""
    train, test = _count_classes(sample)
    of_test = float(test[train.argmax()] / test.sum()) if test.any() else None
    is_train = sample.choose(TRAIN)
    if not (sample.has_clients and is_train.any()):
        return MajorityShares(of_test, None)
    counts = np.zeros((len(sample.client_names), len(train)), np.int64)
    np.add.at(counts, (sample.clients[is_train], sample.y[is_train]), 1)
    counts = counts[counts.any(axis=1)]
    return MajorityShares(of_test, float(np.mean(counts.max(axis=1) / counts.sum(axis=1))))


def name_features(sample: Sample) -> list[str]:
    """What each feature or channel is called: its name, or its place counted from 0."""
    width = sample.count_features()
    noun = "feature" if sample.is_flat else "channel"
    return list(sample.format.feature_names) or [f"{noun} {place}" for place in range(width)]


def measure_features(sample: Sample, kept: Unscaled) -> tuple[FeatureRange, ...]:
    """The range of each feature or channel, over all examples of the sample, without padding."""
    ranges, is_measured = [], None
    if kept.padding is not None:
        is_measured = ~find_padding(sample.x, kept.padding).reshape(-1)
    for place, name in enumerate(name_features(sample)):
        values = sample.take_column(place)
        values = values if is_measured is None or not is_measured.any() else values[is_measured]
        ranges.append(_describe_range(name, values))
    return tuple(ranges)


def _describe_range(name: str, values: np.ndarray) -> FeatureRange:
    if values.dtype == np.uint8:  # how often each of 256 numbers occurs is all there is to know, and takes no memory
        counts = sum(np.bincount(part, minlength=256) for part in _cut(values))
        mean = float(counts @ np.arange(256)) / len(values)
        squares = float(counts @ np.square(np.arange(256) - mean))
    else:
        mean = float(values.mean(dtype=np.float64))
        squares = sum(float(np.square(part.astype(np.float64) - mean).sum()) for part in _cut(values))
    deviation = (squares / len(values)) ** 0.5
    return FeatureRange(name, float(values.min()), float(values.max()), mean, deviation)


def _cut(values: np.ndarray) -> Iterator[np.ndarray]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def find_repeats(sample: Sample) -> Repeats:
    """Examples that are there twice, by the bytes of their numbers."""
    keys = [row.tobytes() for row in sample.x]
    is_test, is_train = sample.choose(TEST), sample.choose(TRAIN)
    first: dict[bytes, int] = {}
    in_train = with_other_labels = 0
    for place in np.flatnonzero(is_train).tolist():
        earlier = first.setdefault(keys[place], place)
        in_train += earlier != place
        with_other_labels += earlier != place and not np.array_equal(sample.y[earlier], sample.y[place])
    own = {(keys[place], sample.clients[place]) for place in np.flatnonzero(is_train).tolist()}
    tests = np.flatnonzero(is_test)
    is_own = np.array([(keys[place], sample.clients[place]) in own for place in tests.tolist()], bool)
    size = len(sample.client_names)
    whose = sample.clients[tests]
    known = whose >= 0
    number = np.bincount(whose[known], minlength=size)
    shared = np.bincount(whose[known], is_own[known], minlength=size)
    clients = np.flatnonzero((number > 0) & (2 * shared >= number)) if sample.has_clients else ()
    in_both = sum(keys[place] in first for place in tests.tolist())
    return Repeats(int(in_train), int(with_other_labels), int(in_both), tuple(int(client) for client in clients))
