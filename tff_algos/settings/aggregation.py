"""What becomes of updates: compression, attacks, aggregation and the server's step. Imports no TensorFlow.

`AggregationConfig` stands in an algorithm's config with an empty prefix, `group(AggregationConfig, flag_prefix="")`,
since its fields have the word `aggregator` in their names already.

Attacks are what robust aggregators are there for. What is done with the server's settings is in
`tff_algos/rounds/server_step.py`.
"""

import dataclasses

from tff_algos.settings.config_fields import ConfigError, Needs, check, group, is_own, needs_value, setting
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

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
        needs=needs_value("attack", *ATTACKS),
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


MEAN = "mean"
MEDIAN, TRIMMED_MEAN, KRUM, MULTI_KRUM = "median", "trimmed_mean", "krum", "multi_krum"
GEOMETRIC_MEDIAN, CENTRED_CLIPPING = "geometric_median", "centred_clipping"
ROBUST_RULES = (MEDIAN, TRIMMED_MEAN, KRUM, MULTI_KRUM, GEOMETRIC_MEDIAN, CENTRED_CLIPPING)
ZEROING, CLIPPING, ROBUST, DP_TREE = "zeroing", "clipping", "robust", "dp_tree"
COMPRESSION, QUANTIZATION, SECURE = "compression", "quantization", "secure"
TFF_FACTORIES = (ZEROING, CLIPPING, ROBUST, COMPRESSION, QUANTIZATION, DP_TREE, SECURE)
AGGREGATORS = (MEAN, *ROBUST_RULES, *TFF_FACTORIES)
OWN_FORM = "my_module:FACTORY"


@dataclasses.dataclass(frozen=True)
class AggregationConfig:
    """How the updates of a group's clients become one."""

    aggregator: str = setting(
        MEAN,
        "How the clients' updates become one: mean is weighted and the fastest; the others see single updates. See "
        "docs/algorithms.md.",
        choices=AGGREGATORS,
        or_own=OWN_FORM,
    )
    aggregator_trimmed_share: float = setting(
        0.1,
        "Share of the clients that the trimmed mean leaves out at each end of every weight; 0: the equal mean.",
        minimum=0,
        below=0.5,
        needs=needs_value("aggregator", TRIMMED_MEAN),
    )
    aggregator_num_byzantine: int = setting(
        1,
        "Clients that may send anything (f); Krum needs cohorts of at least 2 f + 3.",
        minimum=0,
        smoke=0,
        needs=needs_value("aggregator", KRUM, MULTI_KRUM),
    )
    aggregator_num_chosen: int = setting(
        0,
        "Updates that multi-Krum averages (m); 0: all but aggregator_num_byzantine.",
        minimum=0,
        smoke=1,
        needs=needs_value("aggregator", MULTI_KRUM),
    )
    aggregator_iterations: int = setting(
        5,
        "Passes over the updates: at most so many steps of the geometric median, exactly so many of centred clipping.",
        minimum=1,
        needs=needs_value("aggregator", GEOMETRIC_MEDIAN, CENTRED_CLIPPING),
    )
    aggregator_smoothing: float = setting(
        1e-6,
        "Least distance that the geometric median divides by (nu).",
        above=0,
        needs=needs_value("aggregator", GEOMETRIC_MEDIAN),
    )
    aggregator_clip_radius: float = setting(
        10.0,
        "Largest distance from the centre at which an update counts whole (tau).",
        above=0,
        needs=needs_value("aggregator", CENTRED_CLIPPING),
    )
    aggregator_bits: int = setting(
        8,
        "Bits of a weight after TFF's quantization.",
        minimum=1,
        maximum=16,
        needs=needs_value("aggregator", QUANTIZATION),
    )
    aggregator_clip_norm: float = setting(
        1.0,
        "Largest L2 norm of an update before DP-FTRL's noise.",
        above=0,
        needs=needs_value("aggregator", DP_TREE),
    )
    aggregator_noise_multiplier: float = setting(
        1.0,
        "Deviation of DP-FTRL's noise at a node of its tree, in clip norms.",
        minimum=0,
        needs=needs_value("aggregator", DP_TREE),
    )
    attacks: AttackConfig = group(AttackConfig, flag_prefix="")

    def __post_init__(self):
        check(self)

    @property
    def is_listed(self) -> bool:
        """Whether single updates come to the server: with any aggregator but the mean."""
        return self.aggregator != MEAN

    @property
    def is_own(self) -> bool:
        """Whether the aggregator is a user's own, named as "module:NAME"."""
        return is_own(self.aggregator)

    @property
    def is_factory(self) -> bool:
        """Whether it is one of those of `tff.aggregators` that have a name here."""
        return self.aggregator in TFF_FACTORIES


