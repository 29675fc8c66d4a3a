"""`--data` on parquet and Arrow: a file, a folder of them, and what Hugging Face and Flower Datasets save to disk.

Files are read batch by batch.

data.parquet, data.arrow, data.feather           one table
train-00000-of-00001.parquet, test-...           splits of a table, as the hub names them; also in a folder "data"
data-00000-of-00002.arrow beside state.json      a Hugging Face data set saved to disk
train/, test/ of such folders                    one with splits
any/, other/ of such folders                     partitions, a client each, as Flower Datasets' are saved
alice.parquet, bob.parquet                       a file a client, unless a column names them
"""

import contextlib
import functools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from datasets.client_source import TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.image_pixels import ImageLayout, count_at_once
from datasets.names import sort_key
from datasets.options import DEFAULT_MISSING_WORDS
from datasets.tables.cells import mark_missing, read_missing_words
from datasets.tables.source import make_table_format
from datasets.tables.table import SPLIT_NAMES, ClientFile, Location, Piece, Table, check_same_columns, names_clients

if TYPE_CHECKING:
    import pyarrow

PARQUET_ENDINGS, ARROW_ENDINGS = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
PARQUET, ARROW, _ARROW_MARK = "parquet", "Arrow", b"ARROW1"
INFO_FILE, STATE_FILE, DICT_FILE = "dataset_info.json", "state.json", "dataset_dict.json"
_PLAIN_FOLDERS = ("data", "default")  # that say nothing
# part-0, part-00000-1b4e28ba-2fa1-11d2.c000, 0000, data-00000-of-00002, train-00000-of-00001
_SHARD = re.compile(r"part[-_.]\d.*|(?:(?P<name>.*?)[-_.])?\d{4,}(?:-of-\d+)?", re.IGNORECASE)
_MOST_FILES = 1_000_000


def find_kind(path: str) -> str:
    """`PARQUET` or `ARROW`, by a file's name or its first bytes; "" if neither tells. Arrow's streams have no mark."""
    for endings, kind in ((PARQUET_ENDINGS, PARQUET), (ARROW_ENDINGS, ARROW)):
        if path.lower().endswith(endings):
            return kind
    with open(path, "rb") as file:
        start = file.read(6)
    if start == _ARROW_MARK:
        return ARROW
    return PARQUET if start.startswith(b"PAR1") else ""


def walk_files(path: str, most_entries: float = math.inf) -> Iterator[str]:
    """The files of a data set, relative to its folder; caches of Hugging Face and hidden ones left out.

    It ends after so many entries of folders, whatever they are.
    """
    num_entries = 0
    for folder, subfolders, names in os.walk(path):
        num_entries += len(subfolders) + len(names)
        if num_entries > most_entries:
            return
        # In place, since `os.walk` goes into what is left of the list.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            is_named = name.lower().endswith((*PARQUET_ENDINGS, *ARROW_ENDINGS))
            if is_named and not name.startswith((".", "cache-")) and os.path.isfile(os.path.join(folder, name)):
                yield os.path.relpath(os.path.join(folder, name), path)


def find_arrow_files(path: str) -> list[ClientFile]:
    """The files of a data set, in a fixed order.

    Raises:
      DatasetError: there is none, or a folder in a folder names clients both times.
    """
    if os.path.isfile(path):
        return [ClientFile(path, "", TRAIN)]
    found = []
    for relative in walk_files(path):
        found.append(_place_file(path, relative))
        if len(found) > _MOST_FILES:
            raise DatasetError(f"{path}: more than {_MOST_FILES:,} files, expected fewer and larger ones")
    if not found:
        raise DatasetError(f"{path}: no parquet or Arrow file in this folder, expected *.parquet or *.arrow")
    if not all(file.client for file in found):
        found = [file._replace(client="") if file.is_own_name else file for file in found]
    without = next((file for file in found if not file.client), None)
    if without and any(file.client for file in found):
        raise DatasetError(
            f"{without.path}: lies beside the folders of clients, expected each file in a folder of its client"
        )
    return sorted(found, key=lambda file: (sort_key(file.client), file.split, file.path))


def _place_file(path: str, relative: str) -> ClientFile:
    *folders, name = relative.split(os.sep)
    split, client = "", ""
    for folder in folders:
        if folder.lower() in SPLIT_NAMES and not split:
            split = SPLIT_NAMES[folder.lower()]
        elif folder.lower() not in _PLAIN_FOLDERS:
            if client:
                raise DatasetError(
                    f"{os.path.join(path, relative)}: lies in the folders {client!r} and {folder!r}, expected one that "
                    f"names a client, and train/ or test/"
                )
            client = folder
    stem = os.path.splitext(name)[0]
    shard = _SHARD.fullmatch(stem)
    word = (shard["name"] or "data") if shard else stem
    if word.lower() in SPLIT_NAMES:
        split = split or SPLIT_NAMES[word.lower()]
    is_own = not client and not shard and word.lower() not in (*SPLIT_NAMES, "data")
    return ClientFile(os.path.join(path, relative), stem if is_own else client, split or TRAIN, is_own)


def read_class_names(folder: str) -> dict[str, tuple[str, ...]]:
    """The names of labels that a saved data set's `dataset_info.json` has, by column; {} if there is none."""
    for root, _, names in os.walk(folder):
        if INFO_FILE in names:
            with contextlib.suppress(OSError), open(os.path.join(root, INFO_FILE), "rb") as file:
                return find_class_names(file.read())
            break
    return {}


