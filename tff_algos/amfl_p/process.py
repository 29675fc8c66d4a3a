"""AMFL-P: "Adaptive Meta-Learning for Personalized Federated Learning in Resource-Constrained IoT Environments".

Vasishtha 2025. A round (section 3.5):
1. The server draws a cohort (all devices by default). Each device of it draws a support and a query batch from its
   train split.
2. It takes K gradient steps on the support batch, and the gradient of the query loss at the adapted weights with
   respect to the weights before them (section 3.2, MAML).
3. Its weight is Q_i R_i, its resources times Q_i = exp(-loss of the adapted model on its validation split).
4. The server steps along the weighted mean of the gradients (section 3.4).
5. With dynamic resources, batteries and loads change.
At the end, device i fine-tunes the global model on its own data, N_i steps at rate alpha_i, both in proportion to its
resources (section 3.3; `fine_tuning.rule` = resources). The server never sees data or losses, only sums.

| paper | here |
|---|---|
| theta | `ServerState.model` |
| K, alpha, beta | `inner_steps`, `inner_learning_rate`, `meta_learning_rate` |
| D_i^train, D_i^test, D_i^val | support batch, query batch, the device's validation split |
| R_i, R_max | `ServerState.resources` (times battery and load if dynamic), their largest |
| N_max, alpha_max | `fine_tuning.steps`, `fine_tuning.learning_rate` |
| Q_i, w_i | `weighting.compute_quality`, `compute_unnormalized_weight` over its sum |

With `privacy.epsilon` above 0 the meta-gradients are clipped, and the server adds noise to their sum
(`rounds/private_aggregation.py`): quality and resources weigh nothing then, and the mean is over the expected cohort.
Fine-tuning stays on the device.

Limit cases: no inner steps and equal weights are distributed gradient descent on the query batches; equal R and equal Q
give equal weights.

Deviations from the paper:
- The printed inner loop and fine-tuning sum gradients at one point, theta. Here both take one step after another, as
  Finn et al. do and as "performing K gradient steps" says.
- Q_i is printed for theta_i, "the fine-tuned model", which section 3.3 makes by N_i steps after the last round. Here it
  is by default that of theta_i', the model adapted in the round. `quality_model` = fine_tuned is the printed one; each
  device then fine-tunes in every round, only to be judged.
- The paper's D_i^test is a batch of local training data in MAML's sense. Here it is drawn from the train split, so that
  the device's test split is never trained on.
- The paper names neither K nor alpha_max nor any batch size.
- The server's step can have momentum or be Adam's. First-order MAML and Reptile are options.
- A device without a validation split is weighted by its query loss.
- Fine-tuning goes over mini-batches of the train split, in a new order each epoch; the paper's uses all of D_i.
- The defaults are not the printed values, which are in the flagfiles `amfl_p_building_*`: trials chose them, among
  them the steps alone by resources, at one rate (docs/algorithms.md).
- Resources can change from round to round; the paper names fixed ones as a limitation.
- Energy is gradient steps times the examples in each, those of MAML's second derivatives counted once. Forward passes,
  over validation splits and over Reptile's query batch, are not counted.
- The clock takes the devices' speeds, as for all algorithms, not R_i.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import ClientShard, FederatedData
from models.model_spec import ModelSpec
from models.training_terms import find_training_terms
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.amfl_p.meta_round import (
    NOBODY,
    MetaInput,
    RoundResult,
    build_private_round,
    build_round,
    build_server_optimizer,
    step_server,
)
from tff_algos.client.cohort import choose_cohort, compute_padded_size, compute_usual_places, pad_cohort
from tff_algos.client.fine_tuning import FineTune, build_fine_tuning, count_plan_examples, list_plan, summarize_plan
from tff_algos.protocol import TRAIN_LOSS, ClientWork, RoundOutput, Weights
from tff_algos.rounds.privacy_accounting import Accounting
from tff_algos.rounds.private_aggregation import PrivacyState, PrivateProcess, build_private_sum
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import INITIAL
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.resources import (
    DeviceState,
    FineTuningPlan,
    advance_devices,
    compute_dynamic_resources,
    draw_devices,
    plan_fine_tuning,
)
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import initialize_weights


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      model: the global model, the start of all personal ones.
      optimizer: the leaves of the server optimizer's state.
      resources: R_i of each device as drawn, new ones last, float64, shape (devices,).
      devices: batteries and loads; they stay as they are if resources are static.
      energy: spent on training so far, in steps of a round's mean batch (see `compute_mean_batch`), float64.
      privacy: of private updates; empty without.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    model: Weights
    optimizer: tuple[np.ndarray, ...]
    resources: np.ndarray
    devices: DeviceState
    energy: np.float64
    privacy: PrivacyState | tuple[()] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class AMFLPProcess(PrivateProcess):
    """AMFL-P; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_amfl_p_process`.
      initial_weights: the global model before the first round.
      initial_optimizer: the leaves of the server optimizer's first state.
      optimizer_state: the server optimizer's first state, nested as its own leaves are.
      run_round: the computation of `build_round`, or of `build_private_round` if updates are private.
      fine_tune: makes the personal models.
    """

    is_personal = True
    takes_new_clients = True
    released = "the global model of every round"

    clients: FederatedData
    config: AMFLPConfig
    seed: int
    initial_weights: Weights
    initial_optimizer: tuple[np.ndarray, ...]
    optimizer_state: Any
    run_round: Callable
    fine_tune: FineTune

    @property
    def fine_tuning_start(self) -> str:
        return self.config.fine_tuning.start

    @property
    def curve(self) -> tuple[int, ...]:
        return self.config.fine_tuning.curve

    def initialize(self) -> ServerState:
        config = self.config
        num_devices, known = len(self.clients.everyone), self.clients.profiles.resources
        resources, devices = draw_devices(num_devices, self.seed, config.min_resource, config.max_resource, known)
        zero = np.float64(0.0)
        privacy = self.private_sum.initialize() if self.private_sum else ()
        return ServerState(
            np.int32(0), zero, self.initial_weights, self.initial_optimizer, resources, devices, zero, privacy
        )

    def compute_resources(self, state: ServerState) -> np.ndarray:
        """R_i(t) of every device, new ones last."""
        if self.config.resources == "static":
            return state.resources
        return compute_dynamic_resources(state.resources, state.devices)

    def choose_cohort(self, state: ServerState) -> tuple[float, np.ndarray]:
        """The devices of the next round, ascending, after the virtual seconds until enough of them are available.

        With dynamic resources, those below the floor sit out. New devices are not there yet.
        """
        round_num, current = int(state.round_num) + 1, self.compute_resources(state)[: len(self.clients.clients)]
        able = np.arange(len(current))
        if self.config.resources == "dynamic":
            able = np.flatnonzero(current >= self.config.resource_floor)
        now_s = float(state.virtual_time_s)
        return choose_cohort(self.config, self.clients.profiles, able, now_s, self.seed, round_num)

    def step(self, state: ServerState, inputs: list[MetaInput]) -> tuple[ServerState, RoundResult, dict[str, float]]:
        """Steps 2 to 4: the state with the next model, the round's scalars, and the metrics of privacy."""
        if self.private_sum is None:
            model, optimizer, result = self.run_round((state.model, state.optimizer), inputs)
            spent, privacy = {}, ()
        else:
            sums, counts, result = self.run_round(state.model, state.privacy.clip_norms[0], inputs)
            round_num = int(state.round_num) + 1
            noisy, privacy = self.private_sum.add_noise(sums, counts, state.privacy, round_num)
            gradient = tuple(tf.constant(-array[0] / self.private_sum.denominator) for array in noisy)
            # As tensors, so that all arithmetic is TensorFlow's in float32, as it is inside a computation.
            start = tuple(map(tf.constant, state.model)), tuple(map(tf.constant, state.optimizer))
            model, optimizer = step_server(self.config, self.optimizer_state, *start, gradient)
            spent = self.private_sum.build_metrics(privacy, round_num, counts)
        model, optimizer = tuple(map(np.asarray, model)), tuple(map(np.asarray, optimizer))
        return state._replace(model=model, optimizer=optimizer, privacy=privacy), result, spent

    def next(self, state: ServerState) -> RoundOutput:
        round_num, config = int(state.round_num) + 1, self.config
        # Step 1
        current = self.compute_resources(state)
        wait_s, cohort = self.choose_cohort(state)
        plan = self.plan(state)
        inputs = [
            MetaInput(
                self.clients.clients[index].path,
                derive_seed(self.seed, "meta-training", round_num, index),
                np.float32(current[index]),
                np.float32(config.inner_learning_rate),
                np.int32(plan.num_steps[index]),
                np.float32(plan.learning_rates[index]),
            )
            for index in cohort
        ]
        # Steps 2 to 4
        trained, result, spent = self.step(state, pad_cohort(inputs, self.num_places, NOBODY))
        # Step 5
        took_part = np.isin(np.arange(len(current)), cohort)
        generator = derive_generator(self.seed, "devices", round_num)
        devices = advance_devices(state.devices, current, took_part, generator)
        start_s = state.virtual_time_s + wait_s
        duration_s = compute_phases_s(self.clients.profiles, [self.build_work(cohort)], float(start_s))
        energy = state.energy + len(cohort) * self.steps_per_round + self.count_quality_steps(plan, cohort)
        new_state = trained._replace(
            round_num=np.int32(round_num),
            virtual_time_s=np.float64(start_s + duration_s),
            devices=devices if config.resources == "dynamic" else state.devices,
            energy=np.float64(energy),
        )
        return RoundOutput(new_state, {**self.build_metrics(new_state, result, cohort, current), **spent})

    @property
    def num_places(self) -> int:
        """To which every cohort is padded at least."""
        num_clients, config = len(self.clients.clients), self.config
        if config.participation == "bernoulli":
            return compute_usual_places(num_clients, min(config.cohort_size or num_clients, num_clients))
        return compute_padded_size(config.cohort_size or num_clients)

    @property
    def num_query_batches(self) -> int:
        """Of a round, those whose gradient a device takes: Reptile only looks at the loss of its query batch."""
        return 0 if self.config.reptile else 1

    @property
    def steps_per_round(self) -> int:
        """Gradients that a device takes: K of the support batch and that of the query batch."""
        return self.config.inner_steps + self.num_query_batches

    @property
    def examples_per_round(self) -> int:
        """Of a device, those whose gradient it takes."""
        return self.config.inner_steps * self.config.support_size + self.num_query_batches * self.config.query_size

    def compute_mean_batch(self) -> float:
        """Examples in a gradient step of a round, the mean over those of a device."""
        return self.examples_per_round / self.steps_per_round

    def count_quality_steps(self, plan: FineTuningPlan, cohort: np.ndarray) -> float:
        """Steps that the cohort takes only to judge its data by fine-tuned models, as those of a mean batch."""
        if not self.config.judges_fine_tuned:
            return 0.0
        examples = count_plan_examples(plan, self.config.fine_tuning.batch_size, self.clients)
        return float(examples[cohort].sum()) / self.compute_mean_batch()

    def build_work(self, cohort: np.ndarray) -> ClientWork:
        """What takes the time of a round: its examples, and a model each way."""
        model_bytes = compute_model_bytes(self.initial_weights)
        return ClientWork(cohort, np.full(len(cohort), self.examples_per_round), model_bytes, model_bytes)

    def list_work(self, state: ServerState, next_state: ServerState) -> list[ClientWork]:
        """That, and the steps that the cohort takes only to judge its data, which count as energy alone."""
        del next_state
        cohort, tuning = self.choose_cohort(state)[1], self.config.fine_tuning
        examples = count_plan_examples(self.plan(state), tuning.batch_size, self.clients)[cohort]
        return [self.build_work(cohort), *([ClientWork(cohort, examples)] if self.config.judges_fine_tuned else [])]

    def build_metrics(
        self, state: ServerState, result: RoundResult, cohort: np.ndarray, current: np.ndarray
    ) -> dict[str, float]:
        sent = len(cohort) * compute_model_bytes(self.initial_weights)
        metrics = build_common_metrics(result.totals, state.virtual_time_s, len(cohort), sent, sent)
        squared = float(result.squared_weight)
        metrics["meta_loss"] = metrics[TRAIN_LOSS]
        metrics["effective_num_clients"] = float(result.weight) ** 2 / squared if squared else 0.0
        metrics["mean_resource"] = float(current.mean())
        metrics["mean_fine_tuning_steps"] = float(self.plan(state).num_steps.mean())
        metrics["energy"] = float(state.energy)
        metrics["energy_examples"] = float(state.energy) * self.compute_mean_batch()
        return metrics

    def plan(self, state: ServerState) -> FineTuningPlan:
        """N_i and alpha_i of every device."""
        tuning = self.config.fine_tuning
        return plan_fine_tuning(tuning.rule, self.compute_resources(state), tuning.steps, tuning.learning_rate)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.model}

    def client_model(self, state: ServerState) -> list[str]:
        del state
        return ["global"] * len(self.clients.everyone)

    def personalize(self, state: ServerState, clients: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        return self.personalize_from(state, clients, self.config.fine_tuning.start)

    def personalize_from(
        self, state: ServerState, clients: Sequence[ClientShard], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientShard, Weights]]:
        weights = self.initial_weights if start == INITIAL else state.model
        return self.fine_tune(weights, clients, self.plan(state), most_steps)

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return list_plan(self.compute_resources(state), self.plan(state))

    def summarize(self, state: ServerState) -> dict:
        plan = self.plan(state)
        return {
            "energy_of_training": float(state.energy),
            "energy_of_training_examples": float(state.energy) * self.compute_mean_batch(),
            "energy_of_fine_tuning": float(plan.num_steps.sum()),
            **summarize_plan(plan, self.config.fine_tuning.batch_size, self.clients),
            **super().summarize(state),
        }


def _to_array(value: tf.Tensor | float) -> np.ndarray:
    """A leaf of an optimizer's state; hyperparameters are Python numbers there."""
    return tf.convert_to_tensor(value).numpy()


def build_amfl_p_process(model_spec: ModelSpec, clients: FederatedData, config: AMFLPConfig, seed: int) -> AMFLPProcess:
    """AMFL-P as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model; of float weights that are all trained (no BatchNorm).
      clients: the federation.
      config: settings.
      seed: of the first weights, the resources, the cohorts, the batches and the fine-tuning.

    Raises:
      ConfigError: a device has fewer examples than a support and a query batch, or the model has weights that are not
        trained, losses of its own or constraints, is quantization-aware, computes in bfloat16 or augments its examples.
    """
    config.check_examples(int(clients.num_train.min()))
    if model_spec.quantization is not None:
        raise ConfigError("--quantize", "qat", "none, since meta-gradients go through float weights; export with int8")
    model = model_spec.build()
    if model.non_trainable_weights:
        expected = "a model whose weights are all trained, without BatchNorm, since meta-gradients go through them"
        raise ConfigError("--model", model_spec.name, expected)
    if terms := find_training_terms(model, model_spec.model_input_shape, model_spec.model_input_dtype):
        expected = f"a model without {terms[0]} (regularizers, add_loss, constraints), which meta-gradients do not heed"
        raise ConfigError("--model", model_spec.name, expected)
    if model_spec.precision != "float32":
        raise ConfigError("--precision", model_spec.precision, "float32, since meta-gradients go through float weights")
    if model_spec.augment is not None:
        raise ConfigError("--augment", "crop_flip", "none, since meta-gradients are of the examples as they are")
    initial_weights = initialize_weights(model_spec, seed)
    specs = tuple(tf.TensorSpec(array.shape, array.dtype) for array in initial_weights)
    optimizer_state = tf.nest.map_structure(_to_array, build_server_optimizer(config).initialize(specs))
    if config.privacy.is_active:
        num_clients = len(clients.clients)
        size = min(config.cohort_size or num_clients, num_clients)
        accounting = Accounting(config.privacy.delta, num_clients, size, config.participation)
        private_sum = build_private_sum(config.privacy, accounting, seed)
        run_round = build_private_round(model_spec, config, initial_weights)
    else:
        private_sum, run_round = None, build_round(model_spec, config, initial_weights, optimizer_state)
    return AMFLPProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        initial_optimizer=tuple(tf.nest.flatten(optimizer_state)),
        optimizer_state=optimizer_state,
        run_round=run_round,
        fine_tune=build_fine_tuning(model_spec, config.fine_tuning, initial_weights, seed),
        private_sum=private_sum,
    )
