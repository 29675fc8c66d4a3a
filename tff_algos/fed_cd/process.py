"""FedCD: Algorithm 1 of Kopparapu, Lin and Zhao 2020.

"FedCD: Improving Performance in non-IID Federated Learning". The server has several global models, a device a subset
of them, its *active* models, each with a score. Round t = 1, 2, ...:
1. The server draws K devices. Each trains all its active models, from the copies that it has, for E epochs. For each
   model it sends the update, compressed, and its score with noise added.
2. The server adds to each model the mean of its updates, weighted by the scores sent, Eq. (1), in float32.
3. Every device gets the new versions of its active models, compressed, and evaluates them on its validation split; its
   scores are their mean accuracies over the last rounds, Eq. (2), normalized, Eq. (3).
4. Every device deletes models that score far below its best, Eq. (4). From `late_round` on, a device with two models
   also deletes the second if its score is low. The server deletes models that no device has.
5. If t is a milestone, every model is cloned: slot m of M to slot M + m. A device that has the parent gets the clone, a
   copy of what it got in step 3, with score 1 - c; then its scores are normalized. M doubles.

| paper | here |
|---|---|
| N, K, E | `len(clients.clients)`, `cohort_size`, `training.epochs` |
| m, M | slot, a row of `ServerState.models`; `FedCDConfig.count_slots` |
| w_m, c_m^(i) | `ServerState.models`, `ServerState.scores` |
| c_m^(i) != 0 | `ServerState.is_active` |
| a_m^(i)[k], l | `ServerState.history` (as counts of correct examples), `score_rounds` |
| sigma(c^(i)) | `scores.compute_score_deviations` |

With `privacy.epsilon` above 0 the updates are private (`rounds/private_aggregation.py`), and a device's scores and its
choice of models stay with it. A device with n models clips each update to 1 / sqrt(n) of the clip norm, so that
together they change the sums of all slots by at most that. The noisy sum of a slot is divided by the expected cohort,
whoever has the model; the server noises, keeps, clones and gives out all slots, whether or not a device has the model.

Limit cases: without milestones, noise and compression it is FedAvg with equal weights.

Deviations from the paper, and what it leaves open:
- Eq. (1) is printed with a denominator over models, with which no model would keep its scale. Here it is the
  score-weighted mean over devices. (Algorithm 1 reads as a plain mean: `weighting="equal"`.) If all scores sent for a
  model are 0, it is the plain mean; a model that nobody reports stays. An update that is not finite is left out. If it
  was the only one for its model with a score above 0, those sent with a score of 0 are left out as well.
- Whether a device has a model is a mask, not a score above 0: the first clone's score is 1 - 1 = 0, and all accuracies
  can be 0 in the first rounds, which gives equal scores (as does an empty validation split).
- Eq. (2) has fewer terms for a younger model (`short_history`); a clone inherits no evaluations.
- Eq. (4) alone would always delete one of two models, yet the text promises that two stay. So the two best are exempt
  (`protected_models`). With a deviation of 0 nothing is deleted, so a device always has a model.
- After deletions, a device's scores are normalized again (`normalize_after_deletion`). The caption of the figure on
  their deviation says so, Algorithm 1 does not; the bound of the late rule, 0.3, presupposes it.
- A parent and its clone are trained with different seeds (the slot is part of them); otherwise almost nothing would
  drive them apart. A clone cannot be a device's best model before it was evaluated, since the clone of the worst model
  starts with the highest score.
- Compression is uniform quantization; BatchNorm's statistics travel at 32 bits. Only the server's sums are in float32:
  what is scored, tested, saved and exported are the models that the devices have, rounded.
- The paper prints no learning rate. A schedule of it counts rounds, for a clone as for its parent
  (`clone_schedule="shared"`), or for each model the rounds in which it got an average, so that a clone begins anew.
- The authors' code (github.com/jessijzhao/FedCD, commit cea256a) differs from what the paper prints: a clone starts
  with 1 - its parent's accuracy (`clone_score`), which stays among its last ones (`clone_history`); below three
  accuracies the latest is the score (`short_history`); models go that score more than a deviation below the mean
  (`deletion`); clones begin the schedule anew. The defaults are as printed. Still otherwise there: only the cohort
  evaluates, and not after a milestone; the milestones of that commit are 2, 15, 25 and 30, not 5, 15, 25 and 30.
- Bits too are otherwise there: a device rounds the trained weights of convolutions and of the dense layer, scaled by
  their largest absolute value, at random; the rest, BatchNorm included, is as it is, and the averages of the rounded
  models are tested as they are. Here the model is rounded on its way down and the update on its way up, between
  the smallest and the largest number of each tensor, all trained ones, BatchNorm's scales and offsets too.
- All devices evaluate in every round, so all get the models. These bytes are counted, and those of the first model in
  the first round; messages about deletions are not.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import psutil

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_evaluation import build_client_evaluation, get_sum_dtype
from tff_algos.client.cohort import ClientInput, choose_cohort, pad_cohort
from tff_algos.client.compression import compress_models, compute_sent_bytes, find_compressed
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_cd.cloning import begin_histories, clone_models, clone_scores
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.fed_cd.scores import (
    NOT_EVALUATED,
    add_noise,
    compute_aggregation_weights,
    compute_mean_accuracy,
    keep_latest,
    normalize,
    record_evaluation,
)
from tff_algos.fed_cd.state import (
    NEVER,
    ServerState,
    delete_models,
    describe_models,
    find_preferred,
    find_released,
    keep_slots,
    list_events,
    summarize_models,
)
from tff_algos.protocol import ClientWork, RoundOutput, Weights
from tff_algos.rounds import private_aggregation
from tff_algos.rounds.aggregation import RoundTotals
from tff_algos.rounds.grouped_round import build_grouped_updates
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import add_deltas, initialize_weights, take_model

SCORE_BYTES = 4
MEMORY_COPIES = 30  # of all slots, in host and worker together at the peak of a round: 28 measured at 16 slots of 5 MB


@dataclasses.dataclass(frozen=True, eq=False)
class FedCDProcess(private_aggregation.PrivateProcess):
    """FedCD; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_fed_cd_process`.
      initial_weights: the first model.
      is_compressed: see `compression.find_compressed`.
      examples_trained: that each device trains one model on in a round, int64, shape (clients,).
      compute_updates: the computation of `build_grouped_updates`, with a group for each slot, or of
        `build_private_sums` if updates are private.
      evaluate: see `build_client_evaluation`; on the validation splits.
      history_dtype: of what it returns.
    """

    released = "all models of every round"

    clients: FederatedData
    config: FedCDConfig
    seed: int
    initial_weights: Weights
    is_compressed: tuple[bool, ...]
    examples_trained: np.ndarray
    compute_updates: Callable
    evaluate: Callable
    history_dtype: type

    @property
    def num_clients(self) -> int:
        return len(self.clients.clients)

    @property
    def num_validation(self) -> np.ndarray:
        """Validation examples of each device, int64, shape (clients,)."""
        return np.array([client.num_validation for client in self.clients.clients])

    @property
    def model_bytes(self) -> int:
        """Bytes of a model or an update on the wire."""
        return compute_sent_bytes(self.initial_weights, self.is_compressed, self.config.compression)

    def initialize(self) -> ServerState:
        """Every device has the model in slot 0, with score 1."""
        capacity = self.config.capacity
        rows = [np.zeros((capacity, *array.shape), array.dtype) for array in self.initial_weights]
        for row, array in zip(rows, self.initial_weights, strict=True):
            row[0] = array
        is_first = np.arange(capacity) == 0
        is_active = np.tile(is_first, (self.num_clients, 1))
        return ServerState(
            round_num=np.int32(0),
            virtual_time_s=np.float64(0.0),
            models=tuple(rows),
            scores=is_active.astype(np.float64),
            history=np.full((*is_active.shape, self.config.score_rounds), NOT_EVALUATED, self.history_dtype),
            is_active=is_active,
            was_active=is_active.copy(),
            parents=np.full(capacity, -1, np.int32),
            birth_rounds=np.where(is_first, 0, NEVER).astype(np.int32),
            trained_rounds=np.zeros(capacity, np.int32) if self.config.clone_schedule == "anew" else (),
            privacy=self.private_sum.initialize() if self.private_sum else (),
        )

    def send(self, models: Weights, round_num: int) -> Weights:
        """The models as the devices have them after round `round_num`."""
        seed = derive_seed(self.seed, "compression", round_num)
        return compress_models(models, self.is_compressed, self.config.compression, seed)

    def compute_learning_rates(self, state: ServerState) -> np.ndarray:
        """Of each slot's model in the next round, float32, shape (capacity,)."""
        round_nums = np.full(self.config.capacity, state.round_num + 1)
        if self.config.clone_schedule == "anew":
            round_nums = state.trained_rounds + 1
        return np.array([self.config.training.round_learning_rate(each) for each in round_nums.tolist()], np.float32)

    def describe_rates(self, state: ServerState, cohort: np.ndarray) -> dict[str, float]:
        """How far a schedule of steps is: the mean rate of the pairs of device and model that train in the round."""
        if not self.config.training.learning_rate_steps:
            return {}
        num_pairs = state.is_active[cohort].sum(axis=0)
        total = float(np.sum(self.compute_learning_rates(state) * num_pairs, dtype=np.float64))
        return {"learning_rate_mean": total / num_pairs.sum() if num_pairs.any() else float(np.nan)}

    def train(self, state: ServerState, cohort: np.ndarray) -> tuple[ServerState, RoundTotals, dict[str, float]]:
        """Steps 1 and 2: the state with the server's new models, the round's scalars, and the metrics of privacy."""
        round_num = int(state.round_num) + 1
        inputs, sent = self.build_inputs(state, cohort), self.send(state.models, round_num - 1)
        if self.private_sum is None:
            means, totals = self.compute_updates(sent, inputs)
            return state._replace(models=add_deltas(state.models, map(np.asarray, means))), totals, {}
        sums, counts, totals = self.compute_updates(sent, state.privacy.clip_norms[0], inputs)
        noisy, privacy = self.private_sum.add_noise(sums, counts, state.privacy, round_num)
        # Slots that no milestone has filled yet, which everybody knows, have no model to move.
        noisy = keep_slots(noisy, np.arange(self.config.capacity) < self.config.count_slots(round_num))
        models = add_deltas(state.models, noisy, 1 / self.private_sum.denominator)
        metrics = self.private_sum.build_metrics(privacy, round_num, counts)
        return state._replace(models=models, privacy=privacy), totals, metrics

    def build_inputs(self, state: ServerState, cohort: np.ndarray) -> list[ClientInput]:
        """What the cohort is told, padded. Each pair of device and active model is one client of the call."""
        config, round_num = self.config, int(state.round_num) + 1
        # TFF knows clients, not models: a device with three models is three clients, each with a slot of its own.
        rows, slots = np.nonzero(state.is_active[cohort])
        devices = cohort[rows]
        generator = derive_generator(self.seed, "score noise", round_num)
        sent = add_noise(state.scores, config.score_noise, generator)[devices, slots]
        weights = compute_aggregation_weights(sent if config.weighting == "scores" else np.ones(len(slots)), slots)
        if config.privacy.is_active:  # the share of the clip norm that each update of a device may have
            weights = (1 - private_aggregation.SAFETY) / np.sqrt(state.is_active[devices].sum(axis=1))
        learning_rates = self.compute_learning_rates(state)
        inputs = [
            ClientInput(
                self.clients.clients[device].path,
                derive_seed(self.seed, "training", round_num, device, slot),
                np.int32(slot),
                np.float32(weight),
                learning_rates[slot],
            )
            for device, slot, weight in zip(devices, slots, weights, strict=True)
        ]
        # The number of inputs varies with the active models. A multiple of the cohort is one of few sizes, and each
        # distinct size costs the worker an executor (see `cohort.compute_padded_size`).
        unit = min(config.cohort_size, self.num_clients)
        return pad_cohort(inputs, max(-(-len(inputs) // unit), 1) * unit)

    def score(self, state: ServerState, received: Weights) -> ServerState:
        """Step 3."""
        members = self.clients.clients
        num_correct = self.evaluate(received, members, state.is_active)
        history = record_evaluation(state.history, num_correct, state.is_active)
        accuracy = compute_mean_accuracy(history, self.num_validation, self.config.short_history)
        return state._replace(history=history, scores=normalize(accuracy, state.is_active))

    def clone(self, state: ServerState, received: Weights) -> ServerState:
        """Step 5; `state.round_num` is the round that is being done."""
        num_slots = self.config.count_slots(int(state.round_num))
        scores, of_parents, history = state.scores, None, state.history
        if self.config.clone_score == "complement_of_accuracy":
            # Accuracies beside accuracies: clones and parents are normalized together.
            scores = compute_mean_accuracy(history, self.num_validation, self.config.short_history)
            of_parents = compute_mean_accuracy(keep_latest(history), self.num_validation)
        if self.config.clone_history == "complement":
            history = begin_histories(history, state.is_active, self.num_validation, num_slots)
        scores, is_active = clone_scores(scores, state.is_active, num_slots, of_parents)
        slots = np.arange(self.config.capacity)
        is_clone = (slots >= num_slots) & (slots < 2 * num_slots)
        if not self.config.privacy.is_active:
            is_clone &= is_active.any(axis=0)
        sources = np.where(is_clone, np.arange(self.config.capacity) - num_slots, -1)
        return state._replace(
            models=clone_models(state.models, received, sources),
            scores=scores,
            history=history,
            is_active=is_active,
            parents=np.where(is_clone, sources, state.parents).astype(np.int32),
            birth_rounds=np.where(is_clone, state.round_num, state.birth_rounds).astype(np.int32),
        )

    def next(self, state: ServerState) -> RoundOutput:
        round_num = int(state.round_num) + 1
        # Steps 1 and 2
        wait_s, cohort = self.choose_cohort(state)
        trained, totals, spent = self.train(state, cohort)
        # Step 3
        received = self.send(trained.models, round_num)
        phases, start_s = self.build_phases(state, cohort), state.virtual_time_s + wait_s
        new_state = trained._replace(
            round_num=np.int32(round_num),
            virtual_time_s=np.float64(start_s + compute_phases_s(self.clients.profiles, phases, float(start_s))),
            was_active=state.is_active,
        )
        if self.config.clone_schedule == "anew":
            is_trained = state.is_active[cohort].any(axis=0)
            new_state = new_state._replace(trained_rounds=(state.trained_rounds + is_trained).astype(np.int32))
        new_state = self.score(new_state, received)
        # Step 4
        new_state = delete_models(new_state, self.config)
        # Step 5
        if round_num in self.config.milestones:
            new_state = self.clone(new_state, received)
        bytes_up, bytes_down = int(phases[0].bytes_up.sum()), int(phases[1].bytes_down.sum())
        common = build_common_metrics(totals, new_state.virtual_time_s, len(cohort), bytes_down, bytes_up)
        own = {**describe_models(new_state), **self.describe_rates(state, cohort)}
        return RoundOutput(new_state, {**common, **own, **spent})

    def choose_cohort(self, state: ServerState) -> tuple[float, np.ndarray]:
        """The cohort of the next round, ascending, after the virtual seconds until enough devices are available."""
        everyone, round_num, now_s = np.arange(self.num_clients), int(state.round_num) + 1, float(state.virtual_time_s)
        return choose_cohort(self.config, self.clients.profiles, everyone, now_s, self.seed, round_num)

    def build_phases(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """The cohort trains its models and sends them, and then all devices receive theirs."""
        num_models = state.is_active[cohort].sum(axis=1)
        num_received = state.is_active.sum(axis=1) + (state.round_num == 0)  # the first model comes before round 1
        sent = num_models * (self.model_bytes + SCORE_BYTES)
        return [
            ClientWork(cohort, num_models * self.examples_trained[cohort], bytes_up=sent),
            ClientWork(np.arange(self.num_clients), bytes_down=num_received * self.model_bytes),
        ]

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        del next_state
        return self.build_phases(state, self.choose_cohort(state)[1])

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        """The live models as the devices have them: rounded, where they travel compressed."""
        held = self.send(state.models, int(state.round_num))
        return {f"model_{slot}": take_model(held, slot) for slot in find_released(state, self.config)}

    def client_model(self, state: ServerState) -> list[str]:
        return [f"model_{slot}" for slot in find_preferred(state)]

    def client_columns(self, state: ServerState) -> dict[str, list]:
        preferred = find_preferred(state)[:, np.newaxis]
        return {
            "active_models": state.is_active.sum(axis=1).tolist(),
            "score": np.take_along_axis(state.scores, preferred, axis=1)[:, 0].tolist(),
        }

    def summarize(self, state: ServerState) -> dict:
        num_slots = self.config.count_slots(int(state.round_num) + 1)
        return {**summarize_models(state, num_slots), **super().summarize(state)}

    def get_events(self, state: ServerState) -> list[tuple[float, int, str, int]]:
        return list_events(state)

    def map_models(self, state: ServerState, function: Callable[[Weights], Weights]) -> ServerState:
        return state._replace(models=function(state.models))


def check_memory(config: FedCDConfig, template_weights: Weights) -> None:
    """Raises ConfigError if the memory of this machine cannot hold a round with all slots taken."""
    model_bytes = compute_model_bytes(template_weights)
    needed = MEMORY_COPIES * config.capacity * model_bytes
    free = psutil.virtual_memory().available
    if needed > free:
        raise ConfigError(
            "milestones",
            config.milestones,
            f"fewer: {config.capacity} models of {model_bytes / 1e6:.1f} MB need about {needed / 1e9:.1f} GB of "
            f"memory, and {free / 1e9:.1f} GB are free",
        )


def build_fed_cd_process(model_spec: ModelSpec, clients: FederatedData, config: FedCDConfig, seed: int) -> FedCDProcess:
    """FedCD as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model.
      clients: the federation.
      config: settings.
      seed: of the first weights, the cohorts, the noise, the rounding and the local training.

    Raises:
      ConfigError: there are fewer devices than a round asks for, the memory for the models is not there, or private
        updates do not fit the model or the budget.
    """
    config.check_clients(len(clients.clients))
    initial_weights = initialize_weights(model_spec, seed)
    check_memory(config, initial_weights)
    private_sum, build_updates = None, build_grouped_updates
    if config.privacy.is_active:
        private_aggregation.check_private_model(model_spec)
        accounting = Accounting(config.privacy.delta, len(clients.clients), config.cohort_size, config.participation)
        private_sum = private_aggregation.build_private_sum(config.privacy, accounting, seed)
        build_updates = private_aggregation.build_private_sums
    return FedCDProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        is_compressed=find_compressed(model_spec),
        examples_trained=np.array([count_examples_trained(config.training, n) for n in clients.num_train]),
        compute_updates=build_updates(
            model_spec, config.training, initial_weights, config.capacity, config.compression
        ),
        evaluate=build_client_evaluation(model_spec, initial_weights, config.capacity, "validation"),
        history_dtype=get_sum_dtype(model_spec),
        private_sum=private_sum,
    )
