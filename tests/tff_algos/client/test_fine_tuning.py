"""Personal models: steps and rates of each client's own."""

import dataclasses
import types

import numpy as np
import pytest
from small_runs import assert_close, assert_same

from datasets.federated_data import ClientFiles, DeviceProfiles
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.amfl_p.process import build_amfl_p_process
from tff_algos.client.fine_tuning import build_fine_tuning, summarize_plan
from tff_algos.fed_avg.config import FineTunedConfig
from tff_algos.fed_avg.process import build_fine_tuned_process
from tff_algos.rounds.fine_tuned import add_final_steps
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.resources import FineTuningPlan, draw_devices
from tff_algos.weights import initialize_weights


@pytest.fixture
def tune(tff_runtime, make_federation, linear_spec):
    """A function (num_steps, rates, sizes) -> (clients' examples, start, personal weights)."""

    def run(num_steps, rates, sizes=(4, 4, 4)):
        data = make_federation(list(sizes))
        start = initialize_weights(linear_spec, 3)
        fine_tune = build_fine_tuning(linear_spec, FineTuningConfig(batch_size=4), start, 3)
        pairs = list(fine_tune(start, data.clients, FineTuningPlan(np.array(num_steps), np.array(rates))))
        assert [client.index for client, _ in pairs] == list(range(len(sizes)))
        examples = [data.read_split(client, "train") for client in data.clients]
        return examples, start, [weights for _, weights in pairs]

    return run


def test_full_batches_are_plain_descent(tune, linear_spec, descend):
    """Batches of all 4 examples: 0, 1 and 2 steps at rates 0.5, 0.5 and 0.1."""
    examples, start, personal = tune([0, 1, 2], [0.5, 0.5, 0.1])
    expected = [start, descend(linear_spec, start, *examples[1], 0.5)]
    halfway = descend(linear_spec, start, *examples[2], 0.1)
    expected.append(descend(linear_spec, halfway, *examples[2], 0.1))
    for weights, wanted in zip(personal, expected, strict=True):
        assert_close(weights, wanted, atol=1e-6)


def test_more_clients_than_fit_in_a_call(tune, monkeypatch):
    _, _, together = tune([3] * 5, [0.1] * 5, sizes=(9, 4, 7, 5, 6))
    monkeypatch.setattr("tff_algos.client.fine_tuning._CLIENTS_PER_CALL", 2)
    _, _, in_parts = tune([3] * 5, [0.1] * 5, sizes=(9, 4, 7, 5, 6))
    for first, second in zip(together, in_parts, strict=True):
        assert_same(first, second)


@pytest.fixture
def build_both(tff_runtime, make_federation, linear_spec):
    """A function (settings of fine-tuning) -> (three clients, Fine-Tuning and AMFL-P over these, with one seed)."""

    def build(**tuning):
        data = make_federation([12, 20, 16])
        settings = FineTuningConfig(steps=8, learning_rate=0.3, batch_size=4, **tuning)
        tuned = FineTunedConfig(training=LocalTrainingConfig(epochs=1, batch_size=4), fine_tuning=settings)
        fed_avg = build_fine_tuned_process(linear_spec, data, tuned, seed=1)
        meta = AMFLPConfig(support_size=4, query_size=4, fine_tuning=settings)
        return data, fed_avg, build_amfl_p_process(linear_spec, data, meta, seed=1)

    return build


def list_personal(pairs):
    return [weights for _, weights in pairs]


def assert_equal(first, second):
    for weights, others in zip(first, second, strict=True):
        assert_same(weights, others)


@pytest.mark.parametrize("rule", ["resources", "steps"])
def test_devices_have_the_same_resources_whoever_trained_the_start(build_both, rule):
    _, fed_avg, amfl_p = build_both(rule=rule)
    columns = fed_avg.client_columns(fed_avg.initialize())
    assert columns == amfl_p.client_columns(amfl_p.initialize())
    assert columns["resource"] == draw_devices(3, 1)[0].tolist()
    assert len(set(columns["fine_tuning_steps"])) > 1
    assert (len(set(columns["fine_tuning_learning_rate"])) > 1) == (rule == "resources")


def test_the_start_is_the_model_of_fed_avg_or_a_random_one_that_owes_nothing_to_training(build_both):
    data, fed_avg, amfl_p = build_both(start="initial", rule="same")
    before, state = fed_avg.initialize(), fed_avg.next(fed_avg.initialize()).state
    plain = fed_avg.process
    shared = plain.get_models(plain.next(plain.initialize()).state)["global"]
    assert_same(shared, fed_avg.get_models(state)["global"])
    assert_equal([shared] * 3, list_personal(plain.personalize(state, data.clients)))
    assert (plain.is_personal, fed_avg.is_personal) == (False, True)
    random = list_personal(fed_avg.personalize(before, data.clients))
    assert_equal(random, list_personal(fed_avg.personalize(state, data.clients)))
    assert_equal(random, list_personal(amfl_p.personalize(amfl_p.initialize(), data.clients)))
    trained = list_personal(fed_avg.personalize_from(state, data.clients, "trained"))
    for start in (random[0], shared):
        assert any(np.any(a != b) for a, b in zip(start, trained[0], strict=True))


