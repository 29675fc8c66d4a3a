"""Everything that is said of data, in one place: for the terminal and as JSON."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.data_notes import STANDARDIZE
from datasets.example_format import GROUPS, WEIGHTS, ExampleWeights
from datasets.example_weights import measure_weights
from datasets.inspection import Measures, Sample, draw_sample, find_suspicions, measure
from datasets.layouts import AUTO, describe_examples
from datasets.splits import MINIMUM_EXAMPLES_TO_SPLIT

PROGRAM = "python -m launch.train --algo=fedavg"


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What `launch.inspect` found.

    Attributes:
      name: of the data.
      kind: their format or data set, in words.
      reading: how examples were understood.
      sample: the examples that were looked at.
      measures: of these.
      num_examples: of all, by split.
      num_dropped: examples left out since a reading was missing.
      filled: values that were missing and are filled in, by column.
      weights: of the train examples; None if all count alike.
      notes: what may have been meant otherwise, from the reader.
      suspicions: what looks odd.
      command: to train on them.
    """

    name: str
    kind: str
    reading: str
    sample: Sample
    measures: Measures
    num_examples: Mapping[str, int]
    num_dropped: int
    filled: Mapping[str, int]
    weights: ExampleWeights | None
    notes: tuple[str, ...]
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
    command = spell_command(sample, given, suspicions)
    weights = None
    if data.weights is not None:
        values = data.weights.values if isinstance(data, ArrayDataset) else data.read_all_weights(TRAIN)
        weights = measure_weights(data.name, data.format, data.weights.column, [values]).weights
    return Findings(
        data.name,
        kind,
        reading,
        sample,
        measures,
        numbers,
        data.num_dropped,
        data.filled,
        weights,
        data.notes,
        suspicions,
        command,
    )


def spell_command(sample: Sample, given: Mapping[str, Any], suspicions: Sequence[str]) -> str:
    """What to type to train on the data: the flags that were typed, and what else such data need."""
    flags = {name: value for name, value in given.items() if name != "seed"}
    if any(STANDARDIZE in line for line in suspicions):
        flags["standardize"] = "federated"
    if sample.is_flat and len(sample.format.input_shape) > 1:
        flags["model"] = "perceptron"  # by its shape alone such an example could be a series
    totals = sum(sample.num_examples.values())
    has_tests = bool(sample.num_examples.get(TEST, np.zeros(1)).any())
    if sample.has_clients and not has_tests and totals.max() < MINIMUM_EXAMPLES_TO_SPLIT:
        flags["partition"] = "iid"  # no client could give a test example
    return " ".join([PROGRAM, *(shlex.quote(f"--{name}={value}") for name, value in flags.items())])


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
        "name": findings.name,
        "kind": findings.kind,
        "reading": findings.reading,
        "task": example_format.labels.task,
        "input_shape": list(example_format.input_shape),
        "input_dtype": example_format.input_dtype,
        "examples": dict(findings.num_examples),
        "dropped": findings.num_dropped,
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
        "filled": dict(findings.filled),
        **({WEIGHTS: findings.weights._asdict()} if findings.weights else {}),
        "notes": list(findings.notes),
        "suspicions": list(findings.suspicions),
        "command": findings.command,
    }  # fmt: skip
