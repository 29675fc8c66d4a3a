"""Patterns and archives name runs; each run is there once, in a fixed order."""

import json

import pytest

from launch.pages.comparison.collection import collect_runs, shorten_names
from launch.report import main as report


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
    """At its flagfile's temperature, so that launch.report counts the runs."""
    folder, archive = str(write_sweep([3], [0, 1])), str(tmp_path / "kept.zip")
    assert report(["--tables=fedsikd", f"--runs_dir={folder}", f"--archive={archive}"]) == 0
    on_disk, archived, by_pattern, both = (
        collect_runs(*asked).runs for asked in (([folder],), ([], [archive]), ([archive],), ([folder], [archive]))
    )
    for ours, again, theirs in zip(archived, by_pattern, on_disk, strict=True):
        assert ours.name == again.name == theirs.name and ours.flags == theirs.flags
        shared = {name: theirs.columns[name].tolist() for name in ours.columns}
        assert {name: values.tolist() for name, values in ours.columns.items()} == shared
        assert {"round", "test_accuracy", "bytes_up"} <= shared.keys()
    assert [run.name.startswith("kept/") for run in both] == [False, False, True, True]


def test_own_algorithms_have_the_titles_and_colors_that_their_runs_hold_and_are_told_apart(write_sweep, change_flags):
    folder = write_sweep([1, 2, 3, 4], [0])
    rows = ("one", "moon", "Moon", "#123456"), ("two", "moon", "Moon", "red"), ("two", "sun", "Sun", "#654321")
    for number, (module, *row) in enumerate((*rows, ("three", "", "", "")), 1):
        run_dir = folder / f"T{number}" / "fedsikd_mnist_alpha0.1" / "seed_0"
        change_flags(run_dir, algo=f"{module}:ROW")
        config = json.loads((run_dir / "config.json").read_text())
        own = dict(zip(("name", "title", "color"), row, strict=True))
        (run_dir / "config.json").write_text(json.dumps(config | {"own_algorithm": own}))
    runs = collect_runs([str(folder)]).runs
    assert [(run.title, run.flags["algo"], run.color) for run in runs] == [
        ("Moon (one:ROW)", "one:ROW", "#123456"),
        ("Moon (two:ROW)", "two:ROW (Moon)", None),
        ("Sun", "two:ROW (Sun)", "#654321"),
        ("three:ROW", "three:ROW", None),
    ]
    assert runs[0].heading == "Moon (one:ROW) on MNIST, alpha 0.1, seed 0"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["runs/a/seed_0", "runs/b/seed_0"], ["a/seed_0", "b/seed_0"]),
        (["runs/a/seed_0"], ["seed_0"]),
        (["runs/ab", "runs/ac/x"], ["ab", "ac/x"]),
    ],
)
def test_names_lose_the_folders_that_all_share(names, short):
    assert shorten_names(names) == short
