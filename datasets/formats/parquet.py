"""`--data` on parquet and Arrow: a file, a folder of them, and what Hugging Face and Flower Datasets save to disk.

Files are read batch by batch.
"""

import contextlib
import functools
import os
import typing
from collections.abc import Callable, Collection, Iterator

from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.file_formats import FileFormat
from datasets.image_pixels import ImageForm, count_at_once
from datasets.tables.arrow_files import (
    DICT_FILE,
    STATE_FILE,
    find_arrow_files,
    find_class_names,
    is_arrow_file,
    is_parquet_file,
    read_class_names,
    walk_files,
)
from datasets.tables.cells import mark_missing, read_missing_words
from datasets.tables.options import DEFAULT_MISSING_WORDS
from datasets.tables.roles import names_clients
from datasets.tables.source import choose_table_partition, open_table
from datasets.tables.table import ClientFile, Piece, Place, Table, list_names

if typing.TYPE_CHECKING:
    import pyarrow

BATCH_ROWS, BATCH_BLOCKS = 8192, 256  # rows at a time, of numbers and text, and of arrays and images
# (columns, rows at a time) -> batches
ReadBatches = Callable[[tuple[str, ...], int], Iterator["pyarrow.RecordBatch"]]
MOST_LOOKED_AT = 100_000  # entries of folders, to tell whether there is such a file


def is_parquet(path: str) -> bool:
    """Whether it is a parquet or Arrow file, or a folder of such."""
    if not os.path.isdir(path):
        return is_arrow_file(path)
    if any(os.path.exists(os.path.join(path, name)) for name in (STATE_FILE, DICT_FILE)):
        return True
    return next(walk_files(path, MOST_LOOKED_AT), None) is not None


def open_parquet(path: str, options: DatasetOptions) -> ClientSource:
    """The clients of a table.

    Raises:
      DatasetError: pyarrow is not installed; else see `make_arrow_table` and `table_source.open_table`.
    """
    return open_table(make_arrow_table(path, options), options)


def choose_parquet_partition(path: str, options: DatasetOptions) -> str:
    """See `datasets.tables.source.choose_table_partition`."""
    return choose_table_partition(make_arrow_table(path, options), options)


def make_arrow_table(path: str, options: DatasetOptions, files: list[ClientFile] | None = None) -> Table:
    """A table of parquet or Arrow files.

    Args:
      path: a file or a folder.
      options: which column names clients, and how images are read.
      files: those of the folder, where it is known already what their names mean.

    Raises:
      DatasetError: there is no such file, or one cannot be read.
    """
    given = files is not None
    files = files or find_arrow_files(path)
    with _open_file(files[0].path) as (schema, _):
        pass
    from datasets.tables.arrow_cells import convert_column, is_block_type, is_image_type, is_ordered_text

    columns = tuple(schema.names)
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise DatasetError(f"{files[0].path}: two columns are called {twice[0]!r}, expected different names")
    if not given and all(file.is_own_name for file in files) and names_clients(columns, options):
        files = [file._replace(client="", is_own_name=False) for file in files]
    blocks = tuple(field.name for field in schema if is_block_type(field.type))
    # These files say themselves what is missing, so that only words that were given stand for it.
    is_given = options.missing_words != DEFAULT_MISSING_WORDS
    missing_words = read_missing_words(options.missing_words) if is_given else frozenset()
    pictures = tuple(field.name for field in schema if is_image_type(field.type))
    images = ImageForm(options.image_size, options.image_colour)

    def read(names: tuple[str, ...]) -> Iterator[Piece]:
        form = images
        has_images = any(name in names for name in pictures)
        for file in files:
            num_rows = BATCH_BLOCKS if set(names) & set(blocks) else BATCH_ROWS
            for first, batch in _read_batches(file.path, names, files[0].path, num_rows):
                start = 0
                while start < len(batch):
                    # Of images the first says how many may be unpacked at once.
                    step = count_at_once(form.shape) if form.shape else 1
                    part = batch.slice(start, step if has_images else len(batch))
                    name_rows = functools.partial(_name_rows, file.path)
                    cells = {}
                    for name in names:
                        locate = lambda row, first=first + start: Place(name_rows, first + row)
                        converted = convert_column(part.column(name), name, locate, form)
                        cells[name] = mark_missing(converted, missing_words)
                        if name in blocks and cells[name].values.ndim == 4:
                            form = form.fix(cells[name].values[0])
                    yield Piece(cells, file.client, file.split, name_rows, first + start)
                    start += len(part)

    told = find_class_names((schema.metadata or {}).get(b"huggingface", b"{}"), "info")
    names = told or (read_class_names(path) if os.path.isdir(path) else {})
    form = "parquet" if is_parquet_file(files[0].path) else "Arrow"
    has_clients = all(file.client for file in files)
    ordered = tuple(field.name for field in schema if is_ordered_text(field.type))
    return Table(path, tuple(file.path for file in files), columns, read, form, blocks, names, has_clients, ordered)


def _name_rows(path: str, rows: Collection[int]) -> dict[int, str]:
    return {row: f"{path}, row {row} (counted from 0)" for row in rows}


@contextlib.contextmanager
def _open_file(path: str) -> Iterator[tuple["pyarrow.Schema", ReadBatches]]:
    """(schema, what reads batches) of a file. What fails on the way is one line."""
    import pyarrow.parquet

    try:
        if is_parquet_file(path):
            with pyarrow.parquet.ParquetFile(path) as file:
                yield file.schema_arrow, lambda names, num_rows: file.iter_batches(num_rows, columns=list(names))
            return
        with pyarrow.memory_map(path) as source:
            # Arrow's file format or, as Hugging Face saves, its stream format.
            is_file = source.read(6) == b"ARROW1"
            source.seek(0)
            with (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source) as reader:

                def read(names: tuple[str, ...], num_rows: int) -> Iterator["pyarrow.RecordBatch"]:
                    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
                        for start in range(0, len(batch), num_rows):
                            yield batch.slice(start, num_rows).select(list(names))

                yield reader.schema, read
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        size = os.path.getsize(path) if os.path.isfile(path) else -1
        problem = "empty, 0 bytes" if size == 0 else f"damaged, cut or no parquet or Arrow file ({line[:200]})"
        raise DatasetError(f"{path}: {problem}; expected a whole one") from None


def _read_batches(
    path: str, names: tuple[str, ...], first_path: str, num_rows: int
) -> Iterator[tuple[int, "pyarrow.RecordBatch"]]:
    """(row of the file, batch of at most so many rows, and one at least, with these columns)."""
    with _open_file(path) as (schema, read):
        if missing := [name for name in names if name not in schema.names]:
            raise DatasetError(
                f"{path}: column {missing[0]!r} is missing, which {first_path} has; it has {list_names(schema.names)}"
            )
        row = 0
        for batch in read(names, num_rows):
            if len(batch):
                yield row, batch
            row += len(batch)


FORMAT = FileFormat("parquet or Arrow", is_parquet, open_parquet, choose_parquet_partition, rank=40)
