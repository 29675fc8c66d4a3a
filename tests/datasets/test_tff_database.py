"""Files of TFF's form: packed, without an index, from several threads and processes, and wrong in each way."""

import concurrent.futures
import contextlib
import lzma
import multiprocessing
import os
import pathlib
import signal
import sqlite3

import numpy as np
import pytest
from refusals import assert_refused

from datasets import tff_database as database_module
from datasets.tff_database import (
    SQLITE_MAGIC,
    TffDatabase,
    arrange_counts,
    clean_unpacked,
    decode_example,
    starts_as_sqlite,
)

SPLITS = {
    "train": {"10": [{"n": 1}, {"n": 2}], "9": [{"n": 3}], "Zoë": [{"n": 4}]},
    "test": {"9": [{"n": 5}], "only here": [{"n": 6}]},
}


@pytest.fixture
def path(tmp_path, write_tff_file):
    return write_tff_file(tmp_path / "some.sqlite", SPLITS)


def read_numbers(database, client, split):
    return [int(decode_example(record)["n"][0]) for record in database.fetch(client, split)]


def fetch_in_child(database):
    return read_numbers(database, "10", "train")


def test_clients_counts_and_records(path):
    database = TffDatabase(path)
    counts = database.count_examples()
    assert counts == {"train": {"10": 2, "9": 1, "Zoë": 1}, "test": {"9": 1, "only here": 1}}
    assert read_numbers(database, "10", "train") == [1, 2]
    assert read_numbers(database, "Zoë", "train") == [4]
    assert read_numbers(database, "Zoë", "test") == []
    assert [(split, client) for split, client, _ in database.iterate(["test"])] == [
        ("test", "9"),
        ("test", "only here"),
    ]
    names, arrays = arrange_counts(counts)
    assert names == ("9", "10", "Zoë", "only here")
    assert arrays["train"].tolist() == [1, 2, 1, 0]
    assert arrays["test"].tolist() == [1, 0, 0, 1]


def pack(path, content, packing=lzma.FORMAT_XZ):
    packed = pathlib.Path(path).with_suffix(".sqlite.lzma")
    packed.write_bytes(lzma.compress(content, packing))
    return str(packed)


@pytest.mark.parametrize("packing", [lzma.FORMAT_XZ, lzma.FORMAT_ALONE])
def test_a_packed_file_is_unpacked_once_into_the_cache(path, tmp_path, packing):
    packed = pack(path, pathlib.Path(path).read_bytes(), packing)
    assert starts_as_sqlite(packed)
    assert read_numbers(TffDatabase(packed), "10", "train") == [1, 2]
    (unpacked,) = find_copies()
    before = unpacked.stat().st_mtime_ns
    assert read_numbers(TffDatabase(packed), "9", "test") == [5]
    assert unpacked.stat().st_mtime_ns == before and len(os.listdir(tmp_path)) == 2


def find_copies():
    return list(pathlib.Path(os.environ["XDG_CACHE_HOME"]).rglob("*.sqlite*"))


def test_rows_that_sqlite_has_not_yet_put_into_the_file_are_seen(path, tmp_path):
    link = tmp_path / "linked.sqlite"
    link.symlink_to(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        before = TffDatabase(path).digest
        with connection:
            record = connection.execute("SELECT serialized_example_proto FROM examples").fetchone()[0]
            connection.execute("INSERT INTO examples VALUES ('train', '9', ?)", (record,))
        database = TffDatabase(path)
        assert os.path.getsize(f"{path}-wal") > 0 and database.digest != before
        assert read_numbers(database, "9", "train") == [3, 1]
        assert TffDatabase(str(link)).digest == database.digest


def test_packed_files_that_end_too_early_or_never_are_one_line_and_leave_nothing(path, monkeypatch):
    packed = pathlib.Path(pack(path, pathlib.Path(path).read_bytes()))
    packed.write_bytes(packed.read_bytes()[:-40])
    assert_refused(r"some\.sqlite\.lzma: damaged or truncated", TffDatabase, str(packed))
    monkeypatch.setattr(database_module, "_UNPACKED_AT_LEAST", 2**20)
    message = r"some\.sqlite\.lzma: unpacks to more than 1000 times its size"
    assert_refused(message, TffDatabase, pack(path, SQLITE_MAGIC + bytes(2**23)))
    assert find_copies() == []


def test_a_large_file_without_an_index_is_copied_with_one(tmp_path, write_tff_file, capsys):
    many = {"train": {f"client {number}": [{"n": number}] * 20 for number in range(100)}}
    path = write_tff_file(tmp_path / "some.sqlite", many, has_index=False)
    content = pathlib.Path(path).read_bytes()
    assert read_numbers(TffDatabase(path), "client 7", "train") == [7] * 20
    assert "no index by client" in capsys.readouterr().err
    assert pathlib.Path(path).read_bytes() == content
    TffDatabase(path)
    assert capsys.readouterr().err == ""


def test_threads_and_processes_read_side_by_side(path):
    database = TffDatabase(path)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fetch_in_child, [database] * 16)) == [[1, 2]] * 16
    for method in ("fork", "spawn"):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
            assert pool.submit(fetch_in_child, database).result() == [1, 2]


