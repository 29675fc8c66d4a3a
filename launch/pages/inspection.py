"""What launch.inspect says of data: for the terminal, by a template, and as JSON."""

import dataclasses
import functools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.class_weights import describe_weights, measure_weights
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.data_notes import STANDARDIZE
from datasets.errors import DatasetError
from datasets.example_format import GROUPS, WEIGHTS, ExampleWeights, describe_group
from datasets.inspection import (
    FeatureRange,
    Measures,
    Sample,
    counts_rows,
    draw_sample,
    find_client_columns,
    find_suspicions,
    measure,
    name_features,
)
from datasets.layouts import AUTO, describe_examples
from datasets.names import JOIN_FIX, name_some
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from datasets.repair import Problem
from datasets.tables.profile import ID, NUMBER, ColumnProfile
from datasets.tables.table import drop, leave_out
from launch.console.shown_text import align_columns, describe_filled, escape_hidden
from launch.pages.templates import render

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
      by_client: the column that may say whose a row is, and the command to train on them then; () if none or several.
      columns: of a table, as they are in the file.
      problems: what of a table was wrong, and the flags in the command that solve it.
      added: these flags, with which the data were read.
      flags: all those of the command, by name.
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
    by_client: tuple[str, ...] = ()
    columns: tuple[ColumnProfile, ...] = ()
    problems: tuple[Problem, ...] = ()
    added: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


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
        # Arrays have no validation part; a run takes one of each client.
        numbers = {TRAIN: len(data.train_y), VALIDATION: 0, TEST: len(data.test_y)}
    else:
        numbers = {split: int(data.num_examples.get(split, np.zeros(1)).sum()) for split in (TRAIN, VALIDATION, TEST)}
    reading = data.reading or describe_examples(data.format.input_shape, data.format.preprocessing)
    flags = {name: value for name, value in given.items() if name != "seed"}
    # What was found odd, the command puts right where a flag can.
    if any(STANDARDIZE in line for line in suspicions):
        flags["standardize"] = "federated"
    if sample.is_flat and len(sample.format.input_shape) > 1:
        flags["model"] = "perceptron"  # by its shape alone such an example could be a series
    totals = sum(sample.num_examples.values())
    has_tests = bool(sample.num_examples.get(TEST, np.zeros(1)).any())
    if sample.has_clients and not has_tests and totals.max() < MINIMUM_EXAMPLES_TO_SPLIT:
        flags["partition"] = "iid"  # no client could give a test example
    command, by_client = " ".join([PROGRAM, *spell_flags(flags)]), ()
    if len(columns := list(find_client_columns(sample))) == 1:
        by_client = (columns[0], " ".join([command, *spell_flags({"client_column": columns[0]})]))
    weights = None
    if data.weights is not None:
        values = data.weights.values if isinstance(data, ArrayDataset) else data.read_all_weights(TRAIN)
        weights = measure_weights(data.name, data.format, data.weights.column, [values]).weights
    return Findings(
        data, kind, reading, sample, measures, numbers, weights, suspicions, command, by_client, flags=flags
    )


LEAST_OF_CLASS = 10  # examples on average, of labels that are numbers and classes
MOST_NUMBERED = 20  # classes that are numbers


def check_findings(findings: Findings, columns: Sequence[ColumnProfile], given: Mapping[str, Any]) -> None:
    """Raises DatasetError for what a run would take of a table, though hardly anybody means it.

    Args:
      findings: on the table as it is read with these flags.
      columns: of the table.
      given: the flags; what they solve already is not wrong.
    """
    errors = [*_check_features(findings.sample, columns), *_check_labels(findings)]
    lines = [line for line in (*findings.data.notes, *findings.suspicions) if JOIN_FIX in line]
    errors += [DatasetError(line, {"join_spellings": "true"}) for line in lines]
    sample = findings.sample
    if sample.has_clients and np.median(sum(sample.num_examples.values())) == 1:
        line = "most clients have one row: the column names rows, and no clients; --partition=iid deals the rows out"
        errors.append(DatasetError(line, {"partition": "iid"}))
    errors = [each for each in errors if any(given.get(name) != value for name, value in each.fix.items())]
    if errors:
        errors[0].further = tuple(errors[1:])
        raise errors[0]


