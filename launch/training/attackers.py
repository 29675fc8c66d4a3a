"""Who attacks in a run, and the labels that they train on. Imports no TensorFlow."""

from datasets.client_files import flip_labels
from datasets.example_format import LABEL_KINDS
from datasets.federated_data import FederatedData
from launch.settings.run_config import RunConfig
from tff_algos.settings.aggregation import LABEL_FLIP, AggregationConfig, AttackConfig
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.attackers import draw_attackers


def find_attacks(config: RunConfig) -> AttackConfig:
    """The attack of a run's settings; that of an algorithm which has none is inactive."""
    aggregation = getattr(config.algorithm, "aggregation", None)
    return aggregation.attacks if isinstance(aggregation, AggregationConfig) else AttackConfig()


def find_attackers(config: RunConfig, data: FederatedData) -> tuple[int, ...]:
    """Indices of the clients that attack, ascending."""
    return tuple(draw_attackers(find_attacks(config), len(data.clients), config.seed).tolist())


def check_attack(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if labels are to be flipped that are no classes."""
    attacks, kind = find_attacks(config), LABEL_KINDS[data.format.labels.task]
    if attacks.is_active and attacks.attack == LABEL_FLIP and not (kind.is_by_class and data.format.num_classes):
        raise ConfigError("attack", LABEL_FLIP, f"another one, since an example of {kind.title} has not one class")


def flip_attackers_labels(config: RunConfig, data: FederatedData) -> FederatedData:
    """The federation that the algorithm gets: with other labels of the attackers, if they flip theirs."""
    flips = find_attacks(config).attack == LABEL_FLIP
    return flip_labels(data, find_attackers(config, data)) if flips else data
