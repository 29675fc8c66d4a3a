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

What the server's step and the aggregator remember is of each model, and a clone goes on with its parent's.

Limit cases: without milestones, noise and compression it is FedAvg with equal weights.

Deviations from the paper, and what it leaves open:
- Eq. (1) is printed with a denominator over models, with which no model would keep its scale. Here it is the
  score-weighted mean over devices. (Algorithm 1 reads as a plain mean: `weighting="equal"`.) If all scores sent for a
  model are 0, it is the plain mean; a model that nobody reports stays. An update that is not finite is left out. If it
  was the only one for its model with a score above 0, those sent with a score of 0 are left out as well.
- Whether a device has a model is a mask, not a score above 0: the first clone's score is 1 - 1 = 0, and all accuracies
  can be 0 in the first rounds, which gives equal scores (as does an empty validation split).
- Eq. (2) sums the rounds r - l to r - 1 for the score of round r. So it is for the scores sent in round r. But what is
  deleted, cloned and best after round r goes by the scores after it, in which round r counts, since Algorithm 1
  updates them first. Eq. (2) has fewer terms for a younger model (`short_history`); a clone inherits no evaluations.
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
  (`deletion`); clones begin the schedule anew; only the cohort evaluates (`evaluated_devices`). The defaults
  are as printed. Still otherwise there: nobody evaluates after a milestone; the milestones of that commit are 2, 15, 25
  and 30, not 5, 15, 25 and 30.
- Bits too are otherwise there: a device rounds the trained weights of convolutions and of the dense layer, scaled by
  their largest absolute value, at random; the rest, BatchNorm included, is as it is, and the averages of the rounded
  models are tested as they are. Here the model is rounded on its way down and the update on its way up, between
  the smallest and the largest number of each tensor, all trained ones, BatchNorm's scales and offsets too.
- All devices evaluate in every round, so all get the models. These bytes are counted, and those of the first model in
  the first round; messages about deletions are not. With `evaluated_devices="cohort"` the others are left as they are:
  a device gets the versions of its models that it lacks before it trains, and the new ones after.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import psutil

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_evaluation import build_client_evaluation, get_sum_dtype
from tff_algos.client.cohort import ClientInput
from tff_algos.fed_cd.config import COHORT, FedCDConfig
from tff_algos.fed_cd.scores import add_noise, compute_aggregation_weights, compute_score_deviations
from tff_algos.fed_cd.state import (
    ServerState,
    build_first_state,
    clear_other_slots,
    clone_all,
    delete_models,
    find_live,
    find_preferred,
    find_released,
    find_sources,
    score_models,
)
from tff_algos.protocol import ClientWork, Weights
from tff_algos.rounds.private_aggregation import SAFETY
from tff_algos.rounds.synchronous import Participant, SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import PhaseOutcome
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.config_fields import ConfigError
from tff_algos.weights import compute_model_bytes, take_model

SCORE_BYTES = 4
MEMORY_COPIES = 30  # of all slots, in host and worker together at the peak of a round: 28 measured at 16 slots of 5 MB


