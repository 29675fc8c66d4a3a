"""The error of everything that can be wrong with data: a file, a split, an option. Imports nothing of the project."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class DatasetError(ValueError):
    """A data set, file or split that cannot be used: one line that says what, what was expected and how to fix it.

    Attributes:
      fix: flags that solve it, by name; {} where only the data can be changed. `launch.inspect` proposes them. Columns
        to drop and words for missing values add to those that were given, and "" stands for a column to be chosen.
      further: what else is wrong, where several things were looked for; a run says the first alone.
    """

    def __init__(self, line: str = "", fix: Mapping[str, str] | None = None, further: "Sequence[DatasetError]" = ()):
        super().__init__(line)
        self.fix, self.further = dict(fix or {}), tuple(further)


@contextlib.contextmanager
def propose(**fix: str) -> Iterator[None]:
    """Gives errors that are raised within, and that name no flags that solve them, these."""
    try:
        yield
    except DatasetError as error:
        error.fix = error.fix or fix
        raise


class Checks:
    """Checks that are all made before the first error is raised, so that the others are known, too."""

    def __init__(self):
        self.errors: list[DatasetError] = []

    def run(self, check: Callable, *arguments: Any) -> Any:
        """What the function returns; None where it raises a DatasetError."""
        try:
            return check(*arguments)
        except DatasetError as error:
            self.errors += [error, *error.further]
            return None

    def end(self) -> None:
        """Raises the first error, which has the others with it; does nothing if there is none."""
        if self.errors:
            first, *first.further = self.errors
            raise first
