"""How a data set is divided over clients: the settings and their ranges. Imports no NumPy, so that `--help` is quick.

What the partitions do stands in `partitioners`, `archetypes`, `pachinko` and `variants`.
"""

import dataclasses
import math

from datasets.errors import DatasetError

CLIENTS_PER_ARCHETYPE = {"hierarchical": 3, "hypergeometric": 5}
ARCHETYPE_PARTITIONS = tuple(CLIENTS_PER_ARCHETYPE)
PACHINKO, NATURAL = "pachinko", "natural"
WITHOUT_CLASSES = ("iid", NATURAL)  # partitions of any task
PARTITION_NAMES = ("iid", "dirichlet", "shards", PACHINKO, NATURAL, *ARCHETYPE_PARTITIONS)
VALIDATION_POOL = 0.2
LAST_OUTCOMES = MERGE, DROP = ("merge", "drop")
# Later settings: while they have these values, the client files are those of versions that did not have them.
LATER = {"hypergeometric_last_outcome": MERGE, "validation_pool": VALIDATION_POOL}
VARIANTS = NO_VARIANT, ROTATED, PERMUTED, RELABELLED = ("none", "rotated", "permuted", "relabelled")
TURNS = {1: (0,), 2: (0, 2), 4: (0, 1, 2, 3)}  # quarters, by the number of groups


@dataclasses.dataclass(frozen=True)
class ArchetypeSettings:
    """The clients of the archetype partitions.

    Attributes:
      clients_per_archetype: how many of each; 0 is the paper's number, `CLIENTS_PER_ARCHETYPE`.
      train_per_client: examples in a client's train split, at least 1 (paper: 5,000).
      validation_per_client: examples in its validation split, at least 0.
      test_per_client: examples in its own test split, at least 0.
      bias_min: lowest bias of a hierarchical client, in [0, 1].
      bias_max: highest, at least `bias_min`; equal for a fixed bias.
      hypergeometric_draws: n, the number of labels less 1, or the number of labels (see the next).
      hypergeometric_last_outcome: what becomes of the outcome that has no label: "merge", it is added to the last
        label's, or "drop".
      validation_pool: the share of each label's train examples that validation splits are drawn from, above 0 and at
        most 0.5.

    Raises:
      DatasetError: a value out of its range.
    """

    clients_per_archetype: int = 0
    train_per_client: int = 100
    validation_per_client: int = 25
    test_per_client: int = 30
    bias_min: float = 0.6
    bias_max: float = 0.7
    hypergeometric_draws: int = 9
    hypergeometric_last_outcome: str = LATER["hypergeometric_last_outcome"]
    validation_pool: float = LATER["validation_pool"]

    def __post_init__(self):
        lowest = {"clients_per_archetype": 0, "train_per_client": 1, "hypergeometric_draws": 1}
        lowest |= {"validation_per_client": 0, "test_per_client": 0}
        checks = {name: (getattr(self, name) >= least, f"at least {least}") for name, least in lowest.items()}
        checks["bias_min"] = (0 <= self.bias_min <= 1, "at least 0 and at most 1")
        checks["bias_max"] = (self.bias_min <= self.bias_max <= 1, f"at least bias_min={self.bias_min} and at most 1")
        checks["hypergeometric_last_outcome"] = (
            self.hypergeometric_last_outcome in LAST_OUTCOMES,
            "one of " + ", ".join(LAST_OUTCOMES),
        )
        checks["validation_pool"] = (0 < self.validation_pool <= 0.5, "above 0 and at most 0.5")
        for field, (is_right, expected) in checks.items():
            if not is_right:
                raise DatasetError(f"{field}={getattr(self, field)}: expected {expected}")

    def identify(self) -> dict[str, int | float | str]:
        """The values that tell one partition from another, those of `LATER` left out."""
        values = dataclasses.asdict(self)
        return {name: value for name, value in values.items() if name not in LATER or value != LATER[name]}


@dataclasses.dataclass(frozen=True)
class PachinkoSettings:
    """The concentrations of the two levels.

    Attributes:
      pachinko_alpha: of the kinds, above 0; small is skewed.
      pachinko_beta: of the classes within a kind, above 0.

    Raises:
      DatasetError: a value out of its range.
    """

    pachinko_alpha: float = 0.1
    pachinko_beta: float = 10.0

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise DatasetError(f"{field.name}={value}: expected a number above 0")


