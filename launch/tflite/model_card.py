"""Model cards: what a model is, how good it is and for whom, whether it may be sold, what it must not be used for.

A card is a mapping that JSON can hold. `build_card` makes it, `embedded_card` puts the card of a file into the file,
`write_cards` writes that of an export, `card_rows` gives it as lines for a person. Imports no TensorFlow.
"""

import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.catalog import find_dataset
from datasets.class_weights import describe_weights
from datasets.drawn_images import find_range
from datasets.example_format import GROUPS, NEXT_TOKEN, WEIGHTS, ExampleFormat
from datasets.federated_data import FederatedData
from datasets.names import name_some
from datasets.standardized_clients import READING as SCALED_BY_CLIENTS
from datasets.tables import sentences
from datasets.terms import UNKNOWN, Terms
from files.writing import write_text
from launch.console.shown_text import escape_hidden
from launch.runs.columns import CLASS_WEIGHTS, FILLED, LABELS_FILE, READING, VOCABULARY_FILE
from launch.runs.stored_data import FEATURE_MEANS, FEATURE_PADDING
from launch.runs.tables import format_json
from launch.runs.task_columns import KIND, TASK, TaskColumns
from launch.settings.data_flags import CLIENT, FEDERATED
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.settings.run_titles import are_live, describe_run
from launch.tflite.card_page import FEATURES, VOCABULARY, format_card_page
from launch.tflite.embedded_card import CARD_NAME, read_card
from launch.tflite.export_report import ClientRow, FileRow
from launch.tflite.features import (
    SERIES,
    TABLE,
    describe_features,
    describe_in_words,
    list_groups,
    name_layout,
)
from launch.tflite.standard_metadata import LABELS, AssociatedFile, ModelNote, TensorNote
from launch.tflite.standard_metadata import VOCABULARY as VOCABULARY_TYPE
from launch.training.finished_run import FinishedRun
from tff_algos.settings.config_fields import is_own

CARD_PAGE = "card.md"
VERSION = 1
MOST_WORST_CLIENTS = 5
NOT_FOR = "Decisions about a person's health, safety, rights or money."
NOT_FOR_OTHERS = "Anything that is none of its classes: it names one of them, whatever it is shown."
NOT_FOR_UNLIKE = "Anything unlike what it was trained on: it answers all the same, whatever it is given."
SCALED_BY_FILE = "Features as they are: the file scales them by the means and deviations of the federation."
SCALED_BY_PHONE = (
    "Features that the phone has scaled itself, (x - mean) / deviation, by the means and deviations of its own "
    "examples: the file does not scale them."
)
SIMULATED = "federated learning, simulated on one machine or cluster; never tried by real users"
LIVE = "federated learning over a network: its clients trained on their own machines"
MAY_BE_SOLD = {
    "allowed": "Yes, as far as the data's terms go",
    "not allowed": "No, by the data's terms",
    "unclear": "Unclear; ask whoever holds the rights in the data first",
    "unknown": "Unknown: nobody told this project the data's terms. Ask the owner of the data",
}