def check_no_privacy(aggregation: AggregationConfig, privacy: UpdatePrivacyConfig) -> None:
    """Raises ConfigError if updates are to be private and aggregated by something else than a sum, or attacked.

    The bounds of private updates hold for a noisy sum of clipped updates alone, and attackers would not clip theirs.
    """
    if privacy.is_active and aggregation.attacks.is_active:
        expected = f"{NO_ATTACK} with dp_epsilon={privacy.epsilon:g}: single updates, which attackers forge, are hidden"
        raise ConfigError("attack", aggregation.attacks.attack, expected)
    if privacy.is_active and aggregation.is_listed:
        expected = f"{MEAN} with dp_epsilon={privacy.epsilon:g}: private updates are summed and nothing else"
        raise ConfigError("aggregator", aggregation.aggregator, expected)


def check_cohort(aggregation: AggregationConfig, cohort_size: int) -> None:
    """Raises ConfigError if cohorts of so many clients are too small for the aggregator.

    Krum judges an update by its n - f - 2 nearest neighbours, and its proof needs n >= 2 f + 3 (Blanchard et al. 2017).
    """
    if aggregation.aggregator not in (KRUM, MULTI_KRUM):
        return
    num_byzantine, num_chosen = aggregation.aggregator_num_byzantine, aggregation.aggregator_num_chosen
    if cohort_size < 2 * num_byzantine + 3:
        most = (cohort_size - 3) // 2
        expected = (
            f"at most {most} with {cohort_size} clients a round" if most >= 0 else "cohorts of at least 3 clients"
        )
        raise ConfigError("aggregator_num_byzantine", num_byzantine, f"{expected}: {aggregation.aggregator} needs "
                          "2 * aggregator_num_byzantine + 3")  # fmt: skip
    if aggregation.aggregator == MULTI_KRUM and num_chosen > cohort_size:
        raise ConfigError("aggregator_num_chosen", num_chosen, f"at most the {cohort_size} clients of a round")


SGD, ADAM, YOGI, ADAGRAD, RMSPROP = OPTIMIZERS = ("sgd", "adam", "yogi", "adagrad", "rmsprop")


@dataclasses.dataclass(frozen=True)
class ServerStepConfig:
    """The server's step along the mean update; by default the update, times the learning rate, is added."""

    optimizer: str = setting(
        SGD,
        "Optimizer of the server's step; all but plain sgd is an extension of other papers (Reddi et al. 2021).",
        choices=OPTIMIZERS,
        of_old_runs=SGD,
    )
    learning_rate: float = setting(
        1.0,
        "Factor on the averaged update; 1 is plain averaging, and adam, yogi and adagrad want about 0.03 (paper: eta).",
        above=0,
        of_old_runs=1.0,
    )
    momentum: float = setting(
        0.0,
        "Momentum of the server's step; 0.9 with sgd is FedAvgM.",
        minimum=0,
        below=1,
        needs=needs_value("optimizer", SGD, RMSPROP),
        of_old_runs=0.0,
    )
    nesterov: bool = setting(
        False,
        "Nesterov's momentum.",
        needs=(needs_value("optimizer", SGD), Needs("momentum", lambda momentum: momentum > 0, "--{flag}=0.9")),
    )
    beta_1: float = setting(
        0.9, "Decay of the mean of past updates.", minimum=0, below=1, needs=needs_value("optimizer", ADAM, YOGI)
    )
    beta_2: float = setting(
        0.99,
        "Decay of the mean of past squared updates.",
        minimum=0,
        below=1,
        needs=needs_value("optimizer", ADAM, YOGI),
    )
    epsilon: float = setting(
        1e-3,
        "Added to the root by which the step is divided, under it for adagrad; smaller is more adaptive (paper: tau).",
        above=0,
        needs=needs_value("optimizer", ADAM, YOGI, ADAGRAD, RMSPROP),
    )
    initial_accumulator: float = setting(
        1e-6,
        "Sum of squares before the first update (paper: tau^2).",
        minimum=0,
        needs=needs_value("optimizer", ADAGRAD),
    )
    decay: float = setting(
        0.9, "Decay of the mean of past squared updates.", minimum=0, below=1, needs=needs_value("optimizer", RMSPROP)
    )

    def __post_init__(self):
        check(self)

    @property
    def is_plain(self) -> bool:
        """Whether the step only adds the update times the learning rate, and so keeps nothing between rounds."""
        return self.optimizer == SGD and not self.momentum


UNCOMPRESSED_BITS = 32
MIN_BITS, MAX_BITS = 2, 16
ROUNDINGS = ("nearest", "stochastic")


@dataclasses.dataclass(frozen=True)
class CompressionConfig:
    """Uniform quantization of every weight tensor (`tff_algos/rounds/transport.py`)."""

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
