"""How a data set is divided over clients: the settings, whose flags follow. Imports no NumPy, so `--help` is quick.

What the partitions do stands in `partitioners`, `archetypes` and `variants`.
"""

import dataclasses

from datasets.errors import DatasetError
from datasets.options import check_options
from tff_algos.settings.config_fields import SMOKE_CLIENTS, Needs, needs_value, setting

CLIENTS_PER_ARCHETYPE = {"hierarchical": 3, "hypergeometric": 5}
ARCHETYPE_PARTITIONS = tuple(CLIENTS_PER_ARCHETYPE)
PACHINKO, NATURAL = "pachinko", "natural"
WITHOUT_CLASSES = ("iid", NATURAL)  # partitions of any task
PARTITION_NAMES = ("iid", "dirichlet", "shards", PACHINKO, NATURAL, *ARCHETYPE_PARTITIONS)
LAST_OUTCOMES = MERGE, DROP = ("merge", "drop")
VARIANTS = NO_VARIANT, ROTATED, PERMUTED, RELABELLED = ("none", "rotated", "permuted", "relabelled")
TURNS = {1: (0,), 2: (0, 2), 4: (0, 1, 2, 3)}  # quarters, by the number of groups
NOT_BY_ARCHETYPE = Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, "another partition")
BY_ARCHETYPE = Needs("partition", lambda name: name in ARCHETYPE_PARTITIONS, "--{flag}=hierarchical")
HIERARCHICAL, HYPERGEOMETRIC, OF_PACHINKO, NATURAL_CLIENTS = (
    needs_value("partition", name) for name in (*ARCHETYPE_PARTITIONS, PACHINKO, NATURAL)
)


