"""TFF's aggregators over exactly the updates that count, the same in the worker and in this process."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from launch.runs.checkpoints import flatten_state, pack_state
from launch.runtimes.in_process import run_in_process
from tff_algos.rounds.build_aggregator import build_list_aggregator
from tff_algos.rounds.factory_aggregation import FactoryAggregator
from tff_algos.settings.aggregation import TFF_FACTORIES, AggregationConfig
from tff_algos.settings.config_fields import ConfigError

SHAPES = ((2, 3), (3,), ())
NUM_WEIGHTS = 10


@pytest.fixture(params=[pytest.param("worker", marks=pytest.mark.tff), "in_process"])
def context(request, tff_runtime, tmp_path):
    """Each way to run computations, as TFF's default context."""
    if request.param == "worker":
        request.getfixturevalue("can_close")
        yield
    else:
        with run_in_process(str(tmp_path / "tensorflow.log"), num_threads=2):
            yield


@pytest.fixture(scope="module")
def build_anew(tff_runtime):
    """A function (name, further settings) -> the aggregator of that name, for cohorts of 4."""
    return lambda name, seed=3, **settings: build_list_aggregator(AggregationConfig(name, **settings), SHAPES, 4, seed)


@pytest.fixture(scope="module")
def build(build_anew):
    """`build_anew`, each once for all tests."""
    return functools.cache(build_anew)


def begin(aggregator):
    return aggregator.initialize(SHAPES, 1)[0]


def draw(num_clients=4, scale=0.1, seed=1):
    """Updates and weights."""
    rng = np.random.default_rng(seed)
    updates = (scale * rng.normal(size=(num_clients, NUM_WEIGHTS))).astype(np.float32)
    return updates, np.arange(1, num_clients + 1, dtype=np.float32)


def find_mean(updates, weights):
    return weights.astype(np.float64) @ updates / weights.sum()


def list_runs():
    """All factories but the secure one in the worker; in this process those that have the parts of the others."""
    for name, context in itertools.product(TFF_FACTORIES, ("worker", "in_process")):
        is_slow = name == "secure" or (context == "in_process" and name not in ("compression", "dp_tree"))
        yield pytest.param(name, context, marks=[pytest.mark.slow] * is_slow)


@pytest.mark.parametrize(("name", "context"), list_runs(), indirect=["context"])
def test_every_factory_with_a_name_runs(name, build, context):
    aggregator = build(name)
    begun = begin(aggregator)
    assert all(isinstance(leaf, np.ndarray) for leaf in begun)
    state, names = begun, set()
    # Another number of clients is another executor, which must go on from the same state.
    for round_num, num_clients in enumerate((4, 1, 4)):
        update, state, columns = aggregator.combine(*draw(num_clients, seed=round_num), state)
        assert update.dtype == np.float32 and update.shape == (NUM_WEIGHTS,) and np.isfinite(update).all()
        assert all(isinstance(value, int | float) for value in columns.values())
        names.add(tuple(columns))
    assert len(names) == 1 and all(column.startswith("aggregator_") for column in columns)
    # A checkpoint keeps the leaves alone; the round goes on from them with the same bytes.
    leaves = flatten_state(state)
    assert len(leaves) == len(flatten_state(begun))
    packed = pack_state(begun, leaves)
    expected, following, _ = aggregator.combine(*draw(), state)
    again, resumed, _ = aggregator.combine(*draw(), packed)
    assert again.tobytes() == expected.tobytes()
    assert [leaf.tobytes() for leaf in resumed] == [leaf.tobytes() for leaf in following]


@pytest.mark.parametrize("name", ["quantization", "dp_tree"])
def test_a_factory_built_anew_gives_the_same_bytes(name, build, build_anew):
    """With rounding to the nearest level, and noise from the seed; the other factories draw nothing."""
    results = []
    for aggregator in (build(name), build_anew(name)):
        state = begin(aggregator)
        for round_num in range(2):
            update, state, _ = aggregator.combine(*draw(seed=round_num), state)
        results.append(update.tobytes() + b"".join(leaf.tobytes() for leaf in state))
    assert results[0] == results[1]


def test_the_weighted_mean_of_tff_is_ours(context):
    updates, weights = draw()
    means = find_mean(updates, weights), updates.mean(axis=0)
    for factory, mean in zip((tff.aggregators.MeanFactory, tff.aggregators.UnweightedMeanFactory), means, strict=True):
        aggregator = FactoryAggregator(factory(), SHAPES, "mean")
        np.testing.assert_allclose(aggregator.combine(updates, weights, begin(aggregator))[0], mean, atol=1e-6)


def test_zeroing_removes_a_huge_update_and_says_so(build, context):
    aggregator = build("zeroing")
    state = begin(aggregator)
    updates, weights = draw()
    small, state, columns = aggregator.combine(updates, weights, state)
    np.testing.assert_allclose(small, find_mean(updates, weights), atol=1e-6)
    assert columns["aggregator_zeroed_count"] == 0
    updates[1] = 1e6
    update, _, columns = aggregator.combine(updates, weights, state)
    updates[1] = 0
    np.testing.assert_allclose(update, find_mean(updates, weights), atol=1e-6)
    assert columns["aggregator_zeroed_count"] == 1


