"""What counts, on which data and in which rounds, and FedCD's calm beside FedAvg's: made-up runs, easy by hand."""

import math

import pytest

from launch.report import main
from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.figure import draw_fedcd_figure
from reproductions.fedcd.measures import make_runs, measure

MEDIUM = "cifar10_hierarchical_authors"
WHOLE = "cifar10"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


@pytest.mark.parametrize(
    ("experiment", "size"),
    [(f"fedcd_{MEDIUM}", "authors"), (f"fedcd_{MEDIUM}_full", "authors_full"),
     ("fedcd_cifar10_hierarchical_paper", "paper")],
)  # fmt: skip
def test_sizes_that_mean_the_whole_of_cifar10_do_without_runs_of_the_subset(
    experiment, size, tmp_path, write_archetype_run, build_report
):
    write_archetype_run(tmp_path, "fedcd_cifar10_hierarchical_cpu", [0.5] * 45, **MODELS)
    run_dir = write_archetype_run(tmp_path, experiment, [0.5] * 60, **MODELS)
    report = build_report(tmp_path)
    assert [run.experiment for run in report.runs] == ["fedcd_cifar10_hierarchical_cpu"]
    assert list(report.left_out) == [
        f"{run_dir}: made on cifar10 subset (20,000 + 5,000 images); runs of its size count on cifar10 alone"
    ]
    assert f"{size}_results" not in report.tables and "cpu_results" in report.tables
    write_archetype_run(tmp_path, experiment, [0.5] * 60, dataset=WHOLE, **MODELS)
    report = build_report(tmp_path)
    assert (len(report.runs), report.left_out) == (2, [])
    assert f"{size}_results" in report.tables


def test_a_run_is_whole_with_the_rounds_that_its_experiment_has(tmp_path, write_archetype_run, capsys):
    interrupted = write_archetype_run(tmp_path, f"fedcd_{MEDIUM}", [0.5] * 59, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedcd_{MEDIUM}_shared", [0.5] * 45, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedavg_{MEDIUM}_150rounds", [0.5] * 60, dataset=WHOLE)
    assert make_runs(collect_runs(tmp_path)[0]).set_index("experiment").whole.to_dict() == {
        f"fedcd_{MEDIUM}": False,
        f"fedcd_{MEDIUM}_shared": True,
        f"fedavg_{MEDIUM}_150rounds": True,
    }
    assert main(["--tables=fedcd", f"--runs_dir={tmp_path}"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told == [f"not counted: {interrupted}: 59 of 60 rounds; in no table, only in curves"]


@pytest.mark.parametrize(("size", "length", "expected"), [("cpu_300rounds", 300, 0), ("authors_150rounds", 150, 15)])
def test_late_swings_are_of_the_same_rounds_in_long_runs(size, length, expected, tmp_path, write_archetype_run):
    """Calm up to round 45, then 20 points a round: of rounds 41 to 60 fifteen, which makes 15 on average."""
    accuracies = [0.4] * 45 + [0.6, 0.4] * ((length - 45) // 2) + [0.6] * ((length - 45) % 2)
    write_archetype_run(tmp_path, f"fedavg_cifar10_hierarchical_{size}", accuracies, dataset=WHOLE)
    (run,) = collect_runs(tmp_path)[0]
    assert measure(run)["late_swing"] == pytest.approx(expected)


def test_convergence_or_the_round_after_the_last(tmp_path, write_archetype_run):
    """Jumps in round 30 of 60: settled in round 34, which 45 rounds show; swings to the end: rounds 61 and 46."""
    write_archetype_run(tmp_path, f"fedcd_{MEDIUM}", [0.3] * 29 + [0.6] * 31, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedavg_{MEDIUM}_150rounds", [0.4] * 150, swing=0.1, dataset=WHOLE)
    fedavg, fedcd = sorted(collect_runs(tmp_path)[0], key=lambda run: run.experiment)
    names = ("convergence", "convergence_or_end", "convergence_or_end_45")
    assert [measure(fedcd)[name] for name in names] == [34, 34, 34]
    assert [measure(fedavg)[name] for name in names] == [math.inf, 61, 46]


def test_every_row_has_its_convergence_and_its_models_at_the_end(tmp_path, write_archetype_run, build_report):
    models = MODELS | {"live_models": [9] * 59 + [7], "preferred_models": [8] * 59 + [3]}
    write_archetype_run(tmp_path, f"fedcd_{MEDIUM}", [0.3] * 29 + [0.6] * 31, dataset=WHOLE, **models)
    write_archetype_run(tmp_path, f"fedcd_{MEDIUM}_shared", [0.6] * 45, swing=0.1, dataset=WHOLE, **MODELS)
    rows = {
        row["variant"]: row for row in build_report(tmp_path).tables["authors_results"].records if row["seeds"] == "1"
    }
    columns = ("converges at round", "last change", "models left", "left at the end", "preferred at the end")
    assert [rows["32 bits"][column] for column in columns] == ["34", "0.00", "9.00", "7.00", "3.00"]
    assert [rows["one schedule"][column] for column in columns] == ["> 45", "20.00", "6.00", "6.00", "2.00"]


@pytest.mark.parametrize(("size", "draws"), [("cpu", 9), ("authors", 10), (None, 10)])
def test_figure_3_has_the_shares_of_the_runs(size, draws, tmp_path, write_archetype_run, figures):
    """K = 5 of N = 110: no success in n draws has the chance C(105, n) / C(110, n); n = 10 is printed."""
    if size:
        experiment = f"fedcd_cifar10_hypergeometric_{size}"
        write_archetype_run(tmp_path, experiment, [0.5] * 80, dataset=WHOLE, **MODELS)
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    (panel,) = [ax for ax in figures["fedcd.png"].axes if ax.get_title().startswith("Figure 3")]
    assert f"n = {draws}" in panel.get_title().splitlines()[0]
    assert panel.lines[0].get_ydata()[0] == pytest.approx(math.comb(105, draws) / math.comb(110, draws))
    # K = 105 with ten draws: what is left of ten successes is dropped, so nine have their share of the others alone.
    ten = math.comb(105, 10) / math.comb(110, 10) if draws == 10 else 0
    nine = math.comb(105, 9) * math.comb(5, draws - 9) / math.comb(110, draws)
    assert panel.lines[5].get_ydata()[9] == pytest.approx(nine / (1 - ten))
