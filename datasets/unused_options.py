"""Options that a format has no use for are refused, so that nobody believes that they did something."""

import dataclasses

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError

# Of readers that take some of the options of a table.
OF_TABLES_ALONE = ("missing_words", "join_spellings", "date_form", "weight_column")


def refuse_options(path: str, kind: str, options: DatasetOptions, *unused: type | str) -> None:
    """Raises DatasetError if one of these options is neither its default nor what runs did before there was it.

    Args:
      path: of the data, for the error.
      kind: what they are, such as "a folder of images".
      options: all that were given.
      unused: what does nothing there: classes of options, such as `TableOptions`, or the names of single ones.
    """
    declared = {field.name: field.metadata.get("setting") for field in dataclasses.fields(DatasetOptions)}
    for each in unused:
        for name in (each,) if isinstance(each, str) else (field.name for field in dataclasses.fields(each)):
            value, of_old_runs = getattr(options, name), declared[name] and declared[name].of_old_runs
            if value not in (None, "", getattr(DatasetOptions, name), of_old_runs):
                raise DatasetError(f"{path}: {name}={value}: does nothing with {kind}; leave it out")
