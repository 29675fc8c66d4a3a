"""What the sender says of addresses, errors and names. `make test-track` sends to the trackers themselves."""

import ast
import pathlib
import sys

from launch.trackers.sender import describe, existing, hide_password, is_new, name_metric

SENDER = pathlib.Path(__file__).parents[3] / "launch" / "trackers" / "sender.py"


def test_it_needs_nothing_of_the_project():
    """It runs where only the trackers are, which it imports when a run is sent."""
    imported = [name for name, is_at_top in list_imports() if is_at_top]
    assert set(imported) <= sys.stdlib_module_names
    assert {name for name, is_at_top in list_imports() if not is_at_top} == {"mlflow", "wandb"}


def list_imports():
    tree = ast.parse(SENDER.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node in tree.body) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0], node in tree.body


def test_a_password_is_not_shown():
    assert hide_password("https://me:secret@host:5000/a@b") == "https://host:5000/a@b"
    assert hide_password("http://host:5000/a@b") == "http://host:5000/a@b"
    assert hide_password("sqlite:////tmp/mlflow.db") == "sqlite:////tmp/mlflow.db"
    assert describe(ValueError("no\nanswer of http://me:secret@host")) == "ValueError: no answer of http://host"


def test_metrics_have_names_that_mlflow_takes():
    assert name_metric("timing/round_s") == "system/round_s"
    assert name_metric("archetype_0 (ä=1)") == "archetype_0 ___1_"


def test_what_the_last_round_says_is_no_chart_of_its_own():
    names = ["rounds", "bytes_up", "final.test_loss", "best.test_accuracy", "clients.accuracy_p10", "fedcd.num_models"]
    assert [name for name in names if is_new(name)] == names[3:]


def test_files_that_are_gone_are_passed_over(tmp_path):
    (tmp_path / "a").touch()
    assert existing({"a": str(tmp_path / "a"), "b": str(tmp_path / "b")}) == [("a", str(tmp_path / "a"))]
