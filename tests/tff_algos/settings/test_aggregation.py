"""Settings of aggregators and attacks: what is refused, and what each needs."""

import dataclasses

import pytest

from launch.settings.flag_fields import find_idle_flags, iterate_fields
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.settings.aggregation import (
    AGGREGATORS,
    ATTACKS,
    AggregationConfig,
    AttackConfig,
    check_cohort,
    check_no_privacy,
)
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, group
from tff_algos.settings.update_privacy import UpdatePrivacyConfig


@dataclasses.dataclass(frozen=True)
class Config(AlgorithmConfig):
    aggregation: AggregationConfig = group(AggregationConfig, flag_prefix="")


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


def test_multi_krum_cannot_choose_more_than_there_are_and_a_smoke_run_has_clients_enough():
    with pytest.raises(ConfigError, match="aggregator_num_chosen=6: expected at most the 5 clients"):
        check_cohort(AggregationConfig("multi_krum", aggregator_num_chosen=6), 5)
    smoke = Config(AggregationConfig("multi_krum", aggregator_num_byzantine=4, aggregator_num_chosen=9))
    check_cohort(smoke.shrink_to_smoke().aggregation, 3)


@pytest.mark.parametrize(
    ("attack", "used"),
    [
        ("none", set()),
        ("label_flip", {"attack_share"}),
        ("sign_flip", {"attack_share", "attack_scale"}),
        ("gaussian", {"attack_share", "attack_deviation"}),
        ("alie", {"attack_share", "attack_z"}),
    ],
)
def test_what_an_attack_does_not_use_is_idle(attack, used):
    config = FedAvgConfig(aggregation=AggregationConfig(attacks=AttackConfig(attack)))
    flags = {field.name for field in iterate_fields(config) if field.name.startswith("attack")}
    assert flags - {"attack"} - set(find_idle_flags(config)) == set(used)


def test_who_sends_another_update():
    attacks = [AttackConfig(), AttackConfig("alie", 0), *map(AttackConfig, ATTACKS)]
    assert [attack.is_active for attack in attacks] == [False] * 2 + [True] * 4
    assert [attack.forges_updates for attack in attacks] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("config_class", [FedAvgConfig, FedCDConfig, AMFLPConfig])
def test_private_updates_cannot_be_attacked(config_class):
    fields = {field.name for field in dataclasses.fields(config_class)}
    equal = {"client_weighting": "equal"} if "client_weighting" in fields else {"weighting": "equal"}
    privacy = UpdatePrivacyConfig(epsilon=3.0)
    config_class(privacy=privacy, aggregation=AggregationConfig(attacks=AttackConfig("alie", 0)), **equal)
    with pytest.raises(ConfigError, match="attack=alie: expected none with dp_epsilon=3"):
        config_class(privacy=privacy, aggregation=AggregationConfig(attacks=AttackConfig("alie")), **equal)
