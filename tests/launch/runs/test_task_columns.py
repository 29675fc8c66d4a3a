"""The names, the direction and the words of a run's main metric; those of classification as they have always been."""

import dataclasses
import math

import numpy as np
import pytest

from datasets.federated_data import Archetypes
from launch.runs import columns
from launch.runs.archetype_metrics import compute_archetype_metrics, name_archetype_metrics
from launch.runs.task_columns import (
    TaskColumns,
    capitalize,
    describe_columns,
    find_directions,
    find_task_columns,
    format_value,
    list_objectives,
    read_task_columns,
)
from launch.settings.run_config import build_run_config
from models.task_kinds import TASK_KINDS

CLASSES, NUMBERS = find_task_columns("classification"), find_task_columns("regression")


def test_classification_has_the_columns_of_earlier_versions_and_other_tasks_those_of_their_metrics():
    own = (columns.CLIENT_TEST_ACCURACY, columns.CLIENT_VALIDATION_ACCURACY, columns.VALIDATION_ACCURACY)
    assert CLASSES.evaluation == (columns.TEST_LOSS, columns.TEST_ACCURACY, *own)
    assert CLASSES.spread == ("client_test_accuracy_std", "client_test_accuracy_worst_tenth")
    starts = (columns.TRAINED_START_ACCURACY, columns.RANDOM_START_ACCURACY)
    worst = tuple(f"{start}_worst_tenth" for start in starts)
    assert CLASSES.starts == starts == ("trained_start_accuracy", "random_start_accuracy")
    assert CLASSES.fine_tuning_columns == ("client_group", "most_steps", starts[0], worst[0], starts[1], worst[1])
    assert CLASSES.of_client == columns.ACCURACY and CLASSES.teachers == "teachers_test_accuracy"
    statistics = (columns.ACCURACY_MEAN, columns.ACCURACY_STD, columns.ACCURACY_P10, columns.ACCURACY_WORST_TENTH)
    assert CLASSES.statistics == statistics
    of_numbers = ("client_test_rmse", "client_validation_rmse", "validation_rmse")
    assert NUMBERS.evaluation == ("test_loss", "test_rmse", "test_mae", "test_r2", *of_numbers)
    assert NUMBERS.statistics == ("rmse_mean", "rmse_std", "rmse_p90", "rmse_worst_tenth")
    assert (NUMBERS.title, NUMBERS.heading, NUMBERS.of_client) == ("RMSE", "RMSE", "rmse")


@pytest.mark.parametrize(
    ("data", "task"),
    [
        *((data, CLASSES) for data in ({}, None, [], {"task": None}, {"task": {}}, {"task": {"kind": "unheard of"}})),
        ({"task": {"kind": [1]}}, CLASSES),
        ({"task": {"kind": "regression", "shape": []}}, NUMBERS),
        ({"task": "regression"}, NUMBERS),  # of a summary
    ],
)
def test_a_run_that_says_nothing_of_its_task_classifies(data, task):
    assert read_task_columns(data) == task


def test_the_best_is_the_highest_or_the_lowest_the_first_of_equals():
    values = [None, 0.5, math.nan, 0.25, 0.75, 0.75, 0.25]
    assert (CLASSES.find_best(values), NUMBERS.find_best(values)) == (4, 3)
    assert CLASSES.find_best([None, math.nan]) is NUMBERS.find_best([]) is None


def test_the_worst_tenth_is_the_lowest_or_the_highest():
    """Of 20 clients with 0 to 19, two: means 0.5 and 18.5. The percentiles lie at 1.9 and 17.1."""
    values = np.random.default_rng(0).permutation(np.arange(20.0))
    assert (CLASSES.compute_worst_tenth(values), NUMBERS.compute_worst_tenth(values)) == (0.5, 18.5)
    assert CLASSES.compute_worst_percentile(values) == pytest.approx(1.9)
    assert NUMBERS.compute_worst_percentile(values) == pytest.approx(17.1)
    assert NUMBERS.compute_worst_tenth(values[:1]) == values[0]
    assert math.isnan(NUMBERS.compute_worst_tenth(values[:0]))


