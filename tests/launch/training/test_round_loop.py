"""The round loop with a made-up process: rows, checkpoints, stopping early, and going on after any kind of end."""

import itertools

import numpy as np
import pytest
from made_up_process import Killed, MadeUpProcess

from launch.runs.errors import RunFolderError
from launch.runs.task_columns import find_task_columns
from launch.training.round_loop import build_metrics_row
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, RoundOutput

TASK = find_task_columns("classification")
START = (0.3, 0.6)
COLUMNS = ("round", *COMMON_METRICS, *TASK.evaluation, "own")


class MemoryCheckpoints:
    """What `launch.runs.checkpoints.Checkpoints` does, without a disk."""

    def __init__(self):
        self.states, self.records = {}, {}

    def last_round(self):
        return max(self.states, default=0)

    def save(self, state, round_num, record):
        self.states.setdefault(round_num, state.copy())
        self.records.setdefault(round_num, record)

    def read_record(self, round_num):
        return self.records[round_num]

    def restore(self, template):
        round_num = self.last_round()
        return round_num, self.states.get(round_num, template).copy()


def next_round(state):
    """A chaotic sequence: a wrong state anywhere shows in every later row."""
    # The logistic map: the least difference of a state grows from round to round.
    new = 3.9 * state * (1 - state)
    metrics = dict.fromkeys(COMMON_METRICS, float(new[0])) | {"own": float(new[1])}
    return RoundOutput(new, metrics)


def evaluate_state(state, previous, with_shared):
    del previous
    measured = {name: float(state[0]) for name in TASK.evaluation}
    return measured if with_shared else {"client_test_accuracy": measured["client_test_accuracy"]}


@pytest.fixture
def make_loop(open_loop):
    def make(name="run", checkpoints=None, next_function=next_round, evaluate=evaluate_state, **values):
        process, checkpoints = MadeUpProcess(next_function, START), checkpoints or MemoryCheckpoints()
        return open_loop(process, evaluate, name, checkpoints, **{"rounds": 6, **values})

    return make


def read(loop):
    return loop.metrics.path.read_bytes()


def test_rows_and_columns(make_loop):
    loop = make_loop()
    loop.run()
    lines = read(loop).decode().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert [line.split(",")[0] for line in lines[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert loop.timing.columns == ["round", "round_s", "evaluation_s", "host_memory_bytes", "worker_memory_bytes"]
    assert loop.timing.column("worker_memory_bytes") == [7.0] * 6


def test_rounds_between_evaluations_leave_cells_empty(make_loop):
    for interval in ("rounds_per_evaluation", "rounds_per_shared_evaluation"):
        loop = make_loop(interval, rounds=5, **{interval: 2})
        loop.run()
        evaluated = [value is not None for value in loop.metrics.column("test_accuracy")]
        # The last is always evaluated.
        assert evaluated == [False, True, False, True, True]
    assert None not in loop.metrics.column("client_test_accuracy")
    never = make_loop("never", rounds=2, rounds_per_shared_evaluation=0)
    never.run()
    assert never.metrics.column("test_accuracy") == [None, None]
    assert never.is_evaluated and not make_loop("unasked").is_evaluated
    assert None not in never.metrics.column("client_test_accuracy")
    rarer = make_loop("rarer", rounds=7, rounds_per_evaluation=3, rounds_per_shared_evaluation=2)
    # Rounds 3, 6 and 7, of them 6 and 7 with the shared models.
    rarer.run()
    assert [value is not None for value in rarer.metrics.column("test_accuracy")] == [False] * 5 + [True] * 2
    owns = [value is not None for value in rarer.metrics.column("client_test_accuracy")]
    assert owns == [False, False, True, False, False, True, True]


def test_the_state_before_is_given_where_its_round_was_evaluated(make_loop):
    """Whatever ends a run in between: a resumed one is given the same."""
    given = []

    def evaluate(state, previous, with_shared):
        given.append(None if previous is None else (next_round(previous).state == state).all())
        return evaluate_state(state, previous, with_shared)

    make_loop("all", evaluate=evaluate, rounds=3).run()
    assert given == [None, True, True]
    given.clear()
    make_loop("some", evaluate=evaluate, rounds=5, rounds_per_evaluation=2).run()
    # Rounds 2, 4 and 5.
    assert given == [None, None, True]
    given.clear()
    checkpoints = MemoryCheckpoints()
    make_loop("broken", checkpoints, evaluate=evaluate, rounds=2).run()
    make_loop("broken", checkpoints, evaluate=evaluate, rounds=3).run()
    assert given == [None, True, True]


def test_stops_at_the_target(make_loop):
    loop = make_loop(target_accuracy=0.9)
    state = loop.run()
    assert loop.round_num < 6
    assert loop.metrics.column("test_accuracy")[-1] >= 0.9
    assert all(value < 0.9 for value in loop.metrics.column("test_accuracy")[:-1])
    assert state[0] == pytest.approx(loop.metrics.column("test_accuracy")[-1], rel=1e-5)


def test_checkpoints_come_every_few_rounds_and_at_the_end(make_loop):
    checkpoints = MemoryCheckpoints()
    make_loop(checkpoints=checkpoints, rounds=5, rounds_per_checkpoint=2).run()
    assert sorted(checkpoints.states) == [2, 4, 5]


@pytest.mark.parametrize("rounds_per_checkpoint", [1, 2, 5])
@pytest.mark.parametrize("where", ["next", "evaluate"])
@pytest.mark.parametrize("fatal_call", [1, 2, 5])
@pytest.mark.parametrize("is_saved_on_the_way_out", [True, False])
def test_resumed_run_has_the_bytes_of_a_straight_one(
    make_loop, rounds_per_checkpoint, where, fatal_call, is_saved_on_the_way_out
):
    straight = make_loop("straight")
    straight.run()
    calls = itertools.count(1)

    def die_in(function):
        def call(*arguments):
            if next(calls) == fatal_call:
                raise Killed
            return function(*arguments)

        return call

    checkpoints = MemoryCheckpoints()
    next_function = die_in(next_round) if where == "next" else next_round
    evaluate = die_in(evaluate_state) if where == "evaluate" else evaluate_state
    broken = make_loop("run", checkpoints, next_function, evaluate, rounds_per_checkpoint=rounds_per_checkpoint)
    with pytest.raises(Killed):
        broken.run()
    if is_saved_on_the_way_out:
        assert checkpoints.last_round() == fatal_call - 1
    else:  # as after SIGKILL: only the regular checkpoints are there
        checkpoints.states = {k: v for k, v in checkpoints.states.items() if k % rounds_per_checkpoint == 0}
    resumed = make_loop("run", checkpoints, rounds_per_checkpoint=rounds_per_checkpoint)
    resumed.run()
    assert read(resumed) == read(straight)


def test_run_can_be_made_longer_but_not_shorter(make_loop):
    checkpoints = MemoryCheckpoints()
    make_loop(checkpoints=checkpoints, rounds=3).run()
    longer = make_loop(checkpoints=checkpoints, rounds=6)
    longer.run()
    straight = make_loop("straight")
    straight.run()
    assert read(longer) == read(straight)
    with pytest.raises(RunFolderError, match="the run has done 6"):
        make_loop(checkpoints=checkpoints, rounds=5)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("round\n1\n")])
