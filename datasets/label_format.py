"""What the labels of a data set are: its task, and how a label is stored. Imports nothing of ours but the error.

What a task means to a model stands in `models.task_kinds`, which has the same names.
"""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from datasets.errors import DatasetError

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
        shapes = {MULTI_LABEL: [(outputs,)], REGRESSION: [(outputs,)], NEXT_TOKEN: [self.shape]}.get(self.task, [()])
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
        if self.task == REGRESSION and not (abs(y) < float("inf")).all():
            raise DatasetError(f"{where}: a label is NaN or infinite, expected finite numbers; repair or drop them")
        lowest, highest = {MULTI_LABEL: (0, 1), NEXT_TOKEN: (y.min(), self.num_outputs - 1)}.get(
            self.task, (0, num_classes - 1)
        )
        if self.task != REGRESSION and (y.min() < lowest or y.max() > highest):
            raise DatasetError(f"{where}: labels {y.min()}..{y.max()}, expected {lowest}..{highest}")


CLASS_LABELS = LabelFormat()
