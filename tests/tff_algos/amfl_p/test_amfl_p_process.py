"""AMFL-P as a process: its round against the same sums on the host, its limits, its edges."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from small_runs import assert_close, assert_same, flatten, run

from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import FineTuningConfig

SIZES = [16, 12, 30, 8]
EQUAL = {"weighting": "equal"}


@pytest.fixture
def build(build_algorithm, make_federation):
    """A function (sizes, fields of the config) -> process."""

    def build(sizes=SIZES, **fields):
        batches = {"support_size": 4, "query_size": 4, "meta_learning_rate": 0.3, "server_optimizer": "sgd"}
        return build_algorithm("amfl_p", make_federation(list(sizes)), **{**batches, **fields})

    return build


def test_equal_qualities_and_resources_give_equal_weights(build):
    """One resource level for all, and weights without quality: the same model as with equal weights."""
    level = {"min_resource": 0.4, "max_resource": 0.4}
    resource, equal = (run(build(weighting=weighting, **level), 2)[0] for weighting in ("resource", "equal"))
    assert_close(resource.model, equal.model)


@pytest.mark.parametrize("weighting", ["equal", "resource", "examples"])
def test_the_effective_number_of_clients(build, weighting):
    state, [metrics] = run(build(weighting=weighting), 1)
    weights = {"equal": np.ones(4), "resource": state.resources, "examples": np.array(SIZES)}[weighting]
    assert metrics["effective_num_clients"] == pytest.approx(count_effective(weights), rel=1e-5)


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
    process = build((16, 16), weighting="quality", inner_learning_rate=2.0)
    state = process.initialize()
    adapted, splits = [], []
    for client, turn in zip(process.clients.clients, (0, 1), strict=True):
        x, y = process.clients.read_split(client, "train")
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
    process = build((16, 16), weighting="quality", quality_model="fine_tuned", fine_tuning=tuning)
    state, tuned, splits = process.initialize(), [], []
    for turn, client in enumerate(process.clients.clients):
        x, y = process.clients.read_split(client, "train")
        splits.append((x, (y + turn) % 3))
        write_split(client, "validation", *splits[-1])
        tuned.append(descend(linear_spec, state.model, x, y, 0.4))
    _, metrics = process.next(state)
    expected = count_effective(compute_qualities(tuned, splits))
    assert metrics["effective_num_clients"] == pytest.approx(expected, rel=1e-4)
    # Each device: one support and one query batch of 4, and 16 examples to fine-tune only to be judged.
    assert metrics["energy_examples"] == pytest.approx(2 * (4 + 4 + 16))


@pytest.mark.parametrize(
    ("change", "examples", "energy"),
    [
        # Two rounds of four devices, K = 2 support batches of 4 and a query batch of 3: 11 examples in 3 steps.
        ({}, 44, 12),
        ({"reptile": True}, 32, 8),  # no gradient of the query batch: 8 examples in 2 steps
    ],
)
def test_energy_is_steps_times_the_examples_in_each(build, change, examples, energy):
    """The server counts it, so that devices may do other work."""
    process = build(**EQUAL, inner_steps=2, query_size=3, **change).process
    _, rows = run(dataclasses.replace(process, phase=build(**EQUAL).process.phase), 2)
    assert [row["energy_examples"] for row in rows] == pytest.approx([examples, 2 * examples])
    assert [row["energy"] for row in rows] == [energy, 2 * energy]


@pytest.mark.parametrize("change", [{}, {"reptile": True}])
def test_both_ways_learn(build, change):
    _, rows = run(build(**change), 6)
    assert rows[-1]["meta_loss"] < 0.8 * rows[0]["meta_loss"]


def test_first_and_second_order_differ(build):
    """Without inner steps they are the same, see `test_maml`."""
    first, second = (run(build(inner_learning_rate=0.5, first_order=is_first))[0] for is_first in (True, False))
    assert not np.allclose(flatten(first.model), flatten(second.model), atol=1e-5)


def test_a_round_without_inner_steps_is_a_plain_gradient_step(build, linear_spec, descend):
    """The query batch is all that the support batch leaves; one client, so its gradient is the server's."""
    process = build((16,), **EQUAL, inner_steps=0, support_size=1, query_size=15)
    state = process.initialize()
    new_state, metrics = process.next(state)
    x, y = process.clients.read_split(process.clients.clients[0], "train")
    candidates = [
        descend(linear_spec, state.model, np.delete(x, left_out, 0), np.delete(y, left_out), 0.3)
        for left_out in range(16)
    ]
    assert min(np.abs(flatten(new_state.model) - flatten(each)).max() for each in candidates) < 1e-6
    assert metrics["num_clients"] == 1