@pytest.mark.parametrize(
    ("task", "flags", "reached", "is_there"),
    [
        (CLASSES, {}, 1.0, False),
        (CLASSES, {"target_accuracy": 0.9}, 0.9, True),
        (CLASSES, {"target_accuracy": 0.9}, 0.89, False),
        (CLASSES, {"target_metric": 0.9}, 0.91, True),
        (CLASSES, {"target_accuracy": 0.9}, None, False),
        (NUMBERS, {}, 0.0, False),
        (NUMBERS, {"target_metric": 50.0}, 50.0, True),
        (NUMBERS, {"target_metric": 50.0}, 50.5, False),
        (NUMBERS, {"target_metric": 50.0}, math.nan, False),
        (NUMBERS, {"target_accuracy": 0.9}, 0.95, False),
    ],
)
def test_a_target_is_reached_in_the_right_direction(task, flags, reached, is_there):
    assert task.has_reached_target(build_run_config({"algo": "fedavg", **flags}), reached) == is_there


def test_values_are_written_with_as_many_digits_as_their_size_needs_and_units_but_not_that_of_shares():
    shown = [format_value(value) for value in (0.95, -0.25, 9.99999, 54.321, 12345.678, math.nan, math.inf)]
    assert shown == ["0.9500", "-0.2500", "10.0000", "54.32", "12,345.68", "nan", "inf"]
    assert (CLASSES.format(None), CLASSES.format(math.nan), NUMBERS.format(2.0)) == ("unknown", "unknown", "2.0000")
    error = dataclasses.replace(NUMBERS.kind, metrics=(NUMBERS.metric._replace(unit="K"),))
    assert (TaskColumns(error).label, CLASSES.label) == ("RMSE (K)", "accuracy")
    assert capitalize("recall at 5") == "Recall at 5"


def test_every_column_of_a_task_has_a_title_and_a_direction_and_objectives_are_of_validation_examples():
    tasks = [TaskColumns(kind) for kind in TASK_KINDS.values()]
    titles, directions, objectives = describe_columns(tasks), find_directions(tasks), list_objectives()
    for task in tasks:
        assert set(task.evaluation) - {"test_loss"} <= titles.keys()
        assert {*task.evaluation, *task.spread} <= directions.keys()
    assert (titles["test_accuracy"], titles["client_test_rmse"]) == ("Test accuracy", "Clients' own test RMSE")
    ups = ("test_accuracy", "client_test_accuracy_worst_tenth", "test_r2", "validation_auc")
    downs = ("test_loss", "client_test_accuracy_std", "test_rmse", "client_test_rmse_worst_tenth", "test_perplexity")
    assert [directions[name] for name in (*ups, *downs)] == [True] * 4 + [False] * 5
    assert objectives["validation_rmse"] is False and objectives["client_validation_accuracy"] is True
    assert not any(name.startswith(("test", "client_test")) for name in objectives)


KINDS = Archetypes(("a", "b", "c"), (0, 0, 1), (0, 0, 1, 2, 2))


def test_the_last_clients_of_the_archetypes_may_not_have_taken_part():
    """Four of five took part; `model_1` is used by archetypes 1 and 2, of two meta-archetypes."""
    models = ["model_0", "model_0", "model_1", "model_1", "model_1"]
    accuracy, before = np.array([0.5, 0.7, np.nan, 1.0]), np.array([0.5, 0.5, np.nan, 0.6])
    found = compute_archetype_metrics(KINDS, models, accuracy, before)
    assert list(found) == list(name_archetype_metrics(KINDS))
    change, mixed, *means = found.values()
    assert np.isclose(change, 0.2) and mixed == 1
    assert np.allclose(means[0::2], [0.6, 1.0]) and not np.isfinite(np.array([means[1]], float)).any()
