"""`--data` on a folder with a file for each client, named after the client: npz, CSV or parquet.

alice.csv, bob.csv                    a file a client; or, where a column names clients, parts of one table
train/0.npz, test/0.npz               with a test part of each client's own, as PFLlib writes it
train.csv, test.csv                   one table in two parts
"""

import os
from collections.abc import Iterator

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_store import sort_key
from datasets.file_formats import FileFormat
from datasets.formats.csv import ENDINGS, has_csv_name, make_csv_table
from datasets.formats.parquet import make_arrow_table
from datasets.label_format import LABEL_KINDS
from datasets.npz_clients import guess_folder_task, open_npz_clients
from datasets.tables.arrow_files import ARROW_ENDINGS, PARQUET_ENDINGS
from datasets.tables.cells import read_missing_words
from datasets.tables.roles import names_clients
from datasets.tables.source import choose_table_partition, open_table
from datasets.tables.table import SPLIT_NAMES, ClientFile, Table
from files.reading import explain_errors

NPZ, CSV, ARROW = "npz", "csv", "parquet"


def is_client_files(path: str) -> bool:
    """Whether it is a folder of such files, or of folders train and test of them."""
    return os.path.isdir(path) and next(_list_files(path), None) is not None


def open_client_files(path: str, options: DatasetOptions) -> ClientSource:
    """The clients of a folder.

    Raises:
      DatasetError: files of several kinds, two files of one client and part, or a file that cannot be read.
    """
    kind, files = find_client_files(path)
    if kind == NPZ:
        return open_npz_clients(path, files, options)
    return open_table(_make_table(path, kind, files, options), options)


def choose_client_files_partition(path: str, options: DatasetOptions) -> str:
    """ "natural", unless the files are parts of one table without clients; see `choose_table_partition`."""
    kind, files = find_client_files(path)
    if kind != NPZ:
        return choose_table_partition(_make_table(path, kind, files, options), options)
    if any(file.client for file in files):
        return "natural"
    return "" if LABEL_KINDS[options.task or guess_folder_task(files)].is_by_class else "iid"


def _list_files(path: str) -> Iterator[tuple[str, str, str]]:
    """(path, folder or "", kind) of each file, hidden ones left out."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name.lower() in SPLIT_NAMES:
            for inner in sorted(os.scandir(entry.path), key=lambda inner: inner.name):
                if inner.is_file() and _find_kind(inner.name):
                    yield inner.path, entry.name, _find_kind(inner.name)
        elif entry.is_file() and _find_kind(entry.name):
            yield entry.path, "", _find_kind(entry.name)


def _find_kind(name: str) -> str:
    lower = name.lower()
    if name.startswith("."):
        return ""
    if lower.endswith(".npz"):
        return NPZ
    if lower.endswith((*PARQUET_ENDINGS, *ARROW_ENDINGS)):
        return ARROW
    return CSV if has_csv_name(name) else ""


def find_client_files(path: str) -> tuple[str, list[ClientFile]]:
    """(kind, files), by client and part.

    A file that is called train, test or validation is that part of a table and no client.

    Raises:
      DatasetError: none, files of several kinds, or two files for a client's part.
    """
    with explain_errors(path, DatasetError):
        found = list(_list_files(path))
    if not found:
        raise DatasetError(f"{path}: no file of a client in this folder, expected *.npz, *.csv or *.parquet")
    kinds = {kind: file for file, _, kind in found}
    if len(kinds) > 1:
        raise DatasetError(
            f"{path}: files of several kinds ({', '.join(sorted(kinds))}, the last {os.path.basename(found[-1][0])}), "
            f"expected one kind in a folder"
        )
    files = [_place(file, folder) for file, folder, _ in found]
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        other = seen.setdefault((file.client, file.split), file.path)
        if other != file.path:
            raise DatasetError(
                f"{file.path}: client {file.client!r} has a file of this part already, {other}; expected one"
            )
    if len({bool(file.client) for file in files}) > 1:
        part = next(file for file in files if not file.client)
        raise DatasetError(
            f"{part.path}: a part of a whole beside files of clients, expected either; put it into a folder of its own"
        )
    return found[0][2], sorted(files, key=lambda file: (sort_key(file.client), file.split, file.path))


def _place(path: str, folder: str) -> ClientFile:
    stem = os.path.basename(path)
    for ending in (".gz", ".npz", *ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS):
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    if not folder and stem.lower() in SPLIT_NAMES:
        return ClientFile(path, "", SPLIT_NAMES[stem.lower()])
    return ClientFile(path, stem, SPLIT_NAMES[folder.lower()] if folder else TRAIN)


def _make_table(path: str, kind: str, files: list[ClientFile], options: DatasetOptions) -> Table:
    has_clients = all(file.client for file in files)
    if kind == ARROW:
        return make_arrow_table(path, options, files)
    missing_words = read_missing_words(options.missing_words)
    table = make_csv_table(path, files, has_clients, missing_words)
    if has_clients and names_clients(table.columns, options):
        return make_csv_table(path, [file._replace(client="") for file in files], missing_words=missing_words)
    return table


FORMAT = FileFormat(
    "a folder with a file a client", is_client_files, open_client_files, choose_client_files_partition, rank=70
)
