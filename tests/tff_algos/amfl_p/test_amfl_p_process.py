"""AMFL-P as a process: its round against the same sums on the host, its limits, its edges."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from models.quantization import build_quantized_spec
from models.stateless_dropout import StatelessDropout
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.amfl_p.process import build_amfl_p_process
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import FineTuningConfig

pytestmark = pytest.mark.usefixtures("trace_once")

SIZES = [16, 12, 30, 8]
CONFIG = AMFLPConfig(
    inner_steps=1,
    inner_learning_rate=0.1,
    support_size=4,
    query_size=4,
    meta_learning_rate=0.3,
    server_optimizer="sgd",
)
EQUAL = dataclasses.replace(CONFIG, weighting="equal")


@pytest.fixture
def build(tff_runtime, make_federation, linear_spec):
    """A function (config, sizes) -> process; `build.data` are the clients."""

    def make(config, sizes=tuple(SIZES), spec=linear_spec):
        make.data = make_federation(list(sizes))
        return build_amfl_p_process(spec, make.data, config, seed=5)

    return make


def run(process, rounds):
    state, rows = process.initialize(), []
    for _ in range(rounds):
        state, metrics = process.next(state)
        rows.append(metrics)
    return state, rows


def assert_same(first, second, tolerance=0.0):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def test_equal_qualities_and_resources_give_equal_weights(build):
    """One resource level for all, and weights without quality: the same model as with equal weights."""
    same_resources = dataclasses.replace(CONFIG, weighting="resource", min_resource=0.4, max_resource=0.4)
    resource, _ = run(build(same_resources), 2)
    equal, _ = run(build(dataclasses.replace(EQUAL, min_resource=0.4, max_resource=0.4)), 2)
    assert_same(resource.model, equal.model, 1e-6)


def test_the_effective_number_of_clients(build):
    _, [metrics] = run(build(EQUAL), 1)
    assert metrics["effective_num_clients"] == pytest.approx(4)
    state, [metrics] = run(build(dataclasses.replace(CONFIG, weighting="resource")), 1)
    weights = state.resources / state.resources.sum()
    assert metrics["effective_num_clients"] == pytest.approx(1 / np.sum(weights**2), rel=1e-5)
    state, [metrics] = run(build(dataclasses.replace(CONFIG, weighting="examples")), 1)
    weights = np.array(SIZES) / sum(SIZES)
    assert metrics["effective_num_clients"] == pytest.approx(1 / np.sum(weights**2), rel=1e-5)


def write_split(client, split, x, y):
    x.tofile(f"{client.path}.{split}.x")
    y.astype(np.int32).tofile(f"{client.path}.{split}.y")


def compute_qualities(models, splits):
    """exp(-mean cross-entropy) of each linear model, shape (2,): kernel and bias, on its split."""
    qualities = []
    for (kernel, bias), (x, y) in zip(models, splits, strict=True):
        logits = x @ kernel + bias
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        qualities.append(np.exp(log_probabilities[np.arange(len(y)), y].mean()))
    return np.array(qualities)


def count_effective(weights):
    return weights.sum() ** 2 / np.sum(weights**2)


def test_quality_is_that_of_the_adapted_model_on_the_validation_split(build, linear_spec, descend):
    """Two devices take one inner step at rate 2, the second with validation labels that are all wrong.

    A device's train examples are all the same one, so that whatever it draws is its full batch.
    """
    process = build(dataclasses.replace(CONFIG, weighting="quality", inner_learning_rate=2.0), sizes=(16, 16))
    state = process.initialize()
    adapted, splits = [], []
    for client, turn in zip(build.data.clients, (0, 1), strict=True):
        x, y = build.data.read_split(client, "train")
        splits.append((x, (y + turn) % 3))
        write_split(client, "validation", *splits[-1])
        write_split(client, "train", np.repeat(x[:1], 16, axis=0), np.repeat(y[:1], 16))
        adapted.append(descend(linear_spec, state.model, x[:1], y[:1], 2.0))
    _, metrics = process.next(state)
    expected = count_effective(compute_qualities(adapted, splits))
    assert metrics["effective_num_clients"] == pytest.approx(expected, rel=1e-4)
    before = count_effective(compute_qualities([state.model] * 2, splits))
    assert abs(before - expected) > 0.01  # that of theta is another number, not that of theta_i'


def test_quality_can_be_that_of_the_fine_tuned_model(build, linear_spec, descend):
    """Two devices take one full-batch step each at rate 0.4 and are judged on the validation split."""
    tuning = FineTuningConfig(steps=1, learning_rate=0.4, batch_size=16, rule="same")
    config = dataclasses.replace(CONFIG, weighting="quality", quality_model="fine_tuned", fine_tuning=tuning)
    process = build(config, sizes=(16, 16))
    state = process.initialize()
    losses = []
    for client, turn in zip(build.data.clients, (0, 1), strict=True):
        x, y = build.data.read_split(client, "train")
        labels = ((y + turn) % 3).astype(np.int32)
        x.tofile(f"{client.path}.validation.x")
        labels.tofile(f"{client.path}.validation.y")
        kernel, bias = descend(linear_spec, state.model, x, y, 0.4)
        logits = x @ kernel + bias
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        losses.append(-log_probabilities[np.arange(16), labels].mean())
    _, metrics = process.next(state)
    weights = np.exp(-np.array(losses)) / np.exp(-np.array(losses)).sum()
    assert metrics["effective_num_clients"] == pytest.approx(1 / np.sum(weights**2), rel=1e-4)
    # Each device: one support and one query batch of 4, and 16 examples to fine-tune only to be judged.
    assert metrics["energy_examples"] == pytest.approx(2 * (4 + 4 + 16))


@pytest.fixture
def spend(build):
    """A function (config, rounds) -> rows of metrics: the server counts energy, so that devices may do other work."""

    def spend(config, rounds):
        phase = build(EQUAL).process.phase
        return run(dataclasses.replace(build(config).process, phase=phase), rounds)[1]

    return spend


def test_energy_is_steps_times_the_examples_in_each(spend):
    """Four devices, two rounds, K = 2 support batches of 4 and a query batch of 3: 11 examples in 3 steps."""
    rows = spend(dataclasses.replace(EQUAL, inner_steps=2, query_size=3), 2)
    assert [row["energy_examples"] for row in rows] == pytest.approx([44, 88])
    assert [row["energy"] for row in rows] == [12, 24]


def test_reptile_takes_no_gradient_of_its_query_batch(spend):
    """Four devices, K = 2 support batches of 4: 8 examples in 2 steps."""
    [row] = spend(dataclasses.replace(EQUAL, inner_steps=2, query_size=3, reptile=True), 1)
    assert (row["energy_examples"], row["energy"]) == (pytest.approx(32), 8)


@pytest.mark.parametrize("change", [{}, {"weighting": "quality"}, {"first_order": True}, {"reptile": True}])
def test_every_way_learns(build, change):
    _, rows = run(build(dataclasses.replace(CONFIG, **change)), 6)
    assert rows[-1]["meta_loss"] < 0.8 * rows[0]["meta_loss"]


def test_first_and_second_order_differ(build):
    """Without inner steps they are the same, see `test_maml`."""
    config = dataclasses.replace(CONFIG, inner_learning_rate=0.5)
    second, _ = run(build(config), 1)
    first, _ = run(build(dataclasses.replace(config, first_order=True)), 1)
    assert not all(np.allclose(a, b, atol=1e-5) for a, b in zip(first.model, second.model, strict=True))


def test_a_round_without_inner_steps_is_a_plain_gradient_step(build, linear_spec, descend):
    """The query batch is all that the support batch leaves; one client, so its gradient is the server's."""
    process = build(dataclasses.replace(EQUAL, inner_steps=0, support_size=1, query_size=15), sizes=(16,))
    state = process.initialize()
    new_state, metrics = process.next(state)
    x, y = build.data.read_split(build.data.clients[0], "train")
    candidates = [
        descend(linear_spec, state.model, np.delete(x, left_out, 0), np.delete(y, left_out), 0.3)
        for left_out in range(16)
    ]
    errors = [max(np.abs(a - b).max() for a, b in zip(new_state.model, c, strict=True)) for c in candidates]
    assert min(errors) < 1e-6
    assert metrics["num_clients"] == 1


