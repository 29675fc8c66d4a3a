"""Personal models: steps and rates of each client's own."""

import numpy as np
import pytest

from tff_algos.client.fine_tuning import build_fine_tuning
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights


@pytest.fixture
def tune(tff_runtime, make_federation, linear_spec):
    """A function (num_steps, rates, sizes) -> (clients' examples, start, personal weights)."""

    def run(num_steps, rates, sizes=(4, 4, 4)):
        data = make_federation(list(sizes))
        start = initialize_weights(linear_spec, 3)
        fine_tune = build_fine_tuning(linear_spec, FineTuningConfig(batch_size=4), start, seed=3)
        pairs = list(fine_tune(start, data.clients, np.array(num_steps), np.array(rates)))
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
        for a, b in zip(weights, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_more_clients_than_fit_in_a_call(tune, monkeypatch):
    _, _, together = tune([3] * 5, [0.1] * 5, sizes=(9, 4, 7, 5, 6))
    monkeypatch.setattr("tff_algos.client.fine_tuning._CLIENTS_PER_CALL", 2)
    _, _, in_parts = tune([3] * 5, [0.1] * 5, sizes=(9, 4, 7, 5, 6))
    for first, second in zip(together, in_parts, strict=True):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_fine_tuning_baseline_is_fed_avg_with_personal_models(tff_runtime, make_federation, linear_spec):
    data = make_federation([12, 20])
    training = LocalTrainingConfig(epochs=1, batch_size=4)
    plain = build_fed_avg_process(linear_spec, data, FedAvgConfig(training=training), seed=1)
    tuning = FineTuningConfig(steps=5, learning_rate=0.3, batch_size=4)
    tuned = build_fed_avg_process(linear_spec, data, FedAvgConfig(training=training, fine_tuning=tuning), seed=1)
    assert (plain.is_personal, tuned.is_personal) == (False, True)
    state, other = plain.next(plain.initialize()).state, tuned.next(tuned.initialize()).state
    shared = plain.get_models(state)["global"]
    for a, b in zip(shared, tuned.get_models(other)["global"], strict=True):
        np.testing.assert_array_equal(a, b)
    for (_, same), (_, personal) in zip(
        plain.personalize(state, data.clients), tuned.personalize(other, data.clients), strict=True
    ):
        assert all(np.array_equal(a, b) for a, b in zip(same, shared, strict=True))
        assert any(np.any(a != b) for a, b in zip(personal, shared, strict=True))
