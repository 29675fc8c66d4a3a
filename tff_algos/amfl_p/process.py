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
| Q_i, w_i | `compute_quality`, `compute_unnormalized_weight` over its sum |

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
- The server's step can have momentum or be Adam's. First-order MAML and Reptile are options. Reptile takes its K inner
  steps on the one support batch, as MAML's are here; Nichol et al. (2018) draw a new batch for each.
- A device without a validation split is weighted by its query loss.
- Fine-tuning goes over mini-batches of the train split, in a new order each epoch; the paper's uses all of D_i.
- The defaults are not the printed values, which the experiments `amfl_p_building_*` have: trials chose them, among
  them the steps alone by resources, at one rate (docs/algorithms.md).
- Resources can change from round to round; the paper names fixed ones as a limitation.
- Energy is gradient steps times the examples in each, those of MAML's second derivatives counted once. Forward passes,
  over validation splits and over Reptile's query batch, are not counted.
- The clock takes the devices' speeds, as for all algorithms, not R_i.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from models.stateless_dropout import dropout_seed
from models.training_terms import find_training_terms
from tff_algos.amfl_p.config import USES_QUALITY, USES_RESOURCE, AMFLPConfig
from tff_algos.amfl_p.maml import Batch, build_predict, compute_loss, compute_meta_gradient, compute_reptile_gradient
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.cohort import ClientInput
from tff_algos.client.fine_tuning import build_fine_tuning_steps, count_plan_examples, list_plan
from tff_algos.client.local_training import reject_if_not_finite, reject_unless
from tff_algos.protocol import ClientWork, FederatedProcess, Weights
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.fine_tuned import add_fine_tuning
from tff_algos.rounds.synchronous import Participant, SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import LocalWork, PhaseOutcome, Sent, Told
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.resources import (
    DeviceState,
    FineTuningPlan,
    advance_devices,
    compute_dynamic_resources,
    draw_devices,
    plan_fine_tuning,
)


class MetaInput(NamedTuple):
    """What a device is told beside the usual.

    Attributes:
      resource: R_i, float32.
      num_steps: N_i, int32, and
      fine_tuning_rate: alpha_i, float32; both are read only if the fine-tuned model is judged.
    """

    resource: np.float32 = np.float32(0)
    num_steps: np.int32 = np.int32(0)
    fine_tuning_rate: np.float32 = np.float32(0)


def compute_quality(validation_loss: tf.Tensor) -> tf.Tensor:
    """Q_i = exp(-L_i), L_i the mean cross-entropy of the adapted model on the device's validation split; in (0, 1]."""
    return tf.exp(-validation_loss)


def compute_unnormalized_weight(
    weighting: str, validation_loss: tf.Tensor, resource: tf.Tensor, num_examples: tf.Tensor
) -> tf.Tensor:
    """The numerator of w_i = Q_i R_i / sum_j Q_j R_j (section 3.4), float32.

    A device computes its own, and the server only sums, so it needs nobody's loss or data. Each factor can be left out,
    or both replaced by the number of examples.

    Args:
      weighting: "adaptive" (Q_i R_i), "resource" (R_i), "quality" (Q_i), "examples" (those of its train split) or
        "equal" (1).
      validation_loss: L_i.
      resource: R_i.
      num_examples: float32.
    """
    if weighting == "examples":
        return num_examples
    weight = tf.ones_like(resource)
    if weighting in USES_QUALITY:
        weight *= compute_quality(validation_loss)
    if weighting in USES_RESOURCE:
        weight *= resource
    return weight


class WeightSums(NamedTuple):
    """The sums of the devices' unnormalized weights and of their squares, float32."""

    weight: tf.Tensor
    squared_weight: tf.Tensor


