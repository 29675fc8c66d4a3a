"""What is measured in a run, from run folders with numbers that are easy by hand.

What the building allows: trees that know the sensor, fitted on the train days and judged on the later ones.
"""

import dataclasses
import functools
import importlib
import math

import numpy as np
import pytest
import threadpoolctl
from experiment_flags import find_experiments, read_flags
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.building.readings import BUILDING_FORMAT
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns
from reproductions.amfl_p import pooled_reference
from reproductions.amfl_p.measures import (
    ACCURACY,
    ALGOS,
    LAST_ROUND,
    NEW_SENSORS,
    ROUNDS,
    STANDS_FOR,
    STEPS,
    TUNED_KINDS,
    counts,
    make_curves,
    make_runs,
    measure,
)
from reproductions.amfl_p.pooled_reference import (
    COLUMNS,
    add_sensor_features,
    compute_majority,
    compute_pooled_accuracy,
    compute_rows,
    main,
    read_pooled,
)
from reproductions.engine.counted_runs import collect_runs


@pytest.fixture
def make_run(tmp_path):
    """A run of ten devices, evaluated every 5 rounds, whose accuracy rises in a line to that of its last round."""

    def make(experiment, accuracy, rounds=None, steps="", curve=(), own=None, **summary):
        flags = read_flags(experiment) | {"seed": 5}
        last = rounds or flags["rounds"]
        run_dir = tmp_path / experiment / "seed_5"
        write_json(run_dir / "config.json", {"flags": flags})
        reached = {i: f"{accuracy * i / last}" for i in range(1, last + 1) if i % 5 == 0 or i == last}
        rows = [[str(i), "10", reached.get(i, ""), str(steps)] for i in range(1, last + 1)]
        write_table(run_dir / "metrics.csv", ["round", "num_clients", ACCURACY, "mean_fine_tuning_steps"], rows)
        write_json(run_dir / "summary.json", summary)
        if curve:
            rows = [[str(cell) for cell in row] for row in curve]
            write_table(run_dir / "fine_tuning.csv", find_task_columns("classification").fine_tuning_columns, rows)
        for column, values in (own or {}).items():
            rows = [[f"client_{i}", str(value)] for i, value in enumerate(values)]
            write_table(run_dir / "clients.csv", ["client", column], rows)
        (run,) = collect_runs(tmp_path / experiment)[0]
        return run

    return make


def test_accuracy_rounds_and_steps(make_run):
    """0.78 r / 50 is 0.75 from r = 48.1 on, so 50; FedAvg never gets there and has no fine-tuning."""
    found = measure(make_run("start_maml_resources_building_medium", 0.78, steps=55.0))
    assert (found[ACCURACY], found[ROUNDS], found[STEPS]) == (pytest.approx(0.78), 50, 55)
    found = measure(make_run("fedavg_alone_building_medium", 0.60))
    assert (found[ROUNDS], found[STEPS]) == (math.inf, 0)
    assert measure(make_run("start_fedavg_same_building_medium", 0.8))[STEPS] == 100


def test_a_run_that_ended_early_does_not_count_nor_do_rounds_after_the_last(make_run):
    """0.8 r / 60 is 0.75 from r = 56.3 on."""
    assert measure(make_run("fedavg_alone_building_high", 0.60, rounds=10)) == {}
    found = measure(make_run("fedavg_building_medium", 0.80, rounds=60))
    assert found[ROUNDS] == math.inf and found[ACCURACY] == pytest.approx(0.8 * LAST_ROUND / 60)


@pytest.mark.parametrize(
    ("experiment", "seen", "unseen"),
    [
        ("start_maml_resources_building_medium", False, True),
        ("fedavg_alone_building_high", False, True),
        ("ablation_dynamic_building_medium", False, True),
        ("few_shot_local_building_16", False, True),
        ("local_training_building_structured", True, True),  # which has no other seeds
        ("fedavg_building_medium", True, True),  # the paper's rates, chosen by no search
        ("local_only_building_low", True, True),
        ("defaults_amfl_p_building_low", True, True),
    ],
)
def test_what_is_tuned_counts_on_seeds_that_no_search_saw(make_run, experiment, seen, unseen):
    run = make_run(experiment, 0.7)
    assert [counts(dataclasses.replace(run, flags={"seed": seed})) for seed in (4, 5)] == [seen, unseen]


