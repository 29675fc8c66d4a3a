"""What algorithms are in their limit cases: FedAvg, local training, themselves without privacy or uncompiled."""

import dataclasses
import functools

import numpy as np
import pytest
from small_runs import assert_close, assert_same, run, silence

from datasets.federated_data import Archetypes
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

ADAM = {"training": LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)}
SGD = {"training": LocalTrainingConfig(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1)}
PULLED = {"training": dataclasses.replace(SGD["training"], proximal_weight=0.5)}
ADAM_OF_THREE, SGD_OF_THREE = {**ADAM, "cohort_size": 3}, {**SGD, "cohort_size": 3}
EQUAL = {"client_weighting": "equal"}
ROUNDED = {"compression": CompressionConfig(4, "stochastic")}
HELD = {"adaptive": False}
NO_TEACHER = {"student": SGD["training"], "label_weight": 1.0}
ONE_SLOT = {"milestones": (), "score_noise": 0.0}
COSTS = {"bytes_up", "bytes_down", "virtual_time_s"}


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    """Nine clients, padded to ten places; each is an archetype, and all are one meta-archetype."""
    data = build_federation(tmp_path_factory.mktemp("limit_cases"), [9, 12, 30, 3, 17, 8, 21, 6, 13])
    return dataclasses.replace(data, archetypes=Archetypes(tuple("abcdefghi"), (0,) * 9, tuple(range(9))))


@pytest.fixture(scope="module")
def run_rounds(build_algorithm, data):
    """A function (algorithm, fields of its config) -> (process, state, its metrics) after three rounds, run once."""

    @functools.cache
    def run_rounds(name, **fields):
        process = build_algorithm(name, data, **fields)
        return process, *run(process, 3)

    return run_rounds


@pytest.mark.parametrize(
    ("algorithm", "fields", "of_fed_avg", "tolerance", "others"),
    [
        # What clients keep comes one by one, where FedAvg's updates are summed on the way; still bit for bit. Two
        # models are trained.
        ("ditto", {**ADAM_OF_THREE, "pull": 0.0}, ADAM_OF_THREE, 0, {"virtual_time_s"}),
        ("ditto", {**ADAM_OF_THREE, "pull": 3.0}, ADAM_OF_THREE, 0, {"virtual_time_s"}),
        ("apfl", {**ADAM_OF_THREE, "alpha": 0.0, **HELD}, ADAM_OF_THREE, 0, {"virtual_time_s"}),
        ("apfl", {**ADAM_OF_THREE, "alpha": 0.5, **HELD}, ADAM_OF_THREE, 0, {"virtual_time_s"}),
        ("cfl", {**SGD, "gamma_max": 1.0}, SGD, 0, set()),  # never cut
        ("ifca", {**SGD_OF_THREE, **EQUAL, "num_models": 1}, {**SGD_OF_THREE, **EQUAL}, 0, set()),
        ("moon", {**SGD_OF_THREE, "contrast_weight": 0.0}, SGD_OF_THREE, 0, set()),
        ("oracle", {**SGD_OF_THREE, "groups": "meta_archetype"}, SGD_OF_THREE, 0, set()),
        # The second round begins with an exchange of its own.
        ("fl_hc", {**SGD, "num_clusters": 1, "distance_multiple": 0}, SGD, 1e-6, COSTS),
        # Cluster means weighted by their examples, of members weighted by theirs, are the mean over all examples. The
        # statistics are sent, too.
        ("fedsikd", {**NO_TEACHER, "num_clusters": 2, "weighting": "examples"}, SGD, 1e-6, {"bytes_up"}),
        ("fedsikd", {**NO_TEACHER, "num_clusters": 1}, {**SGD, **EQUAL}, 1e-6, {"bytes_up"}),
        # A score is sent beside a model, and all clients receive it. The same roundings are drawn.
        ("fedcd", {**SGD_OF_THREE, **ONE_SLOT}, {**SGD_OF_THREE, **EQUAL}, 1e-6, COSTS),
        ("fedcd", {**SGD_OF_THREE, **ONE_SLOT, **ROUNDED}, {**SGD_OF_THREE, **EQUAL, **ROUNDED}, 1e-6, COSTS),
        # All devices are ready in each period.
        ("async_periodic", {**PULLED, "period_fraction": 1.0, "max_scheduled": 10}, PULLED, 1e-6, COSTS),
        # K = 1 and eta lambda = 1: theta is pulled to where it is, and w_i is theta_i.
        (
            "pfedme",
            {**SGD_OF_THREE, "inner_steps": 1, "pull": 4.0, "outer_rate": 0.25},
            SGD_OF_THREE,
            1e-6,
            {"total_drift"},
        ),
    ],
)
def test_it_is_fed_avg(run_rounds, algorithm, fields, of_fed_avg, tolerance, others):
    """The models, and all columns that both have, but for `others`."""
    (process, state, rows), fed_avg = run_rounds(algorithm, **fields), run_rounds("fedavg", **of_fed_avg)
    (model,), expected = process.get_models(state).values(), fed_avg[0].get_models(fed_avg[1])["global"]
    assert_close(model, expected, atol=tolerance, rtol=0)
    assert np.abs(expected[0] - fed_avg[0].initial_weights[0]).max() > 0.05, "nothing was learned"
    for row, other in zip(rows, fed_avg[2], strict=True):
        columns = (row.keys() & other.keys()) - others
        assert columns >= {"train_loss", "num_clients", "num_rejected"}
        found, alike = ({name: each[name] for name in columns} for each in (row, other))
        assert found == (pytest.approx(alike, rel=1e-4) if tolerance else alike)


