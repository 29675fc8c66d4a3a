"""Data that `launch.api.fit` gets in memory: arrays and tables become files, named by their contents.

A table is kept as parquet, so that what pandas knows of a column lives on: texts that look like numbers, whole numbers
with gaps, the order of categories. Its index becomes columns, or is refused where nothing says what it is for.
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

from datasets.formats.npz import ARRAYS
from datasets.options import split_names
from datasets.tables.table import CLIENT_NAMES, LABEL_NAMES, TEST_NAMES, TIME_NAMES, list_names, simplify
from launch.runs.run_folder import RUNS
from launch.settings.errors import FlagError

if TYPE_CHECKING:
    import pyarrow

DATA_FOLDER = RUNS / "data"  # where arrays and tables lie that `fit` was given
COLUMN_FLAGS = ("client_column", "label_column", "time_column", "test_column", "weight_column", "feature_columns")
_ROLE_NAMES = CLIENT_NAMES | LABEL_NAMES | TIME_NAMES | TEST_NAMES
_TIME = "time"  # what an index of dates without a name is called
_LEAST_TIME = 10**9  # whole numbers from here on count no rows: they are times since 1970, or names


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
        content = _write_parquet(_keep_index(_name_columns(table, "data"), flags))
        path = _name_file(content, ".parquet")
        return {"data": str(path)}, {path: content}
    if not isinstance(data, Mapping):
        kind = type(data).__name__
        raise FlagError(f'data: expected a path, a pandas table or arrays such as {{"x": ..., "y": ...}}, got {kind}')
    if unknown := [name for name in data if name not in ARRAYS]:
        raise FlagError(f"data: expected arrays of the names {', '.join(ARRAYS)}, got {unknown[0]!r}")
    _check_order(data)
    buffer = io.BytesIO()
    np.savez(buffer, **{name: _as_array(name, values) for name, values in data.items()})
    path = _name_file(buffer.getvalue(), ".npz")
    return {"dataset": "npz", "npz": str(path)}, {path: buffer.getvalue()}


def check_values(flags: Mapping[str, Any]) -> None:
    """Raises FlagError for values in memory where the name of a column or a file is expected."""
    for name in COLUMN_FLAGS:
        value = flags.get(name)
        is_one = name not in ("label_column", "feature_columns")
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


def quote_name(name: str) -> str:
    """A column's name as a flag that takes several has it: in quotes if it holds a comma or a quote."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if "," in name or '"' in name else name


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


def _write_parquet(frame: pd.DataFrame) -> bytes:
    import pyarrow.parquet

    table = pyarrow.table(convert_frame(frame, "data"))
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _name_columns(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The table with texts as the names of its columns."""
    if frame.columns.nlevels > 1:
        raise FlagError(
            f"{what}: the columns have names of {frame.columns.nlevels} levels, such as {frame.columns[0]!r}, expected "
            f"one text for each; join them: frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if nameless := [place for place, name in enumerate(frame.columns, 1) if pd.isna(name)]:
        raise FlagError(f"{what}: column {nameless[0]} has no name, expected one for each")
    names = list(map(str, frame.columns))
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise FlagError(f"{what}: {names.count(twice[0])} columns are called {twice[0]!r}, expected different names")
    return frame.set_axis(names, axis=1)


def _convert_column(values: pd.Series, where: str) -> "pyarrow.Array":
    import pyarrow

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


def _as_array(name: str, values: Any) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise FlagError(f"data: {name} has masked values, expected none; fill them, or leave such examples out")
    try:
        array = np.asarray(as_frame(values))
    except ValueError as error:  # rows of several lengths
        raise FlagError(f"data: {name} is no array ({error})") from None
    if array.dtype != object:
        return array
    flat = array.ravel().tolist()
    if any(pd.isna(value) is True for value in flat):
        raise FlagError(f"data: {name} lacks values (None, NaN or pd.NA), expected none; fill or drop them")
    kinds = {bool if isinstance(value, np.bool_) else type(value) for value in flat}
    if not kinds <= {str} and not all(issubclass(kind, int | float | np.number) for kind in kinds):
        found = list_names(sorted(kind.__name__ for kind in kinds))
        raise FlagError(f"data: {name} holds {found}, expected numbers alone, or texts alone")
    return np.array(flat).reshape(array.shape)


def _name_file(content: bytes, ending: str) -> pathlib.Path:
    return DATA_FOLDER.resolve() / f"{hashlib.sha256(content).hexdigest()[:16]}{ending}"