def test_a_client_that_is_stopped_has_taken_the_first_of_its_own_steps(build_both):
    """At most 3 steps of N_i: those who have fewer take all of theirs; at most N_max is the whole."""
    data, fed_avg, _ = build_both(rule="steps")
    state = fed_avg.initialize()
    whole = list_personal(fed_avg.personalize(state, data.clients))
    assert_equal(whole, list_personal(fed_avg.personalize_from(state, data.clients, "trained", most_steps=8)))
    stopped = list_personal(fed_avg.personalize_from(state, data.clients, "trained", most_steps=3))
    # The same first steps as a plan that ends there: orders follow from the seed and not from the plan.
    plan = fed_avg.plan(state)
    in_steps = list_personal(fed_avg.fine_tune(
        fed_avg.initial_weights, data.clients, FineTuningPlan(np.minimum(plan.num_steps, 3), plan.learning_rates)
    ))  # fmt: skip
    assert_equal(stopped, in_steps)
    at_start = list_personal(fed_avg.personalize_from(state, data.clients, "trained", most_steps=0))
    assert_equal(at_start, [fed_avg.initial_weights] * 3)


def test_new_clients_are_personalised_without_having_taken_part(tff_runtime, make_federation, linear_spec):
    data = make_federation([12, 20, 16])
    fewer = dataclasses.replace(data, clients=data.clients[:2], new_clients=data.clients[2:])
    tuning = FineTuningConfig(steps=4, batch_size=4, rule="resources")
    config = AMFLPConfig(support_size=4, query_size=4, fine_tuning=tuning)
    process = build_amfl_p_process(linear_spec, fewer, config, seed=1)
    state, metrics = process.next(process.initialize())
    assert metrics["num_clients"] == 2
    assert [client.index for client, _ in process.personalize(state, fewer.new_clients)] == [2]
    assert len(process.client_columns(state)["resource"]) == 3
    others = build_amfl_p_process(linear_spec, dataclasses.replace(data, clients=data.clients[:2]), config, seed=1)
    assert_equal([state.model], [others.next(others.initialize()).state.model])


def test_two_models_and_two_steps_by_hand(build_algorithm, make_scalar_federation, scalar_spec):
    """Clients 0 and 2 choose the weight 1, client 1 chooses -1; each then steps down its own loss from there."""
    clients, rate = [(1, 1, 2), (1, 0, 4), (2, 1, 6)], 0.5
    data = make_scalar_federation(clients)
    ifca = build_algorithm("ifca", data, spec=scalar_spec, num_models=2)
    process = add_final_steps(ifca, scalar_spec, data, FineTuningConfig(2, rate, batch_size=8), seed=2)
    state = process.initialize()._replace(models=(np.array([[[1.0]], [[-1.0]]], np.float32),))
    assert process.client_model(state) == ["model_0", "model_1", "model_0"]
    expected = []
    for (x, y, _), weight in zip(clients, (1.0, -1.0, 1.0), strict=True):
        for _ in range(2):
            weight -= rate * (1 / (1 + np.exp(-weight * x)) - y) * x
        expected.append(weight)
    personal = [weights[0].item() for weights in list_personal(process.personalize(state, data.clients))]
    assert personal == pytest.approx(expected, rel=1e-6)
    # The order is that of the question, which need not put the users of a model side by side.
    order = [data.clients[index] for index in (2, 0, 1)]
    assert [client.index for client, _ in process.personalize(state, order)] == [2, 0, 1]
    # Batches of 2, 4 and 6 examples, two steps each: 24 in all; at 100, 200 and 300 a second 0.04 s for each client.
    assert process.summarize(state) == {
        "cluster_sizes": [2, 1],
        "energy_of_fine_tuning_examples": 24,
        "mean_fine_tuning_steps": 2,
        "fine_tuning_virtual_s": pytest.approx(0.04),
    }
    assert (process.is_personal, process.fine_tuning_start, process.takes_new_clients) == (True, "", True)
    assert process.client_columns(state) == {"cluster": [0, 1, 0]}


def test_what_fine_tuning_costs_by_hand():
    """Steps 10 and 4 of batches of 8: 80 examples, and 4 x 5 of a client that has only 5."""
    clients = tuple(ClientFiles(i, f"client_{i}", "", n, 0, 0) for i, n in enumerate((20, 5)))
    data = types.SimpleNamespace(everyone=clients, profiles=DeviceProfiles(*[np.array([10.0, 1.0])] * 4))
    plan = FineTuningPlan(np.array([10, 4], np.int32), np.array([0.1, 0.1]))
    assert summarize_plan(plan, 8, data) == {
        "energy_of_fine_tuning_examples": 100,
        "mean_fine_tuning_steps": 7,
        "fine_tuning_virtual_s": 20,
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"curve": (0, 5, 1)}, "ascending order"),
        ({"curve": (5, 5)}, "ascending"),
        ({"steps": 0, "curve": (1,)}, "none"),
    ],
)
def test_curves_that_cannot_be_measured(values, message):
    with pytest.raises(ConfigError, match=message):
        FineTuningConfig(**values)