def build_meta_training(model_spec: ModelSpec, config: AMFLPConfig) -> LocalWork:
    """Steps 1 to 3, with the negative meta-gradient as the update, and `WeightSums` beside it.

    What is sent is the model alone; a device's learning rate is alpha. Q_i is that of the model after the inner steps
    or, with `quality_model` = fine_tuned, of theta_i (section 3.3).
    """
    predict, task = build_predict(model_spec), model_spec.task
    train = build_fine_tuning_steps(model_spec, config.fine_tuning) if config.judges_fine_tuned else None
    num_support, num_drawn = config.support_size, config.support_size + config.query_size
    is_in_order, inner_steps, weighting = config.query_after_support, config.inner_steps, config.weighting
    compute_gradient = functools.partial(compute_meta_gradient, first_order=config.first_order)
    if config.reptile:
        compute_gradient = compute_reptile_gradient

    def fine_tune(weights, x, y, seed, own: MetaInput):
        # Apart from the seed that draws the batches, and from that of dropout below.
        seed = tf.random.experimental.stateless_fold_in(seed, 1)
        return train(weights, x, y, seed, own.fine_tuning_rate, own.num_steps)

    def draw_batches(x, y, seed) -> tuple[Batch, Batch]:
        order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(y)[0]), seed)
        drawn = order[:num_drawn]  # without replacement, so that no example is in both batches
        if is_in_order:  # examples in order of time: the query batch is the later part of the draw
            drawn = tf.sort(drawn)
        support, query = drawn[:num_support], drawn[num_support:]
        return Batch(tf.gather(x, support), tf.gather(y, support)), Batch(tf.gather(x, query), tf.gather(y, query))

    def work(told: Told) -> Sent:
        # One seed for all batches of the round, since the model is traced once for each shape of a batch.
        with dropout_seed(tf.random.experimental.stateless_fold_in(told.client.seed, 2)):
            update = compute_update(tuple(told.models), told.client, told.own)
        weight = tf.where(update.result.is_finite, update.weight, 0.0)
        return Sent(update, WeightSums(weight, tf.square(weight)))

    def compute_update(weights, client, own: MetaInput) -> ClientUpdate:
        x, y = read_split(client.path, "train", model_spec)
        support, query = draw_batches(x, y, client.seed)
        meta = compute_gradient(predict, weights, support, query, inner_steps, client.learning_rate, task=task)
        validation = Batch(*read_split(client.path, "validation", model_spec))
        has_validation = tf.shape(validation.y)[0] > 0
        judged = fine_tune(weights, x, y, client.seed, own) if train else meta.adapted
        # The loss of an empty split is 0, which would be the best quality there is.
        loss = tf.where(has_validation, compute_loss(predict, judged, validation, task), meta.query_loss)
        num_train = tf.cast(tf.shape(y)[0], tf.float32)
        query_labels, _ = split_labels(query.y, task)
        num_query = tf.reduce_sum(task.compute_weights(query_labels))  # examples, or what the task weighs them by
        weight = compute_unnormalized_weight(weighting, loss, own.resource, num_train)
        # Updates point downhill, as in all algorithms.
        result = reject_if_not_finite([-g for g in meta.gradient], meta.query_loss * num_query, num_query)
        # The judged model can have diverged where the update has not, and a weight of NaN would make the sum NaN.
        is_judged = tf.math.is_finite(weight)
        weight = tf.where(is_judged & (tf.shape(y)[0] > 0), weight, 0.0)  # an empty slot of the cohort has none
        return ClientUpdate(reject_unless(is_judged, result), tf.constant(0), weight)

    return work


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      model: the global model, the start of all personal ones.
      server: the leaves of the server optimizer's state.
      resources: R_i of each device as drawn, new ones last, float64, shape (devices,).
      devices: batteries and loads; they stay as they are if resources are static.
      energy: spent on training so far, in steps of a round's mean batch (see `compute_mean_batch`), float64.
      aggregator: of the aggregator.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    model: Weights
    server: tuple[np.ndarray, ...]
    resources: np.ndarray
    devices: DeviceState
    energy: np.float64
    aggregator: Any = ()


