"""Algorithms with private updates: what one client can change, the noise, and cohorts of nobody."""

import numpy as np
import pytest
from small_runs import flatten, silence

from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

CLIP_NORM = 0.01  # updates are several times as long
PRIVATE = {"privacy": UpdatePrivacyConfig(epsilon=50.0, clip_norm=CLIP_NORM, rounds=4)}
SGD = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.5, batch_size=4)
FED_AVG = {**PRIVATE, "training": SGD, "client_weighting": "equal"}
FED_CD = {**PRIVATE, "training": SGD, "weighting": "equal", "cohort_size": 4, "milestones": (1, 2)}
AMFL_P = {
    **PRIVATE,
    "support_size": 2,
    "query_size": 3,
    "weighting": "equal",
    "server_optimizer": "sgd",
    "meta_learning_rate": 1.0,
}


@pytest.fixture
def data(make_federation):
    return make_federation([8, 12, 5, 9])


def flatten_models(process, state):
    return flatten([array for model in process.get_models(state).values() for array in model])


@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [("fedavg", FED_AVG), ("fedavg", {**FED_AVG, "compression": CompressionConfig(bits=4)}), ("amfl_p", AMFL_P)],
    ids=["fedavg", "fedavg, rounded", "amfl_p"],
)
def test_one_client_changes_the_sum_by_at_most_the_clip_norm(build_algorithm, data, fix_cohort, algorithm, fields):
    """The sum is what a round adds to the model, times the expected cohort."""
    process = build_algorithm(algorithm, data, **fields)
    state = silence(process.initialize())

    def sum_of(cohort):
        fix_cohort(cohort)
        after = process.next(state).state
        return 4 * flatten(after.model if algorithm == "amfl_p" else after.models)

    everyone = sum_of(range(4))
    for client in range(4):
        change = np.linalg.norm(everyone - sum_of([other for other in range(4) if other != client]))
        assert change == pytest.approx(CLIP_NORM, rel=1e-3)
        assert change <= CLIP_NORM * (1 + 1e-4), "but for the rounding of the sums"


@pytest.mark.parametrize(
    ("algorithm", "fields", "rounds_done"),
    # FedCD has four models then, three of which nobody has.
    [("fedavg", FED_AVG, 0), ("amfl_p", AMFL_P, 0), ("fedcd", FED_CD, 2)],
)
def test_the_noise_on_every_model_is_z_clip_norms_over_the_cohort(
    build_algorithm, data, work_once, algorithm, fields, rounds_done
):
    process, noise = build_algorithm(algorithm, data, **fields), []
    start = process.initialize()
    for round_num in range(rounds_done, rounds_done + 40):
        state = start._replace(round_num=np.int32(round_num))
        loud, quiet = (flatten_models(process, process.next(each).state) for each in (state, silence(state)))
        noise.append(np.reshape(loud - quiet, (-1, 15)))
    expected = float(start.aggregator.noise_multiplier) * CLIP_NORM / 4
    of_models = np.swapaxes(noise, 0, 1).reshape(len(noise[0]), -1)
    assert len(of_models) == (4 if algorithm == "fedcd" else 1)
    np.testing.assert_allclose(of_models.std(axis=1), expected, rtol=4 / (2 * of_models.shape[1]) ** 0.5)


@pytest.mark.parametrize(("algorithm", "fields"), [("fedavg", FED_AVG), ("fedcd", FED_CD), ("amfl_p", AMFL_P)])
def test_a_drawn_cohort_may_be_empty_and_is_a_round(build_algorithm, data, algorithm, fields):
    process = build_algorithm(algorithm, data, **{**fields, "participation": "bernoulli", "cohort_size": 1})
    choose_cohort = getattr(process, "process", process).choose_cohort  # of Fine-Tuning
    states = [process.initialize()._replace(round_num=np.int32(number)) for number in range(30)]
    sizes = [len(choose_cohort(state)[1]) for state in states]
    assert 0 in sizes and max(sizes) > 1
    state, metrics = process.next(states[sizes.index(0)])
    assert metrics["num_clients"] == 0 and metrics["epsilon_spent"] > 0 and np.isnan(metrics["train_loss"])
    assert np.any(flatten_models(process, state)[:15] != flatten_models(process, states[0])), "no noise"
