"""TensorFlow Federated's SQLite files: whose examples there are, and a client's records when they are asked for.

The tables are `examples` (split_name, client_id, serialized_example_proto) and `client_metadata` (client_id,
split_name, num_examples). A packed file (.sqlite.lzma) is unpacked once, into the cache folder; a large file whose
`examples` have no index by client is copied there once and gets one. The user's file is never written to.

A file may be somebody else's: nothing in it is run. Tables that SQLite would compute, such as views, are refused, and
each query ends after so many steps as a file of its size can need, or with Ctrl-C.

Their records are tf.train.Example, read without TensorFlow: the message is described here at run time, in a pool of its
own, so that it never meets TensorFlow's own description. Features have names, each a list of bytes, float32 or int64.
"""

import contextlib
import functools
import hashlib
import lzma
import os
import sqlite3
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from datasets.errors import DatasetError
from datasets.names import sort_key
from files.cache import Cache
from files.cache_folder import default_cache_dir
from files.digests import compute_source_digest
from files.reading import describe, explain_errors, find_files, open_regular

BYTES, FLOATS, INTS = "bytes_list", "float_list", "int64_list"
Features = dict[str, "list[bytes] | np.ndarray"]
_DTYPES = {FLOATS: np.float32, INTS: np.int64}
_KINDS = ((BYTES, "TYPE_BYTES"), (FLOATS, "TYPE_FLOAT"), (INTS, "TYPE_INT64"))


@functools.cache
def _make_message_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="read", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto

    def add(parent, name: str, *fields: tuple) -> "descriptor_pb2.DescriptorProto":
        message = parent.add(name=name)
        for number, (field_name, kind, label) in enumerate(fields, start=1):
            given = {"type_name": kind} if kind.startswith(".") else {"type": getattr(field, kind)}
            if kind.startswith("."):
                given["type"] = field.TYPE_MESSAGE
            message.field.add(name=field_name, number=number, label=getattr(field, f"LABEL_{label}"), **given)
        return message

    for kind, value_type in _KINDS:
        add(file.message_type, kind, ("value", value_type, "REPEATED"))
    feature = add(file.message_type, "Feature", *((kind, f".read.{kind}", "OPTIONAL") for kind, _ in _KINDS))
    feature.oneof_decl.add(name="kind")
    for each in feature.field:
        each.oneof_index = 0
    features = add(file.message_type, "Features", ("feature", ".read.Features.FeatureEntry", "REPEATED"))
    entry = ("key", "TYPE_STRING", "OPTIONAL"), ("value", ".read.Feature", "OPTIONAL")
    add(features.nested_type, "FeatureEntry", *entry).options.map_entry = True
    add(file.message_type, "Example", ("features", ".read.Features", "OPTIONAL"))
    # In a pool of its own, since TensorFlow describes the same message in the default one.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("read.Example"))


def decode_example(record: bytes, names: Collection[str] | None = None) -> Features:
    """The features of a serialized tf.train.Example.

    Args:
      record: its bytes.
      names: of the features that are wanted, None for all; one that the example lacks is not in the answer.

    Returns:
      Name -> a list of bytes, or an array, float32 or int64, of shape (values,). One of no kind has no values.

    Raises:
      ValueError: these bytes are no such message.
    """
    message = _make_message_class()()
    try:
        message.ParseFromString(record)
    except (DecodeError, TypeError) as error:
        raise ValueError(f"no tf.train.Example ({error})") from None
    found = message.features.feature
    # A look-up in a map of messages makes what it lacks, so ask first.
    wanted = found if names is None else [name for name in names if name in found]
    features: Features = {}
    for name in wanted:
        kind = found[name].WhichOneof("kind")
        values = getattr(found[name], kind).value if kind else []
        features[name] = np.fromiter(values, _DTYPES[kind], len(values)) if kind in _DTYPES else list(values)
    return features


