"""More clusters or devices than there are clients are refused, where the setting does something."""

import pytest

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fl_hc.config import FLHCConfig
from tff_algos.settings.config_fields import ConfigError

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
