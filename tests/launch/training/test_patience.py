"""--patience: when it ends a run, that a stopped and resumed run ends in the same round, and what is recorded."""

import types

import numpy as np
import pytest

from launch.runs.tables import write_json
from launch.runs.task_columns import find_task_columns
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import build_run_config
from launch.sweeps import tasks
from launch.training.training_run import check_best_can_be_told
from launch.training.validated_rounds import has_lost_patience, has_stopped_early
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, RoundOutput
from tff_algos.settings.config_fields import ConfigError

VALUES = (0.3, 0.5, 0.5, 0.4, 0.45, 0.9, 0.95)  # of the rounds 1 to 7 on validation examples
TASK, REGRESSION = find_task_columns("classification"), find_task_columns("regression")


class Counting(FederatedProcess):
    """Its state is the number of the round."""

    def initialize(self):
        return np.array([0])

    def next(self, state):
        return RoundOutput(state + 1, dict.fromkeys(COMMON_METRICS, float(state[0])))

    def get_models(self, state):
        return {"global": (state,)}

    def client_model(self, state):
        return ["global"]


def evaluate_state(state, previous, with_shared):
    del previous
    value = VALUES[state[0] - 1]
    own = {"client_test_accuracy": 1 - value, "client_validation_accuracy": value}
    return dict.fromkeys(TASK.evaluation, 1 - value) | own if with_shared else own


@pytest.fixture
def make_loop(open_loop):
    def make(name="run", evaluate=evaluate_state, **values):
        return open_loop(Counting(), evaluate, name, **{"rounds": 7, "patience": 3, **values})

    return make


@pytest.mark.parametrize(("patience", "last"), [(1, 3), (2, 4), (3, 5), (4, 7), (0, 7)])
def test_it_ends_after_so_many_evaluations_without_a_better_one(make_loop, capsys, patience, last):
    loop = make_loop(patience=patience)
    loop.run()
    assert loop.round_num == last
    best = "the clients' own validation accuracy was best in round 2"
    said = f"stopped  after round {last} by --patience={patience}: {best}"
    assert (said in capsys.readouterr().out) == (last < 7)


def test_rounds_without_an_evaluation_do_not_count(make_loop):
    loop = make_loop(patience=1, rounds_per_evaluation=2)
    loop.run()
    assert loop.round_num == 4


def test_it_ends_where_the_shared_models_were_evaluated(make_loop):
    loop = make_loop(patience=2, rounds_per_shared_evaluation=5)
    loop.run()
    assert loop.round_num == 5 and loop.metrics.column("test_accuracy")[-1] is not None


@pytest.mark.parametrize("fatal_round", [1, 3, 5])
@pytest.mark.parametrize("rounds_per_checkpoint", [1, 2, 4])
def test_a_resumed_run_has_the_bytes_of_a_straight_one(make_loop, fatal_round, rounds_per_checkpoint):
    straight = make_loop("straight")
    straight.run()

    def die(state, previous, with_shared):
        if state[0] == fatal_round:
            raise KeyboardInterrupt
        return evaluate_state(state, previous, with_shared)

    with pytest.raises(KeyboardInterrupt):
        make_loop(evaluate=die, rounds_per_checkpoint=rounds_per_checkpoint).run()
    resumed = make_loop(rounds_per_checkpoint=rounds_per_checkpoint)
    resumed.run()
    assert resumed.metrics.path.read_bytes() == straight.metrics.path.read_bytes()
    longer = make_loop(patience=4)  # what ended may go on, with more patience
    longer.run()
    assert longer.round_num == 7


def make_table(task, values, tests=None):
    columns = {task.client_validation: values, task.test: tests or values}
    return types.SimpleNamespace(column=columns.get, rows=values)


def test_of_an_error_the_smaller_is_better_and_nan_never_is():
    config = build_run_config({"algo": "fedavg", "rounds": 9, "patience": 2})
    nan = float("nan")
    assert not has_lost_patience(config, make_table(REGRESSION, [3.0, 2.0, 1.0]), REGRESSION)
    assert has_lost_patience(config, make_table(REGRESSION, [1.0, 2.0, 3.0]), REGRESSION)
    assert has_lost_patience(config, make_table(TASK, [0.1, nan, nan]), TASK)
    assert has_lost_patience(config, make_table(TASK, [nan, nan]), TASK)
    assert not has_lost_patience(config, make_table(TASK, []), TASK)


def test_a_run_that_had_all_its_rounds_was_not_stopped():
    table = make_table(TASK, [0.5, 0.4, 0.4])
    stopped, whole = (build_run_config({"algo": "fedavg", "rounds": n, "patience": 2}) for n in (4, 3))
    assert has_stopped_early(stopped, table, TASK) and not has_stopped_early(whole, table, TASK)


def test_without_validation_examples_it_is_refused():
    data = types.SimpleNamespace(clients=[types.SimpleNamespace(num_validation=0)])
    with pytest.raises(ConfigError, match="--patience=3: expected clients with validation examples; raise"):
        check_best_can_be_told(build_run_config({"algo": "fedavg", "patience": 3}), data)


def test_private_updates_let_no_accuracy_end_the_run():
    private = ["--fedavg_dp_epsilon=8", "--fedavg_participation=bernoulli", "--fedavg_client_weighting=equal"]
    with pytest.raises(FlagError, match="--patience=2: expected 0 with private updates"):
        parse_config(["--algo=fedavg", "--patience=2", "--fedavg_cohort_size=5", *private])


@pytest.mark.parametrize(("patience", "is_over"), [(2, True), (3, True), (4, False), (0, False)])
def test_a_sweep_goes_on_with_a_stopped_run_only_with_more_patience(tmp_path, patience, is_over):
    write_json(tmp_path / "config.json", {})
    write_json(tmp_path / "summary.json", {"rounds": 5, "stopped_early": {"patience": 3, "best_round": 2}})
    config = build_run_config({"algo": "fedavg", "rounds": 7, "patience": patience})
    assert tasks._has_finished(tmp_path, config) is is_over
