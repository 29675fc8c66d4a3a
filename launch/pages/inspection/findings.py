"""Everything that is said of data, in one place: for the terminal and as JSON."""

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.class_weights import describe_weights, measure_weights
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.data_notes import STANDARDIZE
from datasets.example_format import GROUPS, WEIGHTS, ExampleWeights, describe_group
from datasets.inspection import FeatureRange, Measures, Sample, draw_sample, find_suspicions, measure
from datasets.layouts import AUTO, describe_examples
from datasets.names import name_some
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from launch.console.shown_text import align_columns, describe_filled, escape_hidden

PROGRAM = "python -m launch.train --algo=fedavg"


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What `launch.inspect` found.

    Attributes:
      data: what the loader gave.
      kind: their format or data set, in words.
      reading: how examples were understood.
      sample: the examples that were looked at.
      measures: of these.
      num_examples: of all, by split.
      weights: of the train examples; None if all count alike.
      suspicions: what looks odd.
      command: to train on them.
    """

    data: ArrayDataset | ClientSource
    kind: str
    reading: str
    sample: Sample
    measures: Measures
    num_examples: Mapping[str, int]
    weights: ExampleWeights | None
    suspicions: tuple[str, ...]
    command: str


def inspect_data(
    data: ArrayDataset | ClientSource, kind: str, scale: str | None, given: Mapping[str, Any], seed: int = 0
) -> Findings:
    """Looks at data.

    Args:
      data: what the loader gave.
      kind: see `Findings`.
      scale: see `datasets.data_notes.note_content`.
      given: the flags of the data that were typed, for the command.
      seed: draws the sample.

    Raises:
      DatasetError: a client cannot be read, or all train examples weigh 0.
    """
    sample = draw_sample(data, seed)
    measures = measure(sample, given.get("unscaled", AUTO))
    is_scaled = given.get("standardize", "none") != "none"
    suspicions = tuple(find_suspicions(sample, measures, scale, is_scaled, data.notes))
    if isinstance(data, ArrayDataset):
        numbers = {TRAIN: len(data.train_y), VALIDATION: 0, TEST: len(data.test_y)}
    else:
        numbers = {split: int(data.num_examples.get(split, np.zeros(1)).sum()) for split in (TRAIN, VALIDATION, TEST)}
    reading = data.reading or describe_examples(data.format.input_shape, data.format.preprocessing)
    flags = {name: value for name, value in given.items() if name != "seed"}
    if any(STANDARDIZE in line for line in suspicions):
        flags["standardize"] = "federated"
    if sample.is_flat and len(sample.format.input_shape) > 1:
        flags["model"] = "perceptron"  # by its shape alone such an example could be a series
    totals = sum(sample.num_examples.values())
    has_tests = bool(sample.num_examples.get(TEST, np.zeros(1)).any())
    if sample.has_clients and not has_tests and totals.max() < MINIMUM_EXAMPLES_TO_SPLIT:
        flags["partition"] = "iid"  # no client could give a test example
    command = " ".join([PROGRAM, *(shlex.quote(f"--{name}={value}") for name, value in flags.items())])
    weights = None
    if data.weights is not None:
        values = data.weights.values if isinstance(data, ArrayDataset) else data.read_all_weights(TRAIN)
        weights = measure_weights(data.name, data.format, data.weights.column, [values]).weights
    return Findings(data, kind, reading, sample, measures, numbers, weights, suspicions, command)


def describe(findings: Findings) -> dict[str, Any]:
    """The findings as JSON can hold them."""
    sample, measures = findings.sample, findings.measures
    example_format = sample.format
    sizes = sample.num_examples[TRAIN]
    classes = {}
    if measures.class_counts is not None:
        pairs = zip(example_format.class_names, *measures.class_counts, strict=True)
        classes = {"classes": [{"class": name, TRAIN: int(own), TEST: int(test)} for name, own, test in pairs]}
    return {
        "name": findings.data.name,
        "kind": findings.kind,
        "reading": findings.reading,
        "task": example_format.labels.task,
        "input_shape": list(example_format.input_shape),
        "input_dtype": example_format.input_dtype,
        "examples": dict(findings.num_examples),
        "dropped": findings.data.num_dropped,
        "clients": len(sample.client_names) if sample.has_clients else None,
        "train_examples_a_client": {
            "lowest": int(sizes.min()), "median": float(np.median(sizes)), "highest": int(sizes.max()),
        },
        "looked_at": {
            "examples": len(sample.y), "clients": sample.num_clients_read, "is_all": sample.is_whole,
        },
        **classes,
        **({"majority": measures.majority._asdict()} if measures.majority is not None else {}),
        **({"labels": measures.labels._asdict()} if measures.labels is not None else {}),
        **({"largest_token": measures.largest_token} if measures.largest_token is not None else {}),
        "features": [each._asdict() for each in measures.features],
        GROUPS: [group.to_json() for group in example_format.groups],
        "unscaled": dict(measures.unscaled),
        "padding": measures.padding,
        "twice": {
            "in_train": measures.repeats.in_train,
            "with_other_labels": measures.repeats.with_other_labels,
            "in_train_and_test": measures.repeats.in_both,
        },
        "filled": dict(findings.data.filled),
        **({WEIGHTS: findings.weights._asdict()} if findings.weights else {}),
        "notes": list(findings.data.notes),
        "suspicions": list(findings.suspicions),
        "command": findings.command,
    }  # fmt: skip


# The findings as lines for a terminal.

BAR, PLAIN_BAR = "\N{FULL BLOCK}", "#"
BAR_WIDTH = 40
MOST_FEATURES, MOST_CLASSES, MOST_NAMES = 20, 20, 3
LONGEST_NAME = 32
MOST_BINS = 10  # of a histogram
WIDE = 20  # times the least number, from which on bins grow
INDENT = f"{'':10}"


def list_lines(findings: Findings, bar: str = PLAIN_BAR) -> Iterator[str]:
    """The lines, what was read first, the command to type last; bars are made of `bar`."""
    sample, measures = findings.sample, findings.measures
    yield _line("data", f"{findings.data.name}, {findings.kind}")
    yield _line("examples", findings.reading)
    yield _line("task", _describe_task(findings))
    yield from _list_clients(findings, bar)
    numbers = findings.num_examples
    parts = [f"{numbers[split]:,} {split}" for split in (TRAIN, VALIDATION, TEST)]
    drawn = "" if numbers[TEST] else "; the test examples will be held out of the train ones"
    yield _line("splits", ", ".join(parts) + drawn)
    if not sample.is_whole:
        whose = f" of {sample.num_clients_read:,} clients" if sample.has_clients else ""
        yield _line("sampled", f"what follows is of {len(sample.y):,} examples{whose}, drawn by the seed")
    yield from _list_classes(findings)
    yield from _list_features(findings)
    left_out = f"{findings.data.num_dropped:,}" if findings.data.num_dropped else "none"
    yield _line("missing", f"examples left out, since a value was missing: {left_out}")
    if findings.data.filled:
        yield _line("filled", describe_filled(findings.data.filled))
    if findings.weights is not None:
        yield _line("weights", describe_weights(findings.weights))
    repeats, tests = measures.repeats, int(sample.choose(TEST).sum())
    in_both = f"{repeats.in_both:,} of {tests:,} test examples are train examples"
    yield _line("twice", f"{repeats.in_train:,} of the train examples are like an earlier one; {in_both}")
    for note in findings.data.notes:
        yield _line("note", note)
    for suspicion in findings.suspicions:
        yield _line("odd", suspicion)
    if not findings.suspicions:
        yield _line("odd", "nothing")
    yield _line("train", findings.command)


def _line(topic: str, text: str) -> str:
    return f"{topic:<10}{escape_hidden(text)}"


def _describe_task(findings: Findings) -> str:
    labels, names = findings.sample.format.labels, findings.sample.format.class_names
    if labels.is_by_class:
        return f"{labels.title}, {len(names):,} classes"
    number, noun = labels.num_outputs, {"next_token": "token", "multi_label": "label"}.get(labels.task, "number")
    return f"{labels.title}, {number:,} {noun}" + ("" if number == 1 else "s")


def _list_clients(findings: Findings, bar: str) -> Iterator[str]:
    sample = findings.sample
    if not sample.has_clients:
        yield _line("clients", "none are named: examples are dealt out by --partition and --num_clients")
        return
    names, sizes = sample.client_names, sample.num_examples[TRAIN]
    shown = ", ".join(_shorten(name) for name in names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    median = f"{np.median(sizes):,.0f}"
    yield _line("clients", f"{len(names):,} ({shown}), train examples of each, the median is {median}:")
    yield from (f"{INDENT}{line}" for line in draw_histogram(sizes, BAR_WIDTH, bar))


def _shorten(name: str) -> str:
    name = escape_hidden(name)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _list_classes(findings: Findings) -> Iterator[str]:
    measures, names = findings.measures, findings.sample.format.class_names
    if measures.labels is not None:
        yield from _list_table("labels", ("", "lowest", "highest", "mean", "deviation"), [_show_range(measures.labels)])
    if measures.class_counts is None:
        return
    train, test = measures.class_counts
    order = range(len(names)) if len(names) <= MOST_CLASSES else np.argsort(-train, kind="stable")[:MOST_CLASSES]
    shares = 100 * train / max(train.sum(), 1)
    rows = [(_shorten(names[i]), f"{train[i]:,}", f"{shares[i]:.1f} %", f"{test[i]:,}") for i in order]
    yield from _list_table("classes", ("class", "train", "share", "test"), rows)
    if len(names) > MOST_CLASSES:
        rest = np.sort(train)[::-1][MOST_CLASSES:]
        yield f"{INDENT}and {len(rest):,} more, of {rest.min():,} to {rest.max():,} train examples each"
    of_test, of_client = measures.majority
    if of_test is not None:
        yield _line(
            "trivial", f"always the most frequent class is right for {100 * of_test:.1f} % of the test examples"
        )
    if of_client is not None:
        yield _line(
            "", f"of a client's train examples, {100 * of_client:.1f} % are of its own most frequent class (mean)"
        )


def _list_features(findings: Findings) -> Iterator[str]:
    measures = findings.measures
    if measures.largest_token is not None:
        yield _line("tokens", f"0 to {measures.largest_token:,}")
        return
    features, units = measures.features, findings.sample.format.feature_units
    rows = [_show_range(each) for each in features[:MOST_FEATURES]]
    rows = [(f"{row[0]} ({units[i]})" if units and units[i] else row[0], *row[1:]) for i, row in enumerate(rows)]
    title = "features" if findings.sample.is_flat else "channels"
    yield from _list_table(title, ("name", "lowest", "highest", "mean", "deviation"), rows)
    if rest := features[MOST_FEATURES:]:
        deviations = [each.deviation for each in rest]
        yield f"{INDENT}and {len(rest):,} more, with deviations from {min(deviations):.3g} to {max(deviations):.3g}"
    for place, group in enumerate(findings.sample.format.groups[:MOST_FEATURES]):
        yield _line("" if place else "category", describe_group(group.to_json()))
    # What `--standardize` would scale, and what it would leave as it is
    kept = [f"{_shorten(name)} ({reason})" for name, reason in measures.unscaled.items()]
    scaled = [_shorten(each.name) for each in measures.features if each.name not in measures.unscaled]
    names = name_some(scaled) if kept and scaled else ("all" if scaled else "none")
    rest = f"; not {name_some(kept)}" if kept else ""
    yield _line("scaled", f"with --standardize, {len(scaled):,} of {len(measures.features):,} {title}: {names}{rest}")
    if measures.padding:
        yield _line("padding", measures.padding)


def _show_range(feature: FeatureRange) -> tuple[str, ...]:
    return (_shorten(feature.name), *(f"{number:.4g}" for number in feature[1:]))


def _list_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of aligned columns, the first to the left and numbers to the right, behind the title."""
    for place, line in enumerate(align_columns([head, *rows])):
        yield f"{title if place == 0 else '':<10}{line}".rstrip()


