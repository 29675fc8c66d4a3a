"""The league's tables, sentences, page and figure, from run folders with made-up numbers."""

import json

import pytest

from launch.runs.tables import write_json
from reproductions.engine.counted_runs import collect_runs
from reproductions.league.experiments import METHODS, METHODS_OF, PROBLEMS, split_name
from reproductions.league.tables import (
    PAPER,
    SYSTEMS,
    measure,
    measure_all,
    show_rate,
    sum_up,
    tabulate_answers,
    tabulate_pairs,
    tabulate_standings,
)

# Own accuracies of seeds 0, 1 and 2 on rotated MNIST. FedCD is 10 points above FedAvg, IFCA 10 above FedCD.
OWN = {
    "fedavg": (0.500, 0.510, 0.520),
    "fedcd": (0.600, 0.611, 0.619),
    "ifca": (0.700, 0.712, 0.718),
    "oracle": (0.80, 0.81, 0.82),
}
LEAD = "its difference to the best other method (points)"
RAN = "Problems run: FedSiKD 1, FedCD 1, asynchronous FL 0, AMFL-P 1."
OTHERS = (0.30, 0.32, 0.31)  # of all other methods


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
def write_problem(write_league_run):
    """Runs of all methods on rotated MNIST, of which some have accuracies of their own."""

    def write(by_method):
        for name in PAPER.experiments:
            method, problem = split_name(name)
            for seed, own in enumerate(by_method.get(method, OTHERS) if problem == "rotated" else ()):
                write_league_run(name, seed, own)

    return write


@pytest.fixture
def runs(write_problem, read):
    write_problem(OWN)
    return read()


def test_the_standings_go_from_best_to_worst_with_the_majority_class(runs):
    rows = tabulate_standings(measure_all(runs)).records
    named = [(row["method"], row["own accuracy (%)"]) for row in rows]
    others = {row.split("_league_")[0] for row in PAPER.experiments if row.endswith("rotated")} - OWN.keys()
    assert len(others) > 10 and {shown for name, shown in named[4:-1]} == {"31.00 ± 1.00"}
    assert [*named[:4], named[-1]] == [
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


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ({"meta_learning_rate": "0.003", "learning_rate": "7"}, "0.003 (lowest)"),
        ({"meta_learning_rate": "0.01"}, "0.01"),
        ({"meta_learning_rate": "0.03"}, "0.03 (highest)"),
        ({"fine_tuning_learning_rate": "0.1"}, ""),
    ],
)
def test_a_rate_says_whether_a_better_one_may_lie_beyond_the_grid(flags, shown):
    assert show_rate("meta_learning_rate=0.003|0.01|0.03;fine_tuning_learning_rate=0.02|0.1", flags) == shown


def test_a_system_meets_its_rivals_but_not_the_oracle(runs):
    rows = tabulate_pairs(measure_all(runs)).records
    found = {(row["system"], row["rival"]): row["verdict"] for row in rows}
    assert found["FedCD", "FedAvg"] == "ahead" and found["FedCD", "IFCA"] == "behind"
    assert not [pair for pair in found if METHODS["oracle"] in pair] and ("AMFL-P", "FedAvg") in found


def test_the_sentence_names_the_best_and_what_is_not_told_from_it(runs, write_league_run, read):
    (row,) = tabulate_answers(measure_all(runs)).records
    assert row["best"] == "IFCA" and row["systems ahead of all rivals"] == "none"
    assert row["best of the four systems"] == "FedCD" and row[LEAD].startswith("-10.00 [-10.")
    assert row["sentence"] == f"Use IFCA when {PROBLEMS['rotated']['when']}."
    for seed, own in enumerate((0.69, 0.73, 0.70)):
        write_league_run("ditto_league_rotated", seed, own)
    (row,) = tabulate_answers(measure_all(read())).records
    assert row["not told apart"] == "Ditto"
    assert row["sentence"].endswith("; the seeds do not tell it from: Ditto.")
    assert "**Use IFCA" not in PAPER.build_report(read()).markdown


def test_a_system_that_is_ahead_of_all_rivals_wins(write_problem, read):
    write_problem({"fedcd": OWN["fedcd"]})
    frame = measure_all(read())
    answers = tabulate_answers(frame)
    answer = "A system is ahead of all rivals on 1 of 1 problems: FedCD on rotated MNIST."
    assert sum_up(answers, tabulate_standings(frame)) == f"{answer} {RAN}"
    assert answers.records[0][LEAD].startswith("+30.00 [")


