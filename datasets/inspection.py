"""What of data looks as if it was not meant, by measures of a sample: its classes, features and repeats.

The sample is all of small data, with whose the examples are; of large data it is what a seed draws. Each suspicion is a
line, with what to do. Nothing here changes the data.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.data_notes import note_labels, note_numbers
from datasets.example_format import ExampleFormat
from datasets.layouts import AUTO
from datasets.names import name_some, note_alike
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from datasets.unscaled import (
    StepCounts,
    Unscaled,
    describe_padding,
    explain_place,
    find_other_fill,
    find_padding,
    find_unscaled,
)

MOST_EXAMPLES = 100_000
MOST_BYTES = 64 * 2**20
MOST_CLIENTS = 2000
SPLITS = (TRAIN, VALIDATION, TEST)


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Examples of a data set.

    Attributes:
      format: of an example and its labels.
      client_names: of all clients; one, "", where the data name none.
      num_examples: of all clients, by split: int64, shape (clients,).
      x: the examples that were read, as stored, shape (examples, *input_shape).
      y: their labels.
      clients: whose each is, as a place in `client_names`; -1 for a test example of nobody.
      splits: where each is, as a place in `SPLITS`.
      num_clients_read: whose examples are here.
      is_whole: whether all examples are here.
    """

    format: ExampleFormat
    client_names: tuple[str, ...]
    num_examples: Mapping[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    clients: np.ndarray
    splits: np.ndarray
    num_clients_read: int
    is_whole: bool

    @property
    def has_clients(self) -> bool:
        """Whether the data say whose the examples are."""
        return self.client_names != ("",)

    @property
    def is_flat(self) -> bool:
        """Whether an example is one row of features."""
        shape = self.format.input_shape
        return not self.format.takes_tokens and (len(shape) == 1 or (self.format.are_features and shape[1:] == (1,)))

    def choose(self, split: str) -> np.ndarray:
        """Which examples are of a split, a mask."""
        return self.splits == SPLITS.index(split)

    def count_features(self) -> int:
        """How many features an example has, or channels."""
        return self.x.shape[1] if self.is_flat else self.x.shape[-1]

    def take_column(self, index: int) -> np.ndarray:
        """The numbers of one feature in each example, or of one channel at each place, as stored."""
        return self.x.reshape(-1, self.count_features())[:, index]


def draw_sample(data: ArrayDataset | ClientSource, seed: int = 0) -> Sample:
    """The examples to look at.

    Raises:
      DatasetError: a client cannot be read.
    """
    if isinstance(data, ClientSource):
        return _draw_of_source(data, seed)
    names = data.client_names or ("",)
    whose = np.zeros(len(data.train_y), np.int64) if data.train_clients is None else data.train_clients
    has_nobodys = data.client_names is not None and data.test_clients is None
    whose_test = np.full(len(data.test_y), -1 if has_nobodys else 0) if data.test_clients is None else data.test_clients
    total, most = len(whose) + len(whose_test), _count_affordable(data.format)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng([seed, 11]).choice(total, most, replace=False))
    train, test = chosen[chosen < len(whose)], chosen[chosen >= len(whose)] - len(whose)
    counts = {TRAIN: np.bincount(whose, minlength=len(names))}
    counts[TEST] = np.bincount(whose_test[whose_test >= 0], minlength=len(names))
    clients = np.concatenate([whose[train], whose_test[test]])
    return Sample(
        data.format,
        tuple(names),
        counts,
        np.concatenate([data.train_x[train], data.test_x[test]]),
        np.concatenate([data.train_y[train], data.test_y[test]]),
        clients,
        np.repeat([SPLITS.index(TRAIN), SPLITS.index(TEST)], [len(train), len(test)]),
        len(np.unique(clients[clients >= 0])),
        total <= most,
    )


