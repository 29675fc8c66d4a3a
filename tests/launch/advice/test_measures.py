"""What is read from the runs of a contest: run folders with made-up numbers."""

import pytest
from made_contests import CLASSES, ERRORS, METHODS, PLAN, make_outcome, write_seed

from launch.advice.measures import BYTES, TIME, measure_outcome
from launch.contests.contest import Entered, Outcome
from launch.contests.problem import Limits, Problem
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values


def flags_of(*arguments):
    return flag_values(parse_config(["--algo=fedavg", "--dataset=digits", *arguments]))


def measure(runs, task=CLASSES, limits=None, name="fedavg"):
    entered = Entered(METHODS[name], (), {"learning_rate": "0.1"}, "", runs)
    outcome = Outcome(Problem("wards", (), task), PLAN, limits or {}, (entered,), 60.0, False)
    (measured,) = measure_outcome(outcome)
    return measured


def test_a_method_is_measured_on_clients_that_took_part_and_on_new_ones(tmp_path):
    """40 rounds of two clients: 1,500 bytes each, as the table says of its one row."""
    results = {0: {"a": 0.5, "b": 0.7}, 1: {"a": 0.6, "b": 0.8}}
    runs = {
        seed: write_seed(tmp_path, "fedavg", seed, results[seed], 0.55 + seed / 10, flags_of(), new=[("n", 0.4)])
        for seed in (1, 0)
    }
    found = measure(runs)
    assert found.tests == results and list(found.runs) == [0, 1]
    assert found.validations == {0: 0.55, 1: pytest.approx(0.65)}
    assert found.new == {0: {"n": 0.4}, 1: {"n": 0.4}}
    assert found.average() == pytest.approx(0.65) and found.average_clients()["a"] == pytest.approx(0.55)
    assert found.average_worst_tenth(CLASSES) == pytest.approx(0.55), "one of two clients, 0.5 and 0.6"
    assert found.sizes == {"a": 20.0, "b": 20.0} and found.models == {0: 1, 1: 1}
    assert (found.cost.bytes, found.cost.seconds, found.cost.rounds) == (1500.0, 90.0, 1.0)
    assert found.settings == {"learning_rate": "0.1"} and not found.is_natural


def test_fine_tuning_counts_and_the_limit_that_binds_is_named(tmp_path):
    """3,000 bytes of 3,100 are 97 %, 90 s of 100 are 90 %; with 91 s it is the time."""
    summary = {"reached_limits": {"most_bytes": 3100, "most_virtual_s": 100}, "fedavg": {"fine_tuning_virtual_s": 5.0}}
    runs = {0: write_seed(tmp_path, "fedavg", 0, {"a": 0.5, "b": 0.6}, 0.5, flags_of(), summary=summary)}
    found = measure(runs, limits={"fedavg": Limits(40, 3100, 100)})
    assert (found.cost.seconds, found.cost.fine_tuning_s, found.cost.limit) == (95.0, 5.0, BYTES)
    assert measure(runs, limits={"fedavg": Limits(40, 3100, 91)}).cost.limit == TIME
    assert measure(runs, limits={"fedavg": Limits(40, 0, 91)}).cost.limit == TIME


def test_errors_and_natural_clients(tmp_path):
    results = {"a": 2.0, "b": 3.0}
    runs = {0: write_seed(tmp_path, "fedavg", 0, results, 2.5, flags_of("--partition=dirichlet"), ERRORS)}
    found = measure(runs, ERRORS)
    assert found.tests == {0: results} and found.average_worst_tenth(ERRORS) == 3.0


def test_methods_without_a_run_are_left_out(tmp_path):
    run = write_seed(tmp_path, "fedavg", 0, {"a": 0.5}, 0.5, flags_of())
    outcome = make_outcome(["fedavg", "ifca"], runs={"fedavg": {0: run}})
    assert [each.name for each in measure_outcome(outcome)] == ["fedavg"]