def test_personal_models_take_steps_by_resources(build):
    tuning = FineTuningConfig(steps=10, learning_rate=0.2, batch_size=4, rule="resources")
    process = build(fine_tuning=tuning)
    state, _ = run(process, 1)
    columns = process.client_columns(state)
    share = state.resources / state.resources.max()
    assert columns["fine_tuning_steps"] == [max(int(10 * each + 0.5), 1) for each in share]
    np.testing.assert_allclose(columns["fine_tuning_learning_rate"], 0.2 * share)
    personal = {client.index: weights for client, weights in process.personalize(state, process.clients.clients)}
    distances = [np.linalg.norm(flatten(personal[i]) - flatten(state.model)) for i in range(4)]
    assert min(distances) > 0
    assert int(np.argmax(distances)) == int(np.argmax(share))
    [(_, again)] = process.personalize(state, process.clients.clients[2:3])
    assert_same(again, personal[2])  # a client's model does not depend on who else is asked for


def test_the_rule_by_default_is_the_one_that_the_docs_name():
    """The paper's is `resources`; trials may choose `steps` (docs/algorithms.md)."""
    page = " ".join((pathlib.Path(__file__).parents[3] / "docs" / "algorithms.md").read_text(encoding="utf-8").split())
    (named,) = re.findall(r"`--fine_tuning_rule=(\w+)` \(the default\)", page)
    assert AMFLPConfig().fine_tuning.rule == named


def test_dynamic_resources_change_and_the_weak_sit_out(build):
    process = build(resources="dynamic", resource_floor=0.3)
    state, rows = run(process, 4)
    assert len({row["mean_resource"] for row in rows}) == 4
    assert any(row["num_clients"] < 4 for row in rows)
    assert state.energy == sum(row["num_clients"] for row in rows) * 2


def test_a_round_in_which_nobody_can_take_part_changes_only_the_devices(build):
    process = build(resources="dynamic", resource_floor=0.999)
    before = process.initialize()
    after, metrics = process.next(before)
    assert_same(after.model, before.model)
    assert (metrics["num_clients"], metrics["effective_num_clients"]) == (0, 0)
    assert np.any(after.devices.load != before.devices.load)


def test_a_device_whose_judged_model_has_diverged_is_left_out(build):
    """Its update is finite, but exp(-NaN), its weight, is not: of it, the whole model became NaN."""
    process = build(weighting="quality")
    client = process.clients.clients[1]
    x, y = process.clients.read_split(client, "train")
    write_split(client, "validation", np.full_like(x, np.nan), y)
    state, [metrics] = run(process, 1)
    assert metrics["num_rejected"] == 1 and 1 < metrics["effective_num_clients"] <= 3
    assert all(np.isfinite(array).all() for array in state.model)


def build_model(*layers):
    return lambda: tf.keras.Sequential([tf.keras.Input((4,)), *(make() for make in layers)])


def build_dense(**options):
    return {"build": build_model(lambda: tf.keras.layers.Dense(3, **options))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"build": build_model(tf.keras.layers.BatchNormalization)},
            "model=linear: expected a model whose weights are",
        ),
        (build_dense(kernel_regularizer="l2"), "model=linear: expected a model without losses of its own"),
        (build_dense(activity_regularizer="l1"), "model=linear: expected a model without losses of its own"),
        (build_dense(bias_constraint="non_neg"), "model=linear: expected a model without constraints"),
        ({"precision": "bfloat16"}, "precision=bfloat16: expected float32"),
        ({"augment": lambda x, seed: x}, "augment=crop_flip: expected none"),
        ({"quantization": object()}, "quantize=qat: expected none"),
    ],
)
def test_models_that_meta_gradients_do_not_heed_are_refused(build, linear_spec, changes, message):
    with pytest.raises(ConfigError, match=message):
        build(spec=dataclasses.replace(linear_spec, **changes))
