"""FedDyn: Algorithm 1 of Acar, Zhao, Navarro, Mattina, Whatmough and Saligrama 2021; an algorithm of your own.

"Federated Learning Based on Dynamic Regularization", ICLR 2021. In the project's folder, type
`python -m launch.train --algo=examples/fed_dyn.py`; in the folder of this file, `--algo=fed_dyn`.
A round:
1. Each client k of the cohort trains the model w to w_k on L_k(w_k) - <g_k, w_k> + alpha / 2 |w_k - w|^2, where g_k is
   what it keeps, zeros at first: the gradient of L_k where it ended last.
2. It keeps g_k - alpha (w_k - w), and sends its update w_k - w.
3. The server, which has h, zeros at first, subtracts alpha / m times the sum of the updates from it, where m is the
   number of all clients. Its next model is the mean of the w_k, less h / alpha.

All that a round has beside this comes from `SynchronousProcess`: cohorts, compression, other aggregators, the server's
optimizer, bytes and virtual time. Deviation from the paper: step 1 is a few steps of the local optimizer, no minimum.
"""

import dataclasses

import numpy as np

from datasets.federated_data import FederatedData
from launch.settings.algorithms import Algorithm
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import train_locally
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import ServerState, SynchronousProcess, build_parts
from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.rounds.training_phase import LocalWork, PhaseOutcome, Sent, Told
from tff_algos.settings.config_fields import setting
from tff_algos.settings.searched import ADAM_RATES
from tff_algos.weights import add_deltas, is_float


@dataclasses.dataclass(frozen=True)
class FedDynConfig(SynchronousConfig):
    """Each field is a flag, `--feddyn_<field>`, with this default, help text and range; so are those of the base."""

    alpha: float = setting(0.1, "Weight of the term that pulls to the server's model.", above=0)


def build_dynamic_training(model_spec: ModelSpec, config: FedDynConfig) -> LocalWork:
    """Steps 1 and 2 as a client does them; called while a graph is traced."""
    pulled = dataclasses.replace(config.training, proximal_weight=config.alpha)

    def work(told: Told) -> Sent:
        client, gradient = told.client, told.kept
        x, y = read_split(client.path, "train", model_spec)
        start, rate, correction = told.model, client.learning_rate, tuple(-g for g in gradient)
        result = train_locally(model_spec, pulled, start, x, y, client.seed, rate, correction=correction)
        # The update of a client that diverged is zeros: it keeps what it had.
        kept = tuple(g - config.alpha * d for g, d in zip(gradient, result.weights_delta, strict=True))
        return Sent(ClientUpdate(result, client.group, client.weight), kept=kept)

    return work


def build_zeros(weights: Weights) -> Weights:
    """g_k and h before the first round, one array for each weight that is trained."""
    return tuple(np.zeros_like(array) for array in weights if is_float(array))


class FedDynProcess(SynchronousProcess):
    """FedDyn; what is not here is FedAvg's. `ServerState.own` is h."""

    def initialize(self) -> ServerState:
        return super().initialize()._replace(own=build_zeros(self.initial_weights))

    def finish(
        self, state: ServerState, stepped: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> ServerState:
        """Step 3, after the server has added the mean of the updates to its model."""
        aggregate, alpha = outcome.aggregate, self.config.alpha
        share = aggregate.weight[0] / len(self.everyone)  # all clients weigh 1, so the weight is how many count
        own = tuple(h - alpha * share * np.asarray(d)[0] for h, d in zip(state.own, aggregate.update, strict=True))
        return stepped._replace(models=add_deltas(stepped.models, own, -1 / alpha), own=own)


def build_fed_dyn_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedDynConfig, seed: int
) -> FedDynProcess:
    """FedDyn as a process."""
    work = build_dynamic_training(model_spec, config)
    return FedDynProcess(**build_parts(model_spec, clients, config, seed, work, kept=build_zeros))


ALGORITHM = Algorithm(
    name="feddyn",
    title="FedDyn",
    color="#56B4E9",
    summary="FedDyn (Acar et al. 2021): clients correct their drift by what they keep.",
    config_class=FedDynConfig,
    builder="build_fed_dyn_process",
    fixed={"client_weighting": "equal"},
    unused=("privacy",),
    searched={"learning_rate": ADAM_RATES, "alpha": "log(0.01,1)"},  # what trials vary where nobody says it
)