class AMFLPProcess(SynchronousProcess):
    """AMFL-P without the personal models, which `add_fine_tuning` makes."""

    own_blank = MetaInput()
    map_models = None  # the optimizer's state is always of the model's shapes

    def initialize(self) -> ServerState:
        config = self.config
        num_devices, known = len(self.clients.everyone), self.clients.profiles.resources
        resources, devices = draw_devices(num_devices, self.seed, config.min_resource, config.max_resource, known)
        zero, server = np.float64(0.0), self.server_step.initialize_one()
        aggregator = self.aggregator.initialize(1)
        return ServerState(np.int32(0), zero, self.initial_weights, server, resources, devices, zero, aggregator)

    def compute_resources(self, state: ServerState) -> np.ndarray:
        """R_i(t) of every device, new ones last."""
        if self.config.resources == "static":
            return state.resources
        return compute_dynamic_resources(state.resources, state.devices)

    def find_able(self, state: ServerState) -> np.ndarray:
        """With dynamic resources, those below the floor sit out. New devices are not there yet."""
        if self.config.resources == "static":
            return self.everyone
        return np.flatnonzero(self.compute_resources(state)[: len(self.everyone)] >= self.config.resource_floor)

    def distribute(self, state: ServerState) -> Weights:
        return state.model

    def count_groups(self, state: ServerState) -> int:
        return 1

    def invite(self, state: ServerState, cohort: np.ndarray, purpose: str = "meta-training") -> list[Participant]:
        current, plan, round_num = self.compute_resources(state), self.plan(state), int(state.round_num) + 1
        # The weight is made on the device, of losses and resources that the server never sees.
        group, weight, rate = np.int32(0), np.float32(1), np.float32(self.config.inner_learning_rate)
        invited = []
        for index in cohort.tolist():
            seed, path = derive_seed(self.seed, purpose, round_num, index), self.clients.clients[index].path
            steps, own_rate = np.int32(plan.num_steps[index]), np.float32(plan.learning_rates[index])
            own = MetaInput(np.float32(current[index]), steps, own_rate)
            invited.append(Participant(index, ClientInput(path, seed, group, weight, rate), own))
        return invited

    def apply(self, state: ServerState, outcome: PhaseOutcome) -> ServerState:
        """Step 4; if no device counts, the model stays, where an optimizer's momentum would carry it on."""
        if not outcome.aggregate.has_update.any():
            return state
        update = tuple(array[0] for array in outcome.aggregate.update)
        model, server = self.server_step.step_one(state.model, update, state.server, outcome.aggregate.divisor)
        return state._replace(model=model, server=server)

    def finish(
        self, state: ServerState, stepped: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> ServerState:
        """Step 5."""
        current = self.compute_resources(state)
        generator = derive_generator(self.seed, "devices", int(stepped.round_num))
        judging = sum(float(work.num_examples.sum()) for work in self.list_untimed(state, cohort))
        took_part = np.isin(np.arange(len(current)), cohort)
        devices = advance_devices(state.devices, current, took_part, generator)
        return stepped._replace(
            devices=devices if self.config.resources == "dynamic" else state.devices,
            energy=np.float64(state.energy + len(cohort) * self.steps_per_round + judging / self.compute_mean_batch()),
        )

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

    def list_phases(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """What takes the time of a round: its examples, and a model each way."""
        model_bytes = self.transport.model_bytes
        return [ClientWork(cohort, np.full(len(cohort), self.examples_per_round), model_bytes, model_bytes)]

    def list_untimed(self, state: ServerState, cohort: np.ndarray) -> list[ClientWork]:
        """The steps that the cohort takes only to judge its data, which count as energy alone."""
        if not self.config.judges_fine_tuned:
            return []
        examples = count_plan_examples(self.plan(state), self.config.fine_tuning.batch_size, self.clients)
        return [ClientWork(cohort, examples[cohort])]

    def describe(
        self, state: ServerState, new_state: ServerState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> dict[str, float]:
        totals, sums = outcome.totals, outcome.sums
        num_trained, squared = float(totals.num_trained), float(sums.squared_weight)
        return {
            "meta_loss": float(totals.loss_sum) / num_trained if num_trained else float(np.nan),
            "effective_num_clients": float(sums.weight) ** 2 / squared if squared else 0.0,
            "mean_resource": float(self.compute_resources(state).mean()),
            "mean_fine_tuning_steps": float(self.plan(new_state).num_steps.mean()),
            "energy": float(new_state.energy),
            "energy_examples": float(new_state.energy) * self.compute_mean_batch(),
        }

    def plan(self, state: ServerState) -> FineTuningPlan:
        """N_i and alpha_i of every device."""
        tuning = self.config.fine_tuning
        return plan_fine_tuning(tuning.rule, self.compute_resources(state), tuning.steps, tuning.learning_rate)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.model}

    def client_columns(self, state: ServerState) -> dict[str, list]:
        return list_plan(self.compute_resources(state), self.plan(state))

    def summarize(self, state: ServerState) -> dict:
        return {
            "energy_of_training": float(state.energy),
            "energy_of_training_examples": float(state.energy) * self.compute_mean_batch(),
            "energy_of_fine_tuning": float(self.plan(state).num_steps.sum()),
            **super().summarize(state),
        }


def build_amfl_p_process(
    model_spec: ModelSpec, clients: FederatedData, config: AMFLPConfig, seed: int
) -> FederatedProcess:
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
        raise ConfigError("quantize", "qat", "none, since meta-gradients go through float weights; export with int8")
    model = model_spec.build()
    if model.non_trainable_weights:
        expected = "a model whose weights are all trained, without BatchNorm, since meta-gradients go through them"
        raise ConfigError("model", model_spec.name, expected)
    if terms := find_training_terms(model, model_spec.model_input_shape, model_spec.model_input_dtype):
        expected = f"a model without {terms[0]} (regularizers, add_loss, constraints), which meta-gradients ignore"
        raise ConfigError("model", model_spec.name, expected)
    if model_spec.precision != "float32":
        raise ConfigError("precision", model_spec.precision, "float32, since meta-gradients go through float weights")
    if model_spec.augment is not None:
        raise ConfigError("augment", "crop_flip", "none, since meta-gradients are of the examples as they are")
    work = build_meta_training(model_spec, config)
    parts = build_parts(model_spec, clients, config, seed, work, always_by_optimizer=True)
    process = AMFLPProcess(**parts)
    return add_fine_tuning(process, model_spec, config.fine_tuning, process.compute_resources)
