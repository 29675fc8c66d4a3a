"""What an example of a data set is: its shape and type, its label, and what is done to it before a model.

Everything that carries data holds this one description: a loader's arrays, a source of clients, a federation, the
stores of users' files and `config.json`, both of which keep it as JSON.

One of several features of 0 and 1 is no number that can be moved alone: with two of them at 1, or none, an example is
like no other. So whoever shows features to a person shows a group as one choice.

What a task means to a model stands in `models.task_kinds`, which has the same names.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from datasets.errors import DatasetError
from datasets.names import check_names, name_some

if TYPE_CHECKING:
    import numpy as np


class LabelKind(NamedTuple):
    """How labels of a task are stored, whether each example has one of a few classes, and the task in words."""

    dtype: str
    is_by_class: bool
    title: str


CLASSIFICATION, BINARY, MULTI_LABEL = "classification", "binary", "multi_label"
REGRESSION, NEXT_TOKEN = "regression", "next_token"
LABEL_KINDS = {
    CLASSIFICATION: LabelKind("int32", True, "classification"),
    BINARY: LabelKind("int32", True, "binary classification"),
    MULTI_LABEL: LabelKind("uint8", False, "multi-label classification"),
    REGRESSION: LabelKind("float32", False, "regression"),
    NEXT_TOKEN: LabelKind("int32", False, "next token"),
}
TASK_NAMES = tuple(LABEL_KINDS)


@dataclasses.dataclass(frozen=True)
class LabelFormat:
    """The labels of a data set.

    Attributes:
      task: a name of `LABEL_KINDS`.
      shape: of one example's label: () for a class, a switch or one number; (labels,) of 0 and 1 for multi_label;
        (numbers,) for a regression of several; (positions,) for next_token.
      num_outputs: labels of multi_label, numbers of a regression, the vocabulary of next_token. The others have theirs
        from the class names.
      offset: of a regression, what is taken from a label before a model learns it, one number an output; () is 0.
      scale: of a regression, what it is divided by then, above 0; () is 1.
      padding: of next_token, the label of positions that are none, beside negative ones, which always are.
      oov: of next_token, the label of tokens outside of the vocabulary; None if there is none.

    Raises:
      DatasetError: an unknown task, or a value that it does not have.
    """

    task: str = CLASSIFICATION
    shape: tuple[int, ...] = ()
    num_outputs: int = 0
    offset: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    padding: int = 0
    oov: int | None = None

    def __post_init__(self):
        if self.task not in LABEL_KINDS:
            raise DatasetError(f"task={self.task}: expected one of {', '.join(TASK_NAMES)}")
        outputs = self.num_outputs
        usual: dict[str, list[tuple[int, ...]]] = {MULTI_LABEL: [(outputs,)], REGRESSION: [(outputs,)]}
        shapes = {**usual, NEXT_TOKEN: [self.shape]}.get(self.task, [()])
        # A single number may be stored with an axis of its own, or without.
        if self.task == REGRESSION and outputs == 1:
            shapes.append(())
        if self.shape not in shapes or (not self.is_by_class and outputs < 1):
            raise DatasetError(f"labels of shape {self.shape} and {outputs} outputs do not fit the task {self.task}")
        if {len(self.offset), len(self.scale)} - {0, outputs} or not all(scale > 0 for scale in self.scale):
            raise DatasetError(f"offset={self.offset}, scale={self.scale}: expected {outputs} numbers, scales above 0")

    @property
    def dtype(self) -> str:
        """Of a stored label."""
        return LABEL_KINDS[self.task].dtype

    @property
    def is_by_class(self) -> bool:
        """Whether each example has one of a few classes, so that labels can be counted and dealt out."""
        return LABEL_KINDS[self.task].is_by_class

    @property
    def title(self) -> str:
        """The task in words."""
        return LABEL_KINDS[self.task].title

    def count_outputs(self, num_classes: int) -> int:
        """How many outputs a model has (of one position), if there are so many class names."""
        return {CLASSIFICATION: num_classes, BINARY: 1}.get(self.task, self.num_outputs)

    def check_names(self, where: str, class_names: tuple[str, ...]) -> None:
        """Raises DatasetError, beginning with `where`, unless the task can have these class names."""
        count = len(class_names)
        if self.task == CLASSIFICATION and count < 2:
            raise DatasetError(f"{where}: {count} class, expected at least 2 to tell apart")
        if self.task == BINARY and count != 2:
            raise DatasetError(
                f"{where}: {count} classes, expected 2 for --task={BINARY}; take --task={CLASSIFICATION}"
            )
        if not self.is_by_class and count not in (0, self.num_outputs):
            raise DatasetError(f"{where}: {count} class names, expected {self.num_outputs}, one an output, or none")

    def check_labels(self, where: str, y: "np.ndarray", num_examples: int, num_classes: int) -> None:
        """Raises DatasetError, beginning with `where`, unless these are such labels of so many examples."""
        if y.dtype != self.dtype or y.shape != (num_examples, *self.shape):
            shape = ", ".join(map(str, (num_examples, *self.shape))) + ("," if not self.shape else "")
            raise DatasetError(
                f"{where}: y is {y.dtype} {y.shape}, expected {self.dtype} ({shape}), a label for each example"
            )
        if not y.size:
            return
        # NaN is not below infinity either, so that one comparison finds both.
        if self.task == REGRESSION and not (abs(y) < float("inf")).all():
            raise DatasetError(f"{where}: a label is NaN or infinite, expected finite numbers; repair or drop them")
        lowest, highest = {MULTI_LABEL: (0, 1), NEXT_TOKEN: (y.min(), self.num_outputs - 1)}.get(
            self.task, (0, num_classes - 1)
        )
        if self.task != REGRESSION and (y.min() < lowest or y.max() > highest):
            raise DatasetError(f"{where}: labels {y.min()}..{y.max()}, expected {lowest}..{highest}")


CLASS_LABELS = LabelFormat()


# JSON of earlier versions lacks this key.
GROUPS = "groups"
MOST_VALUES = 12  # of a category in words


class CategoryGroup(NamedTuple):
    """The features, or channels, of one category.

    Attributes:
      name: such as that of the column.
      places: of its features, counted from 0: one for each value, of which that of the value is 1 and the others are 0;
        or the only one, if it holds the index of the value.
      values: what each feature, or each index from 0 on, stands for.
      is_index: whether it is the index that the feature holds.
      has_none: whether an example may have none of the values, so that all its features are 0.
    """

    name: str
    places: tuple[int, ...]
    values: tuple[str, ...]
    is_index: bool = False
    has_none: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it, with the places under "features"; `read_groups` reads it back."""
        return {
            "name": self.name,
            "features": list(self.places),
            "values": list(self.values),
            "is_index": self.is_index,
            "has_none": self.has_none,
        }


