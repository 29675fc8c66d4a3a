"""The table of others' protocols, from run folders with made-up numbers."""

import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.tables import make_frame
from reproductions.protocols.tables import JUDGED_BY, PAPER, count_rounds, measure, read_printed, tabulate

FEDAVG, IFCA, ORACLE = (f"{algo}_mnist_rotated4_200images_tenth" for algo in ("fedavg", "ifca", "oracle"))
SCAFFOLD = "scaffold_mnist_dirichlet0.5"
LOCAL = "local_only_mnist_rotated4_200images"


@pytest.fixture
def runs(tmp_path, write_run):
    """SCAFFOLD's on two seeds, an oracle's, local training's, which is tested once, and half a run of FedAvg."""
    write_run(tmp_path, SCAFFOLD, 0, 50, [0.5] * 49 + [0.98])
    write_run(tmp_path, SCAFFOLD, 1, 50, [0.5] * 49 + [0.97])
    write_run(tmp_path, ORACLE, 0, 300)
    write_run(tmp_path, FEDAVG, 0, 299)
    write_run(tmp_path, LOCAL, 0, 10)
    found = collect_runs(tmp_path)[0]
    for run in found:
        for round_num, row in run.rounds.items():
            if run.experiment != LOCAL or round_num == 10:
                row["client_test_accuracy"] = 0.96
    return found


def test_ours_stand_beside_what_is_printed(runs):
    rows = tabulate(make_frame(runs, measure)).records
    assert [(row["method"], row["rounds"], row["seeds"]) for row in rows] == [
        ("SCAFFOLD", "50", "2"),
        ("local training", "10", "1"),
        ("FedAvg in each of the true groups", "300", "1"),
    ]
    assert [(row["printed"], row["ours"], row["difference"]) for row in rows] == [
        ("99", "97.50 ± 0.71", "-1.50"),
        ("80.05", "96.00", "+15.95"),
        ("", "96.00", ""),
    ]


def test_what_is_not_finished_does_not_count(runs):
    assert len(PAPER.build_report(runs).runs) == len(runs) - 1


def test_all_experiments_have_a_place():
    assert PAPER.experiments.keys() <= JUDGED_BY.keys()
    assert {name for name in PAPER.experiments if read_printed(name) is None} == {
        name for name in PAPER.experiments if name.startswith("oracle")
    }
    assert (read_printed(IFCA), count_rounds(IFCA)) == (95.25, 300)
    assert (read_printed(SCAFFOLD), count_rounds(SCAFFOLD)) == (99.0, 50)


def test_the_figure_has_a_panel_a_protocol_with_the_printed_levels(runs, tmp_path, sketches, assert_is_picture):
    path = PAPER.draw(runs, tmp_path)
    assert path.name == PAPER.page["figure"]
    assert_is_picture(path)
    drawn = [ax for ax in sketches[path.name].axes if ax.lines]
    assert [ax.get_title() for ax in drawn] == ["niid_bench, MNIST", "IFCA, a tenth of 1,200 clients a round"]
    curve, level = drawn[0].lines
    assert curve.get_ydata()[-1] == pytest.approx(0.975) and level.get_ydata()[0] == pytest.approx(0.99)
    assert len(drawn[1].lines) == 1  # nothing is printed for the oracle
