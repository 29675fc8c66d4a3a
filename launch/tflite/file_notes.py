"""What a run's files say of themselves in TFLite's own metadata, and the files associated with them.

Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets.federated_data import FederatedData
from launch.console.shown_text import escape_hidden
from launch.runs.columns import LABELS_FILE
from launch.runs.task_columns import TASK
from launch.tflite.embedded_card import CARD_NAME
from launch.tflite.features import (
    SERIES,
    TABLE,
    Feature,
    describe_features,
    describe_in_words,
    list_facts,
    list_groups,
    name_form,
)
from launch.tflite.standard_metadata import LABELS, VOCABULARY, AssociatedFile, ModelNote, TensorNote

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
        describe_outputs(card),
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


def describe_outputs(card: Mapping[str, Any]) -> str:
    """How to read the outputs, as the card says it; a card of classification has no word of it."""
    return escape_hidden(card.get("outputs", BY_CLASS))


def _describe_input(data: FederatedData, features: Sequence[Feature], has_channel_axis: bool) -> TensorNote:
    example_format, form = data.format, name_form(data.format)
    scale, offset = example_format.preprocessing.scale, example_format.preprocessing.offset
    if example_format.takes_tokens:
        axes = ("position", *(f"axis_{i}" for i in range(1, len(example_format.input_shape))))
        words = AssociatedFile(LABELS_FILE, "The text of each token, a line each; \\u000a is a new line.", VOCABULARY)
        # Outputs are of the same tokens.
        files = (words,) if example_format.labels.task == "next_token" and example_format.class_names else ()
        return TensorNote("tokens", "Whole numbers that stand for tokens, as int32.", ("batch", *axes), files=files)
    formula = f"What it gets is number * {scale:.6g} + {offset:.6g}, in float32."
    if (scale, offset) == (1.0, 0.0):
        formula = "The numbers as they are, in float32."
    normalization = {"mean": 0.0 - offset / scale, "deviation": 1 / scale}
    if not features:
        return _describe_picture(data)._replace(description=formula, **normalization)
    names = ("feature",) if len(example_format.input_shape) == 1 or not has_channel_axis else ("feature", "channel")
    standardised = (
        " The model itself subtracts the mean of each and divides by its deviation; an app does not."
        if any(feature.mean is not None for feature in features)
        else ""
    )
    kind = "Features" if form == TABLE else "Channels of each step"
    file = AssociatedFile(FEATURES_FILE, f"{kind}, a name a line.", type=LABELS)
    return TensorNote(
        "window" if form == SERIES else "features",
        f"{formula}{standardised} {kind}: {describe_in_words(list_facts(features), list_groups(example_format))}.",
        ("batch", *(("step", "channel") if form == SERIES else names)),
        **normalization,
        lowest=[feature.lowest * scale + offset for feature in features],
        highest=[feature.highest * scale + offset for feature in features],
        files=(file,),
    )


def _describe_picture(data: FederatedData) -> TensorNote:
    """The note of examples with three axes, or more."""
    shape, preprocessing = data.format.input_shape, data.format.preprocessing
    is_picture = len(shape) == 3
    axes = ("height", "width", "channel") if is_picture else tuple(f"axis_{i}" for i in range(len(shape)))
    lowest, highest = ([value * preprocessing.scale + preprocessing.offset] for value in find_range(data))
    image = shape if is_picture else None
    name = "image" if is_picture else "values"
    return TensorNote(name, "", ("batch", *axes), image, lowest=lowest, highest=highest)


def find_range(data: FederatedData) -> tuple[float, float]:
    """The lowest and the highest stored value, by the data set's word or else by its examples."""
    preprocessing = data.format.preprocessing
    if preprocessing.feature_range is None:
        return float(data.test_x.min()), float(data.test_x.max())
    lowest, highest = ((value - preprocessing.offset) / preprocessing.scale for value in preprocessing.feature_range)
    return lowest, highest


def list_associated(data: FederatedData, section: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that go beside the card into the archive of each file: names of classes and features, a line each."""
    names = {
        LABELS_FILE: data.format.class_names,
        FEATURES_FILE: [each.name for each in describe_features(data, section)],
    }
    return {file: format_names(lines).encode() for file, lines in names.items() if lines}


def format_names(names: Sequence[str]) -> str:
    """A name a line; none can be more than a line."""
    return "".join(f"{escape_hidden(name)}\n" for name in names)
