"""What a trained start is worth, and accuracy after every few steps: the tables of a run's end."""

import dataclasses
import functools

import numpy as np
import pytest

from launch.pages.plots.personal_plots import draw_fine_tuning
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training.announcements import find_worth_of_start
from launch.training.evaluation import build_evaluator, evaluate_clients
from launch.training.fine_tuning_gain import compute_relative_change, measure_curve, measure_start
from launch.training.training_run import build_process
from tff_algos.fed_avg.config import FineTunedConfig
from tff_algos.fed_avg.process import build_fine_tuned_process
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig

STEPS = 6

TASK = find_task_columns("classification")


@pytest.fixture(scope="module")
def federation(build_federation, tmp_path_factory):
    """Four clients, the last one new, whose test splits are their train splits."""
    data = build_federation(tmp_path_factory.mktemp("federation"), [8, 12, 16, 20])
    everyone = []
    for client in data.clients:
        for part in "xy":
            with (
                open(f"{client.path}.train.{part}", "rb") as source,
                open(f"{client.path}.test.{part}", "wb") as target,
            ):
                target.write(source.read())
        everyone.append(dataclasses.replace(client, num_test=client.num_train))
    return dataclasses.replace(data, clients=tuple(everyone[:3]), new_clients=tuple(everyone[3:]))


@pytest.fixture(scope="module")
def tuned(tff_runtime, federation, linear_spec):
    """A function (rule, start) -> (process, its state after a round)."""

    @functools.cache
    def build(rule, start="trained"):
        tuning = FineTuningConfig(
            steps=STEPS, learning_rate=0.01, batch_size=4, rule=rule, start=start, curve=(0, 2, STEPS)
        )
        training = LocalTrainingConfig(epochs=1, batch_size=4, learning_rate=0.1)
        config = FineTunedConfig(training=training, fine_tuning=tuning)
        process = build_fine_tuned_process(linear_spec, federation, config, seed=2)
        return process, process.next(process.initialize()).state

    return build


def test_relative_change_by_hand():
    """|(3, 4) - (0, 4)| = 3 and |2 - 6| = 4 make 5; the norm before is |(0, 4, 2)|; counters do not count."""
    before = {"a": (np.array([0.0, 4.0], np.float32), np.array(7)), "b": (np.array([2.0], np.float32),)}
    after = {"a": (np.array([3.0, 4.0], np.float32), np.array(9)), "b": (np.array([6.0], np.float32),)}
    assert compute_relative_change(before, after) == pytest.approx(5 / 20**0.5)


@pytest.mark.parametrize("rule", ["same", "resources"])
def test_the_row_of_all_steps_is_the_run_s_own_result(tuned, federation, linear_spec, rule):
    process, state = tuned(rule)
    evaluate = build_evaluator(linear_spec)
    accuracy = evaluate_clients(process, state, federation, evaluate, clients=federation.everyone)["test"].metric
    rows = [
        dict(zip(TASK.fine_tuning_columns, row, strict=True))
        for row in measure_curve(process, state, federation, federation.clients, evaluate, TASK)
    ]
    assert [(row["client_group"], row["most_steps"]) for row in rows] == [
        (group, steps) for group in ("members", "new") for steps in (0, 2, STEPS)
    ]
    for row, part in ((rows[2], accuracy[:3]), (rows[5], accuracy[3:])):
        assert row["trained_start_accuracy"] == part.mean()
        assert row["trained_start_accuracy_worst_tenth"] == TASK.compute_worst_tenth(part)
    # Without a step, everyone has the shared model.
    shared, x, y = process.get_models(state)["global"], *federation.read_split(federation.new_clients[0], "train")
    assert rows[3]["trained_start_accuracy"] == evaluate(shared, x, y).metric
    assert rows[3]["random_start_accuracy"] == evaluate(process.initial_weights, x, y).metric


def test_the_gain_is_over_random_weights_whichever_start_the_run_has(tuned, federation, linear_spec):
    evaluate = build_evaluator(linear_spec)
    measured = []
    for start in ("trained", "initial"):
        process, state = tuned("same", start)
        own = evaluate_clients(process, state, federation, evaluate, clients=federation.everyone)["test"].metric
        measured.append(measure_start(process, state, federation, federation.clients, evaluate, own, TASK))
        chosen = {"trained": "trained_start_accuracy", "initial": "random_start_accuracy"}[start]
        assert measured[-1][chosen] == own[:3].mean()
    assert measured[0] == measured[1]
    start = measured[0]
    gain = start["trained_start_accuracy"] - start["random_start_accuracy"]
    assert start["gain_over_random_start"] == gain > 0


def test_an_algorithm_without_a_shared_model_takes_no_new_clients(tff_runtime, federation, linear_spec):
    config = build_run_config({"algo": "local_only", "new_clients": 1})
    with pytest.raises(ConfigError, match="new_clients=1: expected 0 with --algo=local_only"):
        build_process(config, linear_spec, federation)


@pytest.mark.parametrize(("change", "is_said"), [(0.0099, True), (0.01, False)])
def test_a_start_that_did_not_move_is_said(change, is_said):
    accuracies = {"trained_start_accuracy": 0.75, "random_start_accuracy": 0.7, "gain_over_random_start": 0.05}
    *notes, (topic, text) = find_worth_of_start({"relative_change": change, **accuracies}, TASK)
    assert ["less than 1%" in note.text for note in notes] == [True] * is_said
    assert topic == "start" and "the start gains +5.00 points" in text


def test_the_curve_is_drawn(tmp_path):
    rows = [
        dict(zip(TASK.fine_tuning_columns, (group, str(steps), "0.5", "0.4", "0.3", "0.2"), strict=True))
        for group in ("members", "new")
        for steps in (0, 5)
    ]
    assert draw_fine_tuning(rows, TASK, "a run", tmp_path / "fine_tuning.png").stat().st_size > 5000