def test_runs_are_a_frame_of_what_counts_and_is_whole(make_run):
    """By variant, setting and seed; without flags the setting is all of the data."""
    names = ("start_maml_same_building_low", "few_shot_maml1_building_all", "fedavg_building_medium")
    names += ("local_training_building_high", "defaults_amfl_p_building_low", "defaults_fedavg_chosen_har_subjects")
    runs = [make_run(name, 0.7) for name in names]
    runs.append(make_run("fedavg_alone_building_low", 0.7, rounds=10))
    runs.append(dataclasses.replace(runs[0], flags={**runs[0].flags, "seed": 4}))
    assert make_runs(runs).preset.to_dict() == {
        ("start_maml_same", "low", 5): "tuned",
        ("few_shot_maml1", "all", 5): "tuned",
        ("local_training", "high", 5): "tuned",
        ("fedavg", "medium", 5): "printed",
        ("defaults_amfl_p", "building_low", 5): "defaults",
        ("defaults_fedavg_chosen", "har_subjects", 5): "defaults",
    }
    assert make_runs([]).empty and {ACCURACY, "run", "start_gain"} < set(make_runs([]).columns)


def test_what_the_summary_says(make_run):
    summary = {
        "clients": {"majority_accuracy": 0.4},
        "new_clients": {"majority_accuracy": 0.3},
        "fine_tuning_start": {"gain_over_random_start": 0.02, "relative_change": 0.1},
    }
    found = measure(make_run("defaults_amfl_p_har_subjects", 0.9, **summary))
    names = ("majority_of_members", "majority_of_new", "start_gain", "start_change")
    assert [found[name] for name in names] == [0.4, 0.3, 0.02, 0.1]


def test_costs_are_steps_times_batch(make_run):
    """FedAvg's ten devices train 50 rounds; random weights cost nothing before the finish."""
    finish = {"energy_of_fine_tuning_examples": 48_000.0}

    def show(experiment, **summary):
        found = measure(make_run(experiment, 0.7, **summary))
        return found["examples_of_training"], found["examples_of_finish"]

    own = {**finish, "energy_of_training_examples": 9_000.0}
    assert show("start_maml_resources_building_low", amfl_p=own) == (9_000, 48_000)
    flags = read_flags("start_fedavg_same_building_low")
    trained = 50 * 10 * flags["local_steps"] * flags["batch_size"]
    assert show("start_fedavg_same_building_low", fine_tuning=finish) == (trained, 48_000)
    assert show("start_random_same_building_low", fine_tuning=finish) == (0, 48_000)


def test_a_device_with_fewer_examples_than_a_batch_trains_on_those_it_has(make_run):
    """Local training, 50 rounds of steps on 10 devices: five have 8 examples, five more than a batch of 96."""
    flags = read_flags("local_training_building_low")
    assert flags["batch_size"] == 96  # or 8 and 52 below are other means
    run = make_run("local_training_building_low", 0.7, own={"num_train": [8] * 5 + [300] * 5})
    assert measure(run)["examples_of_training"] == 50 * 10 * flags["steps"] * 52


def test_lines_of_few_shot_runs(make_run):
    """Random weights are those of FedAvg's runs; local training's new sensors are the last ones."""
    rows = [
        (whose, steps, base + 0.01 * steps, 0.1, base - 0.25, 0.1)
        for whose, base in (("members", 0.5), ("new", 0.4))
        for steps in (5, 0)
    ]
    runs = [make_run(f"few_shot_{start}_building_{number}", 0.6, curve=rows) for start, number in
            (("fedavg", "16"), ("maml1", "32"))]  # fmt: skip
    curves = make_curves(make_runs(runs), "few_shot_")
    assert curves.loc["few_shot_fedavg", "16", "members"].to_dict() == {(0, 5): 0.5, (5, 5): 0.55}
    assert curves.loc["few_shot_random", "16", "new"].to_dict() == pytest.approx({(0, 5): 0.15, (5, 5): 0.15})
    assert set(curves.index.droplevel(["sensors", "steps"])) == {
        ("few_shot_fedavg", "16", 5), ("few_shot_random", "16", 5), ("few_shot_maml1", "32", 5)
    }  # fmt: skip
    run = make_run("few_shot_local_building_16", 0.45, own={"accuracy": [0.5] * 80 + [0.25] * NEW_SENSORS})
    found = measure(run)
    assert (found["accuracy_of_members"], found["accuracy_of_new"]) == (0.5, 0.25)


