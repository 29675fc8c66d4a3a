"""Settings of FedProto. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import Needs, check_enough_clients, setting
from tff_algos.settings.searched import ADAM_RATES

PROTOTYPES, HEAD = "prototypes", "head"
TURNS, SPEED = "turns", "speed"


@dataclasses.dataclass(frozen=True)
class FedProtoConfig(SynchronousConfig):
    """FedProto (Tan et al. 2022, Algorithm 1)."""

    prototype_weight: float = setting(
        1.0, "Weight of the distance between embeddings and global prototypes (paper: lambda).", minimum=0
    )
    prediction: str = setting(
        PROTOTYPES,
        "What predicts: prototypes, the nearest global one (paper); head, the client's own last layer.",
        choices=(PROTOTYPES, HEAD),
    )
    models: str = setting(
        "", "Models of the clients, with commas between, as --model takes them; empty: all train --model."
    )
    assignment: str = setting(
        TURNS,
        "Who gets which of models: turns, one after another; speed, the slowest devices the first.",
        choices=(TURNS, SPEED),
        needs=Needs("models", lambda models: "," in models, "--{flag}=<several models>"),
    )

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if there are more models than clients, too."""
        super().check_clients(num_clients)
        check_enough_clients("models", len(self.model_names), num_clients)


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # Lambda, which the paper takes differently for its data sets.
    "prototype_weight": "log(0.1,10)",
    # Prototypes as printed; a client's own last layer knows its classes alone.
    "prediction": "prototypes|head",
}
