"""Live runs whose updates are private: what else they must be. TensorFlow is imported when a model is checked.

The settings of the run alone are checked in `training_file`.
"""

import math
import pathlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from launch.runs import columns
from launch.runs.round_table import read_round_table
from launch.settings.run_config import RunConfig
from launch.settings.serving import ON_CLIENTS, ON_SERVER, ServeFlags
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    from launch.live.referee import Limits
    from models.model_spec import ModelSpec
    from tff_algos.rounds.private_aggregation import PrivateAggregator


def is_private_run(config: RunConfig) -> bool:
    """Whether noise is added to the sums of what clients send."""
    privacy = getattr(config.algorithm, "privacy", None)
    return privacy is not None and privacy.is_active


def check_private(config: RunConfig, flags: ServeFlags, given: Collection[str] = ()) -> None:
    """Raises ConfigError for what a private run cannot have, of flags that were given; before anybody is waited for."""
    for name in ("most_norm", "most_rejected"):
        if name in given and getattr(flags, name):
            expected = "0 with --dp_epsilon: updates are clipped, and whose are rejected must change nothing else"
            raise ConfigError(name, getattr(flags, name), expected)
    if flags.evaluate_on == ON_CLIENTS:
        raise ConfigError(
            "evaluate_on",
            flags.evaluate_on,
            f"{ON_SERVER} with --dp_epsilon: sums of what clients measure have no noise; give a test set by --data",
        )
    if flags.own_data and not config.resume:
        config.algorithm.check_clients(flags.most_seats)  # delta is to be below 1 / clients, of whom so many may come


def check_private_training(config: RunConfig, spec: "ModelSpec", num_clients: int) -> list[str]:
    """Lines on the noise of a new run.

    The process of the run would raise the same, but where clients bring their own data only when they have come.

    Args:
      config: of the run.
      spec: the model.
      num_clients: that there are, or are waited for.

    Raises:
      ConfigError: the model cannot be trained privately, or the budget allows no round with this noise.
    """
    from tff_algos.rounds.build_aggregator import build_private_aggregator

    aggregator = build_private_aggregator(spec, config.algorithm, num_clients, config.seed)
    return [] if config.resume else list(describe_noise(aggregator, spec))


def describe_noise(aggregator: "PrivateAggregator", spec: "ModelSpec") -> Iterator[str]:
    """Lines on the noise of a round's mean, beside the updates that it is to hide; a warning where it is the larger."""
    clip_norm, size = aggregator.config.clip_norm, aggregator.denominator
    num_weights = sum(math.prod(shape) for shape in spec.weight_shapes)
    deviation = aggregator.noise_multiplier * clip_norm / size
    norm = math.sqrt(num_weights) * deviation
    yield (
        f"privacy  a round's mean of {size:,} updates, each of norm {clip_norm:g} at most, gets noise of "
        f"{deviation:.2g} in each of {num_weights:,} weights, a norm of {norm:.2g} in all"
    )
    if norm > clip_norm:
        yield (
            f"warning  the noise is {norm / clip_norm:.2g} times as long as any update, and the model may learn nothing"
            "; more clients, a smaller model, fewer --rounds or a larger --dp_epsilon help"
        )


def describe_spent(config: RunConfig, folder: pathlib.Path) -> tuple[str, str]:
    """What the run has spent of its budget, as a finding."""
    names, rows = read_round_table(folder / columns.METRICS_FILE)
    spent = float(rows[-1][names.index(columns.EPSILON_SPENT)])
    privacy = config.algorithm.privacy
    return "privacy", f"epsilon {spent:.4g} of {privacy.epsilon:g} is spent, at delta {privacy.delta:g}"


def choose_limits(config: RunConfig, flags: ServeFlags) -> "Limits":
    """What a run takes of its clients; a private one takes all that is finite, since it clips.

    A client whose updates are private is not sent away either: whether others are asked in its place would tell.
    """
    from launch.live.referee import Limits

    if is_private_run(config):
        return Limits(math.inf)
    return Limits(flags.most_norm, flags.most_rejected, flags.least_answers)
