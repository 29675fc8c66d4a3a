"""The flags of the partition by kinds and of groups of clients, as `RunConfig` declares them. Imports no TensorFlow."""

from datasets.pachinko import PachinkoSettings
from datasets.variants import NO_VARIANT, VARIANTS, VariantSettings
from launch.settings.partition_needs import NOT_BY_ARCHETYPE
from tff_algos.settings.config_fields import Needs, needs_value, setting

PACHINKO_ALPHA = setting(
    PachinkoSettings.pachinko_alpha,
    "Concentration of the kinds of classes in the pachinko partition; smaller is more skewed.",
    above=0,
    needs=needs_value("partition", "pachinko"),
    of_old_runs=PachinkoSettings.pachinko_alpha,
)
PACHINKO_BETA = setting(
    PachinkoSettings.pachinko_beta,
    "Concentration of the classes within a kind in the pachinko partition.",
    above=0,
    needs=needs_value("partition", "pachinko"),
    of_old_runs=PachinkoSettings.pachinko_beta,
)
VARIANT = setting(
    NO_VARIANT,
    "rotated, permuted: groups of clients see the same images, each group turned or permuted in its own way.",
    choices=VARIANTS,
    needs=NOT_BY_ARCHETYPE,
    of_old_runs=NO_VARIANT,
)
VARIANT_GROUPS = setting(
    VariantSettings.groups,
    "Groups of --variant; 1, 2 or 4 where images are turned.",
    minimum=1,
    needs=Needs("variant", lambda kind: kind != NO_VARIANT, "--variant=rotated"),
    of_old_runs=VariantSettings.groups,
)
