"""The aggregator that an algorithm's settings ask for, and the memory that it needs if it sees single updates."""

import math
from collections.abc import Sequence
from typing import Any

import psutil

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregators import Aggregator, GroupwiseAggregator, SumAggregator
from tff_algos.rounds.factory_aggregation import FactoryAggregator, build_factory, load_own_aggregator
from tff_algos.rounds.list_aggregator import ListAggregator
from tff_algos.rounds.noise_sources import NoiseSource, SeededNoise, SystemNoise
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import AskedPrivateAggregator, PrivateAggregator, check_private_model
from tff_algos.rounds.robust_aggregation import (
    CentredClippingAggregator,
    GeometricMedianAggregator,
    KrumAggregator,
    MedianAggregator,
    TrimmedMeanAggregator,
    count_trimmed,
)
from tff_algos.seeds import derive_seed
from tff_algos.settings.aggregation import (
    CENTRED_CLIPPING,
    DP_TREE,
    GEOMETRIC_MEDIAN,
    KRUM,
    MEAN,
    MEDIAN,
    MULTI_KRUM,
    TRIMMED_MEAN,
    AggregationConfig,
    check_cohort,
)
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.update_privacy import UpdatePrivacyConfig
from tff_algos.weights import compute_model_bytes, is_float

# Of every update, in host and worker together: where it was made, on its way, as it arrives, and in the list; an
# aggregation of TFF sends the list to its clients once more.
LIST_COPIES, FACTORY_COPIES = 4, 8


def build_list_aggregator(
    config: AggregationConfig, shapes: Sequence[tuple[int, ...]], cohort_size: int, seed: int
) -> ListAggregator:
    """The aggregator, for any but the mean, which needs no list.

    Args:
      config: the settings.
      shapes: of the model's floating-point weights, in order.
      cohort_size: clients expected in a round.
      seed: the run's.

    Raises:
      ConfigError: the cohort is too small for it, or a user's own cannot be used.
    """
    if not config.is_listed:
        raise ValueError(f"{MEAN} is no aggregator of single updates")
    check_cohort(config, cohort_size)
    if config.is_own:
        return load_own_aggregator(config.aggregator, shapes)
    if config.is_factory:
        # TFF takes no negative seed.
        noise_seed = int(derive_seed(seed, "aggregator")[0]) & 0x7FFFFFFF
        factory = build_factory(config, shapes, cohort_size, noise_seed)
        # The noise of every group would begin with the same seed.
        return FactoryAggregator(factory, shapes, config.aggregator, needs_one_group=config.aggregator == DP_TREE)
    builders = {
        MEDIAN: MedianAggregator,
        TRIMMED_MEAN: lambda: TrimmedMeanAggregator(config.aggregator_trimmed_share),
        KRUM: lambda: KrumAggregator(config.aggregator_num_byzantine),
        MULTI_KRUM: lambda: KrumAggregator(config.aggregator_num_byzantine, config.aggregator_num_chosen),
        GEOMETRIC_MEDIAN: lambda: GeometricMedianAggregator(config.aggregator_iterations, config.aggregator_smoothing),
        CENTRED_CLIPPING: lambda: CentredClippingAggregator(
            config.aggregator_clip_radius, config.aggregator_iterations
        ),
    }
    return builders[config.aggregator]()


def estimate_memory(config: AggregationConfig, num_updates: int, model_bytes: int) -> int:
    """Bytes that the updates of a round need as a list.

    Args:
      config: the settings.
      num_updates: clients of a round, times the models that each trains.
      model_bytes: of one model.
    """
    if not config.is_listed:
        return 0
    is_plain = config.is_own or not config.is_factory  # a user's own is counted as the more frugal kind
    return (LIST_COPIES if is_plain else FACTORY_COPIES) * num_updates * model_bytes


def check_memory(config: AggregationConfig, num_updates: int, model_bytes: int) -> None:
    """Raises ConfigError if this machine's free memory cannot hold the updates of a round; arguments as above."""
    needed, free = estimate_memory(config, num_updates, model_bytes), psutil.virtual_memory().available
    if needed > free:
        expected = (
            f"{MEAN}, or a smaller cohort: {num_updates} updates of {model_bytes / 1e6:.1f} MB need about "
            f"{needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free"
        )
        raise ConfigError("aggregator", config.aggregator, expected)


def describe_memory(config: AggregationConfig, num_updates: int, model_bytes: int) -> str:
    """What a run with such an aggregator says of its memory before the first round; arguments as above."""
    needed_gb = estimate_memory(config, num_updates, model_bytes) / 1e9
    return f"aggregator  {config.aggregator} sees single updates: {num_updates} a round need about {needed_gb:.2g} GB"


def describe_trimming(config: AggregationConfig, cohort_size: int) -> str:
    """What else it says where the trimmed mean leaves nobody out, though it is to; "" elsewhere.

    Args:
      config: the settings.
      cohort_size: clients expected in a round; those of a cluster are fewer.
    """
    share = config.aggregator_trimmed_share
    if config.aggregator != TRIMMED_MEAN or not share or cohort_size < 3 or count_trimmed(share, cohort_size):
        return ""
    return (
        f"; of {cohort_size} clients a share of {share:g} at each end leaves nobody out, so it is the equal mean: give "
        f"--aggregator_trimmed_share={math.ceil(1000 / cohort_size) / 1000:g} or more"
    )


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
      ConfigError: see `check_private_model`, `Accounting.settle_noise`, `build_list_aggregator` and `check_memory`.
    """
    num_clients = len(clients.clients)
    # An estimate is enough: with Bernoulli draws a cohort may be larger.
    expected_size = min(getattr(config, "cohort_size", 0) or num_clients, num_clients)
    privacy, aggregation = getattr(config, "privacy", None), getattr(config, "aggregation", AggregationConfig())
    if privacy is not None and privacy.is_active:
        return build_private_aggregator(model_spec, config, num_clients, seed)
    if not aggregation.is_listed:
        return SumAggregator()
    shapes = tuple(array.shape for array in weights if is_float(array))
    num_updates = expected_size * getattr(config, "capacity", 1)  # models that a client may train in a round
    size = aggregation, num_updates, compute_model_bytes(weights)
    # Before anything is built, so that a run that cannot be held is refused and not killed.
    check_memory(*size)
    inner = build_list_aggregator(aggregation, shapes, expected_size, seed)
    return GroupwiseAggregator(inner, shapes, describe_memory(*size) + describe_trimming(aggregation, expected_size))


def build_private_aggregator(model_spec: ModelSpec, config: Any, num_clients: int, seed: int) -> PrivateAggregator:
    """A private sum, by the settings of an algorithm, for so many clients; errors as in `build_aggregator`."""
    privacy: UpdatePrivacyConfig = config.privacy
    check_private_model(model_spec)
    size = min(getattr(config, "cohort_size", 0) or num_clients, num_clients)
    is_asked = privacy.is_asked
    accounting = Accounting(
        privacy.delta, num_clients, size, config.participation, is_seen=is_asked, asked=privacy.accountant
    )
    kind: type[PrivateAggregator] = AskedPrivateAggregator if is_asked else PrivateAggregator
    noise: NoiseSource = SystemNoise() if is_asked else SeededNoise(seed)
    return kind(privacy, accounting, noise, accounting.settle_noise(privacy))
