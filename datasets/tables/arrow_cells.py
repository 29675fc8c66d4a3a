"""Columns of parquet and Arrow as cells of a table: numbers, texts, dates, lists, and images stored as their bytes."""

import io
import typing
from collections.abc import Callable

import numpy as np

from datasets.errors import DatasetError, propose
from datasets.image_pixels import ImageLayout, read_image
from datasets.tables.cells import Cells, block_cells, date_cells, number_cells, string_cells
from datasets.tables.table import drop, leave_out

if typing.TYPE_CHECKING:
    import pyarrow

Locate = Callable[[int], object]  # where a row is, as text


def is_image_type(kind: "pyarrow.DataType") -> bool:
    """Whether a column of this type holds images: a struct of bytes and a path, as Hugging Face stores them."""
    import pyarrow.types as types

    return types.is_struct(kind) and {kind.field(at).name for at in range(kind.num_fields)} == {"bytes", "path"}


def is_block_type(kind: "pyarrow.DataType") -> bool:
    """Whether a column of this type holds an array or an image in each row."""
    import pyarrow.types as types

    kind = getattr(kind, "storage_type", kind)
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list or is_image_type(kind)


def is_ordered_text(kind: "pyarrow.DataType") -> bool:
    """Whether a column of this type holds texts in an order of their own, as pandas' ordered categories are."""
    import pyarrow.types as types

    is_ordered = types.is_dictionary(kind) and kind.ordered
    return is_ordered and (types.is_string(kind.value_type) or types.is_large_string(kind.value_type))


def convert_column(column: "pyarrow.Array", name: str, locate: Locate, images: ImageLayout) -> Cells:
    """Cells of a column of a batch.

    Args:
      column: of it.
      name: of the column, for errors.
      locate: (row of the batch) -> where it is, in words.
      images: how images are read.

    Raises:
      DatasetError: a type that is not read, a list of another length, or an image that is damaged or of another size.
    """
    import pyarrow
    import pyarrow.types as types

    # So Hugging Face stores arrays of several axes.
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    kind = column.type
    order = tuple(column.dictionary.to_pylist()) if is_ordered_text(kind) else ()
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    # Before gaps are filled: with gaps pyarrow makes floats of whole numbers, which cannot hold all of them.
    is_missing = np.asarray(column.is_null())
    if types.is_boolean(kind) or types.is_integer(kind):
        return number_cells(np.asarray(column.fill_null(False if types.is_boolean(kind) else 0)), is_missing)
    if types.is_floating(kind) or types.is_decimal(kind):
        return number_cells(np.asarray(column.cast(pyarrow.float64()).fill_null(np.nan)))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return string_cells(column.cast(pyarrow.string()), order)
    if types.is_timestamp(kind) or types.is_date(kind):
        return date_cells(np.asarray(column.cast(pyarrow.timestamp("ns"), safe=False)).astype("datetime64[ns]"))
    if is_image_type(kind):
        pixels = []
        for row, value in enumerate(column.to_pylist()):
            where = f"{locate(row)}: column {name!r}"
            if value is None or value["bytes"] is None:
                path = f", only the path {value['path']!r}" if value else ""
                raise DatasetError(f"{where} has no bytes of an image{path}, expected the image in the file itself")
            pixels.append(read_image(io.BytesIO(value["bytes"]), where, images))
            # The first image says what the size of all must be.
            images = images.fix(pixels[0])
        return block_cells(np.stack(pixels) if pixels else np.zeros((0, 1, 1, 1), np.uint8))
    if is_block_type(kind):
        with propose(**drop(name)):
            return block_cells(_stack_lists(column, name, locate))
    raise DatasetError(
        f"{locate(0)}: column {name!r} is of type {kind}, expected numbers, text, dates, lists or images; "
        f"{leave_out(name)}",
        drop(name),
    )


def _stack_lists(column: "pyarrow.Array", name: str, locate: Locate) -> np.ndarray:
    """The lists of each row, which may hold lists, as numbers of one shape (rows, ...)."""
    import pyarrow.compute
    import pyarrow.types as types

    shape: list[int] = []
    total, values = len(column), column
    while is_block_type(values.type):
        if values.null_count:
            raise DatasetError(f"{locate(0)}: column {name!r} lacks a list in some row, expected one in each")
        lengths = np.asarray(pyarrow.compute.list_value_length(values))
        length = int(lengths[0]) if len(lengths) else 0
        if (lengths != length).any():
            # Of lists in lists, so many inner ones are of one row.
            row = int(np.argmax(lengths != length)) // max(1, int(np.prod(shape)))
            raise DatasetError(
                f"{locate(row)}: column {name!r} has a list of another length than the rows before it ({length}), "
                f"expected lists of one length"
            )
        shape.append(length)
        values = values.flatten()
    if values.null_count or not (types.is_integer(values.type) or types.is_floating(values.type)):
        gaps = ", some of them missing" if values.null_count else ""
        raise DatasetError(f"{locate(0)}: column {name!r} has lists of {values.type}{gaps}, expected numbers")
    return np.asarray(values).reshape(total, *shape)
