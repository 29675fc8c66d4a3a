"""FedAvg: Algorithm 1 of McMahan et al. 2017.

"Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.

A round:
1. The server draws a cohort (all clients by default) and broadcasts the global model, compressed if asked for.
2. Each client of the cohort trains it on its own examples and sends the update, compressed likewise.
3. The server adds the mean of the clients' updates, weighted by their examples, times its learning rate.

| paper | here |
|---|---|
| K, C | `len(clients.clients)`, `cohort_size` / K |
| E, B, eta | `training.epochs`, `training.batch_size`, `training.learning_rate` |
| n_k | `ClientFiles.num_train` |
| w_t | `ServerState.models` (`rounds/synchronous.py`) |

`build_fine_tuned_process` is the baseline "Fine-Tuning" of AMFL-P: at the end, each client trains the global model on
its own examples, all with as many steps and the same rate. With another `fine_tuning.rule` steps and rate go by
resources; those of a device are the same as in AMFL-P with the same seed. `fine_tuning.start` = initial is the control
without a trained model.

With `privacy.epsilon` above 0 the updates are clipped and the server adds noise to their sum
(`rounds/private_aggregation.py`); clients then count equally, and the mean is over the expected cohort.

Limit cases: one client is plain training; `client_weighting="equal"` is an unweighted mean; a `proximal_weight` gives
FedProx (Li et al. 2020, Eq. 2).

Deviations from the paper: the local optimizer can be Adam, the server can scale the mean update, and what travels can
be compressed. Then the server adds updates in float32, and the model that is tested, saved, exported and fine-tuned is
the one that clients get, rounded.
"""

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.fed_avg.config import FedAvgConfig, FineTunedConfig
from tff_algos.protocol import FederatedProcess
from tff_algos.rounds.fine_tuned import add_fine_tuning
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts


def build_fed_avg_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedAvgConfig | FineTunedConfig, seed: int
) -> FederatedProcess:
    """FedAvg as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the cohorts, the noise and the local training.

    Raises:
      ConfigError: updates are to be private, and the model or the budget does not allow it.
    """
    return SynchronousProcess(**build_parts(model_spec, clients, config, seed))


def build_fine_tuned_process(
    model_spec: ModelSpec, clients: FederatedData, config: FineTunedConfig, seed: int
) -> FederatedProcess:
    """FedAvg whose clients fine-tune at the end; arguments and errors as for `build_fed_avg_process`."""
    process = build_fed_avg_process(model_spec, clients, config, seed)
    return add_fine_tuning(process, model_spec, config.fine_tuning)
