"""A folder of runs may be somebody else's: a sweep or a search goes on by no link in it."""

import json

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task, is_finished, read_seeds
from launch.sweeps.tuning.study import hold_folder

NAME = "fedsikd_mnist_alpha0.1"


CONFIG = resolve_experiment(get_experiment(NAME), ["--seed=0"])


@pytest.fixture
def make_task(tmp_path):
    return lambda run_dir: Task(Recipe(NAME, f"--experiment={NAME}"), (), tmp_path / run_dir, CONFIG)


@pytest.mark.parametrize("name", ["seed_0", "seed_0.log"])
def test_no_run_goes_on_by_a_link_but_a_finished_one_may_lie_elsewhere(tmp_path, write_run, make_task, name):
    task = make_task("seed_0")
    mine = write_run(tmp_path / "mine", NAME, seed=0, rounds=3)
    (tmp_path / name).symlink_to(mine)
    with pytest.raises(RunFolderError, match=f"/{name}: is a symbolic link, by which a sweep trains nothing; remove"):
        is_finished(task)
    (tmp_path / name).unlink()
    assert not is_finished(task)
    (tmp_path / "seed_0").symlink_to(write_run(tmp_path / "mine", NAME, seed=0, rounds=CONFIG.rounds))
    assert is_finished(task)


@pytest.mark.parametrize("damage", [{"rounds": "900"}, {"rounds": None}, {"rounds": 0, "stopped_early": [1]}], ids=str)
def test_a_summary_of_other_kinds_is_no_finished_run(tmp_path, write_run, make_task, damage):
    """It ended the whole sweep with a traceback; as one that cannot be read, it lets the run go on."""
    path = write_run(tmp_path, NAME, seed=0, rounds=CONFIG.rounds) / "summary.json"
    task = make_task(path.parent)
    assert is_finished(task)
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


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0", "0"), ("0-4", "0 1 2 3 4"), ("7,0-2, 9", "7 0 1 2 9"), ("3-3", "3"), ("1,0-2,02", "1 0 2")],
)
def test_ranges_are_spelled_out_and_each_seed_comes_once(text, seeds):
    assert read_seeds(text.split(","), "seeds") == tuple(seeds.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4-0", "--seeds=4-0: 4-0 ends before it begins; did you mean 0-4?"),
        ("0-10000", "0-10000 are 10,001 seeds; expected at most 10,000"),
        ("a", "--seeds=a: expected whole numbers with commas between them, or ranges, as 0,1,2 or 0-4"),
        ("0,", "--seeds=0,: expected whole numbers"),
        ("0..4", "--seeds=0..4: expected whole numbers"),
        ("\u0663", "expected whole numbers"),
        ("9" * 5000, "expected whole numbers"),
        ("-1", "--seeds=-1: expected whole numbers"),
    ],
)
def test_anything_else_is_refused(refuse, text, message):
    assert message in refuse(text.split(","), lambda texts: read_seeds(texts, "seeds"))


def test_none_are_taken_only_where_they_may_be_left_out(refuse):
    assert read_seeds([], "confirm_seeds", may_be_none=True) == ()
    assert "--seeds is empty: expected whole numbers" in refuse([], lambda texts: read_seeds(texts, "seeds"))
