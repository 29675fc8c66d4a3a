"""The aggregator that an algorithm's settings ask for."""

from typing import Any

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregators import Aggregator, SumAggregator
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import build_private_aggregator


def build_aggregator(
    model_spec: ModelSpec, weights: Weights, clients: FederatedData, config: Any, seed: int
) -> Aggregator:
    """The weighted mean, a private sum, or one that sees single updates.

    Args:
      model_spec, weights: the model that is trained, and its first weights.
      clients: the federation.
      config: the algorithm's, with `privacy` or `aggregation` if it can have another aggregator than the mean.
      seed: of the noise.

    Raises:
      ConfigError: see `build_private_aggregator`.
    """
    privacy = getattr(config, "privacy", None)
    if privacy is not None and privacy.is_active:
        num_clients = len(clients.clients)
        expected_size = min(config.cohort_size or num_clients, num_clients)
        accounting = Accounting(privacy.delta, num_clients, expected_size, config.participation)
        return build_private_aggregator(model_spec, privacy, accounting, seed)
    return SumAggregator()
