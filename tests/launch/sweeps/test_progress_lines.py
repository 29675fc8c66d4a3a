"""What is shown of a run is read from the lines that a run prints."""

from types import SimpleNamespace

import pytest

from launch.progress import Progress
from launch.sweeps.progress_lines import ProgressOfMany
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task


@pytest.fixture
def tasks(tmp_path):
    config = SimpleNamespace(seed=0, rounds=10)
    return [Task(Recipe("a", "--flagfile=a.flags"), (), tmp_path / "seed_0", config)]


@pytest.fixture
def lines_of_rounds(capsys):
    progress = Progress(rounds=10, done=4)
    progress.update(5, 0.5)
    progress.update(6, 0.625, 0.75)
    return capsys.readouterr().out.splitlines()


def test_the_lines_of_a_run_are_understood(tasks, lines_of_rounds, capsys, monkeypatch):
    monkeypatch.setattr("launch.sweeps.progress_lines.SECONDS_PER_LINE", 0)
    shown = ProgressOfMany([10], slots=2, keeps_logs=True)
    shown.start(1, tasks[0], slot=1)
    shown.read(1, ["run      fedavg, 10 rounds", *lines_of_rounds])
    line, all_runs = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith("[1/1] a, seed 0: round 6/10, test accuracy 0.6250, clients' own 0.7500, ")
    assert all_runs.startswith("0 of 1 runs have ended: ") and all_runs.endswith(" left")
    assert shown.last_line(1) == lines_of_rounds[-1]


def test_a_run_that_has_ended_is_shown_with_its_result(tasks, lines_of_rounds, capsys):
    shown = ProgressOfMany([10], slots=2, keeps_logs=True)
    shown.start(1, tasks[0], slot=0)
    shown.read(0, [*lines_of_rounds, "done     10 rounds in 3 s: test accuracy 0.5000", "next     python -m ...", ""])
    shown.end(1, slot=0)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "[1/1] a, seed 0: done in 0 s; 10 rounds in 3 s: test accuracy 0.5000"
    )


def test_an_error_is_the_last_line(tasks):
    shown = ProgressOfMany([10], slots=2, keeps_logs=True)
    shown.start(1, tasks[0], slot=0)
    shown.read(0, ["run      fedavg, 10 rounds", "error: no space is left", "", "Exception ignored in: ..."])
    assert shown.last_line(0) == "error: no space is left"
