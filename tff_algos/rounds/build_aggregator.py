"""The aggregator that an algorithm's settings ask for."""

from typing import Any

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregators import Aggregator, SumAggregator
from tff_algos.rounds.build_list_aggregator import (
    build_list_aggregator,
    check_memory,
    describe_memory,
    describe_trimming,
)
from tff_algos.rounds.groupwise_aggregator import GroupwiseAggregator
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import build_private_aggregator
from tff_algos.settings.aggregation import AggregationConfig
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.weights import is_float


def build_aggregator(
    model_spec: ModelSpec, weights: Weights, clients: FederatedData, config: Any, seed: int
) -> Aggregator:
    """The weighted mean, a private sum, or one that sees single updates.

    Args:
      model_spec, weights: the model that is trained, and its first weights.
      clients: the federation.
      config: the algorithm's; of `privacy`, `aggregation`, `cohort_size` and `participation` those that it has.
      seed: of the noise.

    Raises:
      ConfigError: see `build_private_aggregator`, `build_list_aggregator` and `check_memory`.
    """
    num_clients = len(clients.clients)
    expected_size = min(getattr(config, "cohort_size", 0) or num_clients, num_clients)
    privacy, aggregation = getattr(config, "privacy", None), getattr(config, "aggregation", AggregationConfig())
    if privacy is not None and privacy.is_active:
        accounting = Accounting(privacy.delta, num_clients, expected_size, config.participation)
        return build_private_aggregator(model_spec, privacy, accounting, seed)
    if not aggregation.is_listed:
        return SumAggregator()
    shapes = tuple(array.shape for array in weights if is_float(array))
    num_updates = expected_size * getattr(config, "capacity", 1)  # models that a client may train in a round
    size = aggregation, num_updates, compute_model_bytes(weights)
    check_memory(*size)
    inner = build_list_aggregator(aggregation, shapes, expected_size, seed)
    return GroupwiseAggregator(inner, shapes, describe_memory(*size) + describe_trimming(aggregation, expected_size))
