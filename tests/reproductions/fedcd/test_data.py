"""What counts, on which data and in which rounds: made-up runs on the whole of CIFAR-10 and on a subset.

The devices of FedCD's experiments find their images in the whole of CIFAR-10; without it the test is skipped.

What always saying a device's most frequent class gets: by hand, in kept runs that measured it, and in the tables.
"""

import dataclasses
import math
import os
import pathlib

import numpy as np
import pytest
from experiment_flags import read_flags
from small_formats import format_of

from datasets.archetypes import draw_clients
from datasets.arrays import make_array_dataset
from datasets.catalog import DatasetOptions, load_arrays
from datasets.errors import DatasetError
from datasets.partition_settings import ArchetypeSettings
from launch.runs.columns import MAJORITY_ACCURACY
from launch.runs.run_archive import open_runs
from launch.runs.run_records import RunRecord, read_summary
from launch.settings.experiments import match_experiments
from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.figure import _show_shares, draw_fedcd_figure
from reproductions.fedcd.measures import (
    AUTHORS_SMALL,
    WHOLE_DATA,
    compute_majority,
    find_place,
    make_runs,
    measure,
    measure_majority,
)

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


def test_a_row_of_the_figure_has_the_largest_size_with_both_algorithms(write_seeds, tmp_path, sketches):
    """FedCD alone at the medium size, with FedAvg at a small one; hypergeometric ones at that for 2 cores."""
    write_seeds("fedcd_cifar10_hierarchical_authors", [0.6] * 60, dataset=WHOLE, **MODELS)
    write_seeds("fedcd_cifar10_hypergeometric_cpu", [0.6] * 80, **MODELS)
    assert draw_titles(tmp_path, sketches)[:1] == ["Figure 1a: FedCD, hierarchical"]
    for algo, models in (("fedcd", MODELS), ("fedavg", {})):
        write_seeds(f"{algo}_{SMALL}", [0.5] * 45, dataset=WHOLE, **models)
    titles = draw_titles(tmp_path, sketches)
    assert titles[:2] == ["Figure 1a: FedCD, hierarchical", "Figure 1b: FedAvg, hierarchical"]
    assert titles[4] == "Figure 4a: FedCD, hypergeometric\n(small (2 cores))"
    assert "small, authors' training" in sketches["fedcd.png"].get_suptitle()


def draw_titles(folder, sketches):
    draw_fedcd_figure(collect_runs(folder)[0], folder)
    return [ax.get_title() for ax in sketches["fedcd.png"].axes]


def test_curves_by_size_are_of_the_data_that_count_and_of_whole_runs(tmp_path, write_archetype_run, sketches):
    """Medium: the whole's 0.6 and not the subset's 0.2; an interrupted seed does not cut it. Full: nine rounds."""
    medium = "fedcd_cifar10_hierarchical_authors"
    write_archetype_run(tmp_path, medium, [0.6] * 60, 0, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, medium, [0.6] * 12, 1, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, medium, [0.2] * 60, 2, dataset=SUBSET, **MODELS)
    write_archetype_run(tmp_path, f"{medium}_shared", [0.7] * 45, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"{medium}_full_9rounds", [0.5] * 9, dataset=WHOLE, **MODELS)
    draw_fedcd_figure(collect_runs(tmp_path)[0], tmp_path)
    (panel,) = [ax for ax in sketches["fedcd.png"].axes if ax.get_title() == "FedCD, hierarchical: accuracy"]
    curves = {line.get_label(): (len(line.get_ydata()), max(line.get_ydata())) for line in panel.lines}
    assert {label: curve for label, curve in curves.items() if "printed" not in label} == {
        "medium, authors' training": (60, pytest.approx(0.6)),
        "full, authors' training": (9, pytest.approx(0.5)),
        "medium, one schedule for all": (45, pytest.approx(0.7)),
    }