def test_personal_models_take_steps_by_resources(build):
    tuning = FineTuningConfig(steps=10, learning_rate=0.2, batch_size=4, rule="resources")
    config = dataclasses.replace(CONFIG, fine_tuning=tuning)
    process = build(config)
    state, _ = run(process, 1)
    columns = process.client_columns(state)
    share = state.resources / state.resources.max()
    assert columns["fine_tuning_steps"] == [max(int(10 * each + 0.5), 1) for each in share]
    np.testing.assert_allclose(columns["fine_tuning_learning_rate"], 0.2 * share)
    personal = {client.index: weights for client, weights in process.personalize(state, build.data.clients)}
    distances = [sum(np.square(a - b).sum() for a, b in zip(personal[i], state.model, strict=True)) for i in range(4)]
    assert min(distances) > 0
    assert int(np.argmax(distances)) == int(np.argmax(share))
    again = dict(enumerate(weights for _, weights in process.personalize(state, build.data.clients[2:3])))
    assert_same(again[0], personal[2])  # a client's model does not depend on who else is asked for


def test_the_rule_by_default_is_the_one_that_the_docs_name():
    """The paper's is `resources`; trials may choose `steps` (docs/algorithms.md)."""
    page = " ".join((pathlib.Path(__file__).parents[3] / "docs" / "algorithms.md").read_text(encoding="utf-8").split())
    (named,) = re.findall(r"`--fine_tuning_rule=(\w+)`, the default", page)
    assert AMFLPConfig().fine_tuning.rule == named


