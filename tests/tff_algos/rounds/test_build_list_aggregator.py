"""Which aggregator the settings give, and the memory of a cohort's updates."""

import psutil
import pytest

from tff_algos.settings.aggregation import AGGREGATORS, TFF_FACTORIES, AggregationConfig
from tff_algos.settings.config_fields import ConfigError


# Those of TFF take seconds, and are built in `test_factory_aggregation.py`.
@pytest.mark.parametrize("name", [name for name in AGGREGATORS if name not in TFF_FACTORIES])
def test_every_name_gives_an_aggregator(name, tff_runtime):
    from tff_algos.rounds.build_aggregator import build_list_aggregator

    if name == "mean":
        with pytest.raises(ValueError, match="mean is no aggregator of single updates"):
            build_list_aggregator(AggregationConfig(name), [(2,)], 5, 0)
    else:
        aggregator = build_list_aggregator(AggregationConfig(name), [(2,)], 5, 0)
        assert isinstance(aggregator.uses_weights, bool)


def test_krum_of_a_cohort_that_is_too_small_is_refused(tff_runtime):
    from tff_algos.rounds.build_aggregator import build_list_aggregator

    with pytest.raises(ConfigError, match="aggregator_num_byzantine=1: expected at most 0 with 4 clients"):
        build_list_aggregator(AggregationConfig("krum"), [(2,)], 4, 0)


def test_memory_is_said_and_refused_if_it_is_not_there(tff_runtime, monkeypatch):
    from tff_algos.rounds.build_aggregator import check_memory, describe_memory, estimate_memory

    median, zeroing = AggregationConfig("median"), AggregationConfig("zeroing")
    assert estimate_memory(AggregationConfig(), 100, 10**6) == 0
    assert estimate_memory(median, 100, 10**6) == 400 * 10**6
    assert estimate_memory(zeroing, 100, 10**6) == 800 * 10**6
    assert "100 a round need about 0.4 GB" in describe_memory(median, 100, 10**6)
    memory = psutil.virtual_memory()._replace(available=500 * 10**6)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    check_memory(median, 100, 10**6)
    check_memory(AggregationConfig(), 10**6, 10**6)
    with pytest.raises(
        ConfigError, match=r"aggregator=zeroing.*100 updates of 1.0 MB need about 0.8 GB.*0.5 GB are free"
    ):
        check_memory(zeroing, 100, 10**6)


@pytest.mark.parametrize(
    ("share", "num_clients", "least"),
    [(0.1, 5, "0.2"), (0.1, 9, "0.112"), (0.1, 10, ""), (0.25, 3, "0.334"), (0.0, 5, ""), (0.1, 2, "")],
)
def test_a_trimmed_mean_that_leaves_nobody_out_is_said(tff_runtime, share, num_clients, least):
    """floor(0.1 * 5) is 0: an attacker among five clients counted whole under the default share."""
    from tff_algos.rounds.build_aggregator import describe_trimming
    from tff_algos.rounds.robust_aggregation import count_trimmed

    said = describe_trimming(AggregationConfig("trimmed_mean", aggregator_trimmed_share=share), num_clients)
    assert bool(said) == bool(least) and (not least or said.endswith(f"--aggregator_trimmed_share={least} or more"))
    assert not least or count_trimmed(float(least), num_clients) == 1
    assert describe_trimming(AggregationConfig("median"), 5) == ""
