"""Patterns and archives name runs; each run is there once, in a fixed order."""

import json

import pytest

from launch.pages.comparison.collection import collect_runs, shorten_names
from launch.report import main as report
from launch.runs.errors import RunFolderError
from launch.settings.errors import FlagError


def test_patterns_find_runs_at_any_depth_in_order_and_once(write_sweep):
    folder = write_sweep([10, 2], [0, 10, 2])
    collected = collect_runs([f"{folder}/T2", f"{folder}/*", f"{folder}/**/seed_0"])
    assert [run.name for run in collected.runs] == [
        f"T{temperature}/fedsikd_mnist_alpha0.1/seed_{seed}" for temperature in (2, 10) for seed in (0, 2, 10)
    ]
    assert collected.left_out == []


def test_unfinished_runs_are_left_out_with_a_reason(write_sweep):
    folder = write_sweep([1], [0, 1])
    unfinished = folder / "T1" / "fedsikd_mnist_alpha0.1" / "seed_1"
    (unfinished / "summary.json").unlink()
    collected = collect_runs([str(folder)])
    assert [run.name for run in collected.runs] == ["seed_0"]
    assert collected.left_out == [f"{unfinished}: not finished"]


def test_an_archive_holds_the_same_runs(write_sweep, tmp_path):
    folder = write_sweep([3], [0, 1])
    archive = tmp_path / "kept.zip"
    # At its flagfile's temperature, so that launch.report counts the runs.
    assert report(["--tables=fedsikd", f"--runs_dir={folder}", f"--archive={archive}"]) == 0
    on_disk, kept = collect_runs([str(folder)]), collect_runs([], [str(archive)])
    assert [run.name for run in kept.runs] == [run.name for run in on_disk.runs] == ["seed_0", "seed_1"]
    assert [run.name for run in collect_runs([str(archive)]).runs] == ["seed_0", "seed_1"]
    for ours, theirs in zip(kept.runs, on_disk.runs, strict=True):
        shared = {name: theirs.columns[name].tolist() for name in ours.columns}
        assert {name: values.tolist() for name, values in ours.columns.items()} == shared
        assert {"round", "test_accuracy", "bytes_up"} <= shared.keys()
        assert ours.flags == theirs.flags
    both = collect_runs([str(folder)], [str(archive)])
    assert len(both.runs) == 4 and both.runs[2].name.startswith("kept/")


def test_own_algorithms_have_the_titles_and_colors_that_their_runs_hold_and_are_told_apart(write_sweep, change_flags):
    folder = write_sweep([1, 2, 3, 4], [0])
    shown = [
        ("one", "moon", "Moon", "#123456"),
        ("two", "moon", "Moon", "red"),
        ("two", "sun", "Sun", "#654321"),
        ("three", "", "", ""),
    ]
    for number, (module, *row) in enumerate(shown, 1):
        run_dir = folder / f"T{number}" / "fedsikd_mnist_alpha0.1" / "seed_0"
        change_flags(run_dir, algo=f"{module}:ROW")
        config = json.loads((run_dir / "config.json").read_text())
        config["own_algorithm"] = dict(zip(("name", "title", "color"), row, strict=True))
        (run_dir / "config.json").write_text(json.dumps(config))
    runs = collect_runs([str(folder)]).runs
    assert [(run.title, run.flags["algo"], run.color) for run in runs] == [
        ("Moon (one:ROW)", "one:ROW", "#123456"),
        ("Moon (two:ROW)", "two:ROW (Moon)", None),
        ("Sun", "two:ROW (Sun)", "#654321"),
        ("three:ROW", "three:ROW", None),
    ]
    assert runs[0].heading == "Moon (one:ROW) on MNIST, alpha 0.1, seed 0"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda folder: folder.rmdir(), "nothing there; expected folders of runs"),
        (lambda folder: None, "no folder there holds a run"),
        (lambda folder: (folder / "config.json").write_text("{}"), "no finished run: .*: not finished"),
    ],
)
def test_nothing_to_compare_is_one_line(tmp_path, make, expected):
    folder = tmp_path / "runs"
    folder.mkdir()
    make(folder)
    with pytest.raises(FlagError, match=expected) as raised:
        collect_runs([str(folder)])
    assert "\n" not in str(raised.value)


def test_a_damaged_or_missing_archive_is_named(tmp_path):
    (tmp_path / "a.zip").write_text("no zip")
    for name in ("a.zip", "b.zip"):
        with pytest.raises(RunFolderError, match=name):
            collect_runs([], [str(tmp_path / name)])


def test_names_lose_the_folders_that_all_share():
    assert shorten_names(["runs/a/seed_0", "runs/b/seed_0"]) == ["a/seed_0", "b/seed_0"]
    assert shorten_names(["runs/a/seed_0"]) == ["seed_0"]
    assert shorten_names(["runs/ab", "runs/ac/x"]) == ["ab", "ac/x"]
