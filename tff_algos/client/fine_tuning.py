"""Personal models: each client trains the shared model on its own examples, with its own number of steps and rate.

Functional type of the computation: (weights@SERVER, {FineTuningInput}@CLIENTS) -> {weights}@CLIENTS
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow_federated as tff

from datasets.federated_data import ClientFiles, FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import pad_cohort
from tff_algos.client.local_training import train_locally
from tff_algos.late_computation import LateComputation
from tff_algos.protocol import CLIENT_STEPS, FINE_TUNING_S, RESOURCE, ClientWork, Weights
from tff_algos.seeds import derive_seed
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.device_work import compute_joules
from tff_algos.simulation.resources import FineTuningPlan
from tff_algos.simulation.virtual_clock import compute_client_seconds
from tff_algos.weights import add_deltas, build_stacked_type, build_type, stack_models

# Clients of one call: the result holds a model for each, and every distinct size costs the worker an executor.
_CLIENTS_PER_CALL = 64


class FineTuningInput(NamedTuple):
    """What a client is told: path and seed as in `cohort.ClientInput`, number of steps, int32, and rate, float32."""

    path: str
    seed: np.ndarray
    num_steps: np.int32
    learning_rate: np.float32


# An empty slot takes no step.
NOBODY = FineTuningInput("", np.zeros(2, np.int32), np.int32(0), np.float32(0))

FineTune = Callable[[Weights, Sequence[ClientFiles], FineTuningPlan, int | None], Iterator[tuple[ClientFiles, Weights]]]


def build_fine_tuning_steps(model_spec: ModelSpec, config: FineTuningConfig) -> Callable:
    """What a client does to its weights, as a TensorFlow function.

    Of the settings only the batch size is read: the function `(weights, x, y, seed, learning_rate, num_steps) ->
    weights` is told the rate and the number of steps.
    """
    # Steps and rate are stand-ins.
    training = LocalTrainingConfig(steps=1, batch_size=config.batch_size, optimizer="sgd", learning_rate=1.0)

    def train(weights, x, y, seed, learning_rate, num_steps):
        result = train_locally(model_spec, training, weights, x, y, seed, learning_rate, num_steps=num_steps)
        return add_deltas(weights, result.weights_delta)

    return train


def build_fine_tuning(
    model_spec: ModelSpec, config: FineTuningConfig, template_weights: Weights, seed: int
) -> FineTune:
    """Returns `fine_tune(weights, clients, plan, most_steps=None) -> iterator of (client, its weights)`.

    The plan is that of all devices, by index. With `most_steps`, a client stops after so many of its steps: these are
    the first ones of its whole training, which visits its examples in the same order. A client whose training is not
    finite keeps the weights it started from. The same arguments give the same weights.

    Args:
      model_spec: the model.
      config: only its batch size is read.
      template_weights: one model's weights, for their shapes and dtypes.
      seed: the run's; the order of each client's examples is derived from it.
    """
    model_type = build_stacked_type(template_weights, 1)
    tune = LateComputation(_build_tuning, build_fine_tuning_steps(model_spec, config), model_spec, model_type)

    def fine_tune(weights, clients, plan, most_steps=None):
        model = stack_models([weights])
        indices = np.array([client.index for client in clients], int)
        num_steps, learning_rates = plan.num_steps[indices], plan.learning_rates[indices]
        if most_steps is not None:
            # The first steps of the whole training, since the order of examples follows from the seed alone.
            num_steps = np.minimum(num_steps, most_steps)
        for first in range(0, len(clients), _CLIENTS_PER_CALL):
            part = slice(first, first + _CLIENTS_PER_CALL)
            inputs = [
                FineTuningInput(
                    client.path, derive_seed(seed, "fine-tuning", 0, client.index), np.int32(steps), np.float32(rate)
                )
                for client, steps, rate in zip(clients[part], num_steps[part], learning_rates[part], strict=True)
            ]
            tuned_models = tune(model, pad_cohort(inputs, padding=NOBODY))
            for client, tuned in zip(clients[part], tuned_models, strict=False):  # padded slots come last
                yield client, tuple(map(np.asarray, tuned))

    return fine_tune


def _build_tuning(train: Callable, model_spec: ModelSpec, model_type: tff.Type) -> Callable:
    input_type = build_type(NOBODY)

    @tff.tensorflow.computation(model_type, input_type)
    def client_work(model, client):
        x, y = read_split(client.path, "train", model_spec)
        start = tuple(array[0] for array in model)
        return train(start, x, y, client.seed, client.learning_rate, client.num_steps)

    @tff.federated_computation(tff.FederatedType(model_type, tff.SERVER), tff.FederatedType(input_type, tff.CLIENTS))
    def tune(model, clients):
        return tff.federated_map(client_work, (tff.federated_broadcast(model), clients))

    return tune


def list_plan(resources: np.ndarray, plan: FineTuningPlan) -> dict[str, list]:
    """The columns of clients.csv that tell what each device could afford."""
    return {
        RESOURCE: resources.tolist(),
        CLIENT_STEPS: plan.num_steps.tolist(),
        "fine_tuning_learning_rate": plan.learning_rates.tolist(),
    }


def count_plan_examples(plan: FineTuningPlan, batch_size: int, data: FederatedData) -> np.ndarray:
    """Examples that each device trains on, its steps times its batch; float64, shape (clients,)."""
    return plan.num_steps * np.minimum(batch_size, [client.num_train for client in data.everyone]).astype(np.float64)


def summarize_plan(plan: FineTuningPlan, batch_size: int, data: FederatedData) -> dict[str, float]:
    """What fine-tuning costs: steps of a device on average, examples of all devices, virtual seconds of the slowest.

    And joules of all devices, where it is known what they spend.
    """
    num_examples, energy = count_plan_examples(plan, batch_size, data), data.profiles.energy
    work = ClientWork(np.arange(len(num_examples)), num_examples)
    seconds = compute_client_seconds(data.profiles, *work)
    joules = {} if energy is None else {"fine_tuning_joules": float(compute_joules(energy, [work]).sum())}
    return {
        "energy_of_fine_tuning_examples": float(num_examples.sum()),
        "mean_fine_tuning_steps": float(plan.num_steps.mean()),
        FINE_TUNING_S: float(seconds.max()),
        **joules,
    }
