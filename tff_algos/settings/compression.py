"""How models and updates are compressed on their way; shared by all algorithms that do. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import ConfigError, Needs, check, setting

UNCOMPRESSED_BITS = 32
MIN_BITS, MAX_BITS = 2, 16
ROUNDINGS = ("nearest", "stochastic")


@dataclasses.dataclass(frozen=True)
class CompressionConfig:
    """Uniform quantization of every weight tensor (`tff_algos/client/compression.py`)."""

    bits: int = setting(
        UNCOMPRESSED_BITS,
        f"Bits of a weight that travels, {MIN_BITS} to {MAX_BITS}; {UNCOMPRESSED_BITS}: no compression.",
    )
    rounding: str = setting(
        "nearest",
        "Rounding to the levels; stochastic is unbiased.",
        choices=ROUNDINGS,
        needs=Needs("bits", lambda bits: bits < UNCOMPRESSED_BITS, f"fewer than {UNCOMPRESSED_BITS} bits"),
    )

    def __post_init__(self):
        check(self)
        if self.is_active and not MIN_BITS <= self.bits <= MAX_BITS:
            expected = f"{MIN_BITS} to {MAX_BITS}, or {UNCOMPRESSED_BITS} for no compression"
            raise ConfigError("bits", self.bits, expected)

    @property
    def is_active(self) -> bool:
        """Whether anything is rounded."""
        return self.bits != UNCOMPRESSED_BITS
