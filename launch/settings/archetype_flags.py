"""The flags of the partitions by archetype, as `RunConfig` declares them. Imports no TensorFlow."""

from datasets.archetypes import LAST_OUTCOMES, MERGE, VALIDATION_POOL, ArchetypeSettings
from launch.settings.partition_needs import BY_ARCHETYPE, HIERARCHICAL, HYPERGEOMETRIC
from tff_algos.settings.config_fields import setting

CLIENTS_PER_ARCHETYPE = setting(
    ArchetypeSettings.clients_per_archetype,
    "Clients of each archetype; 0: 3 of ten (hierarchical), 5 of six (hypergeometric).",
    minimum=0,
    needs=BY_ARCHETYPE,
)
TRAIN_PER_CLIENT = setting(
    ArchetypeSettings.train_per_client,
    "Examples in a client's train split, by archetype.",
    minimum=1,
    smoke=20,
    needs=BY_ARCHETYPE,
)
VALIDATION_PER_CLIENT = setting(
    ArchetypeSettings.validation_per_client,
    "Examples in a client's validation split, by archetype.",
    minimum=0,
    smoke=5,
    needs=BY_ARCHETYPE,
)
TEST_PER_CLIENT = setting(
    ArchetypeSettings.test_per_client, "Examples in its test split.", minimum=0, smoke=5, needs=BY_ARCHETYPE
)
BIAS_MIN = setting(
    ArchetypeSettings.bias_min,
    "Smallest share of its archetype's label in a hierarchical client.",
    minimum=0,
    maximum=1,
    needs=HIERARCHICAL,
)
BIAS_MAX = setting(
    ArchetypeSettings.bias_max,
    "Largest share of it; the client's is drawn between the two.",
    minimum=0,
    maximum=1,
    needs=HIERARCHICAL,
)
HYPERGEOMETRIC_DRAWS = setting(
    ArchetypeSettings.hypergeometric_draws,
    "Draws n of the hypergeometric partition: one less than the labels, or as many, which is an outcome too many.",
    minimum=1,
    needs=HYPERGEOMETRIC,
)
HYPERGEOMETRIC_LAST_OUTCOME = setting(
    MERGE, "The outcome too many: merge with the last, or drop.", choices=LAST_OUTCOMES, needs=HYPERGEOMETRIC
)
VALIDATION_POOL_SHARE = setting(
    VALIDATION_POOL, "Share of the train part to validate on.", above=0, maximum=0.5, needs=BY_ARCHETYPE
)
