"""Data that `launch.api` gets in memory: arrays and tables of `fit`, which become files, and examples of `Run.predict`.

Files are named by their contents. A table is stored as parquet, so that what pandas knows of a column lives on: texts
that look like numbers, whole numbers with gaps, the order of categories. Its index becomes columns, or is refused where
nothing says what it is for. A table of examples is taken by the names of its columns, in any order, and a column of
texts becomes what it became in training.
"""

import hashlib
import io
import os
import pathlib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from datasets.arrays import convert_values
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.formats.npz import ARRAYS
from datasets.image_pixels import ImageLayout
from datasets.names import fold_spelling, shorten
from datasets.options import split_names
from datasets.tables.arrow_cells import convert_column, is_block_type
from datasets.tables.cells import BOOLEAN, NUMBER, STRING, Cells, parse_text
from datasets.tables.sentences import encode_texts
from datasets.tables.table import CLIENT_NAMES, LABEL_NAMES, TEST_NAMES, TIME_NAMES, list_names, simplify
from datasets.tables.written_numbers import read_written
from launch.runs.run_folder import DATA_FOLDER
from launch.settings.errors import FlagError

if TYPE_CHECKING:
    import pyarrow

    from models.model_spec import ModelSpec


_OF_SEVERAL = ("label_column", "feature_columns", "drop_columns")
COLUMN_FLAGS = ("client_column", "time_column", "test_column", "weight_column", "text_column", *_OF_SEVERAL)
_ROLE_NAMES = CLIENT_NAMES | LABEL_NAMES | TIME_NAMES | TEST_NAMES
# What an index of dates without a name is called.
_TIME = "time"
# Whole numbers from here on count no rows: they are times since 1970, or names.
_LEAST_TIME = 10**9


def place_data(data: Any, flags: Mapping[str, Any]) -> tuple[dict[str, str], dict[pathlib.Path, bytes]]:
    """The flags that name the data, and by its path what is still to be written, of data in memory.

    Args:
      data: a path, a table, arrays by their names in an npz file, or None.
      flags: the other arguments of `fit`, of which some name columns.

    Raises:
      FlagError: the data are of another kind, or something in them is lost in a file.
    """
    if data is None:
        return {}, {}
    if isinstance(data, str | os.PathLike):
        return {"data": os.fspath(data)}, {}
    if isinstance(table := as_frame(data), pd.DataFrame):
        import pyarrow.parquet

        kept = _keep_index(_name_columns(table, "data"), flags)
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(convert_frame(kept, "data")), buffer)
        path = _name_file(buffer.getvalue(), ".parquet")
        return {"data": str(path)}, {path: buffer.getvalue()}
    if not isinstance(data, Mapping):
        kind = type(data).__name__
        raise FlagError(f'data: expected a path, a pandas table or arrays such as {{"x": ..., "y": ...}}, got {kind}')
    if unknown := [name for name in data if name not in ARRAYS]:
        raise FlagError(f"data: expected arrays of the names {', '.join(ARRAYS)}, got {unknown[0]!r}")
    _check_order(data)
    buffer = io.BytesIO()
    np.savez(buffer, **{name: _as_plain_array(name, values) for name, values in data.items()})
    path = _name_file(buffer.getvalue(), ".npz")
    return {"dataset": "npz", "npz": str(path)}, {path: buffer.getvalue()}


def check_values(flags: Mapping[str, Any]) -> None:
    """Raises FlagError for values in memory where the name of a column or a file is expected."""
    for name in COLUMN_FLAGS:
        value = flags.get(name)
        is_one = name not in _OF_SEVERAL
        if isinstance(value, pd.Series | pd.DataFrame) or (is_one and isinstance(value, list | tuple | np.ndarray)):
            raise FlagError(
                f"--{name}: expected the name of a column of the data, got {type(value).__name__}; make it a column "
                f"of the table and give its name"
            )
    if isinstance(weights := flags.get("class_weights"), Mapping | list | tuple | np.ndarray | pd.Series):
        raise FlagError(
            f"--class_weights: expected balanced or the path of a file, got {type(weights).__name__}; write "
            f"{{class name: weight}} into a .json file, as by json.dump, and give its path"
        )