@pytest.mark.parametrize(
    ("metadata", "counts"),
    [
        ([], {"train": {"10": 2, "9": 1, "Zoë": 1}, "test": {"9": 1, "only here": 1}}),  # by the examples
        ([("10", "train", 1), ("10", "train", 1)], {"train": {"10": 2}}),  # two rows of a client are added up
    ],
)
def test_counts_of_an_odd_table(tmp_path, write_tff_file, metadata, counts):
    path = write_tff_file(tmp_path / "some.sqlite", SPLITS, metadata=metadata)
    assert TffDatabase(path).count_examples() == counts


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE client_metadata", "no table client_metadata"),
        ("DROP TABLE examples", "no table examples"),
        ("ALTER TABLE examples RENAME COLUMN client_id TO user", "table examples has no column client_id"),
        ("UPDATE client_metadata SET num_examples = 'many'", "client_metadata has the row"),
        ("UPDATE client_metadata SET num_examples = -1", "client_metadata has the row"),
        ("UPDATE client_metadata SET client_id = NULL", "client_metadata has the row"),
        ("DELETE FROM client_metadata; DELETE FROM examples", "it holds no example"),
        (
            "UPDATE client_metadata SET num_examples = 1000000000000 WHERE client_id = '10'",
            "client_metadata says that client '10' has 1000000000000 examples in split train, more than the file",
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(path, statement, message):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)
    assert_refused(rf"some\.sqlite: {message}", lambda: TffDatabase(path).count_examples())


def test_a_damaged_file_is_one_line(path):
    content = pathlib.Path(path).read_bytes()
    pathlib.Path(path).write_bytes(content[:100] + b"\x55" * (len(content) - 100))
    assert_refused(r"some\.sqlite: damaged", lambda: TffDatabase(path).count_examples())