def test_nothing_is_best_while_a_method_has_no_run_with_a_seed_of_others(runs):
    frame = measure_all([run for run in runs if "ditto" not in run.experiment])
    (row,) = tabulate_answers(frame).records
    assert row["sentence"] == "Not decided, since runs are missing: Ditto."
    summed_up = sum_up(tabulate_answers(frame), tabulate_standings(frame))
    assert "on any of 0 problems. Problems run: FedSiKD 0," in summed_up
    fewer = [run for run in runs if not (run.experiment.startswith("apfl") and run.flags["seed"] == 2)]
    assert tabulate_answers(measure_all(fewer)).records[0]["sentence"].endswith(": APFL.")
    # The majority class is of all seeds, whichever method has them.
    fewer = [run for run in runs if not (run.experiment.startswith("local_only") and run.flags["seed"] == 2)]
    assert tabulate_standings(measure_all(fewer)).records[-1]["seeds"] == "3"
    # What knows the groups answers nothing alone.
    assert not tabulate_answers(measure_all([run for run in runs if run.experiment.startswith("oracle")])).rows


def test_on_new_clients_theirs_count(write_league_run, read):
    write_league_run("fedavg_league_har_new", 0, 0.75, key="new_clients")
    (row,) = [row for row in tabulate_standings(measure_all(read())).records if row["method"] == "FedAvg"]
    assert row["own accuracy (%)"] == "75.00"


def test_text_is_judged_by_tokens_beside_the_most_frequent_ones(write_league_run, read):
    run_dir = write_league_run(
        "fedavg_league_shakespeare", 0, 0.9, token_accuracy_mean=0.36, token_accuracy_worst_tenth=0.3
    )
    summary = json.loads((run_dir / "summary.json").read_text())
    del summary["clients"]["majority_accuracy"]
    baselines = {"unigram_accuracy": 0.18, "bigram_accuracy": 0.28}
    write_json(run_dir / "summary.json", {**summary, "task": "next_token", "token_baselines": baselines})
    rows = tabulate_standings(measure_all(read())).records
    shown = [(row["method"], row["own accuracy (%)"], row["worst tenth (%)"]) for row in rows]
    assert shown == [("FedAvg", "36.00", "30.00"), (PROBLEMS["shakespeare"]["majority"], "28.00", "")]


def test_where_some_classes_are_few_clients_own_the_common_test_set_decides(write_league_run, read):
    for method, own in {"fedavg": 0.8, "buffered": 0.6}.items():
        run_dir = write_league_run(f"{method}_league_slow_mnist", 0, own)
        metrics = run_dir / "metrics.csv"
        metrics.write_text(
            metrics.read_text().replace(",0.52", ",0.72") if method == "buffered" else metrics.read_text()
        )
    rows = tabulate_standings(measure_all(read())).records
    named = [(row["method"], row["own accuracy (%)"], row["above FedAvg (points)"]) for row in rows]
    assert named[:2] == [("FedBuff", "60.00", "+20.00"), ("FedAvg", "80.00", "")]


def test_a_run_that_has_not_ended_does_not_count(tmp_path, write_run, read):
    write_run(tmp_path, "fedavg_league_rotated", 0, 2, is_finished=False)
    (run,) = read()
    assert measure(run) == {} and PAPER.build_report([run]).runs == []


def test_the_page_has_a_sentence_and_a_table_a_problem(runs):
    report = PAPER.build_report(runs)
    answer = f"None of the four systems is shown to be ahead of all rivals on any of 1 problems. {RAN}"
    assert report.tables["answer"].rows[0][1] == answer and answer in report.markdown
    assert report.markdown.index("| IFCA |  | FedCD | -10.00 [") < report.markdown.index("<details ")
    # Bold is what the seeds decide.
    assert f"**Use IFCA when {PROBLEMS['rotated']['when']}.**" in report.markdown
    assert (
        report.markdown.count("### ") == 1
        and "| FedCD | 3 | 61.00\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.95 |" in report.markdown
    )
    assert report.markdown.split("Not run: ")[1].split("\n")[0].count("; ") == len(PROBLEMS) - 2


def test_the_figure_has_a_panel_a_problem(runs, tmp_path, sketches, assert_is_picture):
    path = PAPER.draw(runs, tmp_path)
    assert path.name == PAPER.page["figure"]
    assert_is_picture(path)
    shown = [ax for ax in sketches[path.name].axes if ax.get_title()]
    best = [label.get_text() for label in shown[0].get_yticklabels()][-4:]
    assert best == ["FedAvg", "FedCD", "IFCA", METHODS["oracle"]]


def test_every_experiment_is_of_a_problem_and_a_method():
    """Each problem has a best system and a best other method."""
    assert all(method in METHODS_OF[problem] for method, problem in map(split_name, PAPER.experiments))
    for methods in METHODS_OF.values():
        assert "fedavg" in methods and {METHODS[method] for method in methods} & set(SYSTEMS)
