"""The tables and the figure of FedSiKD's report, with numbers by hand."""

import dataclasses

import pytest

from launch.runs.tables import write_json
from reproductions.engine.collection import Cell
from reproductions.engine.counted_runs import read_runs
from reproductions.fedsikd.measures import find_targets, measure_runs
from reproductions.fedsikd.tables import PAPER, list_judged, tabulate_values

FIFTH = Cell("mnist", "0.1", "fedsikd", 5, "test_accuracy")
ALGOS = ("fedsikd", "fedavg")


def test_the_printed_tables_are_all_read(printed):
    once, windows = (printed[(printed.dataset == "har_windows") == is_windows] for is_windows in (False, True))
    assert len(once) == 64 + 320
    values = once.set_index(["table", *Cell._fields]).value
    assert values["V", "har", "2", "fedavg", 50, "test_loss"] == 25.64
    assert values["VI", *FIFTH] == 0.7483
    of_v, others = (
        each.set_index(list(Cell._fields)).value for each in (once[once.table == "V"], once[once.table != "V"])
    )
    assert len(set(others.index)) == 320
    first = of_v[of_v.index.get_level_values("round_num") == 1]
    assert len(first) == 32 and first.equals(others[first.index])
    assert len(windows) == 192
    assert windows.assign(dataset="har").to_numpy().tolist() == once[once.dataset == "har"].to_numpy().tolist()


def test_results_are_taken_over_the_seeds(tmp_path, write_run, printed):
    for seed, accuracy in enumerate((0.60, 0.70)):
        write_run(tmp_path, "fedsikd_mnist_alpha0.1", seed, rounds=5, accuracy=accuracy)
    write_run(tmp_path, "fedsikd_mnist_alpha0.1", 2, rounds=1, accuracy=0.5)
    results = list_judged(measure_runs(read_runs(tmp_path)[0], find_targets(printed)))["printed"]
    assert results[FIFTH] == pytest.approx({0: 0.65, 1: 0.75})
    assert len(results[FIFTH._replace(round_num=1)]) == 3
    assert FIFTH._replace(round_num=6) not in results