def test_cleaning_takes_copies_and_those_of_earlier_versions(path, tmp_path):
    TffDatabase(pack(path, pathlib.Path(path).read_bytes()))
    folder = pathlib.Path(os.environ["XDG_CACHE_HOME"], "federated_suite", "tff")
    digest = "ab" * 32
    for name in ("", ".indexed"):
        (folder / f"{digest}{name}.sqlite").write_bytes(b"12345")
        (folder / f"{digest}{name}.sqlite.{'0' * 16}.part").write_bytes(b"12345")
    (folder / "mine.sqlite").touch()
    assert clean_unpacked() > 20
    assert os.listdir(folder) == ["mine.sqlite"]


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
OF_EXAMPLES = "split_name, client_id, serialized_example_proto"
METADATA = "DROP TABLE client_metadata"
RENAME = "ALTER TABLE examples RENAME TO stored"
HOSTILE = {
    "an endless view": [RENAME, f"CREATE VIEW examples AS {ENDLESS} SELECT 'train' split_name, x client_id, x "
                        "serialized_example_proto FROM c"],
    "a view of the examples": [RENAME, f"CREATE VIEW Examples AS SELECT {OF_EXAMPLES} FROM stored"],
    "an endless view of the metadata": [METADATA, f"CREATE VIEW client_metadata AS {ENDLESS} SELECT 'train' "
                                        "split_name, x client_id, 1 num_examples FROM c"],
    "a virtual table": [RENAME, f"CREATE VIRTUAL TABLE examples USING fts5({OF_EXAMPLES})"],
    "a view that says it is a table": [RENAME, f"CREATE VIEW examples AS {ENDLESS} SELECT 'a' split_name, x client_id, "
                                       "x serialized_example_proto FROM c", "PRAGMA writable_schema=ON",
                                       "UPDATE sqlite_master SET type = 'table' WHERE name = 'examples'"],
    "a computed column": [METADATA, "CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples "
                          "INTEGER AS (length(zeroblob(900000000))))"],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_sqlite_would_compute_is_refused_and_not_run(path, name):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in HOSTILE[name]:
            connection.execute(statement)
    expected = {
        "a computed column": "column num_examples of table client_metadata is computed, expected a stored one",
        "a view that says it is a table": "malformed database schema",
    }.get(name, "is no table with rows of its own")
    assert_refused(expected, TffDatabase, path)


def test_triggers_and_other_views_of_a_file_stay_without_effect(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"CREATE VIEW other AS {ENDLESS} SELECT x FROM c")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON examples BEGIN DELETE FROM examples; END")
    assert read_numbers(TffDatabase(path), "10", "train") == [1, 2]


def test_an_endless_query_ends(path, monkeypatch):
    database = TffDatabase(path)
    monkeypatch.setattr(database_module, "_MAX_STEPS", 10**6)
    assert_refused(
        "more steps than a file of this size can need", next, database._query(f"{ENDLESS} SELECT max(x) FROM c")
    )
    assert read_numbers(database, "10", "train") == [1, 2]


def test_a_signal_ends_a_query(path, monkeypatch):
    monkeypatch.setattr(database_module, "_MAX_STEPS", 10**12)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(TffDatabase(path)._query(f"{ENDLESS} SELECT max(x) FROM c"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_huge_record_is_one_line(path, monkeypatch):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO examples VALUES ('train', '9', zeroblob(2000000))")
    monkeypatch.setattr(database_module, "_MAX_RECORD_BYTES", 10**6)
    assert_refused(r"some\.sqlite: damaged, .*\(string or blob too big", TffDatabase(path).fetch, "9", "train")


def test_pipes_beside_a_file_are_not_opened(path):
    for suffix in ("-wal", "-journal", "-shm"):
        os.mkfifo(f"{path}{suffix}")
    assert read_numbers(TffDatabase(path), "10", "train") == [1, 2]


def make_example():
    import tensorflow as tf

    example = tf.train.Example()
    features = example.features.feature
    features["text"].bytes_list.value.extend([b"Hark!", b"\xff\0", b""])
    features["numbers"].int64_list.value.extend([0, -1, 2**63 - 1, -(2**63)])
    features["pixels"].float_list.value.extend([0.1, -1.5, float("inf")])
    features["é/ß"].int64_list.value.append(7)
    features["nothing"].SetInParent()
    features["empty"].float_list.SetInParent()
    return example


def test_every_kind_of_feature_is_read_as_tensorflow_has_it():
    found = decode_example(make_example().SerializeToString())
    assert set(found) == {"text", "numbers", "pixels", "é/ß", "nothing", "empty"}
    assert found["text"] == [b"Hark!", b"\xff\0", b""]
    assert found["numbers"].dtype == np.int64
    assert found["numbers"].tolist() == [0, -1, 2**63 - 1, -(2**63)]
    assert found["pixels"].dtype == np.float32
    np.testing.assert_array_equal(found["pixels"], np.array([0.1, -1.5, np.inf], np.float32))
    assert len(found["nothing"]) == 0
    assert found["empty"].shape == (0,)


def test_only_features_that_are_asked_for_and_there_are_read():
    assert set(decode_example(make_example().SerializeToString(), ["text", "absent"])) == {"text"}


def test_tensorflow_reads_on_after_us():
    import tensorflow as tf

    record = make_example().SerializeToString()
    decode_example(record)
    parsed = tf.io.parse_single_example(record, {"é/ß": tf.io.FixedLenFeature((), tf.int64)})
    assert parsed["é/ß"].numpy() == 7


def test_what_is_no_example_is_refused():
    for record in (b"\x0a\xff", b"\x00", make_example().SerializeToString()[:-3]):
        with pytest.raises(ValueError, match=r"no tf\.train\.Example"):
            decode_example(record)
