"""Runs of one name on other data, or of other code, are neither paired nor averaged, and it is said."""

import json

import pytest

from launch import compare
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.content import build_content
from launch.pages.comparison.groups import find_differing_data, group_runs
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


def rank(runs, flags, **keywords):
    return rank_groups(runs, describe_metric(runs, "test_accuracy"), check_grouping(runs, flags), **keywords)


def test_seeds_of_a_corrected_table_are_neither_averaged_nor_paired_with_those_of_the_former(corrected):
    """0.7 was the mean of 0.5 and 0.9, and seed 0 of both was a pair."""
    groups = {group.runs[0].name: group.label for group in group_runs(corrected, check_grouping(corrected, ["epochs"]))}
    assert list(groups) == ["a/seed_0", "a/seed_1", "b/seed_0"]
    ranking = rank(corrected, ["epochs"], baseline=groups["b/seed_0"])
    assert [(each.group.runs[0].name, each.estimate.mean, each.difference.count) for each in ranking.results] == [
        *(("a/seed_1", 0.9, 0), ("b/seed_0", 0.7, 0), ("a/seed_0", 0.5, 0)),
    ]
    assert find_differing_data(corrected) == ["data_version"]
    trivial = [
        (row.group.label.rpartition(", ")[2], round(row.estimate.mean, 3), row.difference.count)
        for row in ranking.trivial
    ]
    assert trivial == [("data 1a2b3c4d", 0.4, 0), ("data 5e6f7a8b", 0.7, 1)]


@pytest.fixture
def read_content(tmp_path):
    """() -> which versions the page has, and what it says of them."""

    def read_page():
        content = build_content(collect_runs([str(tmp_path / "runs")]), {}, tmp_path / "page.html")
        assert "data_version" not in content["grouping"], "by which the page groups in any case"
        return content["versions"], content["changed"]

    return read_page


def test_it_is_said_and_stands_in_the_page(corrected, read_content, tmp_path, capsys):
    assert read_content() == (["data_version"], [SAID])
    table = tmp_path / "table.md"
    assert compare.main([f"--runs={tmp_path / 'runs'}", f"--table={table}"]) == 0
    assert f"note     {SAID}\n" in capsys.readouterr().err and "data 1a2b3c4d" in table.read_text()


def test_runs_on_the_same_data_are_as_they_were(tmp_path, write, read_content):
    for seed in (0, 1):
        write("a", seed, 0.5, **on(OLD, seed))
    runs = read(tmp_path)
    assert len(group_runs(runs, check_grouping(runs, []))) == 1 and read_content() == ([], [])


def test_runs_of_an_edited_model_are_compared_and_not_averaged(tmp_path, write, read_content):
    for folder, seed, digest in (("a", 0, OLD), ("a", 1, OLD), ("b", 0, NEW)):
        own = {"flags": {"model": "own_net:build"}, "own_modules": {"own_net": digest}}
        write(folder, seed, 0.5 + 0.1 * (digest == NEW), **own, **on(OLD, seed))
    results = rank(read(tmp_path), ["model"]).results
    assert [(each.estimate.count, round(each.estimate.mean, 3), each.difference.count) for each in results] == [
        *((1, 0.6, 1), (2, 0.5, 0)),
    ]
    assert read_content()[1][0].startswith(f"{CODE}: a/seed_0, a/seed_1 (code ")