SQLITE_MAGIC = b"SQLite format 3\0"
_PACKED_MAGICS = (b"\xfd7zXZ\0", b"\x5d\0\0")
_COLUMNS = {
    "examples": {"split_name", "client_id", "serialized_example_proto"},
    "client_metadata": {"client_id", "split_name", "num_examples"},
}
_OF_CLIENT = "SELECT serialized_example_proto FROM examples WHERE split_name = ? AND client_id = ? ORDER BY rowid"
_COPY = "copy.sqlite"  # the file of an entry in the cache
_OLDER_COPIES = ("[0-9a-f]" * 64 + "*.sqlite", "[0-9a-f]" * 64 + "*.sqlite.*.part")  # of versions that had no entries
_CHUNK_BYTES, _PROGRESS_EVERY_S = 1 << 22, 10.0
# TFF's largest records, photos of landmarks, have less than one MB.
_MAX_RECORD_BYTES = 2**26
# So many steps of SQLite's machine, between two looks at Ctrl-C, take some hundredths of a second.
_STEPS_AT_ONCE = 10**6
# A row takes some bytes and some dozen steps, also where a query goes through all of them.
_MAX_STEPS, _MAX_STEPS_PER_BYTE = 10**7, 20
# Times the packed bytes; none of TFF's files reaches 10.
_MOST_UNPACKED, _UNPACKED_AT_LEAST = 1000, 2**30


def starts_as_sqlite(path: str) -> bool:
    """Whether a file, packed by LZMA or not, begins as SQLite's do.

    Raises:
      OSError: it cannot be read.
    """
    with open_regular(path) as file:
        start = file.read(len(SQLITE_MAGIC))
    if start.startswith(_PACKED_MAGICS):
        with contextlib.suppress(lzma.LZMAError, EOFError, MemoryError), lzma.open(path) as packed:
            start = packed.read(len(SQLITE_MAGIC))
    return start == SQLITE_MAGIC


