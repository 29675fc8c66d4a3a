"""How models and updates travel: rounded to fewer bits, both ways, or as they are."""

import dataclasses
import itertools
from collections.abc import Sequence

import tensorflow as tf

from models.model_spec import ModelSpec
from tff_algos.client.compression import compress, compress_models, compute_sent_bytes, find_compressed
from tff_algos.late_computation import OUTSIDE_GRAPHS
from tff_algos.protocol import Weights
from tff_algos.seeds import derive_seed
from tff_algos.settings.compression import CompressionConfig
from tff_algos.weights import is_float


@dataclasses.dataclass(frozen=True, eq=False)
class Transport:
    """What one side gets of what the other sends.

    Attributes:
      config: bits and rounding.
      is_compressed: see `compression.find_compressed`; empty where nothing is rounded.
      seed: the run's, of what the host rounds.
      model_bytes: bytes of a model or an update on the wire.
      is_update_compressed: one a tensor of an update, which has the floating-point weights only.
    """

    config: CompressionConfig
    is_compressed: tuple[bool, ...]
    seed: int = dataclasses.field(metadata=OUTSIDE_GRAPHS)
    model_bytes: int
    is_update_compressed: tuple[bool, ...]

    def send(self, stacked: Weights, round_num: int) -> Weights:
        """Models stacked along axis 0, as the clients have them after round `round_num`."""
        seed = derive_seed(self.seed, "compression", round_num)
        return compress_models(stacked, self.is_compressed, self.config, seed)

    def receive(self, deltas: Sequence[tf.Tensor], seed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """An update as the server has it, in any graph; `seed` is its client's."""
        return compress(deltas, self.is_update_compressed, self.config, seed)


def build_transport(
    model_spec: ModelSpec,
    weights: Weights,
    seed: int,
    config: CompressionConfig | None = None,
    travels: Sequence[bool] | None = None,
) -> Transport:
    """The transport of a model of these weights; without a config, nothing is rounded.

    `travels` says which of the model's weights these are; None: all.
    """
    config = config or CompressionConfig()
    is_compressed = (False,) * len(weights)
    if config.is_active:
        is_compressed = find_compressed(model_spec)
        is_compressed = is_compressed if travels is None else tuple(itertools.compress(is_compressed, travels))
    pairs = zip(weights, is_compressed, strict=True)
    of_update = tuple(is_rounded for array, is_rounded in pairs if is_float(array))
    return Transport(config, is_compressed, seed, compute_sent_bytes(weights, is_compressed, config), of_update)