def build_card(run: FinishedRun, data: FederatedData, files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The card of some files of a run, each as from `describe_file` or, unmeasured, with fewer keys."""
    example_format = data.format
    terms = find_terms(run.config)
    columns, weights = run.task, run.data.get(CLASS_WEIGHTS)
    has_tokens = example_format.labels.task == NEXT_TOKEN
    # A vocabulary of thousands is no list of classes to a reader.
    names = [] if has_tokens else list(example_format.class_names)
    vocabulary = example_format.class_names if has_tokens else example_format.text and example_format.text.vocabulary
    unlike = NOT_FOR_OTHERS if columns.kind.is_labelled_by_class else NOT_FOR_UNLIKE
    features, groups = describe_features(data, run.data), list_groups(example_format)
    licence = f" Licence: {terms.licence}." if terms.licence != UNKNOWN.licence else ""
    sold = f"{MAY_BE_SOLD[terms.commercial_use]}.{licence} {terms.conditions}".strip()
    return {
        "card_version": VERSION,
        "title": describe_run(flag_values(run.config), data.dataset, run.devices),
        TASK: f"Tells {terms.task or _describe_task(data, columns)}.",
        **({} if columns.is_classification else {KIND: columns.kind.name, "outputs": describe_outputs(data)}),
        "classes": names,
        **({FEATURES: features} if features else {}),
        **({GROUPS: groups} if groups else {}),
        **({FILLED: dict(data.filled)} if data.filled else {}),
        **({VOCABULARY: list(vocabulary)} if vocabulary else {}),
        "data_set": {"name": data.dataset, **terms._asdict()},
        **_describe_scaling(run.config, run.data),
        **({"input": describe_words(example_format)} if example_format.text else {}),
        "may_be_sold": sold,
        "must_not_be_used_for": [*terms.not_for, NOT_FOR, unlike],
        "training": {
            "algorithm": find_algorithm(run.config.algo).title,
            "rounds": run.rounds,
            "clients": len(data.clients),
            "examples": int(data.num_train.sum()),
            **({WEIGHTS: describe_weights(example_format.weights)} if example_format.weights else {}),
            "how": LIVE if are_live(run.devices) else SIMULATED,
            # Where what was minimised is not the usual loss of the task: the user's own, weights of the classes.
            **({"loss": run.config.loss} if is_own(run.config.loss) else {}),
            **({CLASS_WEIGHTS: dict(zip(names, weights, strict=True))} if weights else {}),
        },
        "measured_on": f"{platform.machine()}, not a phone",
        "files": list(files),
    }


def _describe_scaling(config: RunConfig, section: Mapping[str, Any]) -> dict[str, str]:
    """Who scales the features, if anybody, and which steps of sequences nobody scales."""
    # Without the flag in a live run, whose organiser's examples, or schema, say by what.
    if config.standardize == FEDERATED or section.get(FEATURE_MEANS):
        padding = section.get(FEATURE_PADDING)
        rest = f" Steps that hold nothing but {padding['value']:g} are padding, which it leaves so." if padding else ""
        return {"input": SCALED_BY_FILE + rest}
    if config.standardize == CLIENT:
        _, _, unscaled = str(section.get(READING, "")).partition(f"{SCALED_BY_CLIENTS}; ")
        return {"input": f"{SCALED_BY_PHONE} Of the clients of the run: {unscaled}." if unscaled else SCALED_BY_PHONE}
    return {}


def describe_words(example_format: ExampleFormat) -> str:
    """How a text becomes the tokens that a model takes, in words."""
    return (
        f"The words of a text as in {example_format.text.column!r}, int32. {sentences.WORDS_RULE} It is the number of "
        f"its line in {VOCABULARY_FILE}, from 0; a word that is not there is {sentences.UNKNOWN}. The first "
        f"{example_format.input_shape[0]:,} words count, {sentences.PAD} fills up."
    )


def _describe_task(data: FederatedData, task: TaskColumns) -> str:
    """What a model tells of an example, in words."""
    example_format = data.format
    example, count = f"an example of shape {tuple(example_format.input_shape)}", example_format.num_classes
    if example_format.text:
        example = f"a text such as those in {example_format.text.column!r}"
    elif example_format.feature_names and name_layout(example_format) == TABLE:
        column_of = {index: group.name for group in example_format.groups for index in group.places}
        columns = dict.fromkeys(column_of.get(i, name) for i, name in enumerate(example_format.feature_names))
        example = f"a row of {name_some(list(map(escape_hidden, columns)))}"
    match task.kind.name:
        case "multi_label":
            return f"which of {count} labels {example} has"
        case "regression":
            numbers = "a number" if example_format.num_outputs == 1 else f"{example_format.num_outputs} numbers"
            return f"{' and '.join(example_format.class_names) or numbers} of {example}"
        case "next_token":
            return f"the next token at each position of {example}"
    return f"which of {count} classes {example} belongs to"


def describe_outputs(data: FederatedData) -> str:
    """How to read the outputs of a model, in a sentence."""
    labels = data.format.labels
    match labels.task:
        case "binary":
            return f"A number: above 0 it is {data.format.class_names[1]}, whose chance is 1 / (1 + exp(-output))."
        case "multi_label":
            return "A number a label: above 0 it has the label, whose chance is 1 / (1 + exp(-output))."
        case "next_token":
            return "At each position a number a token; the largest is that of the token that follows."
    if not (labels.offset or labels.scale):
        return "The numbers themselves."
    formulas = [
        f"output * {scale:.6g} + {offset:.6g}" for scale, offset in zip(labels.scale, labels.offset, strict=True)
    ]
    return f"Standardised; the numbers are {', '.join(formulas)}."


def find_terms(config: RunConfig) -> Terms:
    """The terms of what a run was trained on, which in most smoke runs are random numbers."""
    row = find_dataset(config.dataset)
    if config.smoke and row.is_drawn_for_smoke:
        return Terms(
            task=row.terms.task,
            source=f"random numbers in the form of {row.name} (--smoke)",
            licence="none needed",
            commercial_use="allowed",
            conditions="It has learned nothing.",
            not_for=("Anything: it was trained on random numbers.",),
        )
    return row.terms


def count_confusions(labels: np.ndarray, predictions: np.ndarray, num_classes: int) -> np.ndarray:
    """How many examples of each class got which answer: int64 (classes, answers), from two arrays of (examples,)."""
    # A number for each pair of class and answer, so that one call counts them all.
    pairs = labels.astype(np.int64) * num_classes + predictions
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def describe_file(
    row: FileRow,
    clients: Sequence[ClientRow],
    num_test: int,
    confusions: np.ndarray | None,
    task: TaskColumns,
) -> dict[str, Any]:
    """What was measured of a file, for `build_card`.

    Args:
      row: its row of the report.
      clients: its result for each client.
      num_test: examples of the global test set.
      confusions: as from `count_confusions`, on the global test set; None where the labels are no classes.
      task: what the main metric is called, which is a key of what is returned.
    """
    name, by_class, reached = (
        task.metric.name,
        task.kind.is_labelled_by_class,
        np.array([each.test for each in clients]),
    )
    worst = sorted(clients, key=lambda each: task.sign * each.test)[:MOST_WORST_CLIENTS]
    classes = {}
    if confusions is not None:
        counts = zip(confusions.diagonal(), confusions.sum(axis=1), strict=True)
        classes["accuracy_by_class"] = [
            {"accuracy": float(right / number) if number else None, "test_examples": int(number)}
            for right, number in counts
        ]
    return {
        name: {
            "global": row.test,
            "test_examples": num_test,
            "mean_of_clients": row.client_test,
            "worst_tenth_of_clients": task.compute_worst_tenth(reached) if clients else None,
            "clients": len(clients),
            "worst_clients": [
                {"client": each.client, name: each.test, "test_examples": each.examples} for each in worst
            ],
        },
        **classes,
        "quantization": {
            f"keras_{name}": row.keras_test,
            "difference": row.test - row.keras_test,
            **({"agreement": row.agreement} if row.agreement is not None else {}),
            "largest_logit_difference" if by_class else "largest_output_difference": row.largest_difference,
            "warning": row.warning,
        },
        "latency_ms": {
            "median": row.median_ms_1_thread,
            "lower_quartile": row.lower_quartile_ms_1_thread,
            "upper_quartile": row.upper_quartile_ms_1_thread,
            "threads": 1,
        },
        "parameters": row.parameters,
        "multiply_accumulates": row.multiply_accumulates,
    }


def format_card(card: Mapping[str, Any]) -> bytes:
    """The card as it stands in a file: JSON in UTF-8."""
    return format_json(card).encode()


def join_cards(folder: pathlib.Path, names: Sequence[str]) -> dict[str, Any]:
    """One card for these files of a folder, in this order, from the card in each."""
    cards = [read_card((folder / name).read_bytes()) for name in names]
    return {**cards[0], "files": [file for each in cards for file in each["files"]]}


def write_cards(folder: pathlib.Path, names: Sequence[str]) -> None:
    """Writes the card of all these files of a folder as JSON and as a page."""
    card = join_cards(folder, names)
    (folder / CARD_NAME).write_bytes(format_card(card))
    write_text(folder / CARD_PAGE, format_card_page(card))


# What a run's files say of themselves in TFLite's own metadata, and the files associated with them.
#
# Imports no TensorFlow.

FEATURES_FILE = "features.txt"
CARD_FILE = AssociatedFile(CARD_NAME, "The model card: how good it is and for whom, features, terms of the data. JSON.")
BY_CLASS = "A number a class; the largest is that of the class. Softmax makes them chances."


def describe_model(
    card: Mapping[str, Any], model: str, data: FederatedData, section: Mapping[str, Any], has_channel_axis: bool = True
) -> ModelNote:
    """The note of a file with one input and one output.

    Args:
      card: of the run, as from `build_card`, files left out.
      model: the model's name.
      data: the examples.
      section: the data section of the run's `config.json`.
      has_channel_axis: see `ModelSpec`.
    """
    example_format = data.format
    features = describe_features(data, section)
    # Of two classes a model may have one output, of which no label is the name.
    is_labelled = bool(example_format.class_names) and example_format.num_classes == example_format.num_outputs
    labels = AssociatedFile(LABELS_FILE, "The name of each output, a line each.", type=LABELS)
    output = TensorNote(
        "numbers" if example_format.labels.task == "regression" else "logits",
        escape_hidden(card.get("outputs", BY_CLASS)),  # a card of classification has no word of it
        ("batch", "position", "token") if example_format.labels.task == "next_token" else ("batch", "output"),
        files=(labels,) if is_labelled else (),
    )
    other = AssociatedFile(LABELS_FILE, "The names of the classes, a line each.")
    note = _describe_as_whole(card, model)
    files = (CARD_FILE,) if is_labelled or not example_format.class_names else (CARD_FILE, other)
    return note._replace(input=_describe_input(data, features, has_channel_axis), output=output, files=files)


def describe_training_model(card: Mapping[str, Any], model: str, data: FederatedData) -> ModelNote:
    """The note of a file for on-device training, whose signatures have names for their inputs and outputs already."""
    labels = AssociatedFile(LABELS_FILE, "The name of each output, a line each.")
    files = (CARD_FILE, labels) if data.format.class_names else (CARD_FILE,)
    return _describe_as_whole(card, model)._replace(files=files)


def _describe_as_whole(card: Mapping[str, Any], model: str) -> ModelNote:
    training = card["training"]
    sizes = f"{training['rounds']:,} rounds with {training['clients']:,} clients, {training['examples']:,} examples"
    refused = " ".join(card["must_not_be_used_for"])
    description = f"{card[TASK]} Trained by {training['how']}: {sizes}. Must not be used for: {refused}"
    name = escape_hidden(f"{card['title']}: {model}")
    return ModelNote(
        name, escape_hidden(description), f"round {training['rounds']}", escape_hidden(card["may_be_sold"]), None, None
    )


def _describe_input(data: FederatedData, features: Sequence[Mapping[str, Any]], has_channel_axis: bool) -> TensorNote:
    example_format, layout = data.format, name_layout(data.format)
    scale, offset = example_format.preprocessing.scale, example_format.preprocessing.offset
    if example_format.takes_tokens:
        axes = ("position", *(f"axis_{i}" for i in range(1, len(example_format.input_shape))))
        words = AssociatedFile(
            VOCABULARY_FILE if example_format.text else LABELS_FILE,
            "The text of each token, a line each; \\u000a is a new line.",
            VOCABULARY_TYPE,
        )
        if example_format.text:
            return TensorNote("tokens", describe_words(example_format), ("batch", *axes), files=(words,))
        # Outputs are of the same tokens.
        files = (words,) if example_format.labels.task == "next_token" and example_format.class_names else ()
        return TensorNote("tokens", "Whole numbers that stand for tokens, as int32.", ("batch", *axes), files=files)
    formula = f"What it gets is number * {scale:.6g} + {offset:.6g}, in float32."
    if (scale, offset) == (1.0, 0.0):
        formula = "The numbers as they are, in float32."
    # 0.0 minus, since of an offset of 0 the negative would be -0.
    normalization = {"mean": 0.0 - offset / scale, "deviation": 1 / scale}
    if not features:
        shape, is_picture = example_format.input_shape, len(example_format.input_shape) == 3
        axes = ("height", "width", "channel") if is_picture else tuple(f"axis_{i}" for i in range(len(shape)))
        lowest, highest = ([value * scale + offset] for value in find_range(data))
        name, image = ("image", shape) if is_picture else ("values", None)
        return TensorNote(name, formula, ("batch", *axes), image, **normalization, lowest=lowest, highest=highest)
    names = ("feature",) if len(example_format.input_shape) == 1 or not has_channel_axis else ("feature", "channel")
    standardised = (
        " The model itself subtracts the mean of each and divides by its deviation; an app does not."
        if any("mean" in feature for feature in features)
        else ""
    )
    kind = "Features" if layout == TABLE else "Channels of each step"
    file = AssociatedFile(FEATURES_FILE, f"{kind}, a name a line.", type=LABELS)
    return TensorNote(
        "window" if layout == SERIES else "features",
        f"{formula}{standardised} {kind}: {describe_in_words(features, list_groups(example_format))}.",
        ("batch", *(("step", "channel") if layout == SERIES else names)),
        **normalization,
        lowest=[feature["lowest"] * scale + offset for feature in features],
        highest=[feature["highest"] * scale + offset for feature in features],
        files=(file,),
    )


def list_associated(data: FederatedData, section: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that go beside the card into the archive of each file: names of classes and features, a line each."""
    names = {
        LABELS_FILE: data.format.class_names,
        VOCABULARY_FILE: data.format.text.vocabulary if data.format.text else (),
        FEATURES_FILE: [each["name"] for each in describe_features(data, section)],
    }
    return {file: format_names(lines).encode() for file, lines in names.items() if lines}


def format_names(names: Sequence[str]) -> str:
    """A name a line; none can be more than a line."""
    return "".join(f"{escape_hidden(name)}\n" for name in names)
