"""The figure and the tables for papers say what the runs say, and stay text whatever a group is called.

Results and curves of groups, by hand-worked numbers.
"""

import csv
import pathlib

import numpy as np
import pytest

from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.figure import (
    COLUMN,
    FORMATS,
    PAGE,
    Drawing,
    draw_comparison,
    escape_latex,
    format_csv,
    format_latex,
    format_markdown,
    is_our_figure,
    is_our_table,
    keep_best,
    write_figure,
)
from launch.pages.comparison.results import (
    check_grouping,
    compute_curve,
    describe_metric,
    rank_groups,
    read_result,
    read_seed_results,
)
from launch.settings.errors import FlagError

GAIN = 0.05


def make_run(algo, seed, accuracies):
    rounds = np.arange(1.0, len(accuracies) + 1)
    columns = {"round": rounds, "test_accuracy": np.array(accuracies), "test_loss": 1 - np.array(accuracies)}
    columns["total_bytes"] = 3e6 * rounds
    title = {"fedavg": "FedAvg", "scaffold": "SCAFFOLD"}.get(algo, algo)
    return ComparedRun(f"{algo}/{seed}", pathlib.Path(algo), {"algo": algo, "seed": seed}, title, columns, {})


def make_runs(names=("fedavg", "scaffold"), seeds=3, rounds=4):
    """The n-th algorithm gains `GAIN` more, and seeds differ by 0.01; the algorithms are equally apart at each seed."""
    return [
        make_run(name, seed, [0.5 + 0.02 * i + GAIN * n + 0.01 * seed * (n + 1) for i in range(rounds)])
        for n, name in enumerate(names)
        for seed in range(seeds)
    ]


def rank(runs, column="", **keywords):
    return rank_groups(runs, describe_metric(runs, column), check_grouping(runs, ()), **keywords)


def test_groups_come_by_their_mean_the_best_first():
    ranking = rank(make_runs())
    assert [result.group.label for result in ranking.results] == ["SCAFFOLD", "FedAvg"]
    assert ranking.baseline == "FedAvg" and ranking.results[1].difference.count == 0
    assert ranking.results[0].difference.mean == pytest.approx(GAIN + 0.01)
    assert ranking.metric.title == "Test accuracy" and ranking.metric.bounds == (0, 1)
    losses = rank(make_runs(), "test_loss")
    assert losses.metric.is_low_better and losses.results[0].group.label == "SCAFFOLD"


def test_a_baseline_can_be_chosen():
    ranking = rank(make_runs(), baseline="SCAFFOLD")
    assert ranking.baseline == "SCAFFOLD" and ranking.results[1].difference.mean == pytest.approx(-GAIN - 0.01)
    with pytest.raises(FlagError, match="--metric=test_accuracy: was not measured in any run up to round 0"):
        rank(make_runs(), at=0)


def make_named(**seeds):
    """Runs of experiments by their names, each with these seeds or so many; before __ stands the algorithm."""
    return [
        run._replace(name=f"{name}/{seed}", flags={**run.flags, "experiment": name})
        for name, count in seeds.items()
        for seed in (range(count) if isinstance(count, int) else count)
        for run in [make_run(name.partition("__")[0], seed, [0.5])]
    ]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (make_named(fedprox__a=5, fedavg__small=2, fedavg__large=3), "fedavg__large"),
        (make_named(fedavg__many=[7, 8, 9], fedprox=[0, 1], fedavg__paired=[1, 2], maml=[1]), "fedavg__paired"),
        (
            [
                run._replace(flags={**run.flags, "dataset": "har" if "alone" in run.name else "mnist"})
                for run in make_named(fedavg__alone=3, fedavg__paired=2, maml=2)
            ],
            "fedavg__paired",
        ),
        (make_named(async__a=3)[:2] + make_named(buffered=3), "buffered"),
        (make_named(zeta=3, alpha=3), "zeta"),
        (
            [run._replace(flags={**run.flags, "algo": "async"}) for run in make_named(buffered=3, fedavg_sync=3)],
            "fedavg_sync",
        ),
    ],
    ids=[
        *("FedAvg of most seeds", "FedAvg of most pairs", "pairs are of one data"),
        *("any of most seeds", "the first", "what is called FedAvg"),
    ],
)
def test_fedavg_is_the_baseline_or_the_first_group(runs, expected):
    metric = describe_metric(runs, "")
    assert rank_groups(runs, metric, ["experiment"], "last", "").baseline == expected


