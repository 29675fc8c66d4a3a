"""The league's tables, sentences, page and figure, from run folders with made-up numbers."""

import json

import pytest

from launch.papers.engine.tables import collect
from launch.papers.league.measures import METHODS, PROBLEMS, measure, read_rates, split_name
from launch.papers.league.tables import (
    PAPER,
    format_rate,
    sum_up,
    tabulate_answers,
    tabulate_pairs,
    tabulate_standings,
)
from launch.report import collect_runs
from launch.runs.tables import write_json

# Own accuracies of seeds 0, 1 and 2 on rotated MNIST. FedCD is 10 points above FedAvg, IFCA 10 above FedCD.
OWN = {
    "fedavg": (0.500, 0.510, 0.520),
    "fedcd": (0.600, 0.611, 0.619),
    "ifca": (0.700, 0.712, 0.718),
    "oracle": (0.80, 0.81, 0.82),
}


@pytest.fixture
def write_league_run(tmp_path, write_run):
    def write(experiment, seed, own, key="clients", **statistics):
        run_dir = write_run(tmp_path, experiment, seed, 2)
        summary = json.loads((run_dir / "summary.json").read_text())
        numbers = {"accuracy_mean": own, "accuracy_worst_tenth": own - 0.1, "majority_accuracy": 0.2, **statistics}
        write_json(run_dir / "summary.json", {**summary, "clients": {"accuracy_mean": 0.0}, key: numbers})
        return run_dir

    return write


@pytest.fixture
def read(tmp_path):
    return lambda: collect_runs(tmp_path)[0]


@pytest.fixture
def runs(write_league_run, read):
    for method, accuracies in OWN.items():
        for seed, own in enumerate(accuracies):
            write_league_run(f"{method}_league_rotated", seed, own)
    return read()


def test_the_standings_go_from_best_to_worst_with_the_majority_class(runs):
    rows = tabulate_standings(collect(runs, measure)).records
    named = [(row["method"], row["own accuracy (%)"]) for row in rows]
    assert named == [
        (METHODS["oracle"], "81.00 ± 1.00"),
        ("IFCA", "71.00 ± 0.92"),
        ("FedCD", "61.00 ± 0.95"),
        ("FedAvg", "51.00 ± 1.00"),
        ("each client's majority class", "20.00 ± 0.00"),
    ]
    assert {row["problem"] for row in rows} == {PROBLEMS["rotated"]["title"]}
    fedcd = rows[2]
    assert fedcd["worst tenth (%)"] == "51.00 ± 0.95" and fedcd["common test set (%)"] == "52.00 ± 0.00"
    # Two rounds of 6 MB in 60 virtual seconds each.
    assert (fedcd["MB"], fedcd["virtual seconds"], fedcd["rounds"]) == ("12.0", "120", "2")
    assert fedcd["above FedAvg (points)"].startswith("+10.00 [") and rows[3]["above FedAvg (points)"] == ""


def test_a_rate_says_whether_a_better_one_may_lie_beyond_the_grid():
    shown = [format_rate(rate, (0.003, 0.01, 0.03)) for rate in (None, 0.003, 0.01, 0.03)]
    assert shown == ["", "0.003 (lowest)", "0.01", "0.03 (highest)"]
    assert read_rates("amfl_p_league_archetypes20")[1] == (0.003, 0.01, 0.03)


def test_a_system_meets_its_rivals_but_not_the_oracle(runs):
    rows = tabulate_pairs(collect(runs, measure)).records
    assert [(row["system"], row["rival"], row["verdict"]) for row in rows] == [
        ("FedCD", "FedAvg", "ahead"),
        ("FedCD", "IFCA", "behind"),
    ]


def test_the_sentence_names_the_best_and_what_is_as_good(runs, write_league_run, read):
    (row,) = tabulate_answers(collect(runs, measure)).records
    assert row["best"] == "IFCA" and row["systems ahead of all rivals"] == "none"
    assert row["sentence"] == f"Use IFCA when {PROBLEMS['rotated']['when']}."
    for seed, own in enumerate((0.69, 0.73, 0.70)):
        write_league_run("ditto_league_rotated", seed, own)
    (row,) = tabulate_answers(collect(read(), measure)).records
    assert row["as good"] == "Ditto" and row["sentence"].endswith("; not decidedly behind: Ditto.")


def test_a_system_that_is_ahead_of_all_rivals_wins(write_league_run, read):
    for method in ("fedavg", "fedcd"):
        for seed, own in enumerate(OWN[method]):
            write_league_run(f"{method}_league_rotated", seed, own)
    answers = tabulate_answers(collect(read(), measure))
    assert sum_up(answers) == "A system is ahead of all rivals on 1 of 1 problems: FedCD on rotated MNIST."


def test_on_new_clients_theirs_count(write_league_run, read):
    write_league_run("fedavg_league_har_new", 0, 0.75, key="new_clients")
    (row,) = [row for row in tabulate_standings(collect(read(), measure)).records if row["method"] == "FedAvg"]
    assert row["own accuracy (%)"] == "75.00"


def test_a_run_that_has_not_ended_does_not_count(tmp_path, write_run, read):
    write_run(tmp_path, "fedavg_league_rotated", 0, 2, is_finished=False)
    (run,) = read()
    assert measure(run) == {} and PAPER.build_report([run]).runs == []


def test_the_page_has_a_sentence_and_a_table_a_problem(runs):
    report = PAPER.build_report(runs)
    answer = "None of the four systems is ahead of all rivals on any of 1 problems."
    assert report.tables["answer"].rows[0][1] == answer and report.markdown.count(answer) == 2
    assert report.markdown.count("## ") == 1 and "| FedCD | 3 | 61.00 ± 0.95 |" in report.markdown
    assert report.markdown.split("Not run: ")[1].split("\n")[0].count("; ") == len(PROBLEMS) - 2


def test_there_is_a_page_of_no_runs():
    report = PAPER.build_report([])
    assert "on any of 0 problems" in report.markdown and "FedAvg |" not in report.markdown


def test_the_figure_has_a_panel_a_problem(runs, tmp_path, figures, assert_is_picture):
    path = PAPER.draw(runs, tmp_path)
    assert path.name == PAPER.page["figure"]
    assert_is_picture(path)
    shown = [ax for ax in figures[path.name].axes if ax.get_title()]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == [
        *("FedAvg", "FedCD", "IFCA", METHODS["oracle"]),
    ]


def test_there_is_a_figure_of_no_runs(tmp_path, assert_is_picture):
    assert_is_picture(PAPER.draw([], tmp_path))


def test_every_experiment_is_of_a_problem_and_a_method():
    for name in PAPER.experiments:
        assert split_name(name) is not None, name
    assert split_name("fedavg_mnist_rotated4") is None
