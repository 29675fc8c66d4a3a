"""A folder of runs may be somebody else's: a sweep or a search goes on by no link in it."""

import json

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task, is_finished
from launch.tuning.study import hold_folder

NAME = "fedsikd_mnist_alpha0.1"


@pytest.mark.parametrize("name", ["seed_0", "seed_0.log"])
def test_no_run_goes_on_by_a_link(tmp_path, write_run, name):
    run_dir = tmp_path / "shared" / NAME / "seed_0"
    config = resolve_experiment(get_experiment(NAME), ["--seed=0"])
    task = Task(Recipe(NAME, f"--experiment={NAME}"), (), run_dir, config)
    write_run(tmp_path / "mine", NAME, seed=0, rounds=3)
    run_dir.parent.mkdir(parents=True)
    run_dir.with_name(name).symlink_to(tmp_path / "mine" / NAME / "seed_0")
    with pytest.raises(RunFolderError, match=f"/{name}: is a symbolic link, by which a sweep trains nothing; remove"):
        is_finished(task)
    run_dir.with_name(name).unlink()
    assert not is_finished(task)


def test_a_finished_run_may_lie_elsewhere(tmp_path, write_run):
    config = resolve_experiment(get_experiment(NAME), ["--seed=0"])
    write_run(tmp_path / "mine", NAME, seed=0, rounds=config.rounds)
    (tmp_path / "seed_0").symlink_to(tmp_path / "mine" / NAME / "seed_0")
    assert is_finished(Task(Recipe(NAME, f"--experiment={NAME}"), (), tmp_path / "seed_0", config))


@pytest.mark.parametrize("damage", [{"rounds": "900"}, {"rounds": None}, {"rounds": 0, "stopped_early": [1]}], ids=str)
def test_a_summary_of_other_kinds_is_no_finished_run(tmp_path, write_run, damage):
    """It ended the whole sweep with a traceback; as one that cannot be read, it lets the run go on."""
    config = resolve_experiment(get_experiment(NAME), ["--seed=0"])
    write_run(tmp_path, NAME, seed=0, rounds=config.rounds)
    task = Task(Recipe(NAME, f"--experiment={NAME}"), (), tmp_path / NAME / "seed_0", config)
    assert is_finished(task)
    path = task.run_dir / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    assert not is_finished(task)


@pytest.mark.parametrize("name", [".lock", "optuna.journal"])
def test_no_search_writes_by_a_link(tmp_path, name):
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(RunFolderError, match=f"its {name} is a symbolic link"), hold_folder(tmp_path / "search"):
        pass
    assert (tmp_path / "precious").read_text() == "keep me"
