"""The store that examples of files are written into: by client, whatever the order of the file."""

import io
import json
import os
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import assert_refused

from datasets.errors import DatasetError
from datasets.stored_source import (
    LEFT_OUT,
    SPLIT_ORDER,
    ExampleStore,
    GroupedExamples,
    Named,
    StoreWriter,
    clean_store_dir,
    open_or_write_store,
    show_progress,
    sort_key,
)
from files.cache_folder import default_cache_dir

DIGEST = "ab" * 32


def write_rows(writer, clients, splits="train", times=None, first=0):
    x = np.arange(first, first + len(clients), dtype=np.float32)[:, np.newaxis]
    y = np.arange(first, first + len(clients), dtype=np.int32) % 3
    if not isinstance(splits, str):
        splits = np.array([SPLIT_ORDER.index(each) for each in splits], np.uint8)
    writer.append(x, y, Named(np.arange(len(clients)), clients), splits, None if times is None else np.array(times))
    return {"told": [1, "zwei"]}


@pytest.fixture
def store_dir(monkeypatch, tmp_path):
    """The folder of the stores."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return pathlib.Path(default_cache_dir("stores"))


def open_rows(*args, **kwargs) -> ExampleStore:
    return open_or_write_store(DIGEST, lambda writer: write_rows(writer, *args, **kwargs))


def read(store, client, split="train"):
    return store.read(client, split)[0][:, 0].tolist()


def test_rows_are_found_by_client_and_split():
    splits = ["train", "test", "train", "train", "validation", "test"]
    store = open_rows(["10", "b", "9", "10", "b", "10"], splits)
    assert store.client_names == ("9", "10", "b")
    assert store.facts == {"told": [1, "zwei"]}
    assert {name: counts.tolist() for name, counts in store.num_examples.items()} == {
        "train": [1, 2, 0],
        "validation": [0, 0, 1],
        "test": [0, 1, 1],
    }
    assert [read(store, client) for client in range(3)] == [[2], [0, 3], []]
    assert read(store, 1, "test") == [5] and read(store, 2, "validation") == [4]
    assert store.read(1, "train")[1].tolist() == [0, 0]
    assert store.count_labels(3).tolist() == [[0, 0, 1], [2, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        ({"clients": ["a"], "splits": "test"}, {"train": [[]], "test": [[0]]}),  # train always is
        # Times order the rows of a client, and equal ones keep their order.
        (
            {"clients": ["a", "b", "a", "a", "a"], "times": [3.0, 0.0, 1.0, 2.0, 1.0]},
            {"train": [[2, 4, 3, 0], [1]]},
        ),
        ({"clients": ["a", "a", "a"], "splits": ["train", LEFT_OUT, "train"]}, {"train": [[0, 2]]}),
    ],
)
def test_a_client_has_the_rows_of_its_parts_in_order(rows, order):
    store = open_rows(**rows)
    everyone = range(len(store.client_names))
    assert {split: [read(store, client, split) for client in everyone] for split in store.num_examples} == order
    assert {split: [len(each) for each in order[split]] for split in order} == {
        split: counts.tolist() for split, counts in store.num_examples.items()
    }


def test_pieces_are_one_after_the_other():
    def write(writer: StoreWriter):
        write_rows(writer, ["a", "b"])
        write_rows(writer, [], first=2)
        write_rows(writer, ["a"], first=2)
        assert writer.num_rows == 3
        return {}

    store = open_or_write_store(DIGEST, write)
    assert read(store, 0) == [0, 2] and read(store, 1) == [1]


@pytest.mark.parametrize(
    ("width", "num_labels", "more", "message"),
    [
        (2, 1, {}, "before it was"),
        (1, 2, {}, "1 examples, 2 labels"),
        (1, 1, {"times": np.zeros(1)}, "times at every call"),
        (1, 1, {"split": np.zeros(2, np.uint8)}, "1 examples, 2 splits"),
    ],
)
def test_pieces_of_another_schema_are_refused(width, num_labels, more, message):
    def write(writer: StoreWriter):
        write_rows(writer, ["a"])
        with pytest.raises(ValueError, match=message):
            writer.append(np.zeros((1, width), np.float32), np.zeros(num_labels, np.int32), "a", **more)
        return {}

    assert read(open_or_write_store(DIGEST, write), 0) == [0]


def test_labels_may_be_renumbered_at_the_end():
    def write(writer: StoreWriter):
        writer.relabel(np.arange(3, dtype=np.int32))  # of nothing yet
        write_rows(writer, ["a", "b", "a"])
        writer.relabel(np.array([5, 4, 3], np.int32))
        write_rows(writer, ["a"])
        return {}

    store = open_or_write_store(DIGEST, write)
    assert store.read(0, "train")[1].tolist() == [5, 3, 0] and store.read(1, "train")[1].tolist() == [4]


def set_version(content):
    return json.dumps({**json.loads(content), "version": 1}).encode()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("store.json", set_version),
        ("x.raw", lambda content: content[:-3]),
        ("store.json", lambda content: content[:-3]),
    ],
)
def test_a_store_is_written_once_unless_it_is_damaged_or_of_an_earlier_version(store_dir, name, change):
    open_rows(["a", "a"])
    again = open_or_write_store(DIGEST, lambda _: pytest.fail("written twice"))
    assert read(again, 0) == [0, 1]
    path = store_dir / DIGEST / name
    path.write_bytes(change(path.read_bytes()))
    assert open_rows(["b"]).client_names == ("b",)


def test_what_fails_leaves_nothing_behind(store_dir):
    def fail(writer):
        write_rows(writer, ["a"])
        raise DatasetError("line 3 is wrong")

    assert_refused("line 3 is wrong", open_or_write_store, DIGEST, fail)
    assert_refused("no example", open_or_write_store, DIGEST, lambda _: {})
    assert os.listdir(store_dir) == [".lock-ab"]


def test_a_folder_that_cannot_be_written_is_one_line(store_dir):
    store_dir.parent.mkdir()
    store_dir.write_text("")
    assert_refused("cannot write the examples into", open_or_write_store, DIGEST, lambda _: {})


def test_names_of_clients_are_in_no_path(store_dir):
    store = open_rows(["../../up", "/etc", "Zoë"])
    assert store.client_names == ("../../up", "/etc", "Zoë")
    files = json.loads((store_dir / DIGEST / "store.json").read_text())["files"]
    assert set(os.listdir(store_dir / DIGEST)) == {*files, "store.json"}
    assert sorted(os.listdir(store_dir)) == [".lock-ab", DIGEST]
    assert clean_store_dir() > 0 and os.listdir(store_dir) == []


def test_names_that_are_numbers_come_first_in_their_order():
    assert sorted(["b", "10", "9", "a", "", "٣"], key=sort_key) == ["9", "10", "", "a", "b", "٣"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=30))
def test_labels_are_counted_by_client(pairs):
    clients, labels = (np.array([pair[at] for pair in pairs], np.int64) for at in range(2))
    counts = GroupedExamples(None, labels, None, clients, np.zeros(len(pairs), np.uint8), 5).count_labels(3)
    assert counts.sum() == len(pairs)
    assert all(counts[client, label] == pairs.count((client, label)) for client in range(5) for label in range(3))


class Terminal(io.StringIO):
    """A standard error that says that somebody looks at it."""

    def isatty(self):
        return True


def test_items_pass_and_without_a_terminal_nothing_is_shown(capsys):
    assert list(show_progress(iter("abc"), "letters")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_a_bar_once_the_work_takes_long(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    list(show_progress([1, 2], "numbers"))
    assert terminal.getvalue() == ""
    monkeypatch.setattr("datasets.stored_source._SHOWN_AFTER_S", 0.0)
    list(show_progress([1, 2], "numbers"))
    assert "numbers" in terminal.getvalue()
