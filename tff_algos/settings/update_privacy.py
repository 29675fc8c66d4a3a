"""How updates are kept private: clipping, noise and the budget; shared by all algorithms that can. No TensorFlow.

What is done with these settings is in `tff_algos/rounds/private_aggregation.py`.
"""

import dataclasses
from typing import Any, Self

from datasets.federated_data import DeviceProfiles
from tff_algos.settings.config_fields import (
    STRATIFIED,
    AlgorithmConfig,
    ConfigError,
    Needs,
    check,
    needs_value,
    setting,
)

PLD, RDP = ACCOUNTANTS = ("pld", "rdp")
FIXED, ADAPTIVE = CLIPPINGS = ("fixed", "adaptive")
IF_PRIVATE = Needs("epsilon", lambda epsilon: epsilon > 0, "--{flag}=<budget>")
IF_ADAPTIVE = needs_value("clipping", ADAPTIVE)


@dataclasses.dataclass(frozen=True)
class UpdatePrivacyConfig:
    """Differential privacy of the updates: each is clipped, and a trusted server adds Gaussian noise to their sum.

    `rounds`, which the budget is to last for, has no flag of its own: those of the run. Nor has `is_asked`: clients are
    asked over a network, so that who takes part is seen, and noise must be such that nobody can draw it again.
    """

    epsilon: float = setting(
        0.0,
        "Budget of the whole run, updates and all else that it releases; no round begins that would exceed it. 0: the "
        "updates are not private.",
        minimum=0,
    )
    delta: float = setting(1e-5, "Delta of the budget, below 1 / clients.", above=0, below=1, needs=IF_PRIVATE)
    noise_multiplier: float = setting(
        0.0,
        "Deviation of the noise on a sum, in clip norms; 0: the least with which the budget lasts for --rounds.",
        minimum=0,
        needs=IF_PRIVATE,
    )
    accountant: str = setting(
        PLD,
        "What composes the rounds: pld, privacy loss distributions, where they apply; or rdp, Rényi divergences, which "
        "say about a tenth more than was spent.",
        choices=ACCOUNTANTS,
        needs=IF_PRIVATE,
        of_old_runs=RDP,
    )
    clipping: str = setting(
        FIXED,
        "fixed: updates are clipped to clip_norm; adaptive: to a quantile of their norms (Andrew et al. 2021).",
        choices=CLIPPINGS,
        needs=IF_PRIVATE,
    )
    clip_norm: float = setting(
        1.0,
        "Largest L2 norm of a client's update (S or C); if adaptive, in the first round.",
        above=0,
        needs=IF_PRIVATE,
    )
    clip_quantile: float = setting(
        0.5,
        "Share of the clients that adaptive clipping leaves whole (gamma).",
        minimum=0,
        maximum=1,
        needs=IF_ADAPTIVE,
    )
    clip_learning_rate: float = setting(0.2, "Rate of adaptive clipping (eta_C).", above=0, needs=IF_ADAPTIVE)
    clip_count_noise: float = setting(
        0.05,
        "Deviation of the noise on the number of clients that were left whole, as a share of a mean cohort (sigma_b).",
        above=0,
        needs=IF_ADAPTIVE,
    )
    rounds: int = 20
    is_asked: bool = False

    def __post_init__(self):
        check(self)

    @property
    def is_active(self) -> bool:
        """Whether the updates are private."""
        return self.epsilon > 0


def check_reachable(privacy: UpdatePrivacyConfig, profiles: DeviceProfiles) -> None:
    """Raises ConfigError if a private run draws its cohorts among devices that cannot be reached always.

    What sampling adds to privacy is known for draws in which every client has the same chance.
    """
    if privacy.is_active and (profiles.windows is not None or (profiles.availability < 1).any()):
        expected = "0, or devices that are never away: the bounds need the same chance for every client"
        raise ConfigError("dp_epsilon", privacy.epsilon, expected)


def check_equal_weights(privacy: UpdatePrivacyConfig, field: str, weighting: str) -> None:
    """Raises ConfigError, naming the field, unless a private run weights its clients equally.

    A weight that depends on data, such as the number of examples, would be released without noise, and would scale what
    a single client can change.
    """
    if privacy.is_active and weighting != "equal":
        raise ConfigError(field, weighting, f"equal with dp_epsilon={privacy.epsilon:g}: weights would need noise, too")


def check_delta(privacy: UpdatePrivacyConfig, number: int, unit: str = "clients") -> None:
    """Raises ConfigError if delta is so large that a run could publish the data of one and still keep to it.

    Args:
      privacy: settings.
      number: of what is hidden, of which there are so many.
      unit: what that is: clients, or examples.
    """
    if privacy.is_active and privacy.delta * number >= 1:
        raise ConfigError("dp_delta", privacy.delta, f"below 1 / {unit}, here {1 / number:g}")


class PrivateAlgorithmConfig(AlgorithmConfig):
    """What the config of an algorithm that can keep updates private extends.

    Attributes:
      privacy: a group that each algorithm declares itself, at its place among the flags.
    """

    privacy: UpdatePrivacyConfig

    def __post_init__(self):
        super().__post_init__()
        participation = getattr(self, "participation", "")
        if self.privacy.is_active and participation == STRATIFIED:
            raise ConfigError("participation", participation, "fixed or bernoulli, whose part in the budget is known")

    def plan_rounds(self, rounds: int) -> Self:
        """The settings with a budget that is to last for so many rounds; as they are without privacy."""
        if not self.privacy.is_active:
            return self
        # Only where it matters: a plain run's config is the same object for any number of rounds.
        changed: dict[str, Any] = {"privacy": dataclasses.replace(self.privacy, rounds=rounds)}
        return dataclasses.replace(self, **changed)

    def plan_asked(self) -> Self:
        """The settings for clients that are asked over a network; as they are without privacy."""
        if not self.privacy.is_active:
            return self
        changed: dict[str, Any] = {"privacy": dataclasses.replace(self.privacy, is_asked=True)}
        return dataclasses.replace(self, **changed)

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if the privacy asked for means nothing for so many clients."""
        check_delta(self.privacy, num_clients)