def read_groups(content: Sequence[Mapping[str, Any]]) -> tuple[CategoryGroup, ...]:
    """What `CategoryGroup.to_json` gave of each."""
    return tuple(
        CategoryGroup(each["name"], tuple(each["features"]), tuple(each["values"]), each["is_index"], each["has_none"])
        for each in content
    )


def check_groups(groups: Sequence[CategoryGroup], num_features: int) -> None:
    """Raises DatasetError: a place that is no feature or is in two groups, not as many values as places, or a name with
    a control character."""
    check_names("groups", "category", [each.name for each in groups])
    taken: set[int] = set()
    for group in groups:
        check_names(f"groups: {group.name}", "category", group.values)
        if wrong := [index for index in group.places if not 0 <= index < num_features]:
            raise DatasetError(f"groups: {group.name} has place {wrong[0]}, which is none of {num_features} features")
        if taken & set(group.places) or len(set(group.places)) < len(group.places):
            raise DatasetError(f"groups: {group.name} has a feature that is taken already, expected each in one place")
        taken.update(group.places)
        expected = 1 if group.is_index else len(group.values)
        if not group.values or len(group.places) != expected:
            raise DatasetError(
                f"groups: {group.name} has {len(group.places)} features for {len(group.values)} values, expected "
                f"{'one of an index' if group.is_index else 'one for each value'}"
            )


def describe_group(group: Mapping[str, Any]) -> str:
    """What `CategoryGroup.to_json` gave in words, such as "colour: one of red, green, blue (features 3 to 5)"."""
    places, names = group["features"], group["values"]
    # What has a comma, or blanks at its ends, would be taken for several, or for none.
    shown = [f'"{name}"' if "," in name or name != name.strip() or not name else name for name in names]
    values = name_some(shown, MOST_VALUES) + (", or none of them" if group["has_none"] else "")
    if len(places) == 1:
        where = f"feature {places[0]}"
    elif list(places) == list(range(places[0], places[0] + len(places))):
        where = f"features {places[0]} to {places[-1]}"
    else:
        where = f"features {', '.join(map(str, places))}"
    kind = "the index, from 0, of" if group["is_index"] else "one of"
    return f"{group['name']}: {kind} {values} ({where})"


