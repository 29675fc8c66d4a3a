"""Figure 3 from runs with made-up numbers."""

import pytest

from reproductions.fedsikd.figure import draw_fedsikd_figure


def test_panels_and_curves(tmp_path, make_run, figures, assert_is_picture):
    """Of two runs of three rounds and one of one, the two make the curve.

    Windows and tuned runs have panels where there are any.
    """
    runs = [make_run("fedsikd_mnist_alpha0.1", seed, [0.1, 0.2, 0.3 + 0.2 * seed]) for seed in (0, 1)]
    runs += [make_run("fedsikd_mnist_alpha0.1", 2, [0.9])]
    runs += [make_run("fedavg_mnist_alpha0.1_tuned", 0, [0.5]), make_run("fedsikd_mnist_alpha0.1_authors", 0, [0.7])]
    runs += [make_run("fedavg_har_windows_alpha0.5", 0, [0.5])]
    assert_is_picture(draw_fedsikd_figure(runs, tmp_path))
    axes = {ax.get_title(): ax for ax in figures["figure_3.png"].axes if ax.get_title()}
    assert [title for title in axes if "windows" in title] == ["HAR windows, alpha = 0.5, n = 1"]
    assert len(axes) == 10 and list(axes)[-1] == "MNIST, alpha = 0.1, tuned, n = 1"

    def read_lines(title):
        return {line.get_label(): list(line.get_ydata()) for line in axes[title].lines}

    assert read_lines("MNIST, alpha = 0.1, n = 2") == {"FedSiKD": pytest.approx([0.1, 0.2, 0.4])}
    assert read_lines("MNIST, alpha = 0.1, tuned, n = 1") == {"FedAvg": [0.5]}