@dataclasses.dataclass(frozen=True, eq=False)
class FedCDProcess(SynchronousProcess):
    """FedCD; the rows of the models and the groups of the aggregate are the slots.

    Attributes:
      evaluate: see `build_client_evaluation`; on the validation splits.
      history_dtype: of what it returns.
    """

    evaluate: Callable = dataclasses.field(kw_only=True)
    history_dtype: type = dataclasses.field(kw_only=True)

    takes_new_clients = False
    released = "all models of every round"

    @property
    def num_validation(self) -> np.ndarray:
        """Validation examples of each device, int64, shape (clients,)."""
        return np.array([client.num_validation for client in self.clients.clients])

    def initialize(self) -> ServerState:
        parts = self.initialize_parts(self.config.capacity)
        return build_first_state(self.initial_weights, len(self.everyone), self.config, parts, self.history_dtype)

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

    def invite(self, state: ServerState, cohort: np.ndarray) -> list[Participant]:
        """Step 1: a device takes part once for each of its active models, with a seed for each."""
        config, round_num = self.config, int(state.round_num) + 1
        rows, slots = np.nonzero(state.is_active[cohort])
        devices = cohort[rows]
        generator = derive_generator(self.seed, "score noise", round_num)
        # For all scores, so that a device's noise does not depend on who else takes part.
        sent = add_noise(state.scores, config.score_noise, generator)[devices, slots]
        weights = compute_aggregation_weights(sent if config.weighting == "scores" else np.ones(len(slots)), slots)
        if config.privacy.is_active:  # the share of the clip norm that each update of a device may have
            weights = (1 - SAFETY) / np.sqrt(state.is_active[devices].sum(axis=1))
        learning_rates, invited = self.compute_learning_rates(state), []
        for device, slot, weight in zip(devices, slots, weights, strict=True):
            path, seed = self.clients.clients[device].path, derive_seed(self.seed, "training", round_num, device, slot)
            told = ClientInput(path, seed, np.int32(slot), np.float32(weight), learning_rates[slot])
            invited.append(Participant(int(device), told))
        return invited

    def count_slots(self, num_invited: int) -> int:
        # How many take part varies with the active models. A multiple of the cohort is one of few sizes, and each
        # distinct size costs the worker an executor (see `cohort.compute_padded_size`).
        unit = min(self.config.cohort_size, len(self.everyone))
        return max(-(-num_invited // unit), 1) * unit

    def apply(self, state: ServerState, outcome: PhaseOutcome) -> ServerState:
        """Step 2."""
        aggregate = outcome.aggregate
        if self.config.privacy.is_active:
            # Slots that no milestone has filled yet, which everybody knows, have noise but no model to move.
            is_filled = np.arange(self.config.capacity) < self.config.count_slots(int(state.round_num) + 1)
            has_update = aggregate.has_update & is_filled
            aggregate = aggregate._replace(update=clear_other_slots(aggregate.update, is_filled), has_update=has_update)
        return super().apply(state, outcome._replace(aggregate=aggregate))

    def finish(
        self, state: ServerState, stepped: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> ServerState:
        """Steps 3 to 5."""
        # What the devices evaluate and clone are the models as they travelled.
        received, new_state = self.distribute(stepped), stepped._replace(was_active=state.is_active)
        if self.config.clone_schedule == "anew":
            is_trained = state.is_active[cohort].any(axis=0)
            new_state = new_state._replace(trained_rounds=(state.trained_rounds + is_trained).astype(np.int32))
        is_evaluating = np.ones(len(self.everyone), bool)
        if self.config.evaluated_devices == COHORT:
            is_evaluating = np.isin(self.everyone, cohort)
        num_correct = self.evaluate(received, self.clients.clients, state.is_active & is_evaluating[:, np.newaxis])
        new_state = score_models(new_state, num_correct, self.num_validation, self.config, is_evaluating)
        new_state = delete_models(new_state, self.config, is_evaluating)
        if new_state.round_num not in self.config.milestones:
            return new_state
        new_state = clone_all(new_state, received, self.num_validation, self.config)
        sources = find_sources(new_state)
        return new_state._replace(
            aggregator=self.aggregator.copy_groups(new_state.aggregator, sources),
            server=self.server_step.copy_rows(new_state.server, sources),
        )

    def list_phases(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """The cohort trains its models and sends them, and then all devices that evaluate receive theirs."""
        num_models, model_bytes = state.is_active[cohort].sum(axis=1), self.transport.model_bytes
        sent = num_models * (model_bytes + SCORE_BYTES)
        if self.config.evaluated_devices == COHORT:
            # Whoever was in the last round's cohort has what it got then.
            is_behind = (state.evaluated_rounds[cohort] != state.round_num) | (state.round_num == 0)
            fetched, received = num_models * is_behind * model_bytes, num_models * model_bytes
            work = ClientWork(cohort, num_models * self.examples_trained[cohort], bytes_down=fetched, bytes_up=sent)
            return [work, ClientWork(cohort, bytes_down=received)]
        num_received = state.is_active.sum(axis=1) + (state.round_num == 0)  # the first model comes before round 1
        return [
            ClientWork(cohort, num_models * self.examples_trained[cohort], bytes_up=sent),
            ClientWork(self.everyone, bytes_down=num_received * model_bytes),
        ]

    def describe(
        self, state: ServerState, new_state: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> dict[str, float]:
        """The models as they are at the end of the round."""
        num_active = new_state.is_active.sum(axis=1)
        return {
            "live_models": len(find_live(new_state)),
            "active_models": int(num_active.sum()),
            "max_active_models": int(num_active.max()),
            "preferred_models": len(np.unique(find_preferred(new_state))),
            "score_deviation": float(compute_score_deviations(new_state.scores, new_state.is_active).mean()),
            **self.describe_rates(state, cohort),
        }

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        """The models that are given out, as the devices have them: rounded, where they travel compressed."""
        held = self.distribute(state)
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
        """How many models were made and deleted; for each live one its parent, birth round, and clients."""
        num_made = self.config.count_slots(int(state.round_num) + 1)
        preferred, live = find_preferred(state), find_live(state)
        models = {
            f"model_{slot}": {
                "parent": int(state.parents[slot]),
                "birth_round": int(state.birth_rounds[slot]),
                "clients": int(state.is_active[:, slot].sum()),
                "preferred_by": int(np.sum(preferred == slot)),
            }
            for slot in live
        }
        numbers = {"num_models_made": num_made, "num_models_deleted": num_made - len(live)}
        return {**numbers, "models": models, **super().summarize(state)}

    def get_events(self, state: ServerState) -> list[tuple[float, int, str, int]]:
        """Who deleted and cloned which model in the last round, and which one each client prefers after it."""
        time_s, rows = float(state.virtual_time_s), []
        deleted, cloned = state.was_active & ~state.is_active, state.is_active & ~state.was_active
        for what, mask in (("deleted", deleted), ("cloned", cloned)):
            rows += [(time_s, int(client), what, int(slot)) for client, slot in np.argwhere(mask)]
        return rows + [(time_s, client, "prefers", int(slot)) for client, slot in enumerate(find_preferred(state))]


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
      ConfigError: there are fewer devices than a round asks for, the memory for the models is not there, or a part does
        not fit its settings, see `build_parts`.
    """
    config.check_clients(len(clients.clients))
    parts = build_parts(model_spec, clients, config, seed)
    weights = parts["initial_weights"]
    check_memory(config, weights)
    evaluate = build_client_evaluation(model_spec, weights, config.capacity, "validation")
    return FedCDProcess(**parts, evaluate=evaluate, history_dtype=get_sum_dtype(model_spec))
