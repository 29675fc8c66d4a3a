"""A user's own aggregator from a module outside, and everything that it can get wrong: one line each."""

import importlib
import sys
import textwrap

import numpy as np
import pytest

from tff_algos.settings.aggregation import AggregationConfig
from tff_algos.settings.config_fields import ConfigError

SHAPES = ((2,), (1, 2))
MODULE = """
    import numpy as np
    import tensorflow_federated as tff
    from tff_algos.rounds.list_aggregator import ListAggregator

    FACTORY = tff.learning.robust_aggregator(clipping=False)
    FACTORY_CLASS = tff.aggregators.UnweightedMeanFactory
    NUMBER = 5

    class Unrelated: pass

    def median(updates, weights):
        return np.median(updates, axis=0)

    def one_argument(updates): return updates[0]
    def fails(updates, weights): raise OSError("no disk")
    def leaves(updates, weights): raise SystemExit(3)
    def writes(updates, weights): updates[:] = 0
    def nothing(updates, weights): pass
    def short(updates, weights): return updates[0, 1:]
    def infinite(updates, weights): return updates[0] + np.inf
    def text(updates, weights): return "abc"

    class Counting(ListAggregator):
        def initialize(self, shapes, num_groups):
            return tuple({"rounds": np.int64(0)} for _ in range(num_groups))

        def combine(self, updates, weights, state):
            rounds = state["rounds"] + 1
            return updates.mean(axis=0), {"rounds": rounds}, {"rounds": rounds}

    COUNTING = Counting()

    class BadStates(Counting):
        def initialize(self, shapes, num_groups): return np.zeros(3)

    class TextState(Counting):
        def initialize(self, shapes, num_groups): return ("a",) * num_groups

    class OtherState(Counting):
        def combine(self, updates, weights, state): return updates[0], (), {}

    class NoTuple(Counting):
        def combine(self, updates, weights, state): return updates[0]

    class BadColumn(Counting):
        def combine(self, updates, weights, state): return updates[0], state, {"norm": "large"}

    class NeedsArguments(Counting):
        def __init__(self, size): pass
"""


@pytest.fixture
def load(tff_runtime, tmp_path, monkeypatch):
    """A function (name in the module) -> the aggregator and its states, for one group."""
    from tff_algos.rounds.build_aggregator import build_list_aggregator

    (tmp_path / "outside_aggregators.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "broken_aggregators.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()

    def load(name, module="outside_aggregators"):
        aggregator = build_list_aggregator(AggregationConfig(f"{module}:{name}"), SHAPES, 3, 0)
        return aggregator, aggregator.initialize(SHAPES, 1)

    yield load
    sys.modules.pop("outside_aggregators", None)


UPDATES = np.float32([[1, 2, 3, 4], [5, 0, 3, 4], [9, 1, 9, -8]])
WEIGHTS = np.float32([1, 1, 2])


def test_a_numpy_median(load):
    aggregator, states = load("median")
    assert states == ()
    update, state, columns = aggregator.combine(UPDATES, WEIGHTS, ())
    assert update.tolist() == [5, 1, 3, 4] and update.dtype == np.float32
    assert (state, columns) == ((), {})


def test_a_factory_of_tff(load):
    aggregator, states = load("FACTORY")
    update, _, columns = aggregator.combine(UPDATES, WEIGHTS, states[0])
    np.testing.assert_allclose(update, WEIGHTS @ UPDATES / 4, atol=1e-6)
    assert columns["aggregator_zeroing_norm"] > 0
    aggregator, states = load("FACTORY_CLASS")
    np.testing.assert_allclose(aggregator.combine(UPDATES, WEIGHTS, states[0])[0], [5, 1, 5, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["Counting", "COUNTING"])
def test_an_aggregator_with_a_state_and_a_column(load, name):
    aggregator, (state,) = load(name)
    for round_num in (1, 2):
        update, state, columns = aggregator.combine(UPDATES, WEIGHTS, state)
        assert columns == {"aggregator_rounds": round_num}
    assert update.tolist() == [5, 1, 5, 0] and state == {"rounds": 2}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing", "expected missing in outside_aggregators"),
        ("NUMBER", "got int"),
        ("Unrelated", "got the class Unrelated"),
        ("one_argument", r"a function of \(updates, weights\)"),
        ("fails", "OSError: no disk"),
        ("leaves", "a call of sys.exit"),
        ("writes", "read-only"),
        ("nothing", "gave an update"),
        ("short", r"shape \(3,\), not \(4,\)"),
        ("infinite", "not finite"),
        ("text", "gave str, not an array of numbers"),
        ("BadStates", "initialize gave ndarray"),
        ("TextState", "initialize gave a state with str"),
        ("OtherState", "structure of the state"),
        ("NoTuple", "combine gave ndarray"),
        ("BadColumn", "the column 'norm' = str"),
        ("NeedsArguments", "takes no arguments"),
    ],
)
def test_what_is_wrong_is_one_line_before_the_first_round(load, name, expected):
    with pytest.raises(ConfigError, match=expected) as raised:
        load(name)
    assert str(raised.value).startswith(f"aggregator=outside_aggregators:{name}: expected ")
    assert "\n" not in str(raised.value) and raised.value.field == "aggregator"


def test_a_module_that_is_not_there_or_fails(load):
    with pytest.raises(ConfigError, match="no module named nowhere_at_all; run from the folder"):
        load("F", module="nowhere_at_all")
    with pytest.raises(ConfigError, match="importing broken_aggregators failed: ZeroDivisionError"):
        load("F", module="broken_aggregators")
