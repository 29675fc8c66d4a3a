"""A folder of runs may be somebody else's: a sweep or a search goes on by no link in it."""

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_records import resolve_experiment
from launch.runs.tables import write_json
from launch.settings.experiments import get_experiment
from launch.settings.run_config import build_run_config
from launch.sweeps.held_journal import hold_journal
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task, _has_finished, is_finished, read_seeds

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


STOPPED = {"rounds": 5, "stopped_early": {"patience": 3, "best_round": 2}}
LIMITED = {"rounds": 3, "reached_limits": {"most_bytes": 90.0, "most_virtual_s": 0.0}}


@pytest.mark.parametrize(
    ("summary", "flags", "is_over"),
    [
        ({"rounds": 5}, {"rounds": 5}, True),
        ({"rounds": 5}, {"rounds": 3}, True),
        ({"rounds": 5}, {"rounds": 6}, False),
        ({"rounds": 5, "final": {"test_accuracy": 0.55}}, {"target_accuracy": 0.5}, True),
        ({"rounds": 5, "final": {"test_accuracy": 0.55}}, {"target_accuracy": 0.6}, False),
        # However many rounds are asked for: a further one would exceed the budget.
        ({"rounds": 5, "budget_spent": True}, {}, True),
        # What was stopped goes on only with more patience, or under another limit.
        (STOPPED, {"patience": 2}, True),
        (STOPPED, {"patience": 3}, True),
        (STOPPED, {"patience": 4}, False),
        (STOPPED, {"patience": 0}, False),
        (LIMITED, {"most_bytes": 90}, True),
        (LIMITED, {"most_bytes": 200}, False),
        (LIMITED, {"most_bytes": 0}, False),
        # These kinds ended the whole sweep with a traceback; as one that cannot be read, it lets the run go on.
        ({"rounds": "900"}, {}, False),
        ({"rounds": None}, {}, False),
        ({"rounds": 0, "stopped_early": [1]}, {}, False),
    ],
    ids=str,
)
def test_what_is_asked_for_decides_whether_a_run_is_finished(tmp_path, summary, flags, is_over):
    write_json(tmp_path / "config.json", {"flags": {}})
    write_json(tmp_path / "summary.json", summary)
    assert _has_finished(tmp_path, build_run_config({"algo": "fedavg", "rounds": 7, **flags})) is is_over


@pytest.mark.parametrize("name", [".lock", "optuna.journal"])
def test_no_search_writes_by_a_link(tmp_path, name):
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / name).symlink_to(tmp_path / "precious")
    held = hold_journal(tmp_path / "search", "optuna.journal", "search")
    with pytest.raises(RunFolderError, match=f"its {name} is a symbolic link"), held:
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
