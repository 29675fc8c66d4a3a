"""Limits of config fields, and of numbers of clients."""

import dataclasses

import numpy as np
import pytest

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.settings.aggregation import AggregationConfig, AttackConfig
from tff_algos.settings.asynchronous import TrainingTimesConfig
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, Setting, format_value, setting
from tff_algos.settings.local_training import LocalTrainingConfig


@pytest.mark.parametrize(
    ("limits", "good", "bad"),
    [
        ({"minimum": 0}, [0, 1.5], [-1, 10**400, float("nan"), float("inf")]),
        ({"above": 0, "maximum": 1}, [0.1, 1], [0, 1.1]),
        ({"below": 1}, [0.99], [1]),
        ({"choices": ("a", "b")}, ["a"], ["c", 1]),
    ],
)
def test_limits_admit_what_they_say(limits, good, bad):
    limit = Setting("help", **limits)
    assert all(limit.admits(value) for value in good)
    assert not any(limit.admits(value) for value in bad)


def test_an_error_names_field_value_and_expectation():
    with pytest.raises(ConfigError, match=r"^rate=2: expected a number above 0 and at most 1$") as caught:
        Typed(rate=2)
    assert (caught.value.field, caught.value.value) == ("rate", 2)


@pytest.mark.parametrize("config", [FedAvgConfig, FedSiKDConfig, FLHCConfig, LocalTrainingConfig])
def test_every_field_of_a_config_has_a_help_text_or_is_a_group(config):
    config()
    for field in dataclasses.fields(config):
        assert "flag_prefix" in field.metadata or field.metadata["setting"].help_text.endswith("."), field.name


NO_STEPS = r"^learning_rate_steps=.*: expected rounds in ascending order with commas"


@pytest.mark.parametrize(
    ("config_class", "values", "message"),
    [
        (
            FedSiKDConfig,
            {"clustering": "random", "cluster_sizes": "equal", "num_clusters": 0},
            "clusters of equal sizes",
        ),
        (
            LocalTrainingConfig,
            {"optimizer": "adam", "momentum": 0.9},
            r"^momentum=0\.9: expected 0 with the optimizer adam",
        ),
        (LocalTrainingConfig, {"learning_rate_steps": (25, 25)}, NO_STEPS),
        (LocalTrainingConfig, {"learning_rate_steps": (50, 25)}, NO_STEPS),
        (LocalTrainingConfig, {"learning_rate_steps": (0,)}, NO_STEPS),
        (
            LocalTrainingConfig,
            {"learning_rate_decay": 0.5, "learning_rate_steps": (25,)},
            r"^learning_rate_steps=25: expected none beside learning_rate_decay=0\.5",
        ),
    ],
)
def test_settings_that_contradict_each_other(config_class, values, message):
    with pytest.raises(ConfigError, match=message):
        config_class(**values)


@pytest.mark.parametrize(
    ("config_class", "field", "value"),
    [
        (AggregationConfig, "aggregator", "average"),
        (AggregationConfig, "aggregator", "module:"),
        (AggregationConfig, "aggregator_trimmed_share", 0.5),
        (AggregationConfig, "aggregator_clip_radius", 0.0),
        (AggregationConfig, "aggregator_num_byzantine", -1),
        (AttackConfig, "attack", "krum"),
        (AttackConfig, "attack_share", 1.0),
        (AttackConfig, "attack_scale", 0.0),
        (AttackConfig, "attack_deviation", 0.0),
        (AttackConfig, "attack_z", -1.0),
        (TrainingTimesConfig, "speed", "fast"),
        (TrainingTimesConfig, "max_training_s", 0.0),
        (TrainingTimesConfig, "dropout", 1.0),
        (TrainingTimesConfig, "availability_cycle_s", -1.0),
    ],
)
def test_what_cannot_be_meant_is_refused(config_class, field, value):
    with pytest.raises(ConfigError) as raised:
        config_class(**{field: value})
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("config_class", "values"),
    [
        (FedSiKDConfig, {"clustering": "random", "num_clusters": 0}),
        (LocalTrainingConfig, {"optimizer": "sgd", "momentum": 0.9}),
        (LocalTrainingConfig, {"steps": 2**31 - 1, "learning_rate": 3.4e38}),  # the largest and the smallest numbers
        (LocalTrainingConfig, {"learning_rate": 1.2e-38, "proximal_weight": 0.0}),
    ],
)
def test_settings_that_fit(config_class, values):
    config_class(**values)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        (
            {"learning_rate": 0.01, "learning_rate_decay": 0.5, "learning_rate_decay_rounds": 20},
            {1: 0.01, 20: 0.01, 21: 0.005, 40: 0.005, 41: 0.0025},
        ),
        ({"learning_rate_steps": (25, 50)}, {1: 0.1, 25: 0.1, 26: 0.01, 50: 0.01, 51: 0.001, 99: 0.001}),
        ({"learning_rate_steps": (25, 50), "learning_rate_step_factor": 0.5}, {51: 0.025}),
    ],
)
def test_the_learning_rate_of_each_round_by_hand(settings, rates):
    config = LocalTrainingConfig(**{"learning_rate": 0.1, **settings})
    assert {number: config.round_learning_rate(number) for number in rates} == pytest.approx(rates)


