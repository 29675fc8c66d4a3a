"""The table of accuracy by aggregator and attack, from run folders with made-up numbers."""

import itertools

import pytest
from experiment_flags import read_flags

from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.tables import make_frame
from reproductions.robust.tables import AGGREGATORS, ATTACKS, PAPER, ROUNDS, measure, tabulate


@pytest.fixture
def runs(tmp_path, write_run):
    """The mean and the median on two seeds, of which the second has not been under all attacks, and one unfinished."""
    for aggregator, accuracies in (("mean", [0.9, 0.8, 0.1, 0.2, 0.7, 0.6]), ("median", [0.8] * 6)):
        for attack, accuracy in zip(ATTACKS, accuracies, strict=True):
            name = f"fedavg_mnist_attack_{attack}_{aggregator}"
            write_run(tmp_path, name, 0, ROUNDS, [accuracy] * ROUNDS)
            if attack in ("none", "sign_flip"):
                write_run(tmp_path, name, 1, ROUNDS, [accuracy + 0.02] * ROUNDS)
    write_run(tmp_path, "fedavg_mnist_attack_none_krum", 0, ROUNDS - 1, 0.5)
    return collect_runs(tmp_path)[0]


def test_a_row_an_aggregator_with_its_worst_attack(runs):
    rows = tabulate(make_frame(runs, measure)).records
    assert [row["aggregator"] for row in rows] == ["mean", "median"]
    mean, median = rows
    assert (mean["none"], mean["sign_flip"], mean["alie"]) == ("91.00 ± 1.41", "11.00 ± 1.41", "70.00")
    assert (mean["seeds"], mean["worst"], median["worst"]) == ("1 to 2", "10.00", "80.00")


def test_what_is_not_finished_does_not_count_and_what_is_missing_is_said(runs):
    report = PAPER.build_report(runs)
    assert len(report.runs) == len(runs) - 1
    assert "not run" in report.markdown and "10.00 % under the worst" in report.markdown


def test_the_figure_has_a_panel_an_attack_and_a_row_an_aggregator(runs, tmp_path, sketches, assert_is_picture):
    path = PAPER.draw(runs, tmp_path)
    assert path.name == PAPER.page["figure"]
    assert_is_picture(path)
    axes = sketches[path.name].axes
    # Two seeds have no interval, but a mark each; the ends of an axis are not those of its scale.
    assert not any(container.has_xerr for ax in axes for container in ax.containers)
    assert {len(marks.get_offsets()) for ax in axes for marks in ax.collections} == {2}
    assert axes[0].get_xlim()[0] < 0 and axes[0].get_xlim()[1] > 100
    assert [ax.get_title() for ax in axes] == list(ATTACKS.values())
    assert [label.get_text() for label in axes[0].get_yticklabels()] == list(AGGREGATORS.values())[::-1]
    height = len(AGGREGATORS) - 1  # the mean stands on top, the median below it; others were not run
    found = [{round(y): round(x) for dot, *_ in ax.containers for x, y in dot.get_xydata()} for ax in axes]
    medians = [81, 80, 81, 80, 80, 80]
    means = [91, 80, 11, 20, 70, 60]
    assert found == [{height - 1: median, height: mean} for median, mean in zip(medians, means, strict=True)]


def test_the_experiments_differ_in_aggregator_and_attack_alone():
    plain = read_flags("fedavg_mnist_attack_none_mean")
    assert len(PAPER.experiments) == len(AGGREGATORS) * len(ATTACKS) == 48 and plain["rounds"] == ROUNDS
    for attack, aggregator in itertools.product(ATTACKS, AGGREGATORS):
        flags = read_flags(f"fedavg_mnist_attack_{attack}_{aggregator}")
        differing = {name for name in flags if flags[name] != plain[name]}
        assert all(name.startswith(("aggregator", "attack")) for name in differing)
        assert (flags["aggregator"], flags["attack"]) == (aggregator, attack.removesuffix("_strong"))