def _check_features(sample: Sample, columns: Sequence[ColumnProfile]) -> list[DatasetError]:
    """Columns that are features and tell nothing, unless there are no others."""
    groups = {group.name for group in sample.format.groups}
    features = name_features(sample) if sample.is_flat and columns else ()
    counted = {name for i, name in enumerate(features) if counts_rows(sample.take_column(i))}
    used = [each for each in columns if each.name in groups.union(sample.format.feature_names)]
    errors = []
    for column in used:
        if column.is_constant:
            said = f"is {column.examples[0]} in every row, which tells nothing"
        elif column.kind == ID or column.name in counted - groups:
            said = "is different in each row, as numbers and names of rows are, which tells nothing of new ones"
        else:
            continue
        errors.append(DatasetError(f"column {column.name!r} {said}; {leave_out(column.name)}", drop(column.name)))
    return errors if len(errors) < len(used) else []


def _check_labels(findings: Findings) -> list[DatasetError]:
    """Labels that are classes, though there are nearly as many as examples."""
    names, counts = findings.sample.format.class_names, findings.measures.class_counts
    total = 0 if counts is None else int(sum(map(np.sum, counts)))
    if len(names) <= MOST_NUMBERED or not 0 < total < LEAST_OF_CLASS * len(names):
        return []
    if not all(name.lstrip("-").isdecimal() for name in names):
        return []
    return [
        DatasetError(
            f"the label has {len(names):,} different numbers in {total:,} examples, and each would be a class; if they "
            f"are measurements, give --task=regression",
            {"task": "regression"},
        )
    ]


def describe(findings: Findings) -> dict[str, Any]:
    """The findings as JSON can hold them."""
    sample, measures = findings.sample, findings.measures
    example_format = sample.format
    sizes = sample.num_examples[TRAIN]
    classes = {}
    if measures.class_counts is not None:
        # Counts are NumPy's integers, which JSON does not know.
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
        "columns": [_describe_column(each) for each in findings.columns],
        "problems": [each._asdict() for each in findings.problems],
        "command": findings.command,
    }  # fmt: skip


def _describe_column(column: ColumnProfile) -> dict[str, Any]:
    # JSON has no NaN.
    return {**column._asdict(), **({} if column.kind == NUMBER else {"lowest": None, "highest": None})}


BAR, PLAIN_BAR = "\N{FULL BLOCK}", "#"
BAR_WIDTH = 40
MOST_FEATURES, MOST_CLASSES, MOST_NAMES = 20, 20, 3
LONGEST_NAME = 32
MOST_BINS = 10  # of a histogram
WIDE = 20  # times the least number, from which on bins grow


def format_findings(findings: Findings, bar: str = PLAIN_BAR) -> str:
    """The findings as lines for a terminal, what was read first, the command last; bars are made of `bar`."""
    sample, measures = findings.sample, findings.measures
    names, sizes = sample.client_names, sample.num_examples[TRAIN]
    classes, further_classes = _list_classes(findings)
    # What `--standardize` would scale, and what it would leave as it is
    unscaled = [f"{_shorten(name)} ({reason})" for name, reason in measures.unscaled.items()]
    scaled = [_shorten(each.name) for each in measures.features if each.name not in measures.unscaled]
    return render(
        "pages/inspection.txt.j2",
        findings=findings,
        sample=sample,
        measures=measures,
        numbers=findings.num_examples,
        task=_describe_task(findings),
        first_clients=[*map(_shorten, names[:MOST_NAMES]), *["..."] * (len(names) > MOST_NAMES)],
        median=np.median(sizes),
        histogram=draw_histogram(sizes, BAR_WIDTH, bar) if sample.has_clients else [],
        classes=classes,
        further_classes=further_classes,
        noun="features" if sample.is_flat else "channels",
        most=MOST_FEATURES,
        align_ranges=functools.partial(_align_ranges, units=sample.format.feature_units),
        groups=[describe_group(group.to_json()) for group in sample.format.groups[:MOST_FEATURES]],
        scaled=scaled,
        scaled_names=name_some(scaled) if unscaled and scaled else ("all" if scaled else "none"),
        unscaled_names=name_some(unscaled) if unscaled else "",
        num_test=int(sample.choose(TEST).sum()),
        describe_filled=describe_filled,
        **_list_columns(findings.columns, findings.problems),
        added=" ".join(spell_flags(findings.added)),
        describe_weights=describe_weights,
    )