@pytest.mark.parametrize(
    ("seeds", "baseline", "column", "bold"),
    [
        (3, "", "", ["SCAFFOLD"]),
        (3, "SCAFFOLD", "", ["SCAFFOLD"]),
        (3, "", "test_loss", ["SCAFFOLD"]),
        (2, "", "", []),
    ],
    ids=["better than the baseline", "the baseline itself", "lower is better", "too few seeds"],
)
def test_only_what_is_decided_is_bold(seeds, baseline, column, bold):
    lines = format_markdown([rank(make_runs(seeds=seeds), column, baseline=baseline)]).splitlines()
    assert [line.split(" ")[1] for line in lines if "**" in line] == bold
    noisy = [make_run("fedavg", seed, [0.5]) for seed in range(3)]
    noisy += [make_run("scaffold", seed, [value]) for seed, value in enumerate((0.4, 0.6, 0.9))]
    assert "**" not in format_markdown([rank(noisy)]), "the higher mean alone"


def test_the_latex_table_is_for_booktabs_with_names_escaped():
    runs = make_runs(("fedavg", "my_algo:A&B 5%"))
    text = format_latex([rank(runs)])
    assert text.splitlines()[4:] == [
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r" & Seeds & Test accuracy & minus FedAvg \\",
        r"\midrule",
        r"my\_algo:A\&B 5\% & 3 & \textbf{0.6300 [0.5803, 0.6797]} & +0.0600 [+0.0352, +0.0848] \\",
        r"FedAvg & 3 & 0.5700 [0.5452, 0.5948] & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert is_our_table(text)
    assert escape_latex('a\\b{c}~^<>|"\n') == (
        r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"
        r"''\textbackslash{}u000a"
    )


def test_a_table_has_a_pair_of_columns_for_each_metric():
    runs = make_runs()
    first = rank(runs, baseline="SCAFFOLD")
    lines = format_markdown([first, rank(runs, "test_loss", baseline=first.baseline)]).splitlines()
    assert lines[1] == "|  | Seeds | Test accuracy | minus SCAFFOLD | Test loss | minus SCAFFOLD |"
    assert lines[4] == (
        "| FedAvg | 3 | 0.5700 [0.5452, 0.5948] | -0.0600 [-0.0848, -0.0352] "
        "| 0.4300 [0.4052, 0.4548] | +0.0600 [+0.0352, +0.0848] |"
    )


def test_the_csv_has_all_digits_and_no_formula():
    rows = list(csv.DictReader(format_csv([rank(make_runs(("fedavg", "=1+2")), baseline="=1+2")]).splitlines()))
    assert [row["group"] for row in rows] == ["'=1+2", "FedAvg"]
    assert (rows[1]["seeds"], rows[1]["metric"], rows[1]["pairs"]) == ("3", "test_accuracy", "3")
    assert float(rows[1]["difference"]) == pytest.approx(-0.06) and rows[0]["difference"] == ""
    assert all(is_our_table(form([rank(make_runs())])) for form in FORMATS.values())
    assert not is_our_table("x,y\n1,2\n")


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_the_figure_shows_curves_bands_and_differences(width):
    figure = draw_comparison(rank(make_runs(), baseline="SCAFFOLD"), Drawing(width))
    curves, differences = figure.axes
    assert [line.get_label() for line in curves.lines] == ["SCAFFOLD", "FedAvg"]
    assert curves.lines[1].get_ydata().tolist() == pytest.approx([0.51, 0.53, 0.55, 0.57])
    assert len(curves.collections) == 2, "a band each"
    (interval, dot, zero) = differences.lines
    assert interval.get_xdata() == pytest.approx([-0.0848, -0.0352], abs=1e-4)
    assert dot.get_xdata()[0] == pytest.approx(-0.06) and list(zero.get_xdata()) == [0, 0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SCAFFOLD", "FedAvg"]
    assert [tick.get_text() for tick in differences.get_yticklabels()] == ["FedAvg"]


def test_fewer_than_three_seeds_have_points_and_no_band():
    curves, differences = draw_comparison(rank(make_runs(seeds=2)), Drawing()).axes
    lines = [line for line in curves.lines if line.get_label().startswith("_")]
    assert not curves.collections
    assert [line.get_ydata()[-1] for line in lines] == pytest.approx([0.61, 0.63, 0.56, 0.57])
    assert "single seeds" in curves.get_xlabel() and "each seed a point" in differences.get_xlabel().replace("\n", " ")
    assert differences.lines[0].get_xdata() == pytest.approx([0.05, 0.06])


def test_runs_that_ended_at_different_rounds_are_points():
    runs = [make_run("fedavg", seed, [np.nan] * (seed + 1) + [0.5]) for seed in range(3)]
    curves = draw_comparison(rank(runs), Drawing()).axes[0]
    assert [line.get_xdata().tolist() for line in curves.lines] == [[2], [3], [4], []]


def test_a_level_nearby_lies_inside_the_axis():
    runs = [run._replace(trivial={"test_accuracy": {"majority (trivial)": 0.49}}) for run in make_runs()]
    low, _ = draw_comparison(rank(runs), Drawing()).axes[0].get_ylim()
    assert low < 0.49 - 0.001


def test_a_smoothed_curve_has_the_raw_one_behind_it():
    raw, smoothed, *_ = draw_comparison(rank(make_runs(rounds=5)), Drawing(window=3, axis="total_bytes")).axes[0].lines
    assert raw.get_linewidth() < smoothed.get_linewidth()
    assert raw.get_xdata().tolist() == [3, 6, 9, 12, 15]


def test_one_group_of_one_seed_has_a_curve_alone():
    figure = draw_comparison(rank(make_runs(("fedavg",), seeds=1, rounds=1)), Drawing())
    (ax,) = figure.axes
    assert not ax.collections and not figure.legends and ax.get_xlim() == (0, 2)


def test_of_many_groups_the_best_are_drawn_and_the_baseline():
    ranking = rank(make_runs([f"algo_{i}" for i in range(12)], seeds=1), baseline="algo_0")
    drawn = [result.group.label for result in keep_best(ranking).results]
    assert drawn == [f"algo_{i}" for i in (*range(11, 4, -1), 0)]


@pytest.mark.parametrize(("ending", "beginning"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_same_runs_give_the_same_bytes(ending, beginning, tmp_path):
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in paths:
        write_figure(rank(make_runs(("fedavg",), rounds=2)), Drawing(), path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second and first.startswith(beginning) and is_our_figure(paths[0])


def make_rounds(seed, **columns):
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    return ComparedRun("run", pathlib.Path("run"), {"seed": seed}, "FedAvg", arrays, {})


def test_a_result_is_the_last_the_best_or_that_up_to_a_round():
    run = make_rounds(0, round=[1, 2, 3, 4], loss=[3, 1, 2, np.nan])
    assert [read_result(run, "loss", at, True) for at in ("last", "best", 1)] == [2, 1, 3]
    assert read_result(run, "loss", "best", False) == 3
    assert read_result(run, "drift", "last", True) is None


def test_two_runs_of_a_seed_count_as_one_their_mean():
    runs = [make_rounds(seed, round=[1], a=[value]) for seed, value in ((1, 0.5), (0, 0.2), (0, 0.4))]
    assert read_seed_results(runs, "a", "last", False) == {0: pytest.approx(0.3), 1: 0.5}


def test_a_curve_is_the_mean_at_the_rounds_that_all_runs_have():
    runs = [
        make_rounds(0, round=[1, 2, 3], a=[1, 2, 3], seconds=[10, 20, 30]),
        make_rounds(1, round=[1, 2], a=[3, 6], seconds=[20, 40]),
    ]
    curve = compute_curve(runs, "a", "seconds")
    assert [(point.round, point.x, point.mean, point.lowest, point.highest) for point in curve] == [
        (1, 15, 2, 1, 3),
        (2, 30, 4, 2, 6),
    ]
    assert curve[0].find_ends() == (1, 3), "the interval of two seeds is wider than the seeds"
