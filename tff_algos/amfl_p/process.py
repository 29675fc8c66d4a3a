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
resources (section 3.3). The server never sees data or losses, only sums.

| paper | here |
|---|---|
| theta | `ServerState.model` |
| K, alpha, beta | `inner_steps`, `inner_learning_rate`, `meta_learning_rate` |
| D_i^train, D_i^test, D_i^val | support batch, query batch, the device's validation split |
| R_i, R_max | `ServerState.resources` (times battery and load if dynamic), their largest |
| N_max, alpha_max | `fine_tuning.steps`, `fine_tuning.learning_rate` |
| Q_i, w_i | `weighting.compute_quality`, `compute_unnormalized_weight` over its sum |

Limit cases: no inner steps and equal weights are distributed gradient descent on the query batches; equal R and equal Q
give equal weights.

Deviations from the paper:
- The printed inner loop and fine-tuning sum gradients at one point, theta. Here both take one step after another, as
  Finn et al. do and as "performing K gradient steps" says.
- The paper's D_i^test is a batch of local training data in MAML's sense. Here it is drawn from the train split, so that
  the device's test split is never trained on.
- The paper names neither K nor alpha_max nor any batch size.
- The server's step can have momentum or be Adam's. First-order MAML and Reptile are options.
- A device without a validation split is weighted by its query loss.
- Fine-tuning goes over mini-batches of the train split, in a new order each epoch; the paper's uses all of D_i.
- Resources can change from round to round; the paper names fixed ones as a limitation.
- The clock takes the devices' speeds, as for all algorithms, not R_i.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import ClientShard, FederatedData
from models.model_spec import ModelSpec
from tff_algos.amfl_p.config import AMFLPConfig
from tff_algos.amfl_p.maml import Batch, build_predict, compute_loss, compute_meta_gradient, compute_reptile_gradient
from tff_algos.amfl_p.resources import (
    DeviceState,
    advance_devices,
    compute_dynamic_resources,
    compute_fine_tuning_rates,
    compute_fine_tuning_steps,
    draw_device_state,
    draw_resources,
)
from tff_algos.amfl_p.weighting import compute_unnormalized_weight
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import CLIENT_INPUT_TYPE, ClientInput, compute_padded_size, pad_cohort
from tff_algos.client.fine_tuning import FineTune, build_fine_tuning
from tff_algos.client.local_training import reject_if_not_finite
from tff_algos.protocol import TRAIN_LOSS, FederatedProcess, RoundOutput, Weights
from tff_algos.rounds.aggregation import ClientUpdate, RoundTotals, compute_group_means, sum_by_group, summarize_totals
from tff_algos.rounds.round_metrics import build_common_metrics
from tff_algos.seeds import derive_generator, derive_seed
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.byte_ledger import compute_model_bytes
from tff_algos.simulation.virtual_clock import compute_client_seconds, compute_synchronous_round_s
from tff_algos.weights import build_model_type, initialize_weights

SERVER_MOMENTUM = 0.9


class ServerState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      model: the global model, the start of all personal ones.
      optimizer: the leaves of the server optimizer's state.
      resources: R_i of each device as drawn, float64, shape (clients,).
      devices: batteries and loads; they stay as they are if resources are static.
      energy: spent on training so far, in steps of a mini-batch, float64.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    model: Weights
    optimizer: tuple[np.ndarray, ...]
    resources: np.ndarray
    devices: DeviceState
    energy: np.float64


class RoundResult(NamedTuple):
    """What the server learns: the usual totals, and the sums of the unnormalized weights and of their squares."""

    totals: RoundTotals
    weight: tf.Tensor
    squared_weight: tf.Tensor


def build_server_optimizer(config: AMFLPConfig) -> tff.learning.optimizers.Optimizer:
    """The optimizer of step 4, at rate beta."""
    if config.server_optimizer == "adam":
        return tff.learning.optimizers.build_adam(config.meta_learning_rate)
    momentum = SERVER_MOMENTUM if config.server_optimizer == "momentum" else None
    return tff.learning.optimizers.build_sgdm(config.meta_learning_rate, momentum=momentum)