def format_problems(columns: Sequence[ColumnProfile], problems: Sequence[Problem]) -> str:
    """The columns of a table, and what is wrong with it, as lines for a terminal."""
    return render("pages/inspection_columns.txt.j2", **_list_columns(columns, problems))


def _list_columns(columns: Sequence[ColumnProfile], problems: Sequence[Problem]) -> dict[str, Any]:
    rows = [("column", "kind", "values", "missing", "examples")]
    rows += [
        (_shorten(each.name), each.kind, each.describe_range(), f"{each.num_missing:,}", _join_examples(each.examples))
        for each in columns[:MOST_FEATURES]
    ]
    return {
        "columns": [line.rstrip() for line in align_columns(rows, len(rows[0]))] if columns else [],
        "further_columns": len(columns[MOST_FEATURES:]),
        "problems": [(each.text, " ".join(spell_flags(each.fix))) for each in problems],
    }


def _join_examples(examples: Sequence[str]) -> str:
    return ", ".join(map(_shorten, examples))


def spell_flags(flags: Mapping[str, Any]) -> list[str]:
    """Flags as they are typed."""
    return [shlex.quote(f"--{name}={value}") for name, value in flags.items()]


def _describe_task(findings: Findings) -> str:
    labels, names = findings.sample.format.labels, findings.sample.format.class_names
    if labels.is_by_class:
        return f"{labels.title}, {len(names):,} classes"
    number, noun = labels.num_outputs, {"next_token": "token", "multi_label": "label"}.get(labels.task, "number")
    return f"{labels.title}, {number:,} {noun}" + ("" if number == 1 else "s")


def _shorten(name: str) -> str:
    # Escaped here already, since what stands for a hidden character counts in the width of a column.
    name = escape_hidden(name)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _list_classes(findings: Findings) -> tuple[list[str], np.ndarray]:
    """The table of the classes, of many the most frequent; how many train examples each of the others has."""
    if findings.measures.class_counts is None:
        return [], np.zeros(0, np.int64)
    (train, test), names = findings.measures.class_counts, findings.sample.format.class_names
    # Stable, so that of equal classes the first ones are shown.
    order = np.arange(len(names)) if len(names) <= MOST_CLASSES else np.argsort(-train, kind="stable")
    shares = 100 * train / max(train.sum(), 1)
    shown = order[:MOST_CLASSES]
    rows = [(_shorten(names[i]), f"{train[i]:,}", f"{shares[i]:.1f} %", f"{test[i]:,}") for i in shown]
    return list(align_columns([("class", "train", "share", "test"), *rows])), train[order[MOST_CLASSES:]]


def _align_ranges(head: str, ranges: Sequence[FeatureRange], units: Sequence[str]) -> Iterator[str]:
    """The lines of a table of numbers, with the unit of each that has one."""
    rows = [(head, "lowest", "highest", "mean", "deviation")]
    for i, each in enumerate(ranges):
        unit = f" ({units[i]})" if head and units and units[i] else ""
        rows.append((_shorten(each.name) + unit, *(f"{number:.4g}" for number in each[1:])))
    return align_columns(rows)


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
    # Rounded up, so that the bins reach the largest number.
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
