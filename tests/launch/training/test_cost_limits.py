"""--most_bytes and --most_virtual_s: in which round they end a run, what a resumed one does."""

import json
import time

import pytest
from made_up_process import MadeUpProcess, check_resumed

from launch import train
from launch.runs.columns import EVALUATION_S, REACHED_LIMITS, ROUND_S
from launch.runs.run_records import read_rounds
from launch.runs.task_columns import find_task_columns
from launch.settings.flags import FlagError
from tff_algos.protocol import COMMON_METRICS, RoundOutput

TASK = find_task_columns("classification")


FINAL_S = 2.5


class Costly(MadeUpProcess):
    """Round r sends 10 r bytes down and 5 r up and takes r seconds: 15, 45, 90, 150 bytes and 1, 3, 6, 10 s in all."""

    def __init__(self):
        super().__init__()
        self.rounds_made = []

    def compute_final_s(self, state):
        return FINAL_S

    def next(self, state):
        round_num = int(state[0]) + 1
        self.rounds_made.append(round_num)
        costs = {"bytes_down": 10 * round_num, "bytes_up": 5 * round_num}
        costs["virtual_time_s"] = round_num * (round_num + 1) / 2
        return RoundOutput(state + 1, {**dict.fromkeys(COMMON_METRICS, 1.0), **costs})


def evaluate_state(state, previous, with_shared):
    del state, previous, with_shared
    return {**dict.fromkeys(TASK.evaluation, 0.5), "client_test_accuracy": 0.5, "client_validation_accuracy": 0.5}


@pytest.fixture
def make_loop(open_loop):
    def make(name="run", evaluate=evaluate_state, **values):
        return open_loop(Costly(), evaluate, name, **{"rounds": 6, **values})

    return make


@pytest.mark.parametrize(
    ("limits", "last"),
    [
        ({"most_bytes": 15}, 1),
        ({"most_bytes": 89}, 2),
        ({"most_bytes": 90}, 3),
        ({"most_virtual_s": 9.9}, 3),
        ({"most_virtual_s": 10}, 4),
        ({"most_bytes": 50, "most_virtual_s": 10}, 2),
        # With 2.5 s at the end: 3.5, 5.5, 8.5, 12.5 in all.
        ({"most_virtual_s": 10, "limit_fine_tuning": True}, 3),
        ({"most_virtual_s": 8.4, "limit_fine_tuning": True}, 2),
        ({"most_virtual_s": 3.5, "limit_fine_tuning": True}, 1),
        ({"most_bytes": 1e6, "most_virtual_s": 1}, 1),
        ({"most_bytes": 1e6}, 6),
    ],
)
def test_it_ends_before_the_round_that_would_pass_a_limit(make_loop, capsys, limits, last):
    loop = make_loop(rounds_per_evaluation=4, **limits)
    loop.run()
    assert loop.round_num == last
    # The last round is evaluated, whatever the interval.
    assert loop.metrics.column(TASK.test)[-1] == 0.5
    assert (f"stopped  after round {last}: a further one would pass --most_" in capsys.readouterr().out) == (last < 6)


@pytest.mark.parametrize(("limits", "made"), [({"most_bytes": 90}, [1, 2, 3, 4]), ({}, [1, 2, 3, 4, 5, 6])])
def test_each_round_is_made_once_but_for_that_after_the_last(make_loop, limits, made):
    loop = make_loop(**limits)
    loop.run()
    assert loop._process.rounds_made == made


@pytest.mark.parametrize("limits", [{}, {"most_bytes": 90}, {"most_bytes": 1e6}])
def test_a_round_has_its_own_seconds_whenever_it_was_made(make_loop, monkeypatch, limits):
    now_s = [0.0]

    def take(call, find_s):
        def timed(*given):
            now_s[0] += find_s(given[-1])
            return call(*given)

        return timed

    # A clock that only rounds and evaluations move, so that a round made ahead would show.
    monkeypatch.setattr(time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(Costly, "next", take(Costly.next, lambda state: 10.0 * (state[0] + 1)))
    loop = make_loop(rounds=3, evaluate=take(evaluate_state, lambda with_shared: 0.25), **limits)
    loop.run()
    assert loop.timing.column(ROUND_S) == [10, 20, 30]
    assert loop.timing.column(EVALUATION_S) == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("fatal_round", [1, 3])
@pytest.mark.parametrize("rounds_per_checkpoint", [1, 2])
def test_a_resumed_run_has_the_bytes_of_a_straight_one(make_loop, fatal_round, rounds_per_checkpoint):
    def make(name="run", evaluate=evaluate_state, **values):
        return make_loop(name, evaluate, **{"most_bytes": 90, **values})

    values = {"rounds_per_checkpoint": rounds_per_checkpoint}
    check_resumed(make, evaluate_state, fatal_round, **values)
    # A run that has ended makes no further round; with a higher limit it may go on.
    for more, last in ((values, 3), ({"most_bytes": 150}, 4)):
        again = make(**more)
        again.run()
        assert again.round_num == last


def test_a_limit_below_the_first_round_is_refused(make_loop):
    with pytest.raises(FlagError, match="--most_bytes=14: expected 0 or at least 15, which the first round takes"):
        make_loop(most_bytes=14).run()
    with pytest.raises(FlagError, match=r"--most_virtual_s=0.5: expected 0 or at least 1"):
        make_loop("other", most_virtual_s=0.5).run()
    with pytest.raises(FlagError, match=r"--most_virtual_s=3: expected 0 or at least 3\.5, which"):
        make_loop("third", most_virtual_s=3, limit_fine_tuning=True).run()


def test_a_run_ends_at_its_limit_and_says_so(tmp_path, capsys, no_plots):
    run_dir = tmp_path / "run"
    flags = ["--algo=fedavg", "--smoke", "--model=perceptron", f"--run_dir={run_dir}", "--norun_page"]
    assert train.main([*flags, "--most_bytes=1"]) == 2
    refused = capsys.readouterr().err.strip()
    # What the first round takes depends on the model, so it is read from the refusal.
    needed = float(refused.rsplit("at least ", 1)[1].split(",")[0])
    assert refused.startswith("error: --most_bytes=1: expected 0 or at least ") and not run_dir.exists()
    assert train.main([*flags, f"--most_bytes={1.5 * needed}"]) == 0
    assert list(read_rounds(run_dir / "metrics.csv")) == [1]
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary[REACHED_LIMITS] == {"most_bytes": 1.5 * needed, "most_virtual_s": 0.0}
    assert "stopped  after round 1: a further one would pass --most_bytes=" in capsys.readouterr().out