def find_class_names(content: bytes, *keys: str) -> dict[str, tuple[str, ...]]:
    """The names of labels in Hugging Face's description of columns, by column; {} if there is none.

    Args:
      content: JSON, in which "features" describes the columns.
      keys: of the objects that it lies in.
    """
    try:
        features = json.loads(content)
        for key in (*keys, "features"):
            features = features.get(key, {})
        return {
            name: tuple(map(str, each["names"]))
            for name, each in features.items()
            if isinstance(each, dict) and each.get("_type") == "ClassLabel" and isinstance(each.get("names"), list)
        }
    except (ValueError, AttributeError):
        return {}


BATCH_ROWS, BATCH_BLOCKS = 8192, 256  # rows at a time, of numbers and text, and of arrays and images
# (columns, rows at a time) -> batches
ReadBatches = Callable[[tuple[str, ...], int], Iterator["pyarrow.RecordBatch"]]
MOST_LOOKED_AT = 100_000  # entries of folders, to tell whether there is such a file


def is_parquet(path: str) -> bool:
    """Whether it is a parquet or Arrow file, or a folder of such."""
    if not os.path.isdir(path):
        return os.path.isfile(path) and find_kind(path) != ""
    if any(os.path.exists(os.path.join(path, name)) for name in (STATE_FILE, DICT_FILE)):
        return True
    return next(walk_files(path, MOST_LOOKED_AT), None) is not None


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
    # The first file says which columns there are; others are compared when they are read.
    with _open_file(files[0].path) as (schema, _):
        pass
    from datasets.tables.arrow_cells import convert_column, is_block_type, is_image_type, is_ordered_text

    columns = tuple(schema.names)
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise DatasetError(f"{files[0].path}: two columns are called {twice[0]!r}, expected different names")
    # A column that names clients knows better than the names of files, which may be those of parts.
    if not given and all(file.is_own_name for file in files) and names_clients(columns, options):
        files = [file._replace(client="", is_own_name=False) for file in files]
    blocks = tuple(field.name for field in schema if is_block_type(field.type))
    # These files say themselves what is missing, so that only words that were given stand for it.
    is_given = options.missing_words != DEFAULT_MISSING_WORDS
    missing_words = read_missing_words(options.missing_words) if is_given else frozenset()
    pictures = tuple(field.name for field in schema if is_image_type(field.type))
    images = ImageLayout(options.image_size, options.image_colour)

    def read(names: tuple[str, ...]) -> Iterator[Piece]:
        # Each reading begins anew: its first image fixes the size.
        layout = images
        has_images = any(name in names for name in pictures)
        for file in files:
            num_rows = BATCH_BLOCKS if set(names) & set(blocks) else BATCH_ROWS
            for first, batch in _read_batches(file.path, names, files[0].path, num_rows):
                start = 0
                while start < len(batch):
                    # Of images the first says how many may be unpacked at once.
                    step = count_at_once(layout.shape) if layout.shape else 1
                    part = batch.slice(start, step if has_images else len(batch))
                    name_rows = functools.partial(_name_rows, file.path)
                    cells = {}
                    for name in names:
                        locate = lambda row, first=first + start: Location(name_rows, first + row)
                        converted = convert_column(part.column(name), name, locate, layout)
                        cells[name] = mark_missing(converted, missing_words)
                        if name in blocks and cells[name].values.ndim == 4:
                            layout = layout.fix(cells[name].values[0])
                    yield Piece(cells, file.client, file.split, name_rows, first + start)
                    start += len(part)

    described = find_class_names((schema.metadata or {}).get(b"huggingface", b"{}"), "info")
    names = described or (read_class_names(path) if os.path.isdir(path) else {})
    kind = find_kind(files[0].path) or PARQUET
    has_clients = all(file.client for file in files)
    ordered = tuple(field.name for field in schema if is_ordered_text(field.type))
    return Table(path, tuple(file.path for file in files), columns, read, kind, blocks, names, has_clients, ordered)


def _name_rows(path: str, rows: Collection[int]) -> dict[int, str]:
    return {row: f"{path}, row {row} (counted from 0)" for row in rows}


@contextlib.contextmanager
def _open_file(path: str) -> Iterator[tuple["pyarrow.Schema", ReadBatches]]:
    """(schema, what reads batches) of a file. What fails on the way is one line."""
    import pyarrow.parquet

    try:
        if find_kind(path) != ARROW:
            with pyarrow.parquet.ParquetFile(path) as file:
                yield file.schema_arrow, lambda names, num_rows: file.iter_batches(num_rows, columns=list(names))
            return
        with pyarrow.memory_map(path) as source:
            # Arrow's file format or, as Hugging Face saves, its stream format.
            is_file = source.read(6) == _ARROW_MARK
            source.seek(0)
            with (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source) as reader:

                def read(names: tuple[str, ...], num_rows: int) -> Iterator["pyarrow.RecordBatch"]:
                    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
                        for start in range(0, len(batch), num_rows):
                            yield batch.slice(start, num_rows).select(list(names))

                yield reader.schema, read
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        # It is a ValueError, too, of whoever reads the batches.
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
        check_same_columns(path, schema.names, names, first_path)
        row = 0
        for batch in read(names, num_rows):
            # A batch without rows has no shape of an example.
            if len(batch):
                yield row, batch
            row += len(batch)


FORMAT = make_table_format("parquet or Arrow", is_parquet, make_arrow_table, rank=40)
