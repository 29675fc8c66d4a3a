"""Examples that `launch.api.Run.predict` gets: checked, and brought into the form that the run's data have.

A table is taken by the names of its columns, in any order, and a column of texts becomes what it became in training.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from datasets.arrays import convert_values
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.image_pixels import ImageLayout
from datasets.names import fold_spelling
from datasets.tables.arrow_cells import convert_column, is_block_type
from datasets.tables.cells import BOOLEAN, NUMBER, STRING, Cells, parse_text
from datasets.tables.table import list_names
from datasets.tables.written_numbers import read_written
from launch.settings.errors import FlagError
from launch.training.given_data import as_frame, convert_frame

if TYPE_CHECKING:
    import pyarrow

    from models.model_spec import ModelSpec

_AS_ARRAY = "give an array, whose features stand as in training"


def read_examples(x: Any, example_format: ExampleFormat, are_joined: bool = False) -> np.ndarray:
    """Examples as the run's data are stored, shape (examples, *input_shape), in the format's dtype.

    Args:
      x: an array, of the format's shape or without its one channel, or a table with a column for each feature.
      example_format: of the run.
      are_joined: whether spellings of categories were joined (`--join_spellings`), so that those of a table are, too.

    Raises:
      FlagError: they are of another kind, shape or dtype, a value is missing, or a column is.
    """
    x = as_frame(x)
    if isinstance(x, pd.DataFrame):
        return _read_frame(x, example_format, are_joined).reshape(len(x), *example_format.input_shape)
    if isinstance(x, pd.Series | str | bytes | dict):
        raise FlagError(f"x: expected an array of examples, or a table, got {type(x).__name__}")
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise FlagError("x: some values are masked, expected none; fill them, or leave such examples out")
    try:
        x = np.asarray(x)
    except ValueError as error:  # rows of several lengths
        raise FlagError(f"x: is no array ({error})") from None
    shape = tuple(example_format.input_shape)
    without_channel = shape[:-1] if shape[-1] == 1 else shape
    if x.shape[1:] not in (shape, without_channel):
        raise FlagError(f"x: expected shape (examples, {', '.join(map(str, without_channel))}), got {x.shape}")
    if x.dtype.kind not in "biuf":
        raise FlagError(f"x: expected numbers, got {x.dtype}; a table with the names of the columns may hold texts")
    if x.dtype == np.uint8 and example_format.input_dtype == "float32":
        raise FlagError(
            "x: expected float32 as in training, got uint8; scale the numbers as those were, and give "
            "x.astype('float32')"
        )
    try:
        return convert_values("x", "x", x, example_format.input_dtype).reshape(len(x), *shape)
    except DatasetError as error:
        raise FlagError(str(error).removeprefix("x: ")) from None


def check_inputs(spec: "ModelSpec", x: np.ndarray) -> None:
    """Raises FlagError unless the stored examples are numbers of the dtype that the model's Input has."""
    from models.input_dtypes import find_misfit  # TensorFlow is loaded by now

    if misfit := find_misfit(spec.input_dtype, spec.format, x):
        raise FlagError(f"x: has {misfit}, since the Input of {spec.name} has dtype {spec.input_dtype}")


def _read_frame(frame: pd.DataFrame, example_format: ExampleFormat, are_joined: bool) -> np.ndarray:
    """float32 (rows, features); columns that are no features are left out."""
    names, shape = example_format.feature_names, example_format.input_shape
    if not names:
        raise FlagError(f"x: a table is taken by the names of features, which this run does not have; {_AS_ARRAY}")
    if len(names) != int(np.prod(shape)):
        raise FlagError(f"x: expected an array of shape (examples, {', '.join(map(str, shape))}), got a table")
    columns = list(map(str, frame.columns)) if frame.columns.nlevels == 1 else []
    sources = {name: _find_source(name, columns) for name in names}
    wanted = list(dict.fromkeys(column for column, _ in sources.values()))
    if missing := [column for column in wanted if column not in columns and columns]:
        raise FlagError(
            f"x: column {list_names(missing)} is missing; expected {list_names(wanted)}, in any order; it has "
            f"{list_names(columns)}"
        )
    is_wanted = [name in wanted for name in columns] if columns else slice(None)
    arrays = convert_frame(frame.loc[:, is_wanted], "x")
    encoded = np.empty((len(frame), len(names)), np.float32)
    categories: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names):
        column, category = sources[name]
        if category is None:
            encoded[:, place] = _read_numbers(arrays[column], column)
        else:
            categories.setdefault(column, {})[category] = place
    for column, places in categories.items():
        encoded[:, list(places.values())] = 0
        encoded[np.arange(len(frame)), _find_categories(arrays[column], column, places, are_joined)] = 1
    return encoded


def _find_source(name: str, columns: list[str]) -> tuple[str, str | None]:
    """(column, category) that a feature is made of; None for a feature that is the column itself.

    Where there is neither, it is the column before the first sign of equality that is meant.
    """
    if name in columns or "=" not in name:
        return name, None
    places = [place for place, letter in enumerate(name) if letter == "="]
    cut = next((place for place in places if name[:place] in columns), places[0])
    return name[:cut], name[cut + 1 :]


def _make_cells(array: "pyarrow.Array", column: str) -> Cells:
    """A column without gaps."""
    if array.null_count:
        row = int(np.argmax(np.asarray(array.is_null())))
        raise FlagError(
            f"x: column {column!r} lacks a value in row {row} (counted from 0), and in {array.null_count:,} of "
            f"{len(array):,} rows; expected one in each; fill them, or leave such rows out"
        )
    if is_block_type(array.type):
        raise FlagError(f"x: column {column!r} holds lists, expected a number or a text in each row; {_AS_ARRAY}")
    try:
        return convert_column(array, column, lambda row: "x", ImageLayout())
    except DatasetError as error:
        raise FlagError(str(error).split(";")[0]) from None


def _read_numbers(array: "pyarrow.Array", column: str) -> np.ndarray:
    """float32 (rows,); texts are read as those of a text file are."""
    cells = _make_cells(array, column)
    numbers = cells.numbers
    if cells.form == STRING:
        cells = parse_text(cells.values)
        numbers = cells.numbers
    elif cells.form not in (NUMBER, BOOLEAN):
        numbers = np.full(len(numbers), np.nan)
    with np.errstate(over="ignore"):
        numbers = numbers.astype(np.float32)
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        is_written = read_written(cells.get_text(row)) is not None
        fix = (
            "numbers with signs, units or marks are read in files alone: make plain ones of them, 12 % as 0.12"
            if is_written
            else "texts that were made the index of a category must be such numbers here, too"
        )
        raise FlagError(
            f"x: column {column!r} has {cells.get_text(row)!r:.60} in row {row} (counted from 0), expected a finite "
            f"number, as the run has it; {fix}"
        )
    return numbers


def _find_categories(array: "pyarrow.Array", column: str, places: dict[str, int], are_joined: bool) -> np.ndarray:
    """The place of each row's category, int64 (rows,)."""
    codes, texts = _make_cells(array, column).list_texts()
    folded = {fold_spelling(category): place for category, place in places.items()} if are_joined else {}
    alike = [folded.get(fold_spelling(text), -1) if folded else -1 for text in texts]
    found = [places.get(text, places.get(text.strip(), other)) for text, other in zip(texts, alike, strict=True)]
    found = np.array(found, np.int64)[codes]
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise FlagError(
            f"x: column {column!r} has {texts[codes[row]]!r:.60} in row {row} (counted from 0), which was not there in "
            f"training; expected one of {list_names(list(places))}"
        )
    return found
