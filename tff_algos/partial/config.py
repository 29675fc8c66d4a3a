"""Settings of partial personalization. Imports no TensorFlow."""

import dataclasses

from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import needs_value, setting
from tff_algos.settings.searched import ADAM_RATES, SERVER_MOMENTUM

TOGETHER, HEAD_FIRST = "together", "head_first"


@dataclasses.dataclass(frozen=True)
class PartialConfig(SynchronousConfig):
    """FedPer, and by other settings FedRep, FedBN and LG-FedAvg; `process.py` says which are whose."""

    personal: str = setting(
        "last",
        "Layers that stay with the client: names or patterns of layers or weights, with commas between, such as "
        "hidden_*,*/bias; last is the last layer, batch_norm every BatchNorm; all_but: before them turns them round.",
    )
    schedule: str = setting(
        TOGETHER,
        "together: all layers are trained at once; head_first: the personal ones, then the shared ones.",
        choices=(TOGETHER, HEAD_FIRST),
    )
    head_epochs: int = setting(
        10,
        "Passes in which the personal layers alone are trained (FedRep: tau); epochs or steps are the shared ones'.",
        minimum=1,
        smoke=1,
        needs=needs_value("schedule", HEAD_FIRST),
    )


SEARCHED = {
    "learning_rate": ADAM_RATES,
    # FedPer's and FedRep's: all layers at once, or the personal ones first.
    "schedule": "together|head_first",
    # FedPer's and FedRep's head, or all below it, as LG-FedAvg has it.
    "personal": "last|all_but:last",
    "server_momentum": SERVER_MOMENTUM,
}