def test_clipping_moves_its_norm_towards_the_updates(build):
    """The norm begins at 1; with updates of norms below that it falls: by exp(0.2 (0.8 - 1)), as all four are below."""
    aggregator = build("clipping")
    update, state, columns = aggregator.combine(*draw(), begin(aggregator))
    np.testing.assert_allclose(update, find_mean(*draw()), atol=1e-6)
    assert columns["aggregator_clipping_norm"] == pytest.approx(1.0)
    _, _, columns = aggregator.combine(*draw(), state)
    assert columns["aggregator_clipping_norm"] == pytest.approx(np.exp(-0.2 * 0.2), rel=1e-5)


def test_groups_begin_alike_and_go_apart(build):
    aggregator = build("clipping")
    first, second = aggregator.initialize(SHAPES, 2)
    assert [leaf.tobytes() for leaf in first] == [leaf.tobytes() for leaf in second]
    _, moved, _ = aggregator.combine(*draw(), first)
    assert any(a.tobytes() != b.tobytes() for a, b in zip(moved, second, strict=True))


def test_quantization_is_as_near_as_its_bits(build):
    updates, weights = draw(1)
    errors = []
    for settings in ({"aggregator_bits": 2}, {}):  # 8 by default
        aggregator = build("quantization", **settings)
        update, _, _ = aggregator.combine(updates, weights, begin(aggregator))
        errors.append(np.abs(update - updates[0]).max())
    assert errors[0] > 10 * errors[1] and errors[1] < 0.003


def test_dp_tree_sums_clipped_updates_over_the_expected_cohort_with_noise_of_the_seed(build):
    aggregator = build("dp_tree", aggregator_noise_multiplier=0.0, aggregator_clip_norm=0.1)
    updates, weights = draw(2)
    update, _, _ = aggregator.combine(updates, weights, begin(aggregator))
    factors = np.minimum(1, 0.1 / np.linalg.norm(updates, axis=1, keepdims=True))
    assert (factors < 1).all()
    np.testing.assert_allclose(update, (factors * updates).sum(axis=0) / 4, atol=1e-6)
    first, other = (each.combine(*draw(), begin(each))[0] for each in (build("dp_tree"), build("dp_tree", 2)))
    assert np.abs(first - other).max() > 1e-3


def test_dp_tree_is_refused_where_groups_would_share_their_noise(build):
    with pytest.raises(ConfigError, match="aggregator=dp_tree: expected another one"):
        build("dp_tree").initialize(SHAPES, 2)


@pytest.mark.slow
def test_a_secure_sum_is_simulated(build):
    aggregator = build("secure")
    updates, weights = draw()
    update, _, columns = aggregator.combine(updates, weights, begin(aggregator))
    np.testing.assert_allclose(update, find_mean(updates, weights), atol=1e-4)
    assert columns["aggregator_zeroing_clipping_mean_value_secure_upper_threshold"] == 100.0  # twice TFF's 50


@pytest.mark.usefixtures("can_close")
def test_what_a_runtime_cannot_run_is_one_line_at_the_start(tff_runtime, tmp_path):
    """Two aggregations one after another: in this process there is room for one."""

    class Centred(tff.aggregators.UnweightedAggregationFactory):
        def create(self, value_type):
            subtract = tff.tensorflow.computation(
                lambda value, mean: tf.nest.map_structure(tf.subtract, value, mean), value_type, value_type
            )

            @tff.federated_computation
            def initialize():
                return tff.federated_value((), tff.SERVER)

            @tff.federated_computation(initialize.type_signature.result, tff.FederatedType(value_type, tff.CLIENTS))
            def next_fn(state, values):
                mean = tff.federated_broadcast(tff.federated_mean(values))
                left = tff.federated_mean(tff.federated_map(subtract, (values, mean)))
                return tff.templates.MeasuredProcessOutput(state, left, state)

            return tff.templates.AggregationProcess(initialize, next_fn)

    aggregator = FactoryAggregator(Centred(), SHAPES, "my_module:CENTRED")
    update, _, columns = aggregator.combine(*draw(), begin(aggregator))
    np.testing.assert_allclose(update, np.zeros(NUM_WEIGHTS), atol=1e-6)
    assert columns == {}
    with (
        run_in_process(str(tmp_path / "log")),
        pytest.raises(ConfigError, match=r"my_module:CENTRED.*--runtime=tff may") as raised,
    ):
        aggregator.initialize(SHAPES, 1)
    assert "\n" not in str(raised.value)


def test_a_factory_that_fails_is_one_line(tff_runtime):
    class Broken(tff.aggregators.UnweightedAggregationFactory):
        def create(self, value_type):
            raise KeyError("no such thing\nat all")

    with pytest.raises(ConfigError, match=r"aggregator=my_module:F: expected .*KeyError: 'no such thing"):
        FactoryAggregator(Broken(), SHAPES, "my_module:F")
