"""Our experiments beside the AMFL-P paper: what their runs share, and that batches fit every sensor that is run.

The latter with NumPy alone, without the rooms' air: which readings are lost does not depend on it.
"""

import functools

import numpy as np
import pytest
from experiment_flags import read_flags

from datasets.building.physics import DEGREES, Climate, draw_sensors
from datasets.building.readings import (
    NUM_TEST_DAYS,
    NUM_TRAIN_DAYS,
    READINGS_PER_DAY,
    _read_sensors,
    _select_examples,
    compute_features,
    load_building_arrays,
)
from datasets.federate import split_client
from datasets.partition_settings import PartitionSettings
from launch.settings.experiments import match_experiments
from reproductions.amfl_p.measures import AXES, NEW_SENSORS

SEEDS = (*range(20), *range(100, 105))  # reported ones, and those of the trials
NUM_SENSORS = 100


@functools.cache
def count_examples(degree, seed):
    """Of each sensor, those of the train days: none that needs a reading that is lost."""
    shape = ((NUM_TRAIN_DAYS + NUM_TEST_DAYS) * READINGS_PER_DAY, NUM_SENSORS)
    air = Climate(temperature_c=np.full(shape, 21.0), humidity_g_per_m3=np.full(shape, 8.0), people=np.zeros(shape))
    sensors = draw_sensors(NUM_SENSORS, DEGREES[degree], seed)
    values = _read_sensors(air, sensors, np.random.default_rng([seed, 5, 4]))
    days = _select_examples(compute_features(values))[:NUM_TRAIN_DAYS]
    return np.isfinite(days).all(axis=-1).sum(axis=(0, 1))


def name_fine_tuning(algo):
    """What the names of an algorithm's settings of fine-tuning begin with."""
    return "" if algo == "fine_tuning" else "fine_tuning_"


def list_meta_learners():
    """{experiment: flags} of AMFL-P on the building, without the paper's own tables."""
    return {
        each.name: read_flags(each.full_name)
        for each in match_experiments("amfl_p/*_building_*")
        if each.flags["algo"] == "amfl_p" and not each.name.startswith("amfl_p_")
    }


def count_train(degree, seed, flags):
    """Examples that the sensor with the fewest has to train on."""
    names = ("validation_fraction", "most_train_examples")
    settings = PartitionSettings(partition="natural", test_fraction=0.0, **{name: flags[name] for name in names})
    fewest = int(count_examples(degree, seed).min())
    return len(split_client(np.arange(fewest), 0, settings, is_ordered=True)["train"])


def test_readings_are_counted_as_the_data_set_counts_them():
    """At high heterogeneity, seed 9, a sensor has 98 examples, fewer than in any other building."""
    arrays = load_building_arrays(NUM_SENSORS, "high", 9)
    assert np.array_equal(count_examples("high", 9), np.bincount(arrays.train_clients))
    assert count_examples("high", 9).min() == 98


def test_batches_fit_the_sensor_with_the_fewest_readings():
    experiments = list_meta_learners()
    assert len(experiments) == 2 * len(AXES["degree"]) + 9 + 12 + 3  # factorial, ablations, few-shot, without flags
    too_large = []
    for stem, flags in experiments.items():
        assert flags["building_num_sensors"] == NUM_SENSORS
        needed = flags["support_size"] + flags["query_size"]
        degree = flags["building_heterogeneity"]
        too_large += [(stem, seed) for seed in SEEDS if count_train(degree, seed, flags) < needed]
    assert too_large == []


@pytest.mark.parametrize(("size", "fits"), [(78, True), (79, False)])
def test_the_largest_batches_that_fit_are_of_78_readings(size, fits):
    """A fifth of 98, rounded, is 20 for validation: 16 + 60 fit, 16 + 72 would not."""
    assert (count_train("high", 9, {"validation_fraction": 0.2, "most_train_examples": 0}) >= size) == fits


@pytest.mark.parametrize("degree", ["low", "medium", "high", "structured"])
@pytest.mark.parametrize("finish", ["same", "resources"])
@pytest.mark.parametrize(("start", "algo"), [("fedavg", "fine_tuning"), ("maml", "amfl_p"), ("random", "fine_tuning")])
def test_cells_of_the_factorial_share_their_data_and_the_finish_its_rule(degree, finish, start, algo):
    """The trials have no curve, and their best settings must not bring that along."""
    flags = read_flags(f"start_{start}_{finish}_building_{degree}")
    expected = {"algo": algo, "building_heterogeneity": degree, "building_num_sensors": 100, "validation_fraction": 0.2}
    begun = "initial" if start == "random" else "trained"
    finishing = {"rule": finish, "steps": 100, "start": begun, "curve": "0,1,2,5,10,20,50,100"}
    expected |= {name_fine_tuning(algo) + name: value for name, value in finishing.items()}
    # Rounds to an accuracy are counted; but the one round of a random start reaches nothing.
    expected |= {} if start == "random" else {"rounds_per_evaluation": 5}
    assert {name: flags[name] for name in expected} == expected


@pytest.mark.parametrize("readings", ["16", "32", "64", "all"])
def test_few_shot_runs_differ_in_the_start_alone(readings):
    finishes = set()
    for start in ("fedavg", "maml1", "maml5", "maml10"):
        flags = read_flags(f"few_shot_{start}_building_{readings}")
        prefix = name_fine_tuning(flags["algo"])
        finish = {name: flags[prefix + name] for name in ("steps", "learning_rate", "rule", "start", "curve")}
        shared = ("batch_size", "rounds", "building_heterogeneity", "new_clients", "most_train_examples")
        assert flags["validation_fraction"] == 0  # AMFL-P's weights would see labels that the other starts do not
        finishes.add(str([finish, *(flags[name] for name in shared)]))
        assert flags["new_clients"] == NEW_SENSORS
        assert flags["most_train_examples"] == (0 if readings == "all" else int(readings))
        if start != "fedavg":
            assert flags["inner_steps"] == int(start.removeprefix("maml"))
            batches = flags["support_size"], flags["query_size"]
            assert batches == ((32, 32) if readings == "all" else (int(readings) // 2,) * 2)
    assert len(finishes) == 1