TASK, KIND = "task", "kind"  # the part of the JSON that is of the labels, and the task in it
# JSON of earlier versions lacks this key.
CATEGORIES = "categories"
# JSON has these keys only where there are weights, or words, so that other configs stay as they were.
WEIGHTS = "weights"
TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """What a phone does to a raw reading before the model: `float32(x) * scale + offset`.

    `feature_range` is the known (lowest, highest) value after that, or None if the data set promises no bound.
    """

    scale: float = 1.0
    offset: float = 0.0
    feature_range: tuple[float, float] | None = None


# How far a step moves aside that scaling has made equal to the padding; integers of 8 bits mostly tell them apart.
ASIDE = 2.0**-6


class Padding(NamedTuple):
    """The steps that fill sequences up to one length, and are no measurements.

    Attributes:
      value: of the model's input, that all channels of such a step have.
      is_anywhere: whether each such step is one; else only those before the first and after the last other step.
    """

    value: float
    is_anywhere: bool


class ExampleWeights(NamedTuple):
    """How the examples' losses are weighed in training, as a column of the data says.

    Attributes:
      column: its name.
      mean: of the weights of all clients' train examples, by which each weight is divided; above 0.
      lowest: weight of these.
      highest: weight of these.
      num_zero: how many of these weigh 0.
      num_examples: how many these are.
    """

    column: str
    mean: float
    lowest: float
    highest: float
    num_zero: int
    num_examples: int