def _count_affordable(example_format: ExampleFormat) -> int:
    num_bytes = math.prod(example_format.input_shape) * np.dtype(example_format.input_dtype).itemsize
    return max(1, min(MOST_EXAMPLES, MOST_BYTES // num_bytes))


def _draw_of_source(source: ClientSource, seed: int) -> Sample:
    counts = {split: np.asarray(source.num_examples[split]) for split in SPLITS if split in source.num_examples}
    of_clients = sum(counts.values())
    # Whole clients, since what is odd about one shows in all of its examples together.
    drawn = np.random.default_rng([seed, 11]).permutation(np.flatnonzero(of_clients))
    most = _count_affordable(source.format)
    enough = 1 + int(np.searchsorted(np.cumsum(of_clients[drawn]), most))
    chosen = np.sort(drawn[: min(enough, MOST_CLIENTS)])
    parts, whose, where = [], [], []
    for client in chosen.tolist():
        for split in (split for split, each in counts.items() if each[client]):
            x, y = (array[:most] for array in source.read(client, split))
            parts.append((x, y))
            whose.append(np.full(len(y), client))
            where.append(np.full(len(y), SPLITS.index(split)))
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Sample(
        source.format,
        source.client_names if source.has_clients else ("",),
        counts,
        x,
        y,
        np.concatenate(whose),
        np.concatenate(where),
        len(chosen),
        len(y) == int(of_clients.sum()),
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
    exempt, counts, names = Unscaled(), StepCounts(), []
    if not takes_tokens:
        names = name_features(sample)
        exempt, counts = find_unscaled(unscaled, example_format, lambda: [sample.x])
    return Measures(
        _count_classes(sample) if labels.is_by_class else None,
        find_majority(sample) if labels.is_by_class else None,
        _describe_range("labels", sample.y.reshape(-1).astype(np.float64)) if is_number else None,
        () if takes_tokens else measure_features(sample, exempt),
        int(sample.x.max()) if takes_tokens else None,
        find_repeats(sample),
        int((rows == rows[:, :1]).all(axis=1).sum()) if rows.shape[1] > 1 else 0,
        {name: explain_place(example_format, i) for i, name in enumerate(names) if i in exempt.places},
        describe_padding(exempt.padding, counts) if exempt.padding and any(counts[:2]) else "",
        find_other_fill(example_format, [sample.x], "give --standardize=federated --unscaled={:g}")
        if unscaled == AUTO and not (exempt.padding and any(counts[:2]))
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
    return list(sample.format.feature_names) or [f"{noun} {index}" for index in range(width)]


def measure_features(sample: Sample, exempt: Unscaled) -> tuple[FeatureRange, ...]:
    """The range of each feature or channel, over all examples of the sample, without padding."""
    ranges, is_measured = [], None
    if exempt.padding is not None:
        is_measured = ~find_padding(sample.x, exempt.padding).reshape(-1)
    for index, name in enumerate(name_features(sample)):
        values = sample.take_column(index)
        values = values if is_measured is None or not is_measured.any() else values[is_measured]
        ranges.append(_describe_range(name, values))
    return tuple(ranges)


def _describe_range(name: str, values: np.ndarray) -> FeatureRange:
    # How often each of 256 numbers occurs is all there is to know, and takes no memory.
    if values.dtype == np.uint8:
        counts = sum(np.bincount(part, minlength=256) for part in _cut(values))
        mean = float(counts @ np.arange(256)) / len(values)
        squares = float(counts @ np.square(np.arange(256) - mean))
    else:
        mean = float(values.mean(dtype=np.float64))
        # In two passes: beside a large mean the squares alone would lose their digits.
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
    for index in np.flatnonzero(is_train).tolist():
        earlier = first.setdefault(keys[index], index)
        in_train += earlier != index
        with_other_labels += earlier != index and not np.array_equal(sample.y[earlier], sample.y[index])
    # A client's own repeats are worse than those of others: its test would be of what it has seen.
    own = {(keys[index], sample.clients[index]) for index in np.flatnonzero(is_train).tolist()}
    tests = np.flatnonzero(is_test)
    is_own = np.array([(keys[index], sample.clients[index]) in own for index in tests.tolist()], bool)
    size = len(sample.client_names)
    whose = sample.clients[tests]
    known = whose >= 0
    number = np.bincount(whose[known], minlength=size)
    shared = np.bincount(whose[known], is_own[known], minlength=size)
    clients = np.flatnonzero((number > 0) & (2 * shared >= number)) if sample.has_clients else ()
    in_both = sum(keys[index] in first for index in tests.tolist())
    return Repeats(int(in_train), int(with_other_labels), int(in_both), tuple(int(client) for client in clients))


# Of fewer, chance could do what is said.
LEAST_EXAMPLES = 20
MAJORITY = 0.9  # share of one class that an answer for all reaches
CORRELATED = 0.9999
LEAST_CLIENTS = 5  # texts of a column that may name clients


def find_suspicions(
    sample: Sample, measures: Measures, scale: str | None = "auto", is_scaled: bool = False, notes: Sequence[str] = ()
) -> list[str]:
    """All that looks odd.

    Args:
      sample: the examples.
      measures: of them.
      scale: see `datasets.data_notes.note_content`.
      is_scaled: whether features are to be standardized, so that their size is not in doubt.
      notes: of the reader, on columns of which nothing more is said then.
    """
    lines = [*_look_at_classes(sample, measures), *_look_at_clients(sample, measures)]
    if not sample.format.takes_tokens:
        lines += () if is_scaled or measures.other_fill else note_numbers(sample.x, sample.format, scale)
        lines += _look_at_features(sample, measures, notes)
    repeats = measures.repeats
    if repeats.with_other_labels:
        lines.append(
            f"train examples that are like an earlier one but have another label: {repeats.with_other_labels:,}"
        )
    if measures.num_uniform and not sample.is_flat and not sample.format.takes_tokens:
        noun = "images" if len(sample.format.input_shape) == 3 else "sequences"
        lines.append(f"{noun} of one number everywhere, such as all black: {measures.num_uniform:,}")
    num_test = int(sample.choose(TEST).sum())
    if repeats.in_both and 2 * repeats.in_both >= num_test:
        lines.append(
            f"{repeats.in_both:,} of {num_test:,} test examples are train examples, too: the test tells little"
        )
    return lines


def _look_at_classes(sample: Sample, measures: Measures) -> Iterator[str]:
    if measures.class_counts is None:
        if measures.labels is not None and measures.labels.is_constant:
            yield f"all labels are {measures.labels.lowest:g}: there is nothing to learn"
        return
    (train, test), names = measures.class_counts, sample.format.class_names
    seen = np.flatnonzero(train)
    if len(seen) == 1:
        yield f"all train examples are of one class, {names[seen[0]]}: there is nothing to tell apart"
        return
    numbers = [int(name) if name.isdecimal() else None for name in names]
    if numbers == list(range(1, len(names) + 1)):
        yield f"labels start at 1: class {names[0]} is the model's answer 0, and so on"
    elif numbers == list(range(len(names))) and not train[0] and len(seen) == len(names) - 1:
        yield "class 0 has no example: if labels start at 1, take 1 from each"
    missing = [names[index] for index in np.flatnonzero(train == 0)]
    if missing and sample.is_whole:
        yield f"no train example is of class {name_some(missing)}"
    alone = [names[index] for index in np.flatnonzero(train + test == 1)]
    if alone and sample.is_whole:
        yield f"one example has the class {name_some(alone)}: it cannot be both learned and tested; leave such rows out"
    share = train.max() / train.sum()
    if share >= MAJORITY and train.sum() >= LEAST_EXAMPLES:
        largest = names[train.argmax()]
        yield f"{100 * share:.1f} % of the train examples are of class {largest}: so much one answer for all reaches"
    # Of a part of the examples it is not known what all lack.
    yield from note_labels(names, train, test if sample.is_whole else np.zeros_like(test))


def find_client_columns(sample: Sample) -> dict[str, list[int]]:
    """Columns of texts that have become features, but may name clients: of each the rows that every text is in.

    They have several texts, each in many rows.
    """
    rows_of: dict[str, list[int]] = {}
    for index, name in enumerate(name_features(sample) if sample.is_flat and not sample.has_clients else ()):
        column, is_text, _ = name.partition("=")
        if is_text:
            rows_of.setdefault(column, []).append(int(np.count_nonzero(sample.take_column(index))))
    return {
        column: rows
        for column, rows in rows_of.items()
        if len(rows) >= LEAST_CLIENTS and min(rows) >= MINIMUM_EXAMPLES_TO_SPLIT
    }


def _look_at_clients(sample: Sample, measures: Measures) -> Iterator[str]:
    if not sample.has_clients:
        for column, rows in find_client_columns(sample).items():
            yield (
                f"column {column} has {len(rows)} texts, each in {min(rows):,} rows or more: "
                f"if it says whose a row is, give --client_column={column}"
            )
        return
    train = sample.num_examples[TRAIN]
    totals, names = sum(sample.num_examples.values()), sample.client_names
    yield from note_alike("clients", names, dict(zip(names, totals.tolist(), strict=True)))
    idle = np.flatnonzero(train == 0)
    if len(idle):
        yield f"left out, since they have no train example, {len(idle):,}: {name_some([names[i] for i in idle])}"
    tiny = int(np.count_nonzero((totals < MINIMUM_EXAMPLES_TO_SPLIT) & (train > 0)))
    if tiny and not sample.num_examples.get(TEST, np.zeros(1)).any():
        yield (
            f"{tiny:,} of {len(names):,} clients have fewer than {MINIMUM_EXAMPLES_TO_SPLIT} examples: "
            "too few for a validation or test split of their own"
        )
    if len(names) > 1 and train.max() > train.sum() / 2:
        share = 100 * train.max() / train.sum()
        yield f"client {names[train.argmax()]} has {share:.0f} % of all train examples"
    shared = [names[client] for client in measures.repeats.clients]
    if shared:
        yield f"clients whose test examples are among their own train examples, at least half: {name_some(shared)}"


def _look_at_features(sample: Sample, measures: Measures, notes: Sequence[str]) -> Iterator[str]:
    noted = {name for name in name_features(sample) for note in notes if note.startswith(f"column {name} ")}
    constant = [each.name for each in measures.features if each.is_constant and each.name not in noted]
    if constant and len(sample.x) > 1:
        yield f"the same in every example: {name_some(constant)}"
    if measures.other_fill:
        yield measures.other_fill
    if not sample.is_flat or len(sample.x) < LEAST_EXAMPLES:
        return
    columns = {name: sample.take_column(i) for i, name in enumerate(name_features(sample)) if name not in noted}
    leaks = [name for name, values in columns.items() if tells_label(values, sample)]
    if leaks:
        yield f"tells the label by itself: {name_some(leaks)}; leave it out if it is the label in other words"
    ids = [name for name, values in columns.items() if counts_rows(values)]
    if ids:
        yield f"a different whole number in every row: {name_some(ids)}; leave it out if it is a number of the row"
    own = [name for name, values in columns.items() if names_client(values, sample.clients)]
    if own:
        yield f"one number for each client: {name_some(own)}; leave it out if it is the client's name"


def tells_label(values: np.ndarray, sample: Sample) -> bool:
    """Whether a feature is the label, by other numbers: each of its values goes with one label and the reverse.

    Of classes, also one that is 1 where the class is a certain one; of a regression, one that is the label up to a
    factor and a summand.
    """
    y = sample.y
    if not sample.format.labels.is_by_class:
        if sample.format.labels.task != "regression" or y.reshape(len(y), -1).shape[1] != 1:
            return False
        label = y.reshape(-1).astype(np.float64)
        if values.std() == 0 or label.std() == 0:
            return False
        return abs(float(np.corrcoef(values, label)[0, 1])) > CORRELATED
    different, places = np.unique(values, return_inverse=True)
    if not 2 <= len(different) <= max(2, len(sample.format.class_names)):
        return False
    pairs = np.unique(np.column_stack([places, y]), axis=0)
    num_labels = len(np.unique(y))
    if len(different) == num_labels:
        return len(pairs) == num_labels
    labels_of = np.bincount(pairs[:, 0])  # how many labels go with each of the two values
    return len(different) == 2 and len(pairs) == num_labels and labels_of.min() == 1


def counts_rows(values: np.ndarray) -> bool:
    """Whether a feature looks like the number of a row: whole, all different, and with few numbers left out."""
    different = np.unique(values).astype(np.float64)
    is_whole = np.array_equal(different, np.rint(different))
    return is_whole and len(different) == len(values) and different[-1] - different[0] < 2 * len(values)


def names_client(values: np.ndarray, clients: np.ndarray) -> bool:
    """Whether a feature has one value for each client, and another for each; of at least 3 clients."""
    known = clients >= 0
    pairs = np.unique(np.column_stack([values[known], clients[known]]), axis=0)
    number = len(np.unique(clients[known]))
    return number >= 3 and len(pairs) == number == len(np.unique(pairs[:, 0])) and int(known.sum()) > number
