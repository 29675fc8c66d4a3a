"""One damaged or foreign run among many is named with the reason; the page of the others is made."""

import copy
import json
import os

import pytest

from launch import compare
from launch.pages.comparison import page

VALUES = (None, True, 2.5, "x", [], {"a": 1}, float("inf"), 10**30, "\x1b[31m<b>")
PLACES = [
    *(("config.json", *keys) for keys in ((), ("flags",), ("data",), ("git_revision",), ("versions",))),
    *(("config.json", "flags", name) for name in ("algo", "dataset", "seed", "partition", "dirichlet_alpha", "rounds")),
    *(("config.json", "data", name) for name in ("dataset", "digest", "reading", "notes", "num_clients_left_out")),
    *(("summary.json", *keys) for keys in ((), ("final",), ("rounds",), ("clients",))),
]
TABLES = {
    "metrics.csv": ("", "round\n", "round,test_accuracy\n1,inf\n2,1e999\n3,nan\n", "x,y\n1\n", "\x00"),
    "clients.csv": ("", "client\n", "client,accuracy\n=cmd(),inf\n", '"', "client,client\na,b\n"),
    "timing.csv": ("", "round,round_s\n1,inf\n", "round,round_s\nx,y\n"),
    "events.csv": (),
}


def edit(path, keys, value):
    content = json.loads(path.read_text())
    holder = content
    for key in keys[:-1]:
        holder = holder.setdefault(key, {})
    if keys:
        holder[keys[-1]] = copy.deepcopy(value)
    path.write_text(json.dumps(content if keys else value))


def put(path, make):
    path.unlink()
    make(path)


@pytest.fixture
def damage(write_sweep, tmp_path, capsys, monkeypatch):
    """(file, change of its path) compares a good run with a damaged one, and puts the file back -> what was said."""
    monkeypatch.setattr(page, "read_plotly", lambda *_: "")  # 2 MB, which every page would have
    monkeypatch.setattr(page, "embed_packed", lambda name, content: content.decode())  # to be read, and quick
    runs = write_sweep([1], [0, 1])

    def compare_damaged(file, change):
        path = runs / "T1" / "fedsikd_mnist_alpha0.1" / "seed_1" / file
        before = path.read_bytes()
        change(path)
        exit_code = compare.main([f"--runs={runs}", f"--output={tmp_path / 'page.html'}"])
        written = capsys.readouterr()
        path.unlink()
        path.write_bytes(before)
        assert exit_code == 0, written.err
        assert written.out.startswith("2 runs") or "seed_1" in written.err, written
        assert "\x1b" not in written.out + written.err + (tmp_path / "page.html").read_text()
        return written.err

    return compare_damaged


@pytest.mark.parametrize("place", PLACES, ids="/".join)
def test_values_of_other_kinds(damage, place):
    file, *keys = place
    for value in VALUES:
        damage(file, lambda path, value=value: edit(path, keys, value))


@pytest.mark.parametrize("name", TABLES)
def test_damaged_tables(damage, name):
    """Pipes in their place are not waited at."""
    for text in TABLES[name]:
        damage(name, lambda path, text=text: path.write_text(text))
    assert "regular file" in damage(name, lambda path: put(path, os.mkfifo))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: edit(path, ("flags", "dirichlet_alpha"), float("nan")), "it holds NaN, which is no number"),
        (lambda path: edit(path, ("flags", "server_learning_rate"), int("9" * 400)), ""),
        # A comparison of three runs showed two, without a word.
        (lambda path: put(path, os.mkfifo), "not compared: "),
        (lambda path: put(path, lambda path: path.symlink_to("/dev/zero")), "not compared: "),
    ],
    ids=["NaN", "400 digits", "pipe", "device"],
)
def test_settings_that_are_no_file_or_hold_no_number(damage, change, said):
    assert said in damage("config.json", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"round\n\xff\n"),
        lambda path: path.write_bytes(b"round\n" + b"0" * 200_000 + b"\n"),
    ],
    ids=["Latin", "long"],
)
def test_events_that_cannot_be_read_are_left_out(damage, change):
    said = damage("events.csv", change)
    assert "seed_1/events.csv: cannot be read" in said and "without its events" in said
