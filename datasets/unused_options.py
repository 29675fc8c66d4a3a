"""Options that a format has no use for are refused, so that nobody believes that they did something."""

import dataclasses

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError

OF_TABLES = (
    *("client_column", "label_column", "feature_columns", "time_column", "test_column"),
    *("missing", "categories", "window", "window_step"),
)
OF_IMAGES = ("image_size", "image_colour")
OF_TEXT = ("sequence_length", "vocabulary_size")


def refuse_options(path: str, kind: str, options: DatasetOptions, *names: str) -> None:
    """Raises DatasetError if one of these options is not its default.

    Args:
      path: of the data, for the error.
      kind: what they are, such as "a folder of images".
      options: all that were given.
      names: the options that do nothing there.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(DatasetOptions)}
    for name in names:
        value = getattr(options, name)
        if value not in (None, "", defaults[name]):
            raise DatasetError(f"{path}: {name}={value}: does nothing with {kind}; leave it out")