@dataclasses.dataclass(frozen=True)
class Typed(AlgorithmConfig):
    rate: float = setting(0.1, "A rate.", above=0, maximum=1)
    size: int = setting(3, "A size.", minimum=0)
    is_on: bool = setting(False, "A switch.")
    name: str = setting("", "A name.")
    kind: str = setting("a", "A kind.", choices=("a", "b"))
    rounds: tuple[int, ...] = setting((1, 2), "Rounds.", minimum=0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": "0.1"}, "rate='0.1': expected a number above 0 and at most 1, not str"),
        ({"rate": None}, "rate=None: expected a number above 0 and at most 1, not NoneType"),
        ({"rate": True}, "rate=True: expected a number above 0 and at most 1, not bool"),
        ({"rate": float("nan")}, "rate=nan: expected a number above 0 and at most 1"),
        ({"size": 2.5}, "size=2.5: expected an integer at least 0, not float"),
        ({"size": "3"}, "size='3': expected an integer at least 0, not str"),
        ({"size": -1}, "size=-1: expected a number at least 0"),
        ({"is_on": 1}, "is_on=1: expected True or False, not int"),
        ({"is_on": "false"}, "is_on='false': expected True or False, not str"),
        ({"name": 3}, "name=3: expected text, not int"),
        ({"kind": 3}, "kind=3: expected one of a, b"),
        ({"rounds": [1, 2]}, "rounds=[1, 2]: expected a tuple of integers, not list"),
        ({"rounds": (1, 2.5)}, "rounds=(1, 2.5): expected a tuple of integers, not float"),
    ],
)
def test_a_value_of_another_type_is_refused(values, message):
    with pytest.raises(ConfigError) as caught:
        Typed(**values)
    assert str(caught.value) == message


def test_numbers_of_numpy_are_numbers():
    config = Typed(rate=np.float32(0.5), size=np.int64(4), rounds=(np.int32(3),))
    assert (config.rate, config.size, config.rounds) == (0.5, 4, (3,))
    assert Typed(rate=1).rate == 1
    as_flags = [format_value(value) for value in (config.rate, config.size, config.rounds)]
    assert as_flags == [0.5, 4, "3"] and [type(value) for value in as_flags] == [float, int, str]  # as JSON takes them


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"steps": 2**31}, "at most 2147483647"),
        ({"learning_rate": 1e39}, "above 0 and at most 3.4028234e+38"),
        ({"learning_rate": 1e-45}, "above 0 and at least 1.1754944e-38"),
        ({"learning_rate_steps": (3, 2**31)}, "5,15,25, at most 2147483647"),
    ],
)
def test_numbers_that_tensorflow_cannot_hold_are_refused(values, expected):
    with pytest.raises(ConfigError) as caught:
        LocalTrainingConfig(**values)
    assert str(caught.value).endswith(expected)


# FL+HC looks at its number of clusters only where no distance cuts the tree.
CUT_BY_NUMBER = {"distance_multiple": 0.0, "num_clusters": 4}


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (FedSiKDConfig(num_clusters=4), 4),
        (FedSiKDConfig(clustering="random", num_clusters=4), 4),
        (FedSiKDConfig(clustering="random", cluster_sizes="equal", num_clusters=4), 4),
        (FLHCConfig(**CUT_BY_NUMBER), 4),
        (FedCDConfig(cohort_size=4), 4),
    ],
)
def test_as_many_as_clients_are_taken_and_no_more(config, most):
    config.check_clients(most)
    with pytest.raises(ConfigError, match=f"={most}: expected at most the {most - 1} clients there are"):
        config.check_clients(most - 1)


@pytest.mark.parametrize(
    "config",
    [FedSiKDConfig(num_clusters=0), FLHCConfig(num_clusters=4), FLHCConfig(**CUT_BY_NUMBER, distance_threshold=1.0)],
)
def test_a_number_that_does_nothing_is_not_looked_at(config):
    config.check_clients(1)


def test_a_smoke_run_has_clusters_for_its_few_clients():
    for config in (FedSiKDConfig(num_clusters=10), FLHCConfig(distance_multiple=0.0, num_clusters=10)):
        config.shrink_to_smoke().check_clients(3)