def build_client_update(model_spec: ModelSpec, config: AMFLPConfig) -> Callable:
    """Steps 1 to 3 as a function (weights, ClientInput) -> ClientUpdate with the negative meta-gradient as update.

    `ClientInput.weight` is the device's R_i, and its `learning_rate` is alpha.
    """
    predict = build_predict(model_spec)

    def draw_batches(x, y, seed) -> tuple[Batch, Batch]:
        order = tf.random.experimental.stateless_shuffle(tf.range(tf.shape(y)[0]), seed)
        # Without replacement, so that no example is in both batches.
        drawn = order[: config.support_size + config.query_size]
        if config.query_after_support:  # examples in order of time: the query batch is the later part of the draw
            drawn = tf.sort(drawn)
        support, query = drawn[: config.support_size], drawn[config.support_size :]
        return Batch(tf.gather(x, support), tf.gather(y, support)), Batch(tf.gather(x, query), tf.gather(y, query))

    def update(weights, client) -> ClientUpdate:
        x, y = read_split(client.path, "train", model_spec)
        support, query = draw_batches(x, y, client.seed)
        arguments = (predict, weights, support, query, config.inner_steps, client.learning_rate)
        if config.reptile:
            meta = compute_reptile_gradient(*arguments)
        else:
            meta = compute_meta_gradient(*arguments, first_order=config.first_order)
        validation = Batch(*read_split(client.path, "validation", model_spec))
        has_validation = tf.shape(validation.y)[0] > 0
        loss = tf.where(has_validation, compute_loss(predict, meta.adapted, validation), meta.query_loss)
        num_train, num_query = (tf.cast(tf.shape(labels)[0], tf.float32) for labels in (y, query.y))
        weight = compute_unnormalized_weight(config.weighting, loss, client.weight, num_train)
        # Updates point downhill, as in all algorithms; `server_update` turns the sign back for its optimizer.
        result = reject_if_not_finite([-g for g in meta.gradient], meta.query_loss * num_query, num_query)
        is_there = tf.cast(tf.shape(y)[0] > 0, tf.float32)  # a padded place in the cohort has no weight
        return ClientUpdate(result, client.group, weight * is_there)

    return update


def build_round(model_spec: ModelSpec, config: AMFLPConfig, template_weights: Weights, optimizer_state) -> Callable:
    """({model, optimizer state}@SERVER, {ClientInput}@CLIENTS) -> <model, optimizer state, RoundResult>@SERVER."""
    optimizer = build_server_optimizer(config)
    update_client = build_client_update(model_spec, config)
    model_type = build_model_type(template_weights)
    leaves_type = build_model_type(tf.nest.flatten(optimizer_state))  # arrays, too
    server_type = tff.StructWithPythonType([model_type, leaves_type], tuple)

    @tff.tensorflow.computation(model_type, CLIENT_INPUT_TYPE)
    def client_work(model, client):
        update = update_client(tuple(model), client)
        weight = tf.where(update.result.is_finite, update.weight, 0.0)
        return update, tf.square(weight)

    @tff.tensorflow.computation
    def server_update(server, totals, squared_weight):
        model, leaves = tuple(server[0]), tuple(server[1])
        gradient = tuple(-mean[0] for mean in compute_group_means(totals))
        state = tf.nest.pack_sequence_as(optimizer_state, leaves)
        new_state, stepped = optimizer.next(state, model, gradient)
        result = RoundResult(summarize_totals(totals), totals.weight[0], squared_weight)
        return tuple(stepped), tuple(tf.nest.flatten(new_state)), result

    @tff.federated_computation(
        tff.FederatedType(server_type, tff.SERVER), tff.FederatedType(CLIENT_INPUT_TYPE, tff.CLIENTS)
    )
    def run_round(server, clients):
        updates, squared = tff.federated_map(client_work, (tff.federated_broadcast(server[0]), clients))
        return tff.federated_map(server_update, (server, sum_by_group(updates, 1), tff.federated_sum(squared)))

    return run_round


