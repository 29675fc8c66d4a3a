"""What is shown of a run is read from the lines that a run prints."""

from types import SimpleNamespace

from launch.console.progress import Progress
from launch.sweeps.progress_lines import ProgressOfMany
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task


def test_the_lines_of_a_run_are_understood_its_result_and_an_error_at_its_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("launch.sweeps.progress_lines.SECONDS_PER_LINE", 0)
    progress = Progress(rounds=10, done=4)
    progress.update(5, 0.5)
    progress.update(6, 0.625, 0.75)
    lines = capsys.readouterr().out.splitlines()
    shown = ProgressOfMany([10], slots=2, keeps_logs=True)
    config = SimpleNamespace(seed=0, rounds=10)
    shown.start(1, Task(Recipe("a", "--flagfile=a.flags"), (), tmp_path / "seed_0", config), slot=1)
    shown.read(1, ["run      fedavg, 10 rounds", *lines])
    line, all_runs = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith("[1/1] a, seed 0: round 6/10, test accuracy 0.6250, clients' own 0.7500, ")
    assert all_runs.startswith("0 of 1 runs have ended: ") and all_runs.endswith(" left")
    assert shown.last_line(1) == lines[-1]
    result = "10 rounds in 3 s: test accuracy 0.5000"
    shown.read(1, [f"done     {result}", "error: no space is left", "", "Exception ignored in: ..."])
    assert shown.last_line(1) == "error: no space is left"
    shown.end(1, slot=1)
    assert capsys.readouterr().out.splitlines()[-1] == f"[1/1] a, seed 0: done in 0 s; {result}"
