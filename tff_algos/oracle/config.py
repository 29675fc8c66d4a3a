"""Settings of the oracle. Imports no TensorFlow."""

import dataclasses

from datasets.federated_data import Archetypes
from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import NO_ARCHETYPES, ConfigError, setting
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM

ARCHETYPE, META_ARCHETYPE = "archetype", "meta_archetype"


@dataclasses.dataclass(frozen=True)
class OracleConfig(SynchronousConfig):
    """FedAvg inside the known groups."""

    groups: str = setting(
        ARCHETYPE,
        "Clients that share a model: those of an archetype, or of a meta-archetype.",
        choices=(ARCHETYPE, META_ARCHETYPE),
    )

    def check_archetypes(self, archetypes: Archetypes | None) -> None:
        """Raises ConfigError if the data know no groups."""
        super().check_archetypes(archetypes)
        if archetypes is None:
            raise ConfigError("groups", self.groups, f"another --algo, {NO_ARCHETYPES}")


# Which groups share a model is left as it is asked for: data with archetypes alone have no choice.
SEARCHED = {
    "learning_rate": ADAM_RATES,
    "server_momentum": SERVER_MOMENTUM,
}