@dataclasses.dataclass(frozen=True, eq=False)
class AMFLPProcess(FederatedProcess):
    """AMFL-P; the fields are what stays the same from round to round.

    Attributes:
      clients, config, seed: see `build_amfl_p_process`.
      initial_weights: the global model before the first round.
      initial_optimizer: the leaves of the server optimizer's first state.
      run_round: the computation of `build_round`.
      fine_tune: makes the personal models.
    """

    is_personal = True

    clients: FederatedData
    config: AMFLPConfig
    seed: int
    initial_weights: Weights
    initial_optimizer: tuple[np.ndarray, ...]
    run_round: Callable
    fine_tune: FineTune

    def initialize(self) -> ServerState:
        num_clients, config = len(self.clients.clients), self.config
        generator = derive_generator(self.seed, "resources")
        resources = draw_resources(num_clients, config.min_resource, config.max_resource, generator)
        devices = draw_device_state(num_clients, generator)
        zero = np.float64(0.0)
        return ServerState(np.int32(0), zero, self.initial_weights, self.initial_optimizer, resources, devices, zero)

    def compute_resources(self, state: ServerState) -> np.ndarray:
        """R_i(t) of every device."""
        if self.config.resources == "static":
            return state.resources
        return compute_dynamic_resources(state.resources, state.devices)

    def choose_cohort(self, current: np.ndarray, round_num: int) -> np.ndarray:
        """The devices of a round, ascending; with dynamic resources, those below the floor sit out."""
        able = np.arange(len(current))
        if self.config.resources == "dynamic":
            able = np.flatnonzero(current >= self.config.resource_floor)
        size = min(self.config.cohort_size or len(able), len(able))
        if size == len(able):
            return able
        return np.sort(derive_generator(self.seed, "cohort", round_num).choice(able, size, replace=False))

    def next(self, state: ServerState) -> RoundOutput:
        round_num, config = int(state.round_num) + 1, self.config
        # Step 1
        current = self.compute_resources(state)
        cohort = self.choose_cohort(current, round_num)
        inputs = [
            ClientInput(
                self.clients.clients[index].path,
                derive_seed(self.seed, "meta-training", round_num, index),
                np.int32(0),
                np.float32(current[index]),
                np.float32(config.inner_learning_rate),
            )
            for index in cohort
        ]
        # Steps 2 to 4
        places = compute_padded_size(config.cohort_size or len(self.clients.clients))
        model, optimizer, result = self.run_round((state.model, state.optimizer), pad_cohort(inputs, places))
        # Step 5
        took_part = np.isin(np.arange(len(current)), cohort)
        generator = derive_generator(self.seed, "devices", round_num)
        devices = advance_devices(state.devices, current, took_part, generator)
        new_state = ServerState(
            np.int32(round_num),
            np.float64(state.virtual_time_s + self.compute_round_s(cohort)),
            tuple(map(np.asarray, model)),
            tuple(map(np.asarray, optimizer)),
            state.resources,
            devices if config.resources == "dynamic" else state.devices,
            np.float64(state.energy + len(cohort) * (config.inner_steps + 1)),
        )
        return RoundOutput(new_state, self.build_metrics(new_state, result, cohort, current))

    def compute_round_s(self, cohort: np.ndarray) -> float:
        """Virtual seconds of a round: K support batches and the query batch, and a model each way."""
        config, model_bytes = self.config, compute_model_bytes(self.initial_weights)
        num_examples = np.full(len(cohort), config.inner_steps * config.support_size + config.query_size)
        return compute_synchronous_round_s(
            compute_client_seconds(self.clients.profiles, cohort, num_examples, model_bytes, model_bytes)
        )

    def build_metrics(
        self, state: ServerState, result: RoundResult, cohort: np.ndarray, current: np.ndarray
    ) -> dict[str, float]:
        sent = len(cohort) * compute_model_bytes(self.initial_weights)
        metrics = build_common_metrics(result.totals, state.virtual_time_s, len(cohort), sent, sent)
        squared = float(result.squared_weight)
        metrics["meta_loss"] = metrics[TRAIN_LOSS]
        metrics["effective_num_clients"] = float(result.weight) ** 2 / squared if squared else 0.0
        metrics["mean_resource"] = float(current.mean())
        metrics["mean_fine_tuning_steps"] = float(self.compute_steps(state).mean())
        metrics["energy"] = float(state.energy)
        return metrics

    def compute_steps(self, state: ServerState) -> np.ndarray:
        """N_i of every device."""
        return compute_fine_tuning_steps(self.compute_resources(state), self.config.fine_tuning.steps)

    def get_models(self, state: ServerState) -> dict[str, Weights]:
        return {"global": state.model}

    def client_model(self, state: ServerState) -> list[str]:
        del state
        return ["global"] * len(self.clients.clients)

    def personalize(self, state: ServerState, clients: Sequence[ClientShard]) -> Iterator[tuple[ClientShard, Weights]]:
        indices = np.array([client.index for client in clients], int)
        rates = compute_fine_tuning_rates(self.compute_resources(state), self.config.fine_tuning.learning_rate)
        return self.fine_tune(state.model, clients, self.compute_steps(state)[indices], rates[indices])

    def client_columns(self, state: ServerState) -> dict[str, list]:
        resources = self.compute_resources(state)
        rates = compute_fine_tuning_rates(resources, self.config.fine_tuning.learning_rate)
        steps = self.compute_steps(state)
        return {
            "resource": resources.tolist(),
            "fine_tuning_steps": steps.tolist(),
            "fine_tuning_learning_rate": rates.tolist(),
        }

    def summarize(self, state: ServerState) -> dict:
        steps = self.compute_steps(state)
        num_examples = steps * self.config.fine_tuning.batch_size
        seconds = compute_client_seconds(self.clients.profiles, np.arange(len(steps)), num_examples, 0, 0)
        return {
            "energy_of_training": float(state.energy),
            "energy_of_fine_tuning": float(steps.sum()),
            "mean_fine_tuning_steps": float(steps.mean()),
            "fine_tuning_virtual_s": float(seconds.max()),
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
        trained, is quantization-aware, computes in bfloat16 or augments its examples.
    """
    needed, fewest = config.support_size + config.query_size, int(clients.num_train.min())
    if fewest < needed:
        expected = f"support_size + query_size of at most {fewest}, the examples of the smallest client, not {needed}"
        raise ConfigError("support_size", config.support_size, expected)
    if model_spec.quantization is not None:
        raise ConfigError("--quantize", "qat", "none, since meta-gradients go through float weights; export with int8")
    if model_spec.build().non_trainable_weights:
        expected = "a model whose weights are all trained, without BatchNorm, since meta-gradients go through them"
        raise ConfigError("--model", model_spec.name, expected)
    if model_spec.precision != "float32":
        raise ConfigError("--precision", model_spec.precision, "float32, since meta-gradients go through float weights")
    if model_spec.augment is not None:
        raise ConfigError("--augment", "crop_flip", "none, since meta-gradients are of the examples as they are")
    initial_weights = initialize_weights(model_spec, seed)
    specs = tuple(tf.TensorSpec(array.shape, array.dtype) for array in initial_weights)
    optimizer_state = tf.nest.map_structure(_to_array, build_server_optimizer(config).initialize(specs))
    return AMFLPProcess(
        clients=clients,
        config=config,
        seed=seed,
        initial_weights=initial_weights,
        initial_optimizer=tuple(tf.nest.flatten(optimizer_state)),
        run_round=build_round(model_spec, config, initial_weights, optimizer_state),
        fine_tune=build_fine_tuning(model_spec, config.fine_tuning, initial_weights, seed),
    )