def test_dynamic_resources_change_and_the_weak_sit_out(build):
    config = dataclasses.replace(CONFIG, resources="dynamic", resource_floor=0.3)
    process = build(config)
    state, rows = run(process, 4)
    assert len({row["mean_resource"] for row in rows}) == 4
    assert any(row["num_clients"] < 4 for row in rows)
    assert state.energy == sum(row["num_clients"] for row in rows) * 2


def test_a_round_in_which_nobody_can_take_part_changes_only_the_devices(build):
    process = build(dataclasses.replace(CONFIG, resources="dynamic", resource_floor=0.999))
    before = process.initialize()
    after, metrics = process.next(before)
    assert_same(after.model, before.model)
    assert (metrics["num_clients"], metrics["effective_num_clients"]) == (0, 0)
    assert np.any(after.devices.load != before.devices.load)


def test_an_update_that_is_not_finite_is_left_out(build, break_client):
    process = build(EQUAL)
    break_client(build.data, 1)
    state, [metrics] = run(process, 1)
    assert metrics["num_rejected"] == 1
    assert metrics["effective_num_clients"] == pytest.approx(3)
    assert all(np.isfinite(array).all() for array in state.model)


def test_a_device_whose_judged_model_has_diverged_is_left_out(build):
    """Its update is finite, but exp(-NaN), its weight, is not: of it, the whole model became NaN."""
    process = build(dataclasses.replace(CONFIG, weighting="quality"))
    client = build.data.clients[1]
    x, y = build.data.read_split(client, "train")
    write_split(client, "validation", np.full_like(x, np.nan), y)
    state, [metrics] = run(process, 1)
    assert metrics["num_rejected"] == 1 and 1 < metrics["effective_num_clients"] <= 3
    assert all(np.isfinite(array).all() for array in state.model)


@pytest.mark.parametrize("server_optimizer", ["momentum", "adam"])
def test_server_optimizers_keep_their_state(build, server_optimizer):
    config = dataclasses.replace(EQUAL, server_optimizer=server_optimizer, meta_learning_rate=0.05)
    process = build(config)
    state, _ = run(process, 2)
    assert any(np.any(leaf != first) for leaf, first in zip(state.server, process.initialize().server, strict=True))


def test_too_few_examples_are_refused(build):
    with pytest.raises(ConfigError, match="at most 8, the examples of the smallest client, not 9"):
        build(dataclasses.replace(CONFIG, support_size=5))


def test_dropout_repeats_with_the_state(build, linear_spec):
    def build_model():
        layers = [tf.keras.layers.Dense(8), StatelessDropout(0.5), tf.keras.layers.Dense(3)]
        return tf.keras.Sequential([tf.keras.Input(linear_spec.format.input_shape), *layers])

    process = build(CONFIG, spec=dataclasses.replace(linear_spec, build=build_model))
    state = process.initialize()
    assert_same(process.next(state).state.model, process.next(state).state.model)


def test_a_quantized_model_is_refused(build, linear_spec):
    with pytest.raises(ConfigError, match="quantize=qat: expected none"):
        build(CONFIG, spec=build_quantized_spec(linear_spec))


def test_a_model_with_weights_that_are_not_trained_is_refused(build, linear_spec):
    def build_model():
        return tf.keras.Sequential(
            [tf.keras.Input(linear_spec.format.input_shape), tf.keras.layers.BatchNormalization()]
        )

    spec = dataclasses.replace(linear_spec, build=build_model)
    with pytest.raises(ConfigError, match=f"model={spec.name}: expected a model whose weights are all trained"):
        build(CONFIG, spec=spec)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"kernel_regularizer": "l2"}, "losses of its own"),
        ({"activity_regularizer": "l1"}, "losses of its own"),
        ({"bias_constraint": "non_neg"}, "constraints"),
    ],
)
def test_a_model_with_terms_that_meta_gradients_do_not_heed_is_refused(build, linear_spec, options, found):
    def build_model():
        return tf.keras.Sequential(
            [tf.keras.Input(linear_spec.format.input_shape), tf.keras.layers.Dense(3, **options)]
        )

    spec = dataclasses.replace(linear_spec, build=build_model)
    with pytest.raises(ConfigError, match=f"model={spec.name}: expected a model without {found}"):
        build(CONFIG, spec=spec)


def test_a_model_in_bfloat16_is_refused(build, linear_spec):
    with pytest.raises(ConfigError, match="precision=bfloat16: expected float32"):
        build(CONFIG, spec=dataclasses.replace(linear_spec, precision="bfloat16"))


def test_augmentation_is_refused(build, linear_spec):
    with pytest.raises(ConfigError, match="augment=crop_flip: expected none"):
        build(CONFIG, spec=dataclasses.replace(linear_spec, augment=lambda x, seed: x))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reptile": True, "first_order": True}, "either first_order or reptile"),
        ({"reptile": True, "inner_steps": 0}, "at least 1 with reptile"),
        ({"min_resource": 0.0}, "above 0"),
        ({"max_resource": 1.5}, "at most 1"),
        ({"min_resource": 0.9, "max_resource": 0.5}, "at most max_resource"),
    ],
)
def test_settings_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        AMFLPConfig(**values)
