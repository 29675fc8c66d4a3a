"""Which share of the clients attacks, and how: what robust aggregators are there for. Imports no TensorFlow."""

import dataclasses

from tff_algos.settings.config_fields import Needs, check, needs_value, setting

NO_ATTACK = "none"
LABEL_FLIP, SIGN_FLIP, GAUSSIAN, ALIE = "label_flip", "sign_flip", "gaussian", "alie"
ATTACKS = (LABEL_FLIP, SIGN_FLIP, GAUSSIAN, ALIE)


@dataclasses.dataclass(frozen=True)
class AttackConfig:
    """What a simulated run's attackers do; a group without a prefix, since its fields have the word in their names."""

    attack: str = setting(
        NO_ATTACK,
        "What attackers do: train on flipped labels, send the negative update or noise, or a little is enough (alie).",
        choices=(NO_ATTACK, *ATTACKS),
    )
    attack_share: float = setting(
        0.2,
        "Share of the clients that attack, rounded up but never all; drawn from the seed, the same in every round.",
        minimum=0,
        below=1,
        needs=Needs("attack", lambda given: given != NO_ATTACK, f"--{{flag}}={' or '.join(ATTACKS)}"),
    )
    attack_scale: float = setting(
        1.0,
        "Attackers send their update times minus this.",
        above=0,
        needs=needs_value("attack", SIGN_FLIP),
    )
    attack_deviation: float = setting(
        1.0,
        "Standard deviation of the noise, on every weight, that attackers send in place of their update.",
        above=0,
        needs=needs_value("attack", GAUSSIAN),
    )
    attack_z: float = setting(
        0.0,
        "Standard deviations from the attackers' mean (z); 0: the paper's, from the clients and attackers of a round.",
        minimum=0,
        needs=needs_value("attack", ALIE),
    )

    def __post_init__(self):
        check(self)

    @property
    def is_active(self) -> bool:
        """Whether anybody attacks."""
        return self.attack != NO_ATTACK and self.attack_share > 0

    @property
    def strength(self) -> str:
        """The setting that says how large the numbers are which attackers send; "" of those that train."""
        return {SIGN_FLIP: "attack_scale", GAUSSIAN: "attack_deviation", ALIE: "attack_z"}.get(self.attack, "")

    @property
    def forges_updates(self) -> bool:
        """Whether attackers send something else than what they have trained."""
        return self.is_active and self.attack != LABEL_FLIP