def test_with_an_alpha_of_0_the_personal_models_are_fed_avgs(run_rounds, get_personal):
    process, state, rows = run_rounds("apfl", **ADAM_OF_THREE, alpha=0.0, **HELD)
    fed_avg, expected, _ = run_rounds("fedavg", **ADAM_OF_THREE)
    for own in get_personal(process, state):
        assert_same(own, fed_avg.get_models(expected)["global"])
    assert [row["mean_alpha"] for row in rows] == [0, 0, 0]


@pytest.mark.parametrize(
    ("algorithm", "fields", "tolerance"),
    [
        ("ditto", {"pull": 0.0}, 1e-6),
        ("apfl", {"alpha": 1.0, **HELD}, 1e-6),
        ("oracle", {"groups": "archetype"}, 1e-6),
        ("fedproto", {"prototype_weight": 0.0, "prediction": "head"}, 0),
    ],
)
def test_it_is_local_training(run_rounds, get_personal, algorithm, fields, tolerance):
    found, expected = (
        get_personal(process, state)
        for process, state, _ in (run_rounds(algorithm, **ADAM, **fields), run_rounds("local_only", **ADAM))
    )
    for own, other in zip(found, expected, strict=True):
        assert_close(own, other, atol=tolerance, rtol=0)
    assert not np.allclose(expected[0][0], expected[1][0], atol=1e-3)


META = {"support_size": 1, "query_size": 2, "weighting": "equal"}
FEDERATED_TEACHERS = {
    "student": SGD["training"],
    "teacher_training": SGD["training"],
    "teacher": "cluster",
    "clustering": "random",
    "cluster_sizes": "equal",
    "num_clusters": 2,
}


@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [
        ("fedavg", {**SGD, **EQUAL, "participation": "bernoulli"}),
        ("fedcd", {**SGD, **ONE_SLOT, "cohort_size": 9, "weighting": "equal"}),
        ("amfl_p", {**META, "server_optimizer": "sgd"}),
        ("amfl_p", {**META, "server_optimizer": "adam"}),
        ("fedsikd", FEDERATED_TEACHERS),
    ],
)
def test_without_noise_and_clipping_it_is_the_algorithm_without_privacy(build_algorithm, data, algorithm, fields):
    huge = UpdatePrivacyConfig(epsilon=50.0, clip_norm=1e6, rounds=3)
    private, plain = (
        build_algorithm(algorithm, data, privacy=each, **fields) for each in (huge, UpdatePrivacyConfig())
    )
    (state, rows), (expected, expected_rows) = run(private, 3, silence(private.initialize())), run(plain, 3)
    assert_close(flatten_models(private, state), flatten_models(plain, expected), atol=1e-5)
    for row, other in zip(rows, expected_rows, strict=True):
        assert row["num_clipped"] == 0 and row["train_loss"] == pytest.approx(other["train_loss"])
        assert "epsilon_spent" in row.keys() - other.keys()


def flatten_models(process, state):
    models = [*process.get_models(state).values(), *process.get_teachers(state).values()]
    return [array for model in models for array in model]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [
        ("apfl", ADAM),
        ("partial", {**ADAM, "personal": "*/bias", "schedule": "head_first", "head_epochs": 2}),
        ("pfedme", SGD),
    ],
)
def test_compiled_training_is_the_same_but_for_rounding(
    build_algorithm, run_rounds, data, linear_spec, algorithm, fields
):
    _, expected, _ = run_rounds(algorithm, **fields)
    compiled = dataclasses.replace(linear_spec, compiled=True)
    state, _ = run(build_algorithm(algorithm, data, spec=compiled, **fields), 3)
    assert_close([*state.models, *state.kept.arrays], [*expected.models, *expected.kept.arrays], 2e-5, 2e-4)
