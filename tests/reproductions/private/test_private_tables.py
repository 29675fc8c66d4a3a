"""The table of accuracy against epsilon, from run folders with made-up numbers."""

import csv
import json

import pytest
from experiment_flags import read_flags

from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.tables import make_frame
from reproductions.private.tables import MEASURED, measure, tabulate
from reproductions.registry import PAPERS
from tff_algos.rounds.privacy_accounting import Accounting

EXPERIMENT = "fedavg_mnist_1000clients_budget"


def add_epsilon(run_dir, spent):
    """Gives the run a column of epsilon by round, and a noise multiplier of 2 to its summary."""
    noise = {"fedavg": {"privacy": {"noise_multiplier": 2.0}}}
    (run_dir / "summary.json").write_text(json.dumps(json.loads((run_dir / "summary.json").read_text()) | noise))
    with open(run_dir / "metrics.csv", newline="") as file:
        names, *rows = list(csv.reader(file))
    with open(run_dir / "metrics.csv", "w", newline="") as file:
        csv.writer(file).writerows([[*names, "epsilon_spent"], *([*row, spent] for row in rows)])


@pytest.fixture
def runs(tmp_path, write_run):
    """Two seeds at epsilon 2 with 50 and 52 %, one at epsilon 8, one without privacy."""
    for suffix, seed, accuracy, spent in (
        *(("2", 0, [0.1, 0.5], 1.999), ("2", 1, [0.1, 0.52], 2.0)),
        *(("8", 0, [0.2, 0.7], 8.0), ("_none", 0, [0.3, 0.9], None)),
    ):
        run_dir = write_run(tmp_path, EXPERIMENT + suffix, seed, 2, accuracy)
        if spent is not None:
            add_epsilon(run_dir, spent)
    return collect_runs(tmp_path)[0]


def test_a_row_an_epsilon_with_the_mean_over_its_seeds(runs):
    rows = tabulate(make_frame(runs, measure, MEASURED)).records
    assert [(row["budget"], row["seeds"], row["epsilon_spent"]) for row in rows] == [
        ("2", "2", "2.0000"), ("8", "1", "8.0000"), ("none", "1", "")
    ]  # fmt: skip
    assert [row["test_accuracy"] for row in rows] == ["51.00 ± 1.41", "70.00", "90.00"]
    assert {row["clip_norm"] for row in rows[:2]} == {"0.5"} and rows[2]["clip_norm"] == ""
    # Two rounds of 100 of 1,000 clients at z = 2, whatever the run had said.
    expected = f"{Accounting(1e-5, 1000, 100, 'bernoulli').compute_epsilon(2.0, 2):.4f}"
    assert [row["epsilon_by_losses"] for row in rows] == [expected, expected, ""] and 0.1 < float(expected) < 1


def test_a_run_that_was_never_evaluated_does_not_count(tmp_path, write_run):
    write_run(tmp_path, f"{EXPERIMENT}4", 0, 1, [""])
    runs, _ = collect_runs(tmp_path)
    assert len(runs) == 1 and tabulate(make_frame(runs, measure, MEASURED)).rows == []
    assert "not run" in PAPERS["private"].build_report(runs).markdown


def test_the_figure_shows_each_run_as_it_spends_and_where_it_ends(runs, tmp_path, sketches, assert_is_picture):
    path = PAPERS["private"].draw(runs, tmp_path)
    assert path.name == PAPERS["private"].page["figure"]
    assert_is_picture(path)
    (ax,) = sketches[path.name].axes
    ways = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 2 and line.get_label().startswith("_")]
    assert [list(map(round, way)) for way in ways] == [[10, 50], [10, 52], [20, 70]]


def test_the_experiments_differ_in_the_budget_alone():
    names = PAPERS["private"].experiments
    by_budget = {float(name.removeprefix(EXPERIMENT).replace("_none", "0")): read_flags(name) for name in names}
    assert len(by_budget) == len(names) > 4
    for budget, flags in by_budget.items():
        private = {"dp_epsilon": budget, "dp_clip_norm": 0.5 if budget else 1.0}
        # The noise of kept runs was chosen by divergences.
        assert flags == by_budget[1.0] | private | {"dp_accountant": "rdp" if budget else "pld"}