def test_tables_shorter_than_the_checkpoint_are_refused(make_loop, damage):
    checkpoints = MemoryCheckpoints()
    loop = make_loop(checkpoints=checkpoints, rounds=3)
    loop.run()
    damage(loop.metrics.path)
    with pytest.raises(RunFolderError, match="expected the rounds 1 to 3"):
        make_loop(checkpoints=checkpoints)


def test_a_stop_after_any_round_keeps_state_and_number_together(make_loop):
    checkpoints = MemoryCheckpoints()
    stops = itertools.count(1)

    def stop():
        if next(stops) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_loop(checkpoints=checkpoints, rounds_per_checkpoint=5).run(after_round=stop)
    state = np.array(START)
    for _ in range(3):
        state = next_round(state).state
    np.testing.assert_array_equal(checkpoints.states[3], state)


def test_metrics_row_puts_the_common_columns_first():
    metrics = {"own": 1.0} | dict.fromkeys(reversed(COMMON_METRICS), 2.0) | {"later": 3.0}
    row = build_metrics_row(4, metrics, {"test_loss": 0.5}, (*TASK.evaluation, "more"))
    assert list(row) == ["round", *COMMON_METRICS, *TASK.evaluation, "more", "own", "later"]
    assert (row["round"], row["test_loss"], row["test_accuracy"], row["more"]) == (4, 0.5, None, None)


def flip(path, old, new):
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


EVENTS = [(1.5, 0, "start", 1), (2.5, 1, "end", 2)]


@pytest.mark.parametrize("name", ["metrics", "events"])
def test_a_table_that_changed_since_its_checkpoint_is_refused(make_loop, monkeypatch, name):
    monkeypatch.setattr(FederatedProcess, "get_events", lambda self, state: EVENTS)
    checkpoints = MemoryCheckpoints()
    path = make_loop(checkpoints=checkpoints, rounds=3).metrics.path.with_name(f"{name}.csv")
    make_loop(checkpoints=checkpoints, rounds=3).run()
    whole = path.read_text()
    flip(path, "\n2,0.5", "\n2,0.6") if name == "metrics" else flip(path, "2,1.5", "2,1.4")
    with pytest.raises(RunFolderError, match=rf"{name}\.csv: changed since its checkpoint was made"):
        make_loop(checkpoints=checkpoints)
    path.unlink()
    # That the metrics are gone is said otherwise.
    if name == "events":
        with pytest.raises(RunFolderError, match=r"events\.csv: changed since its checkpoint was made"):
            make_loop(checkpoints=checkpoints)
    path.write_text(whole)
    make_loop(checkpoints=checkpoints).run()


def test_settings_that_changed_since_the_checkpoint_are_refused(make_loop):
    checkpoints = MemoryCheckpoints()
    make_loop(checkpoints=checkpoints, rounds=3, seed=3).run()
    said = "says --seed=2, but its checkpoint was made with 3"
    with pytest.raises(RunFolderError, match=said):
        make_loop(checkpoints=checkpoints, seed=2)
    make_loop(checkpoints=checkpoints, seed=3, rounds_per_checkpoint=4, data_dir="elsewhere").run()


def test_a_stop_in_the_middle_of_a_round_leaves_a_checkpoint_that_fits_its_tables(make_loop):
    """The row of the next round is written already when the state of the one before is saved."""
    checkpoints = MemoryCheckpoints()
    loop = make_loop(checkpoints=checkpoints, rounds_per_checkpoint=5)
    append, calls = loop.timing.append, itertools.count(1)

    def stop(row):
        if next(calls) == 3:
            raise KeyboardInterrupt
        append(row)

    # The row of metrics.csv is written before that of timing.csv.
    loop.timing.append = stop
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert checkpoints.last_round() == 2 and loop.metrics.num_rounds == 3
    resumed, straight = make_loop(checkpoints=checkpoints), make_loop("straight")
    resumed.run()
    straight.run()
    assert read(resumed) == read(straight)
