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
}


def edit(folder, place, value):
    file, *keys = place
    content = json.loads((folder / file).read_text())
    holder = content
    for key in keys[:-1]:
        holder = holder.setdefault(key, {})
    if keys:
        holder[keys[-1]] = copy.deepcopy(value)
    else:
        content = value
    (folder / file).write_text(json.dumps(content))


@pytest.fixture
def damage(write_sweep, tmp_path, capsys, monkeypatch):
    """A function (file, change of it) that compares a good run with a damaged one, and puts the file back."""
    monkeypatch.setattr(page, "read_plotly", lambda *_: "")  # 2 MB, which every page would have
    monkeypatch.setattr(page, "embed_packed", lambda name, content: content.decode())  # to be read, and quick
    runs = write_sweep([1], [0, 1])
    folder = runs / "T1" / "fedsikd_mnist_alpha0.1" / "seed_1"

    def compare_damaged(file, change):
        path = folder / file
        before = path.read_bytes() if path.exists() else None
        change(folder)
        exit_code = compare.main([f"--runs={runs}", f"--output={tmp_path / 'page.html'}"])
        written = capsys.readouterr()
        path.unlink()
        if before is not None:
            path.write_bytes(before)
        assert exit_code == 0, written.err
        made = (tmp_path / "page.html").read_text()
        assert written.out.startswith("2 runs") or "seed_1" in written.err, written
        assert "\x1b" not in written.out + written.err + made
        return written.err

    return compare_damaged


@pytest.mark.parametrize("place", PLACES, ids="/".join)
def test_values_of_other_kinds(damage, place):
    for value in VALUES:
        damage(place[0], lambda folder, value=value: edit(folder, place, value))


@pytest.mark.parametrize("name", TABLES)
def test_damaged_tables(damage, name):
    for text in TABLES[name]:
        damage(name, lambda folder, text=text: (folder / name).write_text(text))


def test_a_number_that_is_none_is_named(damage):
    said = damage("config.json", lambda folder: edit(folder, ("config.json", "flags", "dirichlet_alpha"), float("nan")))
    assert "it holds NaN, which is no number" in said


def test_a_whole_number_of_400_digits(damage):
    place = ("config.json", "flags", "server_learning_rate")
    damage("config.json", lambda folder: edit(folder, place, int("9" * 400)))


@pytest.mark.parametrize("text", [b"round\n\xff\n", b"round\n" + b"0" * 200_000 + b"\n"], ids=["Latin", "long"])
def test_events_that_cannot_be_read_are_left_out(damage, text):
    said = damage("events.csv", lambda folder: (folder / "events.csv").write_bytes(text))
    assert "seed_1/events.csv: cannot be read" in said and "without its events" in said


def test_pipes_in_the_place_of_tables_are_not_waited_at(damage):
    def put(folder, name):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    for name in ("metrics.csv", "timing.csv", "clients.csv", "events.csv"):
        assert "regular file" in damage(name, lambda folder, name=name: put(folder, name))


def test_runs_whose_settings_are_no_file_are_named(damage):
    """A comparison of three runs showed two, without a word."""

    def put(folder, make):
        (folder / "config.json").unlink()
        make(folder / "config.json")

    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        said = damage("config.json", lambda folder, make=make: put(folder, make))
        assert "not compared: " in said and "seed_1" in said
