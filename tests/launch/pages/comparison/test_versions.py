"""Runs of one name on other data, or of other code, are neither paired nor averaged, and it is said."""

import json

import pytest

from launch import compare
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.content import build_content
from launch.pages.comparison.groups import find_differing_data, group_runs, list_trivial_groups
from launch.pages.comparison.results import check_grouping, describe_metric, rank_groups

OLD, NEW = "1a2b3c4d" + 56 * "0", "5e6f7a8b" + 56 * "0"
SAID = (
    "Different data under one name: a/seed_0 (data 1a2b3c4d), a/seed_1, b/seed_0 (data 5e6f7a8b); runs of different "
    "data are neither paired nor averaged."
)
CODE = "Your code changed between runs"


@pytest.fixture
def write(tmp_path, write_run):
    """(folder, seed, test accuracy, content of config.json by section) -> a run of FedAvg on a table."""

    def write(folder, seed, accuracy, **sections):
        run_dir = write_run(tmp_path / "runs", "fedavg_mnist_alpha0.1", seed, 1, accuracy=accuracy - 0.01)
        moved = tmp_path / "runs" / folder / run_dir.name
        moved.parent.mkdir(exist_ok=True)
        run_dir.rename(moved)
        run_dir.parent.rmdir()
        config = json.loads((moved / "config.json").read_text())
        config["flags"] |= {"dataset": "files", "data": "/x/table.csv", "seed": seed, **sections.pop("flags", {})}
        (moved / "config.json").write_text(json.dumps({**config, **sections}))
        summary = json.loads((moved / "summary.json").read_text())
        (moved / "summary.json").write_text(json.dumps({**summary, "overall_majority_test_accuracy": accuracy - 0.1}))
        return moved

    return write


def on(source, seed=0):
    return {"data": {"dataset": "files", "source_digest": source, "digest": f"{source[:-1]}{seed}"}}


def read(tmp_path):
    return collect_runs([str(tmp_path / "runs")]).runs


@pytest.fixture
def corrected(tmp_path, write):
    """FedAvg with seed 0 on the former table, with seed 1 and as `b`, which trains for longer, on the corrected one."""
    write("a", 0, 0.5, **on(OLD))
    write("a", 1, 0.9, **on(NEW, 1))
    write("b", 0, 0.7, flags={"epochs": 7}, **on(NEW))
    return read(tmp_path)


def test_seeds_of_a_corrected_table_are_not_averaged_with_those_of_the_former(corrected):
    flags = check_grouping(corrected, ["epochs"])
    groups = {group.label: [run.name for run in group.runs] for group in group_runs(corrected, flags)}
    assert list(groups.values()) == [["a/seed_0"], ["a/seed_1"], ["b/seed_0"]]
    means = {result.group.runs[0].name: result.estimate.mean for result in rank(corrected, flags).results}
    assert means == {"a/seed_0": 0.5, "a/seed_1": 0.9, "b/seed_0": 0.7}, "0.7 was the mean of 0.5 and 0.9"


def rank(runs, flags):
    return rank_groups(runs, describe_metric(runs, "test_accuracy"), flags)


def test_seeds_of_different_data_are_no_pairs(corrected):
    flags = check_grouping(corrected, ["epochs"])
    former, _, longer = (group.label for group in group_runs(corrected, flags))
    metric = describe_metric(corrected, "test_accuracy")
    results = rank_groups(corrected, metric, flags, baseline=longer).results
    assert {each.group.label: each.difference.count for each in results}[former] == 0, "seed 0 of both was a pair"
    trivial = rank_groups(corrected, metric, flags, baseline=longer).trivial
    assert [(round(row.estimate.mean, 3), row.difference.count) for row in trivial] == [(0.4, 0), (0.7, 1)]


def test_trivial_rows_are_of_each_data(corrected):
    assert find_differing_data(corrected) == ["data_version"]
    labels = [group.label.rpartition(", ")[2] for group in list_trivial_groups(corrected, "test_accuracy")]
    assert labels == ["data 1a2b3c4d", "data 5e6f7a8b"]


def test_it_is_said_and_stands_in_the_page(corrected, tmp_path, capsys):
    content = build_content(collect_runs([str(tmp_path / "runs")]), {}, tmp_path / "page.html")
    assert (content["versions"], content["changed"]) == (["data_version"], [SAID])
    assert "data_version" not in content["grouping"], "by which the page groups in any case"
    table = tmp_path / "table.md"
    assert compare.main([f"--runs={tmp_path / 'runs'}", f"--table={table}"]) == 0
    assert f"note     {SAID}\n" in capsys.readouterr().err
    assert "data 1a2b3c4d" in table.read_text()


def test_runs_on_the_same_data_are_as_they_were(tmp_path, write):
    for seed in (0, 1):
        write("a", seed, 0.5, **on(OLD, seed))
    runs = read(tmp_path)
    assert all("data_version" not in run.flags for run in runs) and len(group_runs(runs, check_grouping(runs, []))) == 1
    content = build_content(collect_runs([str(tmp_path / "runs")]), {}, tmp_path / "page.html")
    assert (content["versions"], content["changed"]) == ([], [])


def test_runs_of_an_edited_model_are_compared_and_not_averaged(tmp_path, write):
    for folder, seed, digest in (("a", 0, OLD), ("a", 1, OLD), ("b", 0, NEW)):
        own = {"flags": {"model": "own_net:build"}, "own_modules": {"own_net": digest}}
        write(folder, seed, 0.5 + 0.1 * (digest == NEW), **own, **on(OLD, seed))
    runs = read(tmp_path)
    results = rank(runs, check_grouping(runs, ["model"])).results
    assert [(each.estimate.count, round(each.estimate.mean, 3), each.difference.count) for each in results] == [
        *((1, 0.6, 0), (2, 0.5, 1)),
    ]
    content = build_content(collect_runs([str(tmp_path / "runs")]), {}, tmp_path / "page.html")
    assert content["changed"][0].startswith(f"{CODE}: a/seed_0, a/seed_1 (code ")
