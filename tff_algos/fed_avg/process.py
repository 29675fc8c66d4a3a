"""FedAvg: Algorithm 1 of McMahan et al. 2017.

"Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.

A round:
1. The server draws a cohort (all clients by default) and broadcasts the global model, compressed if asked for.
2. Each client of the cohort trains it on its own examples and sends the update, compressed likewise.
3. The server adds the mean of the clients' updates, weighted by their examples, times its learning rate; or it steps
   along it with momentum, Adam, Yogi, Adagrad or RMSprop (`rounds/server_step.py`).

| paper | here |
|---|---|
| K, C | `len(clients.clients)`, `cohort_size` / K |
| E, B, eta | `training.epochs`, `training.batch_size`, `training.learning_rate` |
| n_k | `ClientShard.num_train` |
| w_t | `ServerState.models` |

With `fine_tuning.steps` above 0 it is the baseline "Fine-Tuning" of AMFL-P: at the end, each client trains the global
model on its own examples, all with as many steps and the same rate. With another `fine_tuning.rule` steps and rate go
by resources; those of a device are the same as in AMFL-P with the same seed. `fine_tuning.start` = initial is the
control without a trained model.

With `privacy.epsilon` above 0 the updates are clipped and the server adds noise to their sum
(`rounds/private_aggregation.py`); clients then count equally, and the mean is over the expected cohort.

Limit cases: one client is plain training; `client_weighting="equal"` is an unweighted mean; a `proximal_weight` gives
FedProx (Li et al. 2020, Eq. 2).

Deviations from the paper: the local optimizer can be Adam, the server can scale the mean update or have an optimizer of
its own, and what travels can be compressed. Then the server adds updates in float32, and the model that is tested,
saved, exported and fine-tuned is the one that clients get, rounded.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from datasets.federated_data import ClientShard, FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.cohort import ClientInput, build_client_inputs, choose_cohort, compute_usual_places, pad_cohort
from tff_algos.client.compression import compress_models, compute_sent_bytes, find_compressed
from tff_algos.client.fine_tuning import FineTune, build_fine_tuning, list_plan, summarize_plan
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.protocol import TOTAL_DRIFT, ClientWork, RoundOutput, Weights
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.grouped_round import build_grouped_round, build_grouped_updates
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import (
    PrivacyState,
    PrivateProcess,
    build_private_sum,
    build_private_sums,
    check_private_model,
)
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.rounds.server_step import ServerStep, build_server_step
from tff_algos.seeds import derive_seed
from tff_algos.settings.fine_tuning import INITIAL, SAME
from tff_algos.simulation.resources import FineTuningPlan, draw_devices, plan_fine_tuning
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import initialize_weights, stack_models, take_model


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the global model, stacked alone along axis 0.
      privacy: of private updates; empty without, so that other runs have the state that they always had.
      server: of the server's optimizer; empty without, likewise.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    privacy: PrivacyState | tuple[()] = ()
    server: tuple[np.ndarray, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class FedAvgProcess(PrivateProcess):
    """FedAvg; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_fed_avg_process`.
      initial_weights: the global model before the first round.
      examples_trained: that each client trains on in a round, int64, shape (clients,).
      num_places: to which every cohort is padded at least.
      is_compressed: see `compression.find_compressed`.
      run_round: the computation of `build_grouped_round` for one group, of `build_grouped_updates` if it compresses or
        the server has an optimizer, of `build_private_sums` if updates are private.
      server_step: the server's step.
      fine_tune: makes the personal models; None without fine-tuning.
    """

    takes_new_clients = True
    released = "the global model of every round"

    clients: FederatedData
    config: FedAvgConfig
    seed: int
    initial_weights: Weights
    examples_trained: np.ndarray
    num_places: int
    is_compressed: tuple[bool, ...]
    run_round: Callable
    server_step: ServerStep
    fine_tune: FineTune | None

    @property
    def is_personal(self) -> bool:
        return self.fine_tune is not None

    @property
    def fine_tuning_start(self) -> str:
        return self.config.fine_tuning.start if self.is_personal else ""

    @property
    def curve(self) -> tuple[int, ...]:
        return self.config.fine_tuning.curve if self.is_personal else ()

    @property
    def model_bytes(self) -> int:
        """Bytes of a model or an update on the wire."""
        return compute_sent_bytes(self.initial_weights, self.is_compressed, self.config.compression)

    def initialize(self) -> ServerState:
        privacy = self.private_sum.initialize() if self.private_sum else ()
        models, server = stack_models([self.initial_weights]), self.server_step.initialize(1)
        return ServerState(np.int32(0), np.float64(0.0), models, privacy, server)

    def send(self, state: ServerState) -> Weights:
        """The global model, stacked alone, as the clients get it."""
        seed = derive_seed(self.seed, "compression", int(state.round_num))
        return compress_models(state.models, self.is_compressed, self.config.compression, seed)

    def train(self, state: ServerState, inputs: list[ClientInput]) -> tuple[ServerState, RoundTotals]:
        """Steps 2 and 3: the state with the new global model."""
        if self.server_step.is_plain and not self.config.compression.is_active:
            models, totals = self.run_round(state.models, inputs)
            return state._replace(models=tuple(models)), totals
        means, totals = self.run_round(self.send(state), inputs)
        has_update = np.array([sum(bool(client.path) for client in inputs) > int(totals.num_rejected)])
        models, server = self.server_step.step(state.models, means, state.server, has_update)
        return state._replace(models=models, server=server), totals

    def train_privately(
        self, state: ServerState, inputs: list[ClientInput]
    ) -> tuple[ServerState, RoundTotals, dict[str, float]]:
        """Steps 2 and 3 with private updates: the state with the new global model, and the mechanism's metrics."""
        private_sum, round_num = self.private_sum, int(state.round_num) + 1
        sums, counts, totals = self.run_round(self.send(state), state.privacy.clip_norms[0], inputs)
        noisy, privacy = private_sum.add_noise(sums, counts, state.privacy, round_num)
        models, server = self.server_step.step(
            state.models, noisy, state.server, np.array([True]), private_sum.denominator
        )
        stepped = state._replace(models=models, privacy=privacy, server=server)
        return stepped, totals, private_sum.build_metrics(privacy, round_num, counts)

    def next(self, state: ServerState) -> RoundOutput:
        config, round_num = self.config, int(state.round_num) + 1
        # Step 1
        wait_s, cohort = self.choose_cohort(state)
        inputs = build_client_inputs(
            self.clients,
            cohort,
            np.zeros_like(cohort),  # one group
            config.client_weighting,
            config.training,
            self.seed,
            "training",
            round_num,
        )
        # Steps 2 and 3
        inputs, spent = pad_cohort(inputs, self.num_places), {}
        if self.private_sum is None:
            trained, totals = self.train(state, inputs)
        else:
            trained, totals, spent = self.train_privately(state, inputs)
        start_s = state.virtual_time_s + wait_s
        virtual_time_s = start_s + compute_phases_s(self.clients.profiles, [self.build_work(cohort)], float(start_s))
        sent = len(cohort) * self.model_bytes
        metrics = build_common_metrics(totals, virtual_time_s, len(cohort), sent, sent)
        metrics[TOTAL_DRIFT] = float(totals.total_drift)
        new_state = trained._replace(round_num=np.int32(round_num), virtual_time_s=np.float64(virtual_time_s))
        return RoundOutput(new_state, {**metrics, **spent})

    def choose_cohort(self, state: ServerState) -> tuple[float, np.ndarray]:
        """The cohort of the next round, ascending, after the virtual seconds until enough devices are available."""
        everyone, round_num = np.arange(len(self.clients.clients)), int(state.round_num) + 1
        now_s = float(state.virtual_time_s)
        return choose_cohort(self.config, self.clients.profiles, everyone, now_s, self.seed, round_num)

    def build_work(self, cohort: np.ndarray) -> ClientWork:
        """Each client of the cohort receives, trains and sends the model."""
        return ClientWork(cohort, self.examples_trained[cohort], self.model_bytes, self.model_bytes)

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        del next_state
        return [self.build_work(self.choose_cohort(state)[1])]

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": take_model(self.send(state), 0)}

    def client_model(self, state: ServerState) -> list[str]:
        del state
        return ["global"] * len(self.clients.everyone)

    @property
    def resources(self) -> np.ndarray:
        """R_i of every device, new ones last; nothing but a rule of fine-tuning reads them."""
        return draw_devices(len(self.clients.everyone), self.seed, known=self.clients.profiles.resources)[0]

    def plan(self) -> FineTuningPlan:
        """Steps and rate of every device."""
        tuning = self.config.fine_tuning
        return plan_fine_tuning(tuning.rule, self.resources, tuning.steps, tuning.learning_rate)

    def personalize(self, state: ServerState, clients: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        if self.fine_tune is None:
            return super().personalize(state, clients)
        return self.personalize_from(state, clients, self.config.fine_tuning.start)

    def personalize_from(
        self, state: ServerState, clients: Sequence[ClientShard], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientShard, Weights]]:
        weights = self.initial_weights if start == INITIAL else take_model(self.send(state), 0)
        return self.fine_tune(weights, clients, self.plan(), most_steps)

    def client_columns(self, state: ServerState) -> dict[str, list]:
        del state
        is_by_resources = self.is_personal and self.config.fine_tuning.rule != SAME
        return list_plan(self.resources, self.plan()) if is_by_resources else {}

    def summarize(self, state: ServerState) -> dict:
        summary = super().summarize(state)
        if self.is_personal:
            summary |= summarize_plan(self.plan(), self.config.fine_tuning.batch_size, self.clients)
        return summary

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(models=function(state.models))


def build_fed_avg_process(
    model_spec: ModelSpec, clients: FederatedData, config: FedAvgConfig, seed: int
) -> FedAvgProcess:
    """FedAvg as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model to train.
      clients: the federation.
      config: settings.
      seed: of the first weights, the cohorts, the noise and the local training.

    Raises:
      ConfigError: updates are to be private, and the model or the budget does not allow it.
    """
    initial_weights = initialize_weights(model_spec, seed)
    num_clients, tuning = len(clients.clients), config.fine_tuning
    num_places = 1
    if config.participation == "bernoulli":  # cohorts of every size would each make an executor in the worker
        num_places = compute_usual_places(num_clients, min(config.cohort_size or num_clients, num_clients))
    training, compression = config.training, config.compression
    private_sum = None
    if config.privacy.is_active:
        check_private_model(model_spec)
        expected_size = min(config.cohort_size or num_clients, num_clients)
        accounting = Accounting(config.privacy.delta, num_clients, expected_size, config.participation)
        private_sum = build_private_sum(config.privacy, accounting, seed)
        run_round = build_private_sums(model_spec, training, initial_weights, 1, compression)
    elif compression.is_active or not config.server.is_plain:
        run_round = build_grouped_updates(model_spec, training, initial_weights, 1, compression)
    else:
        run_round = build_grouped_round(model_spec, training, initial_weights, 1, config.server.learning_rate)
    return FedAvgProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        examples_trained=np.array([count_examples_trained(training, n) for n in clients.num_train]),
        num_places=num_places,
        is_compressed=find_compressed(model_spec),
        run_round=run_round,
        server_step=build_server_step(config.server, initial_weights),
        fine_tune=build_fine_tuning(model_spec, tuning, initial_weights, seed) if tuning.steps else None,
        private_sum=private_sum,
    )