def test_the_full_size_is_labelled_with_the_bits_of_its_runs(tmp_path, write_archetype_run, build_report):
    full = "cifar10_hierarchical_authors_full"
    write_archetype_run(tmp_path, f"fedcd_{full}", [0.5] * 53, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedavg_{full}", [0.5] * 53, dataset=WHOLE)
    write_archetype_run(tmp_path, f"fedcd_{SMALL}", [0.5] * 45, dataset=WHOLE, **MODELS)
    report = build_report(tmp_path)
    for size, labels in (("authors_full", ["8 bits", "8 bits"]), ("authors_small", ["32 bits", ""])):
        columns, rows = report.tables[f"{size}_results"]
        assert columns[1] == "variant" and [row[1] for row in rows[:2]] == labels


MEDIUM = "cifar10_hierarchical_authors"


@pytest.mark.parametrize(
    ("experiment", "counted"),
    [(f"fedcd_{MEDIUM}", WHOLE), (f"fedcd_{MEDIUM}_full", WHOLE), ("fedcd_cifar10_hierarchical_paper", WHOLE),
     ("fedcd_cifar10_hierarchical_cpu", SUBSET), (f"fedcd_{SMALL}", SUBSET)],
)  # fmt: skip
def test_of_the_sizes_that_mean_the_whole_of_cifar10_the_subset_does_not_count(experiment, counted):
    """Of the small ones that of most runs does."""
    runs = [RunRecord(None, {"seed": seed}, experiment, {}, data) for seed, data in enumerate((SUBSET, SUBSET, WHOLE))]
    assert set(make_runs(runs).counted) == {counted}


def test_a_run_is_whole_with_the_rounds_that_its_experiment_has(tmp_path, write_archetype_run, build_report):
    """What is shorter is in no table, but an archive keeps it, as nine rounds of the full size: curves show it."""
    full = f"fedcd_{MEDIUM}_full_9rounds"
    short = [
        f"{write_archetype_run(tmp_path, name, [0.5] * rounds, dataset=WHOLE, **MODELS)}: {rounds} of {asked} rounds"
        for name, rounds, asked in ((f"fedcd_{MEDIUM}", 59, 60), (full, 9, 53))
    ]
    write_archetype_run(tmp_path, f"fedcd_{MEDIUM}_shared", [0.5] * 45, dataset=WHOLE, **MODELS)
    write_archetype_run(tmp_path, f"fedavg_{MEDIUM}_150rounds", [0.5] * 60, dataset=WHOLE)
    report = build_report(tmp_path)
    assert make_runs(report.runs).set_index("experiment").whole.to_dict() == {
        f"fedcd_{MEDIUM}": False,
        full: False,
        f"fedcd_{MEDIUM}_shared": True,
        f"fedavg_{MEDIUM}_150rounds": True,
    }
    assert sorted(report.left_out) == [f"{each}; in no table, only in curves" for each in short]
    assert "authors_full_results" not in report.tables


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


@pytest.mark.parametrize(("flags", "draws"), [({"hypergeometric_draws": 9}, 9), (None, 10)])
def test_figure_3_has_the_shares_of_the_runs(flags, draws):
    """K = 5 of N = 110: no success in n draws has the chance C(105, n) / C(110, n); n = 10 is printed.

    K = 105 with ten draws: what is left of ten successes is dropped, so nine have their share of the others alone.
    """
    experiment = "fedcd_cifar10_hypergeometric_cpu"
    panel = _show_shares(
        make_runs([RunRecord(None, {"seed": 0} | flags, experiment, {}, SUBSET)] if flags else []), "cpu"
    )
    assert f"n = {draws}" in panel.axes["title"]
    curves = [line.curve.mean for line in panel.lines]
    assert curves[0][0] == pytest.approx(math.comb(105, draws) / math.comb(110, draws))
    ten = math.comb(105, 10) / math.comb(110, 10) if draws == 10 else 0
    nine = math.comb(105, 9) * math.comb(5, draws - 9) / math.comb(110, draws)
    assert curves[5][9] == pytest.approx(nine / (1 - ten))


# Experiments of the same size, partition and bias draw the same devices, FedAvg's beside FedCD's among them.
STEMS = sorted(
    each.name
    for each in match_experiments("fedcd/*_cifar10_*")
    if (place := find_place(each.name)).preset in WHOLE_DATA or place.preset == AUTHORS_SMALL
)


@pytest.fixture(scope="module")
def cifar10():
    try:
        arrays = load_arrays("cifar10", DatasetOptions(data_dir=os.environ.get("FL_DATA_DIR", "")))
    except DatasetError as error:
        pytest.skip(f"no CIFAR-10: {error}")
    if len(arrays.train_y) < 50_000:
        pytest.skip("CIFAR-10 is a subset here; the sizes are for all of its 60,000 images")
    return arrays


def get_settings(stem):
    flags = read_flags(stem)
    names = [field.name for field in dataclasses.fields(ArchetypeSettings)]
    return flags["partition"], ArchetypeSettings(**{name: flags[name] for name in names})


# One of the experiments for each kind of devices.
KINDS = {stem: kind for kind, stem in {get_settings(stem): stem for stem in reversed(STEMS)}.items()}


@pytest.mark.parametrize("stem", KINDS)
def test_the_devices_find_their_images(stem, cifar10):
    partition, settings = KINDS[stem]
    sizes = {name: getattr(settings, f"{name}_per_client") for name in ("train", "validation", "test")}
    for seed in range(3):
        for client in draw_clients(cifar10, partition, settings, seed):
            assert {name: len(client[name]) for name in sizes} == sizes


def test_fedavg_and_variants_are_among_them():
    assert {
        "fedavg_cifar10_hierarchical_authors_full",
        "fedcd_cifar10_hierarchical_authors_shared",
        "fedcd_cifar10_hierarchical_paper_bias0.8",
        "fedcd_cifar10_hierarchical_authors_small_bias0.2",
    } <= set(STEMS)


def test_what_the_papers_devices_need_of_a_label(cifar10):
    """With a fifth for validation there are 4,000 of a label: enough for hierarchical devices, not for ten draws."""
    most = {}
    for stem in ("fedcd_cifar10_hierarchical_paper", "fedcd_cifar10_hypergeometric_paper"):
        partition, settings = get_settings(stem)
        clients = draw_clients(cifar10, partition, settings, 0)
        most[partition] = max(np.bincount(cifar10.train_y[client["train"]]).max() for client in clients)
    assert most["hypergeometric"] == 4162 and most["hierarchical"] <= 3500
    partition, settings = get_settings("fedcd_cifar10_hypergeometric_paper")
    with pytest.raises(DatasetError, match="needs 4,162 train examples of label 9"):
        draw_clients(cifar10, partition, dataclasses.replace(settings, validation_pool=0.2), 0)


ARCHIVE = pathlib.Path(__file__).parents[3] / "docs" / "results" / "fedcd.zip"
BIASED = {
    "partition": "hierarchical",
    "clients_per_archetype": 2,
    "train_per_client": 20,
    "test_per_client": 10,
    "validation_per_client": 5,
    "bias_min": 0.6,
    "bias_max": 0.6,
    "seed": 1,
}


def test_a_device_has_its_bias_right():
    accuracy = compute_majority(BIASED)
    assert accuracy.tolist() == pytest.approx([60] * 20) and accuracy.index.tolist() == [i // 2 for i in range(20)]
    assert measure_majority(BIASED) == pytest.approx({"majority": 60, **{f"majority_{i}": 60 for i in range(10)}})
    even = measure_majority(BIASED | {"bias_min": 0.2, "bias_max": 0.2})
    assert even["majority"] == pytest.approx(20), "each label of a meta-archetype is as frequent"


def test_images_of_a_label_are_as_many_as_the_settings_say():
    y = np.repeat(np.arange(10), 60).astype(np.int64)
    x = np.zeros((600, 1), np.float32)
    names = tuple(map(str, range(10)))
    arrays = make_array_dataset("even", (x, y), (x, y), format_of(x, names))
    flags = BIASED | {"bias_max": 0.7}
    settings = ArchetypeSettings(**{name: value for name, value in flags.items() if name not in ("partition", "seed")})
    drawn = draw_clients(arrays, "hierarchical", settings, 1)
    usual = [np.bincount(y[client["train"]]).argmax() for client in drawn]
    right = [100 * np.mean(y[client["test"]] == label) for client, label in zip(drawn, usual, strict=True)]
    assert compute_majority(flags).tolist() == pytest.approx(right)


def test_kept_runs_that_measured_it_say_the_same():
    measured = {}
    for run in collect_runs(open_runs(ARCHIVE))[0]:
        if (share := read_summary(run).get("clients", {}).get(MAJORITY_ACCURACY)) is not None:
            measured[run.experiment, run.flags["seed"]] = (measure_majority(run.flags)["majority"], 100 * share)
    assert len(measured) > 50
    assert [pair[0] for pair in measured.values()] == pytest.approx([pair[1] for pair in measured.values()])


def test_tables_have_it_beside_the_accuracy(write_seeds, build_report):
    """Bias 0.8: FedCD's 60 % are 20 points below it in every seed."""
    experiment = "fedcd_cifar10_hierarchical_cpu_bias0.8"
    tables = build_report(write_seeds(experiment, [0.6] * 45, live_models=6, preferred_models=2)).tables
    (row,) = tables["majority"].rows
    assert row[1:5] == ["hierarchical", "bias 0.8", "FedCD", "3"]
    assert row[5:] == ["60.00 ± 0.00", "80.00 ± 0.00", "-20.00", "loss"]
    (row,) = [row for row in tables["cpu_results"].records if row["variant"] == "bias 0.8"]
    assert (row["last"], row["majority class"]) == ("60.00 ± 0.00", "80.00 ± 0.00")
    assert tables["authors_run"].records[0]["majority class (expected)"] == "65.00"