class TffDatabase:
    """One file. May be used by several threads and processes: each has a connection of its own, which only reads.

    Attributes:
      source: the user's file, as errors call it.
      digest: of its contents.
    """

    def __init__(self, path: str):
        """Opens it, which unpacks a packed one.

        Raises:
          DatasetError: it is no such file, or damaged, or the cache folder cannot be written.
        """
        self.source = path
        self._local = threading.local()
        self._counts: dict[str, dict[str, int]] | None = None
        with explain_errors(path, DatasetError):
            with open_regular(path) as file:
                is_packed = file.read(6).startswith(_PACKED_MAGICS)
            # Rows that SQLite reads, but has not yet put into the file.
            logs = [] if is_packed else [log for log in _find_logs(path) if log.endswith("-wal")]
            self.digest = compute_source_digest([path, *logs])
        self._path = _find_or_write_copy(self.digest, lambda draft: _unpack(path, draft)) if is_packed else path
        with explain_errors(path, DatasetError):
            self._size_bytes = sum(map(os.path.getsize, (self._path, *logs)))
        for table, expected in _COLUMNS.items():
            self._check_table(table, expected)
        plan = [step[3] for step in self._query(f"EXPLAIN QUERY PLAN {_OF_CLIENT}", ("", "")) if "examples" in step[3]]
        has_index = all(step.startswith("SEARCH") and "client_id=?" in step for step in plan)
        # Going through all examples for each client takes long where they are many.
        num_first = "SELECT COUNT(*) FROM (SELECT 1 FROM examples LIMIT 2000)"
        if not has_index and next(self._query(num_first))[0] == 2000:
            digest = hashlib.sha256(f"{self.digest} with an index".encode()).hexdigest()
            self._path = _find_or_write_copy(digest, self._copy_with_index)
            # The connection so far is to the file without an index.
            self._local = threading.local()

    def _check_table(self, table: str, expected: Collection[str]) -> None:
        """Raises DatasetError unless it is a table, with these columns, whose rows are stored."""
        made_by = next(self._query("SELECT sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", (table,)), None)
        if made_by is None:
            raise DatasetError(f"{self.source}: no table {table}, expected examples and client_metadata, as TFF's")
        # By this text SQLite goes, also of virtual tables, whose type is table.
        if not str(made_by[0]).upper().startswith("CREATE TABLE"):
            raise DatasetError(
                f"{self.source}: {table} is no table with rows of its own but a view or the like; expected a table, as "
                f"TFF's; CREATE TABLE ... AS SELECT * FROM {table} makes one"
            )
        found = {row[1]: row[6] for row in self._query(f"PRAGMA table_xinfo({table})")}
        if missing := sorted(expected - found.keys()):
            raise DatasetError(f"{self.source}: table {table} has no column {missing[0]}")
        if computed := sorted(name for name in expected if found[name]):
            raise DatasetError(
                f"{self.source}: column {computed[0]} of table {table} is computed, expected a stored one, as TFF's"
            )

    def fetch(self, client_id: str, split_name: str) -> list[bytes]:
        """One client's records of a split, in the order of the file."""
        return [record for (record,) in self._query(_OF_CLIENT, (split_name, client_id))]

    def iterate(self, split_names: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """(split, client, record) of all examples of these splits, in the order of the file."""
        names = list(split_names)
        marks = ",".join("?" * len(names))
        query = f"SELECT split_name, client_id, serialized_example_proto FROM examples WHERE split_name IN ({marks})"
        return self._query(query, names)

    def fetch_first(self, split_name: str, number: int) -> list[bytes]:
        """The records of the first examples of a split."""
        query = "SELECT serialized_example_proto FROM examples WHERE split_name = ? LIMIT ?"
        return [record for (record,) in self._query(query, (split_name, number))]

    def count_examples(self) -> dict[str, dict[str, int]]:
        """Split -> client -> number of examples, as the file's own table says, or counted where that is empty."""
        # To count takes seconds where there are many clients.
        if self._counts is not None:
            return self._counts
        query = "SELECT split_name, client_id, {count} FROM {table} GROUP BY split_name, client_id"
        counts: dict[str, dict[str, int]] = {}
        rows = list(self._query(query.format(count="SUM(num_examples)", table="client_metadata")))
        if not rows:
            rows = list(self._query(query.format(count="COUNT(*)", table="examples")))
        for split, client, number in rows:
            if not isinstance(client, str) or not isinstance(split, str) or not isinstance(number, int) or number < 0:
                raise DatasetError(
                    f"{self.source}: client_metadata has the row ({client!r}, {split!r}, {number!r}), expected a "
                    f"client, a split and the number of its examples"
                )
            if number > self._size_bytes:
                raise DatasetError(
                    f"{self.source}: client_metadata says that client {client!r} has {number} examples in split "
                    f"{split}, more than the file has bytes"
                )
            if number:
                counts.setdefault(split, {})[client] = number
        if not counts:
            raise DatasetError(f"{self.source}: it holds no example")
        self._counts = counts
        return counts

    def _query(self, query: str, values: Iterable = ()) -> Iterator[tuple]:
        try:
            connection = self._connect()
            self._local.steps.left = _MAX_STEPS + _MAX_STEPS_PER_BYTE * self._size_bytes
            yield from connection.execute(query, tuple(values))
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            reason = self._local.steps.explain(error) if getattr(self._local, "steps", None) else error
            raise DatasetError(f"{self.source}: damaged, or not a file of TFF's form ({reason})") from None

    def _connect(self) -> sqlite3.Connection:
        # A connection must not be carried over a fork.
        if getattr(self._local, "process", None) != os.getpid():
            # Immutable, it needs no files beside it, which would be foreign ones; but then a log is not seen.
            mode = "mode=ro" if self._path == self.source and _find_logs(self._path) else "mode=ro&immutable=1"
            address = f"file:{urllib.parse.quote(self._path)}?{mode}"
            connection = sqlite3.connect(address, uri=True, check_same_thread=False)
            self._local.steps = _Steps(connection)
            self._local.connection, self._local.process = connection, os.getpid()
        return self._local.connection

    def _copy_with_index(self, draft: str) -> None:
        _say(f"{self.source} has no index by client: a copy with one goes into {_get_cache().folder}")
        with contextlib.closing(sqlite3.connect(draft)) as connection:
            steps = _Steps(connection)
            try:
                # Rows of a -wal, too, which a copy of the file would lack. Between two pieces Ctrl-C is seen.
                self._connect().backup(connection, pages=2**14, progress=lambda *_: None)
                steps.left = _MAX_STEPS + _MAX_STEPS_PER_BYTE * self._size_bytes
                with connection:
                    connection.execute("CREATE INDEX by_client_and_split ON examples (client_id, split_name)")
            except sqlite3.Error as error:
                raise DatasetError(f"cannot write {draft} ({steps.explain(error)})") from None

    def __getstate__(self):
        return {**self.__dict__, "_local": None, "_counts": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._local = threading.local()


def _find_logs(path: str) -> list[str]:
    """The files beside a file to which SQLite writes before it, unless they are empty."""
    logs = [f"{os.path.realpath(path)}{suffix}" for suffix in ("-wal", "-journal")]
    return [log for log in logs if os.path.exists(log) and os.path.getsize(log) > 0]


class _Steps:
    """Lets a connection run nothing that its file brings along, and end.

    Attributes:
      left: to the query at hand.
    """

    def __init__(self, connection: sqlite3.Connection):
        self.left = _MAX_STEPS
        # A schema may call functions, such as in an index of a foreign file; without trust it runs none with effects.
        connection.execute("PRAGMA trusted_schema=OFF")
        # Damaged pages are noticed when they are loaded, before their rows are used.
        connection.execute("PRAGMA cell_size_check=ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_RECORD_BYTES)
        connection.set_progress_handler(self._look, _STEPS_AT_ONCE)

    def _look(self) -> bool:
        """Whether the query is to end. As this is Python's code, signals are seen before it."""
        self.left -= _STEPS_AT_ONCE
        return self.left <= 0

    def explain(self, error: Exception) -> object:
        """What went wrong with a query. Raises KeyboardInterrupt if that was a signal, which SQLite has swallowed."""
        if getattr(error, "sqlite_errorname", "") != "SQLITE_INTERRUPT":
            return str(error) or type(error).__name__
        if self.left > 0:
            raise KeyboardInterrupt from None
        return "a query takes more steps than a file of this size can need"


def arrange_counts(counts: dict[str, dict[str, int]]) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """(names of all clients, in order; part -> int64 (clients,), how many examples each has in it)."""
    names = tuple(sorted(set().union(*counts.values()), key=sort_key))
    return names, {
        part: np.fromiter((of_client.get(name, 0) for name in names), np.int64, len(names))
        for part, of_client in counts.items()
    }


def _get_cache() -> Cache:
    return Cache(default_cache_dir("tff"), "federated-suite copy of a file of TFF's", 1, may_trust_records=True)


def _find_or_write_copy(digest: str, write: Callable[[str], None]) -> str:
    """The path of a copy in the cache folder, which is written to the path of a draft unless it is there."""
    cache = _get_cache()
    try:
        cache.find_or_write(digest, lambda folder: write(os.path.join(folder, _COPY)))
    except OSError as error:
        raise DatasetError(f"cannot write into {cache.folder}: {describe(error)}") from None
    return os.path.join(cache.name_entry(digest), _COPY)


def _unpack(path: str, draft: str) -> None:
    total, said, written = os.path.getsize(path), time.monotonic(), 0
    most = max(_UNPACKED_AT_LEAST, _MOST_UNPACKED * total)
    if total > 50 * 2**20:
        _say(f"unpacking {path} ({total / 2**20:,.0f} MB) into {_get_cache().folder}")
    try:
        with open(path, "rb") as packed, lzma.open(packed) as content, open(draft, "wb") as file:
            while chunk := content.read(_CHUNK_BYTES):
                written += file.write(chunk)
                if written > most:
                    raise DatasetError(f"{path}: unpacks to more than {_MOST_UNPACKED} times its size; get it again")
                if time.monotonic() - said > _PROGRESS_EVERY_S:
                    _say(f"unpacking {os.path.basename(path)}: {packed.tell() / total:.0%}")
                    said = time.monotonic()
    except (lzma.LZMAError, EOFError, MemoryError) as error:
        raise DatasetError(f"{path}: damaged or truncated ({error or type(error).__name__}); get it again") from None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def clean_unpacked() -> int:
    """Deletes the unpacked and indexed copies in the cache folder, and nothing else. Returns the bytes freed.

    Raises:
      DatasetError: one cannot be deleted.
    """
    cache = _get_cache()
    try:
        freed_bytes = cache.clean()
        for path in find_files(cache.folder, *_OLDER_COPIES):
            freed_bytes += path.stat().st_size
            path.unlink()
    except OSError as error:
        raise DatasetError(f"cannot delete {error.filename}: {describe(error)}") from None
    return freed_bytes