def as_frame(data: Any) -> Any:
    """Tables of other libraries, such as polars, as pandas' own; anything else as it is."""
    return data.to_pandas() if hasattr(data, "to_pandas") else data


def convert_frame(frame: pd.DataFrame, what: str) -> "dict[str, pyarrow.Array]":
    """The columns of a table, by their names as texts; missing values are null. Its index is left out.

    Args:
      frame: a table.
      what: the argument that it is, for errors.

    Raises:
      FlagError: a name that is none, or twice there, or values that are not of one kind.
    """
    frame = _name_columns(frame, what)
    return {name: _convert_column(frame[name], f"{what}: column {name!r}") for name in frame.columns}


def _name_columns(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table with texts as the names of its columns."""
    if frame.columns.nlevels > 1:
        raise FlagError(
            f"{what}: the columns have names of {frame.columns.nlevels} levels, such as {frame.columns[0]!r}, expected "
            f"one text for each; join them: frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if nameless := [number for number, name in enumerate(frame.columns, 1) if pd.isna(name)]:
        raise FlagError(f"{what}: column {nameless[0]} has no name, expected one for each")
    names = list(map(str, frame.columns))
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise FlagError(f"{what}: {names.count(twice[0])} columns are called {twice[0]!r}, expected different names")
    return frame.set_axis(names, axis=1)


def _convert_column(values: pd.Series, where: str) -> "pyarrow.Array":
    import pyarrow

    # pyarrow takes none of these kinds of pandas as it is.
    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    elif isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    elif isinstance(values.dtype, pd.CategoricalDtype) and isinstance(values.cat.categories, pd.IntervalIndex):
        values = values.cat.rename_categories(list(map(str, values.cat.categories)))
    elif values.dtype == object and any(isinstance(value, np.ndarray) for value in values.iloc[:1]):
        values = values.map(lambda value: value.tolist() if isinstance(value, np.ndarray) else value)
    try:
        converted = pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        kinds = sorted({type(value).__name__ for value in values.dropna()})
        ways, texts = "astype(str) makes texts of them", [value for value in values if isinstance(value, str)]
        if "str" in kinds and {"int", "float"}.issuperset(set(kinds) - {"str"}):
            text = next((text for text in texts if np.isnan(pd.to_numeric(text, errors="coerce"))), texts[0])
            ways = f"pandas.to_numeric(column, errors='coerce') leaves out texts such as {text[:40]!r}, {ways}"
        raise FlagError(
            f"{where} holds {list_names(kinds)}, expected numbers, texts, dates or lists, all of one kind; {ways}"
        ) from None
    return converted.combine_chunks() if isinstance(converted, pyarrow.ChunkedArray) else converted


def _keep_index(frame: pd.DataFrame, flags: Mapping[str, Any]) -> pd.DataFrame:
    """The table whose index has become columns, without the numbers of its rows."""
    index, columns = frame.index, {}
    named = {simplify(name) for flag in COLUMN_FLAGS for name in _list_named(flags.get(flag))}
    for level, name in enumerate(index.names):
        values = index.get_level_values(level)
        if name is None:
            if not _counts_rows(index, values):
                columns[_name_times(frame, index, flags)] = values
            continue
        name = str(name)
        if name in frame:
            if not pd.Series(np.asarray(values)).equals(pd.Series(np.asarray(frame[name]))):
                raise FlagError(
                    f"data: the index {name!r} is called as a column that holds other values, expected different "
                    f"names; frame.rename_axis(...) gives the index another"
                )
        elif flags.get("feature_columns") or simplify(name) in _ROLE_NAMES | named:
            columns[name] = values
        elif not isinstance(index, pd.RangeIndex):
            raise FlagError(
                f"data: nothing says what the index {name!r} is for; name it by client_column, time_column or "
                f"label_column, make it a feature by frame.reset_index(), or leave it out by reset_index(drop=True)"
            )
    frame = frame.reset_index(drop=True)
    kept = pd.DataFrame({name: pd.Series(values).reset_index(drop=True) for name, values in columns.items()})
    return pd.concat([kept, frame], axis=1) if columns else frame


def _list_named(value: Any) -> list[str]:
    """The columns that a flag names."""
    return (
        list(map(str, value))
        if isinstance(value, list | tuple | np.ndarray | pd.Index)
        else list(split_names(str(value or "")))
    )


def _counts_rows(index: pd.Index, values: pd.Index) -> bool:
    """Whether a level without a name holds the numbers of rows, also of those that are left of a larger table."""
    if isinstance(index, pd.RangeIndex):
        return True
    is_whole = pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans
    return is_whole and index.is_unique and (not len(values) or (values.min() >= 0 and values.max() < _LEAST_TIME))


def _name_times(frame: pd.DataFrame, index: pd.Index, flags: Mapping[str, Any]) -> str:
    """What to call an index without a name: dates say themselves what they are, unless a column is the time."""
    is_taken = flags.get("time_column") or any(simplify(name) in TIME_NAMES for name in frame.columns)
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex) and not is_taken:
        return _TIME
    first = f", such as {index[0]!r:.60}" if len(index) else ""
    raise FlagError(
        f"data: the index has no name that says what it is for{first}; give it one, as by "
        f"frame.rename_axis('client'), or leave it out by frame.reset_index(drop=True)"
    )


def _check_order(data: Mapping[str, Any]) -> None:
    """Refuses arrays of pandas whose rows are the same by their index, but stand in another order."""
    for name, other in (("x", "y"), ("x", "client"), ("y", "client"), ("x_test", "y_test")):
        first, second = (getattr(data.get(each), "index", None) for each in (name, other))
        if not isinstance(first, pd.Index) or not isinstance(second, pd.Index) or first.equals(second):
            continue
        if len(first) == len(second) and first.is_unique and second.is_unique and first.isin(second).all():
            raise FlagError(
                f"data: {other} has the rows of {name} in another order, by their index; expected the same order; give "
                f"{other}.loc[{name}.index], or to_numpy() of both if their index means nothing"
            )


def _make_array(values: Any, label: str) -> np.ndarray:
    """The values as an array. Raises FlagError, which begins with the label, if some are masked or there is none."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise FlagError(f"{label} has masked values, expected none; fill them, or leave such examples out")
    try:
        return np.asarray(values)
    # As of rows of several lengths.
    except ValueError as error:
        raise FlagError(f"{label} is no array ({error})") from None


def _as_plain_array(name: str, values: Any) -> np.ndarray:
    array = _make_array(as_frame(values), f"data: {name}")
    if array.dtype != object:
        return array
    flat = array.ravel().tolist()
    # Of a list in a cell pandas answers with an array, which is not True.
    if any(pd.isna(value) is True for value in flat):
        raise FlagError(f"data: {name} lacks values (None, NaN or pd.NA), expected none; fill or drop them")
    # numpy.bool_ is no number by its class, but stands for 1 and 0 as bool does.
    kinds = {bool if isinstance(value, np.bool_) else type(value) for value in flat}
    if not kinds <= {str} and not all(issubclass(kind, int | float | np.number) for kind in kinds):
        found = list_names(sorted(kind.__name__ for kind in kinds))
        raise FlagError(f"data: {name} holds {found}, expected numbers alone, or texts alone")
    return np.array(flat).reshape(array.shape)


def _name_file(content: bytes, ending: str) -> pathlib.Path:
    return DATA_FOLDER.resolve() / f"{hashlib.sha256(content).hexdigest()[:16]}{ending}"


_AS_ARRAY = "give an array, whose features stand as in training"


def read_examples(x: Any, example_format: ExampleFormat, are_joined: bool = False) -> np.ndarray:
    """Examples as the run's data are stored, shape (examples, *input_shape), in the format's dtype.

    Args:
      x: an array, of the format's shape or without its one channel, or a table with a column for each feature. Of a run
        on texts also these, or a table with their column.
      example_format: of the run.
      are_joined: whether spellings of categories were joined (`--join_spellings`), so that those of a table are, too.

    Raises:
      FlagError: they are of another kind, shape or dtype, a value is missing, or a column is.
    """
    x = as_frame(x)
    if example_format.text and (texts := _find_texts(x, example_format.text.column)) is not None:
        return encode_texts(texts, example_format.text.vocabulary, example_format.input_shape[0])
    if isinstance(x, pd.DataFrame):
        return _read_frame(x, example_format, are_joined).reshape(len(x), *example_format.input_shape)
    if isinstance(x, pd.Series | str | bytes | dict):
        raise FlagError(f"x: expected an array of examples, or a table, got {type(x).__name__}")
    x = _make_array(x, "x:")
    shape = tuple(example_format.input_shape)
    # Images of one channel and series of one feature are often given without that axis.
    without_channel = shape[:-1] if shape[-1] == 1 else shape
    if x.shape[1:] not in (shape, without_channel):
        raise FlagError(f"x: expected shape (examples, {', '.join(map(str, without_channel))}), got {x.shape}")
    if x.dtype.kind not in "biuf":
        raise FlagError(f"x: expected numbers, got {x.dtype}; a table with the names of the columns may hold texts")
    # Pixels for a model that was trained on scaled ones would be taken without a word.
    if x.dtype == np.uint8 and example_format.input_dtype == "float32":
        raise FlagError(
            "x: expected float32 as in training, got uint8; scale the numbers as those were, and give "
            "x.astype('float32')"
        )
    try:
        return convert_values("x", "x", x, example_format.input_dtype).reshape(len(x), *shape)
    except DatasetError as error:
        raise FlagError(str(error).removeprefix("x: ")) from None


def _find_texts(x: Any, column: str) -> list[str] | None:
    """The texts that a table or a list holds; None if it holds something else. Raises FlagError if some are none."""
    if isinstance(x, pd.DataFrame):
        if column not in x:
            raise FlagError(f"x: column {column!r} is missing, whose texts the run was trained on; it has {list(x)}")
        x = x[column]
    elif not isinstance(x, list | tuple | np.ndarray | pd.Series) or not any(isinstance(each, str) for each in x):
        return None
    if wrong := [row for row, each in enumerate(x) if not isinstance(each, str)]:
        raise FlagError(f"x: row {wrong[0]} (counted from 0) is no text, expected one in each; leave such rows out")
    return list(x)


def check_inputs(spec: "ModelSpec", x: np.ndarray) -> None:
    """Raises FlagError unless the stored examples are numbers of the dtype that the model's Input has."""
    # TensorFlow is loaded by now.
    from models.input_dtypes import find_misfit

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
    for index, name in enumerate(names):
        column, category = sources[name]
        if category is None:
            encoded[:, index] = _read_numbers(arrays[column], column)
        else:
            categories.setdefault(column, {})[category] = index
    for column, indices in categories.items():
        encoded[:, list(indices.values())] = 0
        encoded[np.arange(len(frame)), _find_categories(arrays[column], column, indices, are_joined)] = 1
    return encoded


def _find_source(name: str, columns: list[str]) -> tuple[str, str | None]:
    """(column, category) that a feature is made of; None for a feature that is the column itself.

    Where there is neither, it is the column before the first sign of equality that is meant.
    """
    if name in columns or "=" not in name:
        return name, None
    signs = [at for at, letter in enumerate(name) if letter == "="]
    cut = next((at for at in signs if name[:at] in columns), signs[0])
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
    if cells.kind == STRING:
        cells = parse_text(cells.values)
        numbers = cells.numbers
    elif cells.kind not in (NUMBER, BOOLEAN):
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
            f"x: column {column!r} has {shorten(cells.get_text(row))!r} in row {row} (counted from 0), expected a "
            f"finite number, as the run has it; {fix}"
        )
    return numbers


def _find_categories(array: "pyarrow.Array", column: str, indices: dict[str, int], are_joined: bool) -> np.ndarray:
    """The index of each row's category, int64 (rows,)."""
    codes, texts = _make_cells(array, column).list_texts()
    folded = {fold_spelling(category): index for category, index in indices.items()} if are_joined else {}
    alike = [folded.get(fold_spelling(text), -1) if folded else -1 for text in texts]
    found = [indices.get(text, indices.get(text.strip(), other)) for text, other in zip(texts, alike, strict=True)]
    found = np.array(found, np.int64)[codes]
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise FlagError(
            f"x: column {column!r} has {shorten(texts[codes[row]])!r} in row {row} (counted from 0), which was not "
            f"there in training; expected one of {list_names(list(indices))}"
        )
    return found
