"""Numbers of runs by experiment and seed, and how they look in a table."""

import pytest

from launch.runs.run_records import RunRecord
from reproductions.engine import tables
from reproductions.engine.collection import Cell, Place
from reproductions.engine.markdown import Table


def make_run(experiment, seed, accuracy):
    return RunRecord(None, {"seed": seed}, experiment, {1: {"test_accuracy": accuracy}})


@pytest.fixture
def values():
    runs = [make_run("ours_easy", 0, 0.7), make_run("ours_easy", 1, 0.8), make_run("other", 0, 0.5)]
    return tables.collect(runs, lambda run: dict(run.rounds[1]))


def test_numbers_are_found_by_experiment_and_seed(values):
    assert values == {("ours_easy", "test_accuracy"): {0: 0.7, 1: 0.8}, ("other", "test_accuracy"): {0: 0.5}}
    assert values.get(("ours_hard", "test_accuracy"), {}) == {}


def test_experiments_with_a_place_are_results_of_its_preset(values):
    """Experiments that share a place are together; each seed counts where it has the measure."""
    easy = Place("tuned", "data", "easy", "ours")
    results = tables.locate(values, {"ours_easy": easy}.get, round_num=5)
    assert results == {"printed": {}, "tuned": {Cell("data", "easy", "ours", 5, "test_accuracy"): {0: 0.7, 1: 0.8}}}
    values["longer", "test_accuracy"] = {2: 0.9}
    results = tables.locate(values, {"ours_easy": easy, "longer": easy}.get, 5, ("tuned", "other"))
    assert results == {"tuned": {easy.make_cell("test_accuracy", 5): {0: 0.7, 1: 0.8, 2: 0.9}}, "other": {}}


def test_cells_of_a_table():
    assert tables.show({0: 0.7, 1: 0.8}) == "75.00 ± 7.07"
    assert tables.show({0: 7.0}, "points") == "7.00"
    assert (tables.show({}), tables.show({}, absent="")) == ("not run", "")
    assert tables.count({0: 1.0}, {}, {0: 1.0, 1: 2.0, 2: 3.0}) == "1 to 3" and tables.count({}) == "0"
    assert (tables.show_range([5.0, 3.0, 4.0]), tables.show_range([4]), tables.show_range([])) == ("3 to 5", "4", "")


def test_a_pair_has_its_difference_seeds_and_verdict():
    first = {0: 0.60, 1: 0.70, 2: 0.80, 3: 0.9}
    assert tables.show_difference(first, {0: 0.5, 1: 0.6, 2: 0.7}) == ["+10.00", "3", "win"]
    assert tables.show_difference(first, {}) == ["not run", "", ""]


def test_axes_are_crossed_with_their_titles():
    crossed = tables.cross({"a": "A", "b": "B"}, {"x": "X", "y": "Y"})
    assert list(crossed) == [
        (("a", "x"), ["A", "X"]), (("a", "y"), ["A", "Y"]), (("b", "x"), ["B", "X"]), (("b", "y"), ["B", "Y"])
    ]  # fmt: skip


def test_headings_and_notes_come_from_the_papers_texts(monkeypatch):
    texts = {"results": {"heading": "Results", "note": "\nOf {number} runs.\n"}, "files": {"heading": "Files"}}
    monkeypatch.setattr(tables, "read_toml", lambda *place: {("paper", "tables.toml"): texts}[place])
    table = Table(["a"], [["1"]])
    assert tables.describe("paper", {"results": table, "files": table}, number=3) == {
        "results": ("Results", table, "Of 3 runs."),
        "files": ("Files", table, ""),
    }