def test_a_random_start_is_measured_from_random_weights(make_run):
    """Its run's model is of the one round that a run must have. No other run of the factorial has it."""
    runs = [make_run(f"start_{start}_same_building_low", 0.6, curve=[("members", 5, 0.3, 0.1, 0.2, 0.1)]) for start in
            ("random", "fedavg")]  # fmt: skip
    curves = make_curves(make_runs(runs), "start_")
    assert curves.droplevel(["setting", "sensors", "steps", "seed"]).to_dict() == {
        "start_random_same": 0.2, "start_fedavg_same": 0.3
    }  # fmt: skip
    assert make_curves(make_runs(runs), "few_shot_").empty


def test_every_place_of_the_papers_tables_has_its_experiment():
    """Twelve are runs of our factorial, the methods as tuned."""
    variants = [(variant, algo) for variant, algo in STANDS_FOR if algo in ALGOS]
    names = [f"{variant}_building_{level}" for variant, _ in variants for level in ("low", "medium", "high")]
    assert set(names) < {each.name for each in find_experiments("amfl_p")}
    assert len(set(names)) == 24
    assert {algo: variant for variant, algo in variants if f"{variant}_".startswith(TUNED_KINDS)} == {
        "amfl_p": "start_maml_resources",
        "fine_tuning": "start_fedavg_same",
        "fedavg": "fedavg_alone",
        "local_only": "local_training",
    }


@pytest.fixture(autouse=True)
def one_thread():
    """On data this small several threads mostly wait for each other, and for minutes where other jobs run."""
    importlib.import_module("sklearn.ensemble")  # only threads of what is loaded are limited
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        yield


def test_a_reading_gets_its_sensor_and_what_is_usual_for_it():
    x, usual = np.array([[1.0], [2.0]]), np.array([[10.0, 0.5], [20.0, 0.25]])
    np.testing.assert_array_equal(
        add_sensor_features(x, np.array([1, 0]), usual), np.array([[1, 1, 20, 0.25], [2, 0, 10, 0.5]], np.float32)
    )


def test_knowing_the_sensor_makes_the_difference():
    """Two sensors give the same reading opposite labels: without the sensor, half would be right."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 8)).astype(np.float32)
    sensors = np.arange(800) % 2
    y = ((x[:, 0] > 0) ^ (sensors == 1)).astype(int)
    arrays = make_array_dataset(
        "building",
        (x[:600], y[:600]),
        (x[600:], y[600:]),
        format_of(x[:600], BUILDING_FORMAT.class_names, BUILDING_FORMAT.preprocessing),
        clients=sensors[:600],
        test_clients=sensors[600:],
    )
    assert compute_pooled_accuracy(arrays, 0) > 0.95


def test_the_majority_is_that_of_each_sensor_s_train_days():
    """Sensor 0 has seen 1 1 0 and is right for one of two; sensor 1 has seen 2 and is right for all: 3/4."""
    arrays = make_array_dataset(
        "building",
        (np.zeros((4, 8), np.float32), np.array([1, 1, 0, 2])),
        (np.zeros((3, 8), np.float32), np.array([1, 0, 2])),
        format_of(np.zeros((4, 8), np.float32), BUILDING_FORMAT.class_names, BUILDING_FORMAT.preprocessing),
        clients=np.array([0, 0, 0, 1]),
        test_clients=np.array([0, 0, 1]),
    )
    assert compute_majority(arrays) == 0.75


def test_the_command_writes_what_the_report_reads(tmp_path, monkeypatch, capsys):
    path = tmp_path / "pooled.csv"
    monkeypatch.setattr(pooled_reference, "BUILDING_HETEROGENEITY", ("low", "structured"))
    monkeypatch.setattr(pooled_reference, "compute_rows", functools.partial(compute_rows, [1], 2))
    monkeypatch.setattr(
        pooled_reference, "compute_pooled_accuracy", lambda arrays, seed: len(arrays.test_y) * seed / 1e4
    )
    assert main([f"--output={path}"]) == 0
    pooled = read_pooled(path)
    assert list(pooled.columns) == list(COLUMNS)
    assert list(pooled.heterogeneity) == ["low", "structured"] and set(pooled.seed) == {1}
    assert pooled.majority.between(0.2, 0.9).all() and pooled.accuracy.between(0, 1, inclusive="right").all()
    assert f"{pooled.accuracy[0]:.4f}" in capsys.readouterr().out
    assert read_pooled(tmp_path / "absent.csv").empty


@pytest.mark.parametrize("arguments", [["--seeds=0"], ["--", "x"]])
def test_a_wrong_request_is_one_line(arguments, capsys):
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