@dataclasses.dataclass(frozen=True)
class VariantSettings:
    """How the groups of clients see their examples.

    Attributes:
      kind: one of `VARIANTS`.
      groups: k, at least 1; 1, 2 or 4 where images are turned.

    Raises:
      DatasetError: a value out of its range.
    """

    kind: str = NO_VARIANT
    groups: int = 4

    def __post_init__(self):
        if self.kind not in VARIANTS:
            raise DatasetError(f"variant={self.kind}: expected one of {', '.join(VARIANTS)}")
        if self.groups < 1 or (self.kind == ROTATED and self.groups not in TURNS):
            expected = "1, 2 or 4, by quarter turns" if self.kind == ROTATED else "at least 1"
            raise DatasetError(f"variant_groups={self.groups}: expected {expected}")

    @property
    def is_active(self) -> bool:
        """Whether the examples are changed at all."""
        return self.kind != NO_VARIANT

    def name_groups(self) -> tuple[str, ...]:
        """One name a group, such as "90 degrees"."""
        if self.kind == ROTATED:
            return tuple(f"{90 * quarters} degrees" for quarters in TURNS[self.groups])
        kind = "labels" if self.kind == RELABELLED else "permutation"
        return tuple(f"{kind} {group}" for group in range(self.groups))


@dataclasses.dataclass(frozen=True)
class PartitionSettings:
    """How a data set is divided over clients and within them.

    Attributes:
      partition: a name of `PARTITION_NAMES`.
      num_clients: number of clients; ignored for "natural", where the data decides, and the archetype partitions.
      dirichlet_alpha: concentration of the Dirichlet distribution, above 0; small is skewed.
      labels_per_client: the most labels that a client holds, for "shards".
      validation_fraction: share of a client's examples in its own validation split; ignored with archetypes.
      test_fraction: share of a client's examples in its own test split; ignored with archetypes.
      most_train_examples: in a client's train split, 0 for all; ignored with archetypes. Of clients whose examples are
        in order of time the first ones are kept: a new sensor has been labelled when it was put up, and is used
        afterwards. Of others, they are drawn. The other splits stay as they are.
      fewest_examples: of the data's own clients ("natural"), those with fewer to train on are left out.
      most_clients: of the others, drawn; 0 for all.
      seed: a non-negative integer; draws the partition and the splits.
      archetypes: number and sizes of the clients of the archetype partitions.
      pachinko: of the partition of that name.
      variant: whether groups of clients see their examples in ways of their own; not with an archetype partition.

    Raises:
      DatasetError: a value out of its range.
    """

    partition: str = "dirichlet"
    num_clients: int = 10
    dirichlet_alpha: float = 0.5
    labels_per_client: int = 2
    validation_fraction: float = 1 / 12
    test_fraction: float = 1 / 12
    most_train_examples: int = 0
    fewest_examples: int = 0
    most_clients: int = 0
    seed: int = 0
    archetypes: ArchetypeSettings = ArchetypeSettings()
    pachinko: PachinkoSettings = PachinkoSettings()
    variant: VariantSettings = VariantSettings()

    def __post_init__(self):
        fractions = (self.validation_fraction, self.test_fraction)
        checks = {
            "partition": (self.partition in PARTITION_NAMES, "one of " + ", ".join(PARTITION_NAMES)),
            "num_clients": (self.num_clients >= 1, "at least 1"),
            "dirichlet_alpha": (0 < self.dirichlet_alpha < math.inf, "a number above 0"),
            "labels_per_client": (self.labels_per_client >= 1, "at least 1"),
            "validation_fraction": (fractions[0] >= 0 and sum(fractions) <= 0.9, "at least 0, at most 0.9 with test"),
            "test_fraction": (fractions[1] >= 0, "at least 0"),
            "most_train_examples": (self.most_train_examples >= 0, "at least 0"),
            "seed": (self.seed >= 0, "at least 0"),
        }
        for field in ("fewest_examples", "most_clients"):
            value = getattr(self, field)
            checks[field] = value == 0 or (value > 0 and self.partition == NATURAL), "0, or more if partition=natural"
        for field, (is_right, expected) in checks.items():
            if not is_right:
                raise DatasetError(f"{field}={getattr(self, field)}: expected {expected}")
        if self.variant.is_active and self.partition in ARCHETYPE_PARTITIONS:
            raise DatasetError(f"variant={self.variant.kind}: expected none with partition={self.partition}")
