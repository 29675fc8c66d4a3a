"""Settings of attacks: what is refused, and what each needs."""

import dataclasses

import pytest

from launch.settings.flag_fields import find_idle_flags, iterate_fields
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.settings.aggregation import ATTACKS, AggregationConfig, AttackConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig


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


@pytest.mark.parametrize(
    "given",
    [{"attack": "krum"}, {"attack_share": 1.0}, {"attack_scale": 0.0}, {"attack_deviation": 0.0}, {"attack_z": -1.0}],
)
def test_what_cannot_be_meant_is_refused(given):
    with pytest.raises(ConfigError) as raised:
        AttackConfig(**given)
    assert raised.value.field in given


@pytest.mark.parametrize("config_class", [FedAvgConfig, FedCDConfig, AMFLPConfig])
def test_private_updates_cannot_be_attacked(config_class):
    fields = {field.name for field in dataclasses.fields(config_class)}
    equal = {"client_weighting": "equal"} if "client_weighting" in fields else {"weighting": "equal"}
    privacy = UpdatePrivacyConfig(epsilon=3.0)
    config_class(privacy=privacy, aggregation=AggregationConfig(attacks=AttackConfig("alie", 0)), **equal)
    with pytest.raises(ConfigError, match="attack=alie: expected none with dp_epsilon=3"):
        config_class(privacy=privacy, aggregation=AggregationConfig(attacks=AttackConfig("alie")), **equal)
