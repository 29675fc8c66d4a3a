"""Which aggregator the settings give, a user's own among them, all that it can get wrong, and the memory of updates."""

import importlib
import sys
import textwrap

import numpy as np
import psutil
import pytest

from tff_algos.rounds.build_aggregator import (
    build_list_aggregator,
    check_memory,
    describe_memory,
    describe_trimming,
    estimate_memory,
)
from tff_algos.rounds.robust_aggregation import count_trimmed
from tff_algos.settings.aggregation import ROBUST_RULES, AggregationConfig
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
    (tmp_path / "outside_aggregators.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "broken_aggregators.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    # Python remembers for a while what a folder had before the files were written.
    importlib.invalidate_caches()

    def load(name):
        aggregator = build_list_aggregator(AggregationConfig(f"outside_aggregators:{name}"), SHAPES, 3, 0)
        return aggregator, aggregator.initialize(SHAPES, 1)

    yield load
    # The next test writes the module anew.
    sys.modules.pop("outside_aggregators", None)


UPDATES = np.float32([[1, 2, 3, 4], [5, 0, 3, 4], [9, 1, 9, -8]])
WEIGHTS = np.float32([1, 1, 2])


def test_a_numpy_median(load):
    aggregator, states = load("median")
    update, state, columns = aggregator.combine(UPDATES, WEIGHTS, ())
    assert update.tolist() == [5, 1, 3, 4] and update.dtype == np.float32
    assert (states, state, columns) == ((), (), {})


def test_a_factory_of_tff(load):
    for name, mean in (("FACTORY", WEIGHTS @ UPDATES / 4), ("FACTORY_CLASS", [5, 1, 5, 0])):
        aggregator, states = load(name)
        update, _, columns = aggregator.combine(UPDATES, WEIGHTS, states[0])
        np.testing.assert_allclose(update, mean, atol=1e-6)
        assert (columns.get("aggregator_zeroing_norm", 0) > 0) == (name == "FACTORY")


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


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("nowhere_at_all:F", "no module named nowhere_at_all; run from the folder"),
        ("broken_aggregators:F", "importing broken_aggregators failed: ZeroDivisionError"),
        ("krum", "aggregator_num_byzantine=1: expected at most 0 with 3 clients"),
    ],
)
def test_what_cannot_be_built_is_refused(load, spelling, expected):
    with pytest.raises(ConfigError, match=expected):
        build_list_aggregator(AggregationConfig(spelling), SHAPES, 3, 0)


# Those of TFF take seconds, and are built in `test_factory_aggregation.py`.
@pytest.mark.parametrize("name", ROBUST_RULES)
def test_every_rule_has_an_aggregator(name):
    build_list_aggregator(AggregationConfig(name), SHAPES, 5, 0)


def test_memory_is_said_and_refused_if_it_is_not_there(monkeypatch):
    mean, median, zeroing = map(AggregationConfig, ("mean", "median", "zeroing"))
    needed = [estimate_memory(each, 100, 10**6) for each in (mean, median, zeroing)]
    assert needed == [0, 400 * 10**6, 800 * 10**6]
    assert "100 a round need about 0.4 GB" in describe_memory(median, 100, 10**6)
    memory = psutil.virtual_memory()._replace(available=500 * 10**6)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    check_memory(median, 100, 10**6)
    check_memory(mean, 10**6, 10**6)
    expected = r"aggregator=zeroing.*100 updates of 1.0 MB need about 0.8 GB.*0.5 GB are free"
    with pytest.raises(ConfigError, match=expected):
        check_memory(zeroing, 100, 10**6)


@pytest.mark.parametrize(
    ("share", "num_clients", "least"),
    [(0.1, 5, "0.2"), (0.1, 9, "0.112"), (0.1, 10, ""), (0.25, 3, "0.334"), (0.0, 5, ""), (0.1, 2, "")],
)
def test_a_trimmed_mean_that_leaves_nobody_out_is_said(share, num_clients, least):
    """floor(0.1 * 5) is 0: an attacker among five clients counted whole under the default share."""
    said = describe_trimming(AggregationConfig("trimmed_mean", aggregator_trimmed_share=share), num_clients)
    assert bool(said) == bool(least)
    if least:
        assert said.endswith(f"--aggregator_trimmed_share={least} or more")
        assert count_trimmed(float(least), num_clients) == 1
    assert describe_trimming(AggregationConfig("median"), 5) == ""
