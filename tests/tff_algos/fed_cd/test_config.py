"""Settings of FedCD: milestones and what is refused."""

import pytest

from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.settings.config_fields import ConfigError


def test_milestones_double_the_slots():
    config = FedCDConfig(milestones=(5, 15, 25))
    assert config.capacity == 8
    assert [config.count_slots(round_num) for round_num in (1, 5, 6, 15, 16, 99)] == [1, 1, 2, 2, 4, 8]


def test_without_milestones_there_is_one_model():
    assert FedCDConfig(milestones=()).capacity == 1


@pytest.mark.parametrize("milestones", [(5, 5), (15, 5), (0, 5), (-1,)])
def test_milestones_that_fall_or_are_no_rounds_are_refused(milestones):
    with pytest.raises(ConfigError, match="expected rounds in ascending order with commas, such as 5,15,25"):
        FedCDConfig(milestones=milestones)


def test_milestones_are_few():
    with pytest.raises(ConfigError, match="at most 10 rounds"):
        FedCDConfig(milestones=tuple(range(1, 12)))


def test_milestones_lie_within_the_run():
    FedCDConfig(milestones=(5, 15)).check_run(15)
    with pytest.raises(ConfigError, match="milestones=5,15: expected rounds up to the last one, --rounds=14"):
        FedCDConfig(milestones=(5, 15)).check_run(14)


def test_a_smoke_run_clones_once_if_at_all():
    config = FedCDConfig(cohort_size=15).shrink_to_smoke()
    assert (config.milestones, config.cohort_size, config.training.epochs) == ((1,), 3, 1)
    assert FedCDConfig(milestones=()).shrink_to_smoke().milestones == ()
