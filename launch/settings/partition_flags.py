"""The flags of how examples go to clients, as groups of `RunConfig`. Imports no TensorFlow."""

import dataclasses

from datasets.partition_settings import (
    ARCHETYPE_PARTITIONS,
    LAST_OUTCOMES,
    MERGE,
    NATURAL,
    NO_VARIANT,
    PARTITION_NAMES,
    VALIDATION_POOL,
    VARIANTS,
    ArchetypeSettings,
    PachinkoSettings,
    VariantSettings,
)
from tff_algos.settings.config_fields import SMOKE_CLIENTS, Needs, needs_value, setting

NOT_BY_ARCHETYPE = Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, "another partition")
BY_ARCHETYPE = Needs("partition", lambda name: name in ARCHETYPE_PARTITIONS, "--{flag}=hierarchical")
HIERARCHICAL, HYPERGEOMETRIC = (needs_value("partition", name) for name in ("hierarchical", "hypergeometric"))
NATURAL_CLIENTS = needs_value("partition", NATURAL)


def needs_no_archetypes(flag: str) -> Needs:
    """For what the partitions by archetype replace by another flag."""
    return Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, f"--{flag} in its place")


@dataclasses.dataclass(frozen=True)
class PartitionFlags:
    """Clients and their parts of the data"""

    num_clients: int = setting(
        10,
        "Number of clients; the natural and the archetype partitions bring their own.",
        minimum=1,
        smoke=SMOKE_CLIENTS,
        needs=(
            Needs("partition", lambda name: name != "natural", "--most_clients in its place"),
            needs_no_archetypes("clients_per_archetype"),
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
        PachinkoSettings.pachinko_alpha,
        "Concentration of the kinds of classes in the pachinko partition; smaller is more skewed.",
        above=0,
        needs=needs_value("partition", "pachinko"),
    )
    pachinko_beta: float = setting(
        PachinkoSettings.pachinko_beta,
        "Concentration of the classes within a kind in the pachinko partition.",
        above=0,
        needs=needs_value("partition", "pachinko"),
    )
    variant: str = setting(
        NO_VARIANT,
        "rotated, permuted: each group of clients sees the images turned or permuted in its own way; relabelled: with "
        "its own order of the labels.",
        choices=VARIANTS,
        needs=NOT_BY_ARCHETYPE,
    )
    variant_groups: int = setting(
        VariantSettings.groups,
        "Groups of --variant; 1, 2 or 4 where images are turned.",
        minimum=1,
        needs=Needs("variant", lambda kind: kind != NO_VARIANT, "--variant=rotated"),
    )
    validation_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own validation split.",
        minimum=0,
        maximum=0.45,
        needs=needs_no_archetypes("validation_per_client"),
    )
    test_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own test split.",
        minimum=0,
        maximum=0.45,
        needs=needs_no_archetypes("test_per_client"),
    )
    most_train_examples: int = setting(
        0,
        "Most examples in a client's train split, the first ones where they are in order of time; 0: all.",
        minimum=0,
        needs=needs_no_archetypes("train_per_client"),
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
    new_clients: int = setting(
        0, "Clients, the last ones, that take no part in training.", minimum=0, smoke=1, needs=NOT_BY_ARCHETYPE
    )


@dataclasses.dataclass(frozen=True)
class ArchetypeFlags:
    """Partitions by archetype"""

    clients_per_archetype: int = setting(
        ArchetypeSettings.clients_per_archetype,
        "Clients of each archetype; 0: 3 of ten (hierarchical), 5 of six (hypergeometric).",
        minimum=0,
        needs=BY_ARCHETYPE,
    )
    train_per_client: int = setting(
        ArchetypeSettings.train_per_client,
        "Examples in a client's train split, by archetype.",
        minimum=1,
        smoke=20,
        needs=BY_ARCHETYPE,
    )
    validation_per_client: int = setting(
        ArchetypeSettings.validation_per_client,
        "Examples in a client's validation split, by archetype.",
        minimum=0,
        smoke=5,
        needs=BY_ARCHETYPE,
    )
    test_per_client: int = setting(
        ArchetypeSettings.test_per_client, "Examples in its test split.", minimum=0, smoke=5, needs=BY_ARCHETYPE
    )
    bias_min: float = setting(
        ArchetypeSettings.bias_min,
        "Smallest share of its archetype's label in a hierarchical client.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    bias_max: float = setting(
        ArchetypeSettings.bias_max,
        "Largest share of it; the client's is drawn between the two.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    hypergeometric_draws: int = setting(
        ArchetypeSettings.hypergeometric_draws,
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
        VALIDATION_POOL, "Share of the train part to validate on.", above=0, maximum=0.5, needs=BY_ARCHETYPE
    )
