"""Which partition a flag needs to do something."""

from datasets.archetypes import ARCHETYPE_PARTITIONS
from tff_algos.settings.config_fields import Needs, needs_value

NOT_BY_ARCHETYPE = Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, "another partition")
BY_ARCHETYPE = Needs("partition", lambda name: name in ARCHETYPE_PARTITIONS, "--{flag}=hierarchical")
HIERARCHICAL, HYPERGEOMETRIC = (needs_value("partition", name) for name in ("hierarchical", "hypergeometric"))


def needs_no_archetypes(flag: str) -> Needs:
    """For what the partitions by archetype replace by another flag."""
    return Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, f"--{flag} in its place")
