"""The experiments of asynchronous FL train as the paper prints, with what stands beside it on an equal footing."""

import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.settings.run_config import flag_values, shared_fields

WEIGHTINGS = {"equal": ("equal", 1.0), "fresh": ("age_aware", 0.5), "old": ("age_aware", 2.0)}
CASES = ("iid", "shards")


def resolve(name):
    return flag_values(resolve_experiment(get_experiment(f"async_periodic/{name}")))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("policy", ["random", "significance", "frequency"])
def test_runs_of_a_figure_differ_in_data_policy_weights_and_waiting_alone(case, policy):
    first = resolve("async_periodic_mnist_iid_random_equal")
    assert (first["num_clients"], first["rounds"], first["max_scheduled"]) == (100, 40, 30)
    assert (first["waiting"], first["period_fraction"]) == ("periodic", 0.25)
    shared = first | {"partition": case, "scheduling": policy}
    for kind, (weighting, gamma) in WEIGHTINGS.items():
        expected = shared | {"weighting": weighting, "gamma": gamma}
        assert resolve(f"async_periodic_mnist_{case}_{policy}_{kind}") == expected
    expected = shared | {"waiting": "synchronous"}
    assert resolve(f"async_periodic_mnist_{case}_{policy}_synchronous") == expected
    expected |= {"proximal_weight": 0.0}  # section II-A, where Eq. (8) is not in the loss
    assert resolve(f"async_periodic_mnist_{case}_{policy}_synchronous_plain") == expected


def test_the_learning_rates_are_the_printed_ones():
    config = resolve_experiment(get_experiment("async_periodic_mnist_iid_random_equal"))
    rates = [config.algorithm.training.round_learning_rate(index) for index in (1, 20, 21, 40)]
    assert rates == [0.01, 0.01, 0.005, 0.005]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("algo", ["fed_async", "buffered"])
def test_servers_that_never_wait_train_as_the_periodic_one(algo, case):
    periodic, other = resolve(f"async_periodic_mnist_{case}_random_equal"), resolve(f"{algo}_mnist_{case}")
    shared = {field.name for field in shared_fields()} - {"algo", "rounds"}
    assert {name for name in shared if periodic[name] != other[name]} == set()
    for name in ("steps", "optimizer", "learning_rate", "learning_rate_decay", "proximal_weight", "speed"):
        assert other[name] == periodic[name], name
