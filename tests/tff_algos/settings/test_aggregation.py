"""Settings of aggregators: what is refused, what each needs, and the flags that they become."""

import dataclasses

import pytest

from launch.settings.flag_fields import find_idle_flags, iterate_fields
from tff_algos.settings.aggregation import (
    AGGREGATORS,
    AggregationConfig,
    check_cohort,
    check_no_privacy,
)
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, group
from tff_algos.settings.update_privacy import UpdatePrivacyConfig


@dataclasses.dataclass(frozen=True)
class Config(AlgorithmConfig):
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")


def test_the_flags_are_called_as_the_fields():
    names = [field.name for field in iterate_fields(Config(), "fedavg_")]
    assert names[:3] == ["aggregator", "aggregator_trimmed_share", "aggregator_num_byzantine"]


def test_what_the_aggregator_does_not_use_is_idle():
    def find_used(aggregator):
        config = Config(AggregationConfig(aggregator))
        names = {field.name for field in iterate_fields(config, "") if not field.name.startswith("attack")}
        return names - set(find_idle_flags(config, "")) - {"aggregator"}

    assert find_used("mean") == find_used("median") == find_used("robust") == find_used("my_module:FACTORY") == set()
    assert find_used("multi_krum") == {"aggregator_num_byzantine", "aggregator_num_chosen"}
    assert find_used("centred_clipping") == {"aggregator_iterations", "aggregator_clip_radius"}
    assert find_used("dp_tree") == {"aggregator_clip_norm", "aggregator_noise_multiplier"}


def test_kinds_of_aggregators():
    assert [name for name in AGGREGATORS if not AggregationConfig(name).is_listed] == ["mean"]
    own = AggregationConfig("my_package.my_module:FACTORY")
    assert (own.is_own, own.is_listed, own.is_factory) == (True, True, False)
    assert AggregationConfig("zeroing").is_factory and not AggregationConfig("krum").is_factory


@pytest.mark.parametrize(
    "given",
    [
        {"aggregator": "average"},
        {"aggregator": "module:"},
        {"aggregator_trimmed_share": 0.5},
        {"aggregator_clip_radius": 0.0},
        {"aggregator_num_byzantine": -1},
    ],
)
def test_what_cannot_be_meant_is_refused(given):
    with pytest.raises(ConfigError) as raised:
        AggregationConfig(**given)
    assert raised.value.field == next(iter(given))


def test_private_updates_are_summed_and_nothing_else():
    private = UpdatePrivacyConfig(epsilon=2.0)
    check_no_privacy(AggregationConfig(), private)
    check_no_privacy(AggregationConfig("median"), UpdatePrivacyConfig())
    with pytest.raises(ConfigError, match="aggregator=median: expected mean with dp_epsilon=2"):
        check_no_privacy(AggregationConfig("median"), private)


@pytest.mark.parametrize(("num_clients", "largest_f"), [(3, 0), (4, 0), (5, 1), (9, 3)])
def test_krum_needs_a_cohort_of_2_f_and_3(num_clients, largest_f):
    for name in ("krum", "multi_krum"):
        check_cohort(AggregationConfig(name, aggregator_num_byzantine=largest_f), num_clients)
        with pytest.raises(ConfigError, match=f"at most {largest_f} with {num_clients} clients a round"):
            check_cohort(AggregationConfig(name, aggregator_num_byzantine=largest_f + 1), num_clients)
    with pytest.raises(ConfigError, match="cohorts of at least 3 clients"):
        check_cohort(AggregationConfig("krum", aggregator_num_byzantine=0), 2)
    check_cohort(AggregationConfig("median"), 1)


def test_multi_krum_cannot_choose_more_than_there_are():
    with pytest.raises(ConfigError, match="aggregator_num_chosen=6: expected at most the 5 clients"):
        check_cohort(AggregationConfig("multi_krum", aggregator_num_chosen=6), 5)


def test_a_smoke_run_has_clients_enough_for_krum():
    smoke = Config(AggregationConfig("multi_krum", aggregator_num_byzantine=4, aggregator_num_chosen=9))
    check_cohort(smoke.shrink_to_smoke().aggregation, 3)
