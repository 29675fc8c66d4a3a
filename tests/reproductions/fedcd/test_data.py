"""Runs on different data are never compared: made-up runs on the whole of CIFAR-10 and on a subset."""

import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.figure import draw_fedcd_figure

SMALL = "cifar10_hierarchical_authors_small"
WHOLE, SUBSET = "cifar10", "cifar10 subset (20,000 + 5,000 images)"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


def test_fedcd_on_the_subset_is_not_held_against_fedavg_on_the_whole(write_seeds, build_report, find_claim):
    """As many runs on both: those on the whole count. Then the subset has more, and with FedAvg there it decides."""
    write_seeds(f"fedcd_{SMALL}", [0.6] * 45, dataset=SUBSET, **MODELS)
    runs_dir = write_seeds(f"fedavg_{SMALL}", [0.4] * 45, dataset=WHOLE)
    report = build_report(runs_dir)
    words = "more accurate on all archetypes"
    assert find_claim(report, words)["authors_small"] == "not run"
    assert list(report.left_out) == [
        f"{runs_dir / f'fedcd_{SMALL}' / f'seed_{seed}'}: made on {SUBSET}; runs of its size count on cifar10 alone"
        for seed in range(3)
    ]
    write_seeds(f"fedavg_{SMALL}", [0.4] * 45, dataset=SUBSET)
    report = build_report(runs_dir)
    assert find_claim(report, words)["authors_small"] == "reproduced" and not report.left_out


def test_a_row_of_the_figure_has_the_largest_size_with_both_algorithms(write_seeds, tmp_path, figures):
    """FedCD alone at the medium size, with FedAvg at a small one; hypergeometric ones at that for 2 cores."""
    write_seeds("fedcd_cifar10_hierarchical_authors", [0.6] * 60, dataset=WHOLE, **MODELS)
    write_seeds("fedcd_cifar10_hypergeometric_cpu", [0.6] * 80, **MODELS)
    assert draw_titles(tmp_path, figures)[:1] == ["Figure 1a: FedCD, hierarchical"]
    for algo, models in (("fedcd", MODELS), ("fedavg", {})):
        write_seeds(f"{algo}_{SMALL}", [0.5] * 45, dataset=WHOLE, **models)
    titles = draw_titles(tmp_path, figures)
    assert titles[:2] == ["Figure 1a: FedCD, hierarchical", "Figure 1b: FedAvg, hierarchical"]
    assert titles[4] == "Figure 4a: FedCD, hypergeometric\n(small (2 cores))"
    assert "small, authors' training" in figures["fedcd.png"].get_suptitle()


def draw_titles(folder, figures):
    draw_fedcd_figure(collect_runs(folder)[0], folder)
    return [ax.get_title() for ax in figures["fedcd.png"].axes]


def test_bits_are_compared_on_one_data_set(write_seeds, build_report, find_claim):
    """32 bits on the subset and on the whole with other seeds; 8 and 4 bits on the whole, where they are equal."""
    write_seeds(f"fedcd_{SMALL}", [0.5] * 45, seeds=(0, 1, 2), dataset=SUBSET, **MODELS)
    write_seeds(f"fedcd_{SMALL}", [0.6] * 45, seeds=(3, 4, 5), dataset=WHOLE, **MODELS)
    for bits in (8, 4):
        runs_dir = write_seeds(f"fedcd_{SMALL}_{bits}bits", [0.6] * 45, seeds=range(6), dataset=WHOLE, **MODELS)
    row = find_claim(build_report(runs_dir), "effect on model performance")
    assert row["authors_small"] == "reproduced"
    assert "8 bits 60.00, 32 bits 60.00: the same difference in all 3 seeds" in row["authors_small_numbers"]


def test_curves_by_size_are_of_the_data_that_count_and_of_whole_runs(tmp_path, write_archetype_run, figures):
    """Medium: the whole's 0.6 and not the subset's 0.2; an interrupted seed does not cut it. Full: nine rounds."""
    medium = "fedcd_cifar10_hierarchical_authors"
    write_archetype_run(tmp_path, medium, [0.6] * 60, 0, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, medium, [0.6] * 12, 1, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, medium, [0.2] * 60, 2, dataset=SUBSET, **MODELS)
    write_archetype_run(tmp_path, f"{medium}_shared", [0.7] * 45, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"{medium}_full_9rounds", [0.5] * 9, dataset=WHOLE, **MODELS)
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    (panel,) = [ax for ax in figures["fedcd.png"].axes if ax.get_title() == "FedCD, hierarchical: accuracy"]
    curves = {line.get_label(): (len(line.get_ydata()), max(line.get_ydata())) for line in panel.lines}
    assert {label: curve for label, curve in curves.items() if "printed" not in label} == {
        "medium, authors' training": (60, pytest.approx(0.6)),
        "full, authors' training": (9, pytest.approx(0.5)),
        "medium, one schedule for all": (45, pytest.approx(0.7)),
    }


def test_nine_rounds_of_the_full_size_are_kept_though_no_table_has_them(tmp_path, write_archetype_run, build_report):
    run_dir = write_archetype_run(
        tmp_path, "fedcd_cifar10_hierarchical_authors_full_9rounds", [0.5] * 9, dataset=WHOLE, **MODELS
    )
    report = build_report(tmp_path)
    assert [run.path for run in report.runs] == [run_dir], "an archive keeps what a report counts"
    assert list(report.left_out) == [f"{run_dir}: 9 of 53 rounds; in no table, only in curves"]
    assert "authors_full_results" not in report.tables


def test_figure_6_has_fedavgs_bits(write_seeds, tmp_path, figures):
    for algo, accuracy in (("fedcd", 0.6), ("fedavg", 0.4)):
        for variant in ("", "_8bits"):
            write_seeds(
                f"{algo}_{SMALL}{variant}", [accuracy] * 45, dataset=WHOLE, **(MODELS if algo == "fedcd" else {})
            )
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    (panel,) = [ax for ax in figures["fedcd.png"].axes if ax.get_title().startswith("Figure 6")]
    assert {line.get_label(): max(line.get_ydata()) for line in panel.lines} == pytest.approx(
        {"32 bits": 0.6, "8 bits": 0.6, "FedAvg, 32 bits": 0.4, "FedAvg, 8 bits": 0.4}
    )


def test_the_full_size_is_labelled_with_the_bits_of_its_runs(tmp_path, write_archetype_run, build_report):
    full = "cifar10_hierarchical_authors_full"
    write_archetype_run(tmp_path, f"fedcd_{full}", [0.5] * 53, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedavg_{full}", [0.5] * 53, dataset=WHOLE)
    write_archetype_run(tmp_path, f"fedcd_{SMALL}", [0.5] * 45, dataset=WHOLE, **MODELS)
    report = build_report(tmp_path)
    for size, labels in (("authors_full", ["8 bits", "8 bits"]), ("authors_small", ["32 bits", ""])):
        columns, rows = report.tables[f"{size}_results"]
        assert columns[1] == "variant" and [row[1] for row in rows[:2]] == labels