def test_the_csv_has_a_row_a_printed_value_and_empty_cells_where_not_run(make_run, printed):
    runs = [make_run("fedsikd_mnist_alpha0.1", seed, [0.73 + 0.01 * seed] * 5) for seed in range(3)]
    for run, own in zip(runs, (0.6, 0.8, None), strict=True):
        run.rounds[5]["client_test_accuracy"] = own
    columns, rows = tabulate_values(printed, measure_runs(runs, find_targets(printed)))
    assert len(rows) == len(printed)
    rows = [next(row for row in rows if row[1:6] == ["mnist", "0.1", algo, "5", "test_accuracy"]) for algo in ALGOS]
    assert columns[:7] == ["table", "dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    assert columns[7:10] == ["ours_mean", "ours_deviation", "ours_seeds"]
    assert rows[0] == ["VI", *FIFTH[:3], "5", "test_accuracy", "0.7483", "0.74", "0.01", "3", *[""] * 6, *rows[0][16:]]
    assert columns[16:18] == ["ours_own_splits_mean", "ours_own_splits_deviation"]
    assert rows[0][16:] == ["0.7", "0.14142136", *[""] * 4]
    assert rows[1][-15:] == [""] * 15
    assert {len(row) for row in rows} == {len(columns)}


def test_clusters_of_fl_hc_by_seed(tmp_path, make_run, report):
    runs = [make_run("fedavg_mnist_alpha0.1", seed, [0.8] * 5) for seed in range(3)]
    for seed, sizes in enumerate(([1, 37, 1, 1], [40], [37, 1, 1, 1])):
        write_json(tmp_path / str(seed) / "summary.json", {"fl_hc": {"cluster_sizes": sizes}})
        runs.append(make_run("fl_hc_mnist_alpha0.1", seed, [0.7] * 5, path=tmp_path / str(seed)))
    (row,) = report(runs).tables["clusters"].records
    assert row["sizes"] == "37, 3 x 1 (seeds 0, 2); 40 (seed 1)"
    accuracies = [row[f"{algo}, {where}"] for algo in ("FL+HC", "FedAvg") for where in ("test set", "clients")]
    assert accuracies == ["70.00 ± 0.00", "80.00 ± 0.00", "80.00 ± 0.00", "90.00 ± 0.00"]


def test_a_run_that_has_not_ended_has_no_clusters(make_run, report):
    assert "clusters" not in report([make_run("fl_hc_mnist_alpha0.1", 0, [0.7] * 5)]).tables


@pytest.fixture
def tuned_runs(make_run, tmp_path):
    """FedSiKD moves 40 MB a round and has 80, 81, 82 %; FedAvg 10 MB, 79 % after 5 rounds and 83 after 20.

    Without distillation there is no teacher to move: 10 MB, as much as FedSiKD has after 5 rounds and 84 % after 20.
    """
    write_json(tmp_path / "summary.json", {"seconds_per_round": 12.5})
    runs = []
    for seed in range(3):
        ours = [0.8 + 0.01 * seed] * 5
        fedavg = [0.79] * 5 + [0.81] * 14 + [0.83] + [0.99] * 10
        runs += [
            make_run("fedsikd_mnist_alpha0.1_tuned", seed, ours, megabytes=40, path=tmp_path),
            make_run("fedavg_mnist_alpha0.1_tuned", seed, fedavg, megabytes=10),
            make_run("random_cluster_mnist_alpha0.1_control", seed, [0.75] * 5, megabytes=40),
            make_run("fedsikd_mnist_alpha0.1_tuned_w1", seed, ours + [0.84] * 16, megabytes=10),
        ]
    return runs


def test_tuned_against_tuned_at_equal_rounds_and_bytes(tuned_runs, report):
    """Differences 1, 2 and 3 points: 2 +- 4.303 / sqrt(3) = 2 +- 2.48. 200 MB pay for 20 rounds of FedAvg."""
    rows = {row[0]: row for row in report(tuned_runs).tables["tuned"].rows}
    assert list(rows) == ["FedSiKD", "FedAvg", "control", "FedSiKD, w = 1, no distillation"]
    assert rows["FedSiKD"][1:] == [
        *("0.1", "3 (0 to 2)", "81.00 ± 1.00", "", "81.00 ± 1.00", "", "91.00 ± 1.00", ""),
        *("40.00 ± 0.00", "12.5"),
    ]
    assert rows["FedAvg"][3:] == [
        *("79.00 ± 0.00", "+2.00 [-0.48, +4.48]", "83.00 ± 0.00", "-2.00 [-4.48, +0.48]"),
        *("89.00 ± 0.00", "+2.00 [-0.48, +4.48]"),
        *("10.00 ± 0.00", ""),
    ]
    assert rows["control"][4] == "+6.00 [+3.52, +8.48]"
    assert rows["FedSiKD, w = 1, no distillation"][4:7] == ["+0.00", "84.00 ± 0.00", "-3.00 [-5.48, -0.52]"]


def test_own_splits_beside_the_common_test_set(tuned_runs, make_run, report, tmp_path):
    """All are 10 points better there. FedSiKD is 1, 2 and 3 ahead of FedAvg: t = 3.46, p = 0.0742.

    Two seeds have measured the majority class, which FedSiKD is 40 and 32 ahead of: 36 +- 12.706 * 4 = 36 +- 50.82.
    """
    for seed, share in ((0, 0.5), (2, 0.6)):
        path = tmp_path / f"fedavg {seed}"
        write_json(path / "summary.json", {"clients": {"majority_accuracy": share}})
        tuned_runs[4 * seed + 1] = dataclasses.replace(tuned_runs[4 * seed + 1], path=path)
    runs = [*tuned_runs, make_run("fl_hc_mnist_alpha0.1", 0, [0.7] * 5)]
    rows = report(runs).tables["own_splits"].records
    names = ("algorithm", "seeds", "test set", "clients' own", "FedSiKD ahead, clients' own", "p (Holm)")
    assert [[row[name] for name in names] for row in rows] == [
        ["FedSiKD", "3 (0 to 2)", "81.00 ± 1.00", "91.00 ± 1.00", "", ""],
        ["FedAvg", "3 (0 to 2)", "79.00 ± 0.00", "89.00 ± 0.00", "+2.00 [-0.48, +4.48]", "0.0742"],
        ["control", "3 (0 to 2)", "75.00 ± 0.00", "85.00 ± 0.00", "+6.00 [+3.52, +8.48]", ""],
        ["majority class", "2 (0, 2)", "", "55.00 ± 7.07", "+36.00 [-14.82, +86.82]", ""],
    ]
    assert {row["runs"] for row in rows} == {"ours, tuned"}, "FL+HC alone is beside nothing"


def test_short_runs_have_no_number_at_equal_bytes(make_run, report):
    runs = [make_run("fedsikd_mnist_alpha0.1_tuned", 0, [0.8] * 5, megabytes=40)]
    runs += [make_run("fedavg_mnist_alpha0.1_tuned", 0, [0.79] * 5, megabytes=10)]
    rows = {row[0]: row for row in report(runs).tables["tuned"].rows}
    assert rows["FedAvg"][3:7] == ["79.00", "+1.00", "", ""]


def test_further_comparisons_are_those_of_the_runs(tuned_runs, report):
    page = report(tuned_runs)
    rows = page.tables["further"].records
    (legend,) = [row for row in page.tables["legend"].rows if row[0] == "further"]
    assert "Planned and not run yet: 12 of 17 (ours, tuned). When they are," in legend[2]
    verdicts = {row["comparison"]: row["verdict"] for row in rows if row["runs"] == "ours, tuned"}
    place = "MNIST, alpha 0.1"
    assert verdicts == {
        f"{place}, round 5: FedSiKD above FedAvg": "undecided",
        f"{place}, round 5: FedSiKD above the control, random clusters of the same sizes": "yes",
        f"{place}, equal bytes: FedSiKD above FedAvg": "undecided",
        f"{place}, round 5: FedSiKD above FedSiKD with w = 1, no distillation": "undecided",  # a tie in all seeds
        f"{place}, equal bytes: FedSiKD above FedSiKD with w = 1, no distillation": "undecided",
    }


def test_accuracy_by_epsilon(make_run, report):
    """Pairs of one seed: without noise 1, 2 and 3 points ahead, 2 +- 2.48; t = 2 / (1 / sqrt 3) = 3.46, p = 0.0742.

    For epsilon 2 they are 0, 5 and 10 ahead: t = 1.73, p = 0.2254; of two, the least is doubled.
    """
    name = "fedsikd_mnist_alpha0.1"
    runs = []
    for seed in range(3):
        runs.append(make_run(f"{name}_scalar_epsilon_none", seed, [0.8 + 0.05 * seed] * 5))
        runs.append(make_run(f"{name}_scalar_epsilon1", seed, [0.8 + 0.05 * seed - 0.01 * (seed + 1)] * 5))
    runs += [make_run(f"{name}_per_feature_epsilon8", seed, [0.7] * 5) for seed in (0, 2)]
    assert report(runs).tables["privacy"].rows == [
        ["scalar", "1", "3 (0 to 2)", "83.00 ± 4.00", "+2.00 [-0.48, +4.48]", "0.0742"],
        ["scalar", "none", "3 (0 to 2)", "85.00 ± 5.00", "", ""],
        ["per feature", "8", "2 (0, 2)", "70.00 ± 0.00", "", ""],
    ]
    runs += [make_run(f"{name}_scalar_epsilon2", seed, [0.7 + 0.05 * seed, *[0.8] * 4]) for seed in range(3)]
    assert [row[-1] for row in report(runs).tables["privacy"].rows[:2]] == ["0.1484", "0.2254"], "a family of two"
    assert "privacy" not in report([]).tables


def test_panels_and_curves_of_the_figure(tmp_path, make_run, sketches, assert_is_picture):
    """Of two runs of three rounds and one of one, the two make the curve.

    Windows and tuned runs have panels where there are any.
    """
    runs = [make_run("fedsikd_mnist_alpha0.1", seed, [0.1, 0.2, 0.3 + 0.2 * seed]) for seed in (0, 1)]
    runs += [make_run("fedsikd_mnist_alpha0.1", 2, [0.9])]
    runs += [make_run("fedavg_mnist_alpha0.1_tuned", 0, [0.5]), make_run("fedsikd_mnist_alpha0.1_authors", 0, [0.7])]
    runs += [make_run("fedavg_har_windows_alpha0.5", 0, [0.5])]
    assert_is_picture(PAPER.draw(runs, tmp_path))
    axes = {ax.get_title(): ax for ax in sketches["figure_3.png"].axes if ax.get_title()}
    assert [title for title in axes if "windows" in title] == ["HAR windows, alpha = 0.5, n = 1"]
    assert len(axes) == 10 and list(axes)[-1] == "MNIST, alpha = 0.1, tuned, n = 1"

    def read_lines(title):
        return {line.get_label(): list(line.get_ydata()) for line in axes[title].lines}

    assert read_lines("MNIST, alpha = 0.1, n = 2") == {"FedSiKD": pytest.approx([0.1, 0.2, 0.4])}
    assert read_lines("MNIST, alpha = 0.1, tuned, n = 1") == {"FedAvg": [0.5]}
