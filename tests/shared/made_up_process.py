"""A process without data and models, whose rounds are as a test says."""

import numpy as np
import pytest

from tff_algos.protocol import COMMON_METRICS, FederatedProcess, RoundOutput


class Killed(BaseException):
    """Stands for SIGKILL, or whatever else ends a run: no clean-up catches it."""


def count_round(state):
    """The state is the number of the round, and so is every number of it."""
    return RoundOutput(state + 1, dict.fromkeys(COMMON_METRICS, float(state[0])))


class MadeUpProcess(FederatedProcess):
    """One client uses the one model, which is the state."""

    def __init__(self, next_round=count_round, first=(0,)):
        self._next_round, self._first = next_round, first

    def initialize(self):
        return np.array(self._first)

    def next(self, state):
        return self._next_round(state)

    def get_models(self, state):
        return {"global": (state,)}

    def client_model(self, state):
        return ["global"]


def check_resumed(make_loop, evaluate, fatal_round, **values):
    """A run that was stopped in that round and goes on has the bytes of a straight one."""
    straight = make_loop("straight")
    straight.run()
    with pytest.raises(KeyboardInterrupt):
        make_loop(evaluate=die_in(evaluate, fatal_round), **values).run()
    resumed = make_loop(**values)
    resumed.run()
    assert resumed.metrics.path.read_bytes() == straight.metrics.path.read_bytes()


def die_in(evaluate, fatal_round, error=KeyboardInterrupt):
    """The evaluation, which ends a run in that round of `count_round`."""

    def die(state, previous, with_shared):
        if state[0] == fatal_round:
            raise error
        return evaluate(state, previous, with_shared)

    return die