class TextFormat(NamedTuple):
    """The texts that tokens were made of, see `datasets.tables.sentences`.

    Attributes:
      column: its name in the table.
      vocabulary: the text of each token by its number, all different; the first are no words.
    """

    column: str
    vocabulary: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ExampleFormat:
    """What is known of the examples of a data set before they are read.

    Attributes:
      input_shape: of one example, without the batch axis: images (H, W, C), sequences (steps, C), features (features,)
        or (features, 1), tokens (positions,).
      input_dtype: "uint8" or "float32", as stored; tokens also "int32".
      class_names: one name a label; () where the task has none.
      preprocessing: stored example to model input.
      labels: the task, and what its labels are.
      takes_tokens: whether examples are tokens, whole numbers that a model looks up.
      are_features: whether examples of shape (features, 1) have the last axis only for the one channel of features.
      feature_names: one a feature of (features,) or (features, 1), or one a channel of (steps, channels); () if they
        have none.
      feature_units: of these, such as "°C", "" for none; () if none is known.
      categories: places, counted from 0, of the features or channels that are known to be no measurements: indices of
        categories, or 1 for one category and 0 for the others.
      has_whole_steps: whether all steps of a sequence are known to be measurements, so that zeros are no padding.
      weights: by which train examples count in training; None: all alike.
      groups: of these features or channels, those whose values are known by name; each is in one group at most.
      text: of examples that are the words of a text, which these are; None of others.

    Raises:
      DatasetError: a shape or dtype that no data set has, class names that the task does not have, a name with a
        control character, or categories that are no features; and as `check_groups`.
    """

    input_shape: tuple[int, ...]
    input_dtype: str
    class_names: tuple[str, ...]
    preprocessing: Preprocessing = Preprocessing()
    labels: LabelFormat = CLASS_LABELS
    takes_tokens: bool = False
    are_features: bool = False
    feature_names: tuple[str, ...] = ()
    feature_units: tuple[str, ...] = ()
    categories: tuple[int, ...] = ()
    has_whole_steps: bool = False
    weights: ExampleWeights | None = None
    groups: tuple[CategoryGroup, ...] = ()
    text: TextFormat | None = None

    def __post_init__(self):
        dtypes = ("uint8", "int32") if self.takes_tokens else ("uint8", "float32")
        if self.input_dtype not in dtypes:
            raise DatasetError(f"input_dtype={self.input_dtype}: expected {' or '.join(dtypes)}")
        if not self.input_shape or not all(isinstance(size, int) and size >= 1 for size in self.input_shape):
            raise DatasetError(f"input_shape={self.input_shape}: expected whole numbers of at least 1")
        self.labels.check_names(f"class_names={self.class_names!s:.60}", self.class_names)
        check_names("class_names", "class", self.class_names)
        check_features("feature_names", self.feature_names, self.feature_units, self.input_shape)
        number = count_features(self.input_shape)
        if wrong := [index for index in self.categories if not 0 <= index < number]:
            raise DatasetError(f"categories={self.categories}: {wrong[0]} is none of {number} features")
        check_groups(self.groups, number)
        if self.text and not self.takes_tokens:
            raise DatasetError(f"text={self.text.column}: expected none of examples that are no tokens")

    @property
    def is_series(self) -> bool:
        """Whether examples are sequences of steps with channels; tokens are not."""
        are_columns = self.are_features or bool(self.feature_names)
        return not self.takes_tokens and len(self.input_shape) == 2 and not (self.input_shape[1] == 1 and are_columns)

    def name_feature(self, place: int) -> str:
        """What a feature or channel is called: its name, or its place counted from 0."""
        if self.feature_names:
            return self.feature_names[place]
        return f"{'feature' if is_flat(self.input_shape) else 'channel'} {place}"

    @property
    def num_classes(self) -> int:
        """How many class names there are; 0 where labels are no classes and have no names."""
        return len(self.class_names)

    @property
    def num_outputs(self) -> int:
        """How many outputs a model has, of one position."""
        return self.labels.count_outputs(self.num_classes)

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it; `read_example_format` reads it back."""
        labels = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self.labels).items()
        }
        return {
            "input_shape": list(self.input_shape),
            "input_dtype": self.input_dtype,
            "scale": self.preprocessing.scale,
            "offset": self.preprocessing.offset,
            "feature_range": self.preprocessing.feature_range and list(self.preprocessing.feature_range),
            "class_names": list(self.class_names),
            TASK: {KIND: labels.pop("task"), **labels},
            "takes_tokens": self.takes_tokens,
            "are_features": self.are_features,
            "feature_names": list(self.feature_names),
            "feature_units": list(self.feature_units),
            CATEGORIES: list(self.categories),
            "has_whole_steps": self.has_whole_steps,
            **({WEIGHTS: self.weights._asdict()} if self.weights else {}),
            **({TEXT: {"column": self.text.column, "vocabulary": list(self.text.vocabulary)}} if self.text else {}),
            GROUPS: [group.to_json() for group in self.groups],
        }


def read_example_format(content: Mapping[str, Any]) -> ExampleFormat:
    """What `ExampleFormat.to_json` gave; keys that it does not know are others'.

    What an earlier version did not write, all but shape, dtype, scale, offset and names, has its default.

    Raises:
      DatasetError: the values do not fit each other.
    """
    spread = content.get("feature_range")
    labels = CLASS_LABELS
    if content.get(TASK) is not None:
        of_labels = {name: _fixed(value) for name, value in content[TASK].items()}
        labels = LabelFormat(of_labels.pop(KIND), **of_labels)
    names = ("takes_tokens", "are_features", "feature_names", "feature_units", CATEGORIES, "has_whole_steps")
    return ExampleFormat(
        tuple(content["input_shape"]),
        content["input_dtype"],
        tuple(content["class_names"]),
        Preprocessing(content["scale"], content["offset"], spread and tuple(spread)),
        labels,
        weights=ExampleWeights(**content[WEIGHTS]) if content.get(WEIGHTS) else None,
        groups=read_groups(content.get(GROUPS, ())),
        text=TextFormat(content[TEXT]["column"], _fixed(content[TEXT]["vocabulary"])) if content.get(TEXT) else None,
        **{name: _fixed(content[name]) for name in names if name in content},
    )


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def is_flat(shape: tuple[int, ...]) -> bool:
    """Whether examples of a shape, without the batch axis, have numbers of their own at each place, not channels."""
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def count_features(shape: tuple[int, ...]) -> int:
    """How many features or channels examples of a shape have."""
    return shape[0] if is_flat(shape) else shape[-1]


def check_features(where: str, names: tuple[str, ...], units: tuple[str, ...], input_shape: tuple[int, ...]) -> None:
    """Raises DatasetError, beginning with `where`, unless there are as many names and units as features, or none."""
    number = count_features(input_shape)
    for kind, values in (("names", names), ("units", units)):
        if len(values) not in (0, number):
            noun = "features" if is_flat(input_shape) else "channels"
            raise DatasetError(f"{where}: {len(values)} {kind} of {number} {noun}, expected one for each, or none")
        check_names(where, f"feature's {kind[:-1]}", values)