def replaced_by_archetypes(flag: str) -> Needs:
    """For what the partitions by archetype replace by another flag."""
    return NOT_BY_ARCHETYPE._replace(fix=f"--{flag} in its place")


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
    """

    clients_per_archetype: int = setting(
        0,
        "Clients of each archetype; 0: 3 of ten (hierarchical), 5 of six (hypergeometric).",
        minimum=0,
        needs=BY_ARCHETYPE,
    )
    train_per_client: int = setting(
        100, "Examples in a client's train split, by archetype.", minimum=1, smoke=20, needs=BY_ARCHETYPE
    )
    validation_per_client: int = setting(
        25, "Examples in a client's validation split, by archetype.", minimum=0, smoke=5, needs=BY_ARCHETYPE
    )
    test_per_client: int = setting(30, "Examples in its test split.", minimum=0, smoke=5, needs=BY_ARCHETYPE)
    bias_min: float = setting(
        0.6,
        "Smallest share of its archetype's label in a hierarchical client.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    bias_max: float = setting(
        0.7,
        "Largest share of it; the client's is drawn between the two.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    hypergeometric_draws: int = setting(
        9,
        "Draws n of the hypergeometric partition: labels less one; as many as labels give one outcome too many.",
        minimum=1,
        needs=HYPERGEOMETRIC,
    )
    hypergeometric_last_outcome: str = setting(
        MERGE,
        "The outcome too many: merge it with the one before, or drop it.",
        choices=LAST_OUTCOMES,
        needs=HYPERGEOMETRIC,
    )
    validation_pool: float = setting(
        0.2, "Share of the train part to validate on.", above=0, maximum=0.5, needs=BY_ARCHETYPE
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartitionOptions:
    """The partitions and their splits, all but the seed and the archetypes; see `PartitionSettings`."""

    num_clients: int = setting(
        10,
        "Number of clients; the natural and the archetype partitions bring their own.",
        minimum=1,
        smoke=SMOKE_CLIENTS,
        needs=(
            Needs("partition", lambda name: name != NATURAL, "--most_clients in its place"),
            replaced_by_archetypes("clients_per_archetype"),
        ),
    )
    partition: str = setting(
        "dirichlet",
        "How examples go to clients. natural: as the data say; hierarchical, hypergeometric: by archetype.",
        choices=PARTITION_NAMES,
    )
    dirichlet_alpha: float = setting(
        0.5,
        "Label skew of the dirichlet partition; smaller is more skewed.",
        above=0,
        needs=needs_value("partition", "dirichlet"),
    )
    labels_per_client: int = setting(
        2, "Most labels that a client has in the shards partition.", minimum=1, needs=needs_value("partition", "shards")
    )
    pachinko_alpha: float = setting(
        0.1,
        "Concentration of the kinds of classes in the pachinko partition; smaller is more skewed.",
        above=0,
        needs=OF_PACHINKO,
    )
    pachinko_beta: float = setting(
        10.0, "Concentration of the classes within a kind in the pachinko partition.", above=0, needs=OF_PACHINKO
    )
    variant: str = setting(
        NO_VARIANT,
        "rotated, permuted: each group of clients sees the images turned or permuted in its own way; relabelled: with "
        "its own order of the labels.",
        choices=VARIANTS,
        needs=NOT_BY_ARCHETYPE,
    )
    variant_groups: int = setting(
        4,
        "Groups of --variant; 1, 2 or 4 where images are turned.",
        minimum=1,
        needs=Needs("variant", lambda kind: kind != NO_VARIANT, "--variant=rotated"),
    )
    validation_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own validation split.",
        minimum=0,
        maximum=0.45,
        needs=replaced_by_archetypes("validation_per_client"),
    )
    test_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own test split.",
        minimum=0,
        maximum=0.45,
        needs=replaced_by_archetypes("test_per_client"),
    )
    most_train_examples: int = setting(
        0,
        "Most examples in a client's train split, the first ones where they are in order of time; 0: all.",
        minimum=0,
        needs=replaced_by_archetypes("train_per_client"),
    )
    fewest_examples: int = setting(
        0,
        "Clients of the data with fewer examples to train on are left out; counted before validation splits.",
        minimum=0,
        needs=NATURAL_CLIENTS,
    )
    most_clients: int = setting(
        0, "Most clients of those that the data have, drawn by the seed; 0: all.", minimum=0, needs=NATURAL_CLIENTS
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartitionSettings(ArchetypeSettings, PartitionOptions):
    """How a data set is divided over clients and within them; beside these, see `ArchetypeSettings`.

    Attributes:
      num_clients: number of clients; ignored for "natural", where the data decides, and the archetype partitions.
      partition: a name of `PARTITION_NAMES`.
      dirichlet_alpha: concentration of the Dirichlet distribution, above 0; small is skewed.
      labels_per_client: the most labels that a client holds, for "shards".
      pachinko_alpha: concentration of the kinds, above 0; small is skewed.
      pachinko_beta: of the classes within a kind, above 0.
      variant: how groups of clients see their examples, one of `VARIANTS`; not with an archetype partition.
      variant_groups: k, at least 1; 1, 2 or 4 where images are turned.
      validation_fraction: share of a client's examples in its own validation split; ignored with archetypes.
      test_fraction: share of a client's examples in its own test split; ignored with archetypes.
      most_train_examples: in a client's train split, 0 for all; ignored with archetypes. Of clients whose examples are
        in order of time the first ones are taken: a new sensor has been labelled when it was put up, and is used
        afterwards. Of others, they are drawn. The other splits stay as they are.
      fewest_examples: of the data's own clients ("natural"), those with fewer to train on are left out.
      most_clients: of the others, drawn; 0 for all.
      seed: a non-negative integer; draws the partition and the splits.

    Raises:
      DatasetError: a value out of its range.
    """

    seed: int = setting(0, "Seed of everything random.", minimum=0)

    def __post_init__(self):
        check_options(self, PartitionSettings)
        is_natural, is_turned = self.partition == NATURAL, self.variant == ROTATED
        by_archetype = self.partition in ARCHETYPE_PARTITIONS
        rules = [
            ("bias_max", self.bias_min <= self.bias_max, f"at least bias_min={self.bias_min} and at most 1"),
            ("variant", not (self.has_variant and by_archetype), f"none with partition={self.partition}"),
            ("variant_groups", not is_turned or self.variant_groups in TURNS, "1, 2 or 4, by quarter turns"),
            ("fewest_examples", is_natural or not self.fewest_examples, "0, or more if partition=natural"),
            ("most_clients", is_natural or not self.most_clients, "0, or more if partition=natural"),
        ]
        for name, is_met, expected in rules:
            if not is_met:
                raise DatasetError(f"{name}={getattr(self, name)}: expected {expected}")

    @property
    def has_variant(self) -> bool:
        """Whether groups of clients see their examples in ways of their own."""
        return self.variant != NO_VARIANT