def choose_edges(values: np.ndarray) -> list[int]:
    """The starts of the bins, ascending, and one past the last: a bin a number if there are few, else of equal width.

    Where the largest is far above the least, each bin is a power of 2 or of a larger number times the one before.

    Args:
      values: whole numbers of at least 0, at least one.
    """
    low, high = int(values.min()), int(values.max())
    if high - low < MOST_BINS:
        return list(range(low, high + 2))
    if high > WIDE * max(low, 1):
        first = max(low, 1)
        base = next(base for base in (2, 4, 10, 100, 10**6) if first * base**MOST_BINS > high)
        edges = [*range(low, first), *(first * base**power for power in range(MOST_BINS + 1))]
        return [*(edge for edge in edges if edge <= high), high + 1]
    step = -(-(high + 1 - low) // MOST_BINS)
    return [*range(low, high + 1, step), low + step * -(-(high + 1 - low) // step)]


def draw_histogram(values: np.ndarray, width: int, bar: str) -> list[str]:
    """Lines of range, bar and count, from the least to the largest.

    Args:
      values: as in `choose_edges`.
      width: of the longest bar, in characters.
      bar: the character of bars.
    """
    edges = choose_edges(values)
    counts, _ = np.histogram(values, np.array(edges, np.float64))
    names = [
        f"{low:,}" if low == high else f"{low:,} to {high:,}"
        for low, high in zip(edges[:-1], [edge - 1 for edge in edges[1:]], strict=True)
    ]
    longest, wide = max(map(len, names)), len(f"{counts.max():,}")
    lengths = [-(-int(count) * width // int(counts.max())) for count in counts]  # what is not 0 is seen
    rows = zip(names, lengths, counts, strict=True)
    return [f"{name:>{longest}}  {count:>{wide},}  {bar * length}".rstrip() for name, length, count in rows]
