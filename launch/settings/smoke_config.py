"""What a smoke run makes of a run's config. Imports no TensorFlow."""

import dataclasses
from typing import Any

from datasets.partition_settings import NO_VARIANT, VALIDATION_POOL
from tff_algos.settings.config_fields import shrink


def shrink_to_smoke(config: Any) -> Any:
    """The same `RunConfig` on few random clients, with as little local work as it can do."""
    shrunk = shrink(dataclasses.replace(config, validation_pool=VALIDATION_POOL))  # a small pool needs more examples
    labels_per_client = config.labels_per_client
    if config.partition == "shards":  # as many shards among fewer clients, so that no label is without one
        labels_per_client = -(-config.num_clients * labels_per_client // shrunk.num_clients)
    # One client a group of a variant, as one an archetype.
    num_clients = shrunk.num_clients if config.variant == NO_VARIANT else config.variant_groups
    return dataclasses.replace(
        shrunk,
        num_clients=num_clients,
        labels_per_client=labels_per_client,
        clients_per_archetype=1,
        algorithm=config.algorithm.shrink_to_smoke(),
    )
