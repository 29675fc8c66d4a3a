"""The store that examples of files are written into: by client, whatever the order of the file."""

import io
import json
import os
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
    default_store_dir,
    open_or_write_store,
    show_progress,
    sort_key,
)

DIGEST = "ab" * 32


def write_rows(writer, clients, splits="train", times=None, first=0):
    x = np.arange(first, first + len(clients), dtype=np.float32)[:, np.newaxis]
    y = np.arange(first, first + len(clients), dtype=np.int32) % 3
    if not isinstance(splits, str):
        splits = np.array([SPLIT_ORDER.index(each) for each in splits], np.uint8)
    writer.append(x, y, Named(np.arange(len(clients)), clients), splits, None if times is None else np.array(times))
    return {"told": [1, "zwei"]}


def open_rows(tmp_path, *args, **kwargs) -> ExampleStore:
    return open_or_write_store(DIGEST, lambda writer: write_rows(writer, *args, **kwargs), str(tmp_path))


def read(store, client, split="train"):
    return store.read(client, split)[0][:, 0].tolist()


def test_rows_are_found_by_client_and_split(tmp_path):
    splits = ["train", "test", "train", "train", "validation", "test"]
    store = open_rows(tmp_path, ["10", "b", "9", "10", "b", "10"], splits)
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


def test_times_order_the_rows_of_a_client_and_equal_ones_keep_their_order(tmp_path):
    store = open_rows(tmp_path, ["a", "b", "a", "a", "a"], times=[3.0, 0.0, 1.0, 2.0, 1.0])
    assert read(store, 0) == [2, 4, 3, 0]


def test_rows_that_are_left_out_are_nobodys_examples_and_splits_that_nobody_has_are_none_but_train(tmp_path):
    store = open_rows(tmp_path, ["a", "a", "a"], ["test", LEFT_OUT, "test"])
    assert read(store, 0, "test") == [0, 2] and store.splits.tolist() == [2, 3, 2]
    assert {name: counts.tolist() for name, counts in store.num_examples.items()} == {"train": [0], "test": [2]}


def test_pieces_are_one_after_the_other(tmp_path):
    def write(writer: StoreWriter):
        write_rows(writer, ["a", "b"])
        write_rows(writer, [], first=2)
        write_rows(writer, ["a"], first=2)
        assert writer.num_rows == 3
        return {}

    store = open_or_write_store(DIGEST, write, str(tmp_path))
    assert read(store, 0) == [0, 2] and read(store, 1) == [1]


def test_pieces_of_another_form_are_refused(tmp_path):
    def write(writer: StoreWriter):
        write_rows(writer, ["a"])
        with pytest.raises(ValueError, match="before it was"):
            writer.append(np.zeros((1, 2), np.float32), np.zeros(1, np.int32), "a")
        with pytest.raises(ValueError, match="1 examples, 2 labels"):
            writer.append(np.zeros((1, 1), np.float32), np.zeros(2, np.int32), "a")
        with pytest.raises(ValueError, match="times at every call"):
            writer.append(np.zeros((1, 1), np.float32), np.zeros(1, np.int32), "a", times=np.zeros(1))
        return {}

    assert read(open_or_write_store(DIGEST, write, str(tmp_path)), 0) == [0]


def test_labels_may_be_renumbered_at_the_end(tmp_path):
    def write(writer: StoreWriter):
        writer.relabel(np.arange(3, dtype=np.int32))  # of nothing yet
        write_rows(writer, ["a", "b", "a"])
        writer.relabel(np.array([5, 4, 3], np.int32))
        write_rows(writer, ["a"])
        return {}

    store = open_or_write_store(DIGEST, write, str(tmp_path))
    assert store.read(0, "train")[1].tolist() == [5, 3, 0] and store.read(1, "train")[1].tolist() == [4]


def test_a_store_of_an_earlier_version_is_written_anew(tmp_path):
    open_rows(tmp_path, ["a"])
    path = tmp_path / DIGEST / "store.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 1}))
    assert open_rows(tmp_path, ["b", "a"]).client_names == ("a", "b")


def test_what_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path):
    def fail(writer):
        write_rows(writer, ["a"])
        raise DatasetError("line 3 is wrong")

    assert_refused("line 3 is wrong", open_or_write_store, DIGEST, fail, str(tmp_path))
    assert_refused("no example", open_or_write_store, DIGEST, lambda _: {}, str(tmp_path))
    assert os.listdir(tmp_path) == [".lock-ab"]
    (tmp_path / "file").touch()
    assert_refused("cannot write the examples into", open_or_write_store, DIGEST, fail, str(tmp_path / "file" / "x"))


def test_names_of_clients_are_in_no_path(tmp_path):
    store = open_rows(tmp_path, ["../../up", "/etc", "Zoë"])
    assert store.client_names == ("../../up", "/etc", "Zoë")
    files = json.loads((tmp_path / DIGEST / "store.json").read_text())["files"]
    assert set(os.listdir(tmp_path / DIGEST)) == {*files, "store.json"}
    assert sorted(os.listdir(tmp_path)) == [".lock-ab", DIGEST]


def test_the_cache_of_the_user_is_the_default_and_is_cleaned(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    open_or_write_store(DIGEST, lambda writer: write_rows(writer, ["a"]))
    assert DIGEST in os.listdir(default_store_dir()) and default_store_dir().startswith(str(tmp_path))
    assert clean_store_dir() > 0 and os.listdir(default_store_dir()) == []


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
