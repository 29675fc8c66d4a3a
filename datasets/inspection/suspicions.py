"""What of data looks as if it was not meant: a line each, with what to do. Nothing here changes the data."""

from collections.abc import Iterator, Sequence

import numpy as np

from datasets.client_source import TEST, TRAIN
from datasets.data_notes import note_labels, note_numbers
from datasets.inspection.measures import Measures, name_features
from datasets.inspection.sample import Sample
from datasets.names import name_some
from datasets.spellings import note_alike
from datasets.splits import MINIMUM_EXAMPLES_TO_SPLIT

LEAST_EXAMPLES = 20  # of which something is said that chance could do to fewer
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
    missing = [names[place] for place in np.flatnonzero(train == 0)]
    if missing and sample.is_whole:
        yield f"no train example is of class {name_some(missing)}"
    share = train.max() / train.sum()
    if share >= MAJORITY and train.sum() >= LEAST_EXAMPLES:
        largest = names[train.argmax()]
        yield f"{100 * share:.1f} % of the train examples are of class {largest}: so much one answer for all reaches"
    # Of a part of the examples it is not known what all lack.
    yield from note_labels(names, train, test if sample.is_whole else np.zeros_like(test))


def _look_at_clients(sample: Sample, measures: Measures) -> Iterator[str]:
    if not sample.has_clients:
        # Columns of texts that have become features, but may name clients: several texts, each in many rows.
        rows_of: dict[str, list[int]] = {}
        for place, name in enumerate(name_features(sample) if sample.is_flat else ()):
            column, is_text, _ = name.partition("=")
            if is_text:
                rows_of.setdefault(column, []).append(int(np.count_nonzero(sample.take_column(place))))
        for column, rows in rows_of.items():
            if len(rows) >= LEAST_CLIENTS and min(rows) >= MINIMUM_EXAMPLES_TO_SPLIT:
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
