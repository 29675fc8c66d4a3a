"""--patience: when it ends a run, that a stopped and resumed run ends in the same round, and what is recorded."""

import itertools

import numpy as np
import pytest
from made_up_process import MadeUpProcess, check_resumed

from launch.runs.round_table import RoundTable
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training.run_end import ValidatedRounds

# Of the rounds 1 to 7 on validation examples.
VALUES = (0.3, 0.5, 0.5, 0.4, 0.45, 0.9, 0.95)
TASK, REGRESSION = find_task_columns("classification"), find_task_columns("regression")


def evaluate_state(state, previous, with_shared):
    del previous
    value = VALUES[state[0] - 1]
    own = {"client_test_accuracy": 1 - value, "client_validation_accuracy": value}
    return dict.fromkeys(TASK.evaluation, 1 - value) | own if with_shared else own


@pytest.fixture
def make_loop(open_loop):
    def make(name="run", evaluate=evaluate_state, **values):
        return open_loop(MadeUpProcess(), evaluate, name, **{"rounds": 7, "patience": 3, **values})

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


def test_it_does_not_wait_for_what_never_comes(make_loop):
    loop = make_loop(patience=2, rounds_per_shared_evaluation=0)
    loop.run()
    assert loop.round_num == 4


@pytest.mark.parametrize("fatal_round", [1, 3, 5])
@pytest.mark.parametrize("rounds_per_checkpoint", [1, 2, 4])
def test_a_resumed_run_has_the_bytes_of_a_straight_one(make_loop, fatal_round, rounds_per_checkpoint):
    check_resumed(make_loop, evaluate_state, fatal_round, rounds_per_checkpoint=rounds_per_checkpoint)
    # What ended may go on, with more patience.
    longer = make_loop(patience=4)
    longer.run()
    assert longer.round_num == 7


@pytest.fixture
def make_rounds(tmp_path):
    """A function (task, values on validation examples) -> the rounds, counted one by one as they come."""
    paths = (tmp_path / f"{number}.csv" for number in itertools.count())

    def make(task, values):
        table = RoundTable(next(paths))
        rounds = ValidatedRounds(table, task)
        for round_num, value in enumerate(values, start=1):
            table.append({"round": round_num, task.client_validation: value, task.test: value})
            rounds.update()
        return rounds

    return make


NAN = float("nan")


def test_only_evaluated_rounds_count_and_of_equals_the_first(make_rounds):
    rounds = make_rounds(TASK, [None, 0.5, NAN, 0.5, 0.6])
    assert [rounds.find_best(end) for end in (1, 2, 3, 4, 5, None)] == [None, 2, 2, 2, 5, 5]


def test_of_an_error_the_smaller_is_better_and_nan_never_is(make_rounds):
    config = build_run_config({"algo": "fedavg", "rounds": 9, "patience": 2})
    assert not make_rounds(REGRESSION, [3.0, 2.0, 1.0]).has_lost_patience(config)
    assert make_rounds(REGRESSION, [1.0, 2.0, 3.0]).has_lost_patience(config)
    assert make_rounds(TASK, [0.1, NAN, NAN]).has_lost_patience(config)
    assert make_rounds(TASK, [NAN, NAN]).has_lost_patience(config)
    assert not make_rounds(TASK, []).has_lost_patience(config)


def test_a_run_that_had_all_its_rounds_was_not_stopped(make_rounds):
    rounds = make_rounds(TASK, [0.5, 0.4, 0.4])
    stopped, whole = (build_run_config({"algo": "fedavg", "rounds": n, "patience": 2}) for n in (4, 3))
    assert rounds.has_stopped_early(stopped) and not rounds.has_stopped_early(whole)


@pytest.mark.parametrize("task", [TASK, REGRESSION])
def test_rounds_counted_one_by_one_say_what_the_whole_column_says(tmp_path, make_rounds, task):
    """Against the definition: the best is that of the column, and the evaluations after it are lost patience."""
    # A fixed seed: what fails, fails again.
    draw = np.random.default_rng(0)
    for _ in range(20):
        values = [draw.choice([None, NAN, 0.1, 0.2, 0.3]) for _ in range(12)]
        counted = make_rounds(task, values)
        read = ValidatedRounds(RoundTable(counted._metrics.path, 12), task)
        for end in range(1, 13):
            best = task.find_best(values[:end])
            assert counted.find_best(end) == read.find_best(end) == (None if best is None else best + 1)
        later = sum(value is not None for value in values[counted.find_best() or 0 :])
        for patience in (1, 2, 3, 5):
            config = build_run_config({"algo": "fedavg", "rounds": 20, "patience": patience})
            lost = values[-1] is not None and later >= patience
            assert counted.has_lost_patience(config) == read.has_lost_patience(config) == lost
