"""Fine-tuning at the end, around any process: each client trains its shared model on its own examples."""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData
from models.model_spec import ModelSpec
from tff_algos.client.fine_tuning import FineTune, build_fine_tuning, list_plan, summarize_plan
from tff_algos.protocol import FINE_TUNING_S, FederatedProcess, RoundOutput, State, Weights
from tff_algos.rounds.asked_rounds import find_obstacle
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.settings.fine_tuning import INITIAL, SAME, FineTuningConfig
from tff_algos.simulation.resources import FineTuningPlan, draw_devices, plan_fine_tuning
from tff_algos.weights import initialize_weights


@dataclasses.dataclass(frozen=True, eq=False)
class FineTunedProcess(ForwardingProcess):
    """An algorithm whose clients personalise its shared models at the end; the state is that of the algorithm.

    Attributes:
      process: the algorithm.
      clients: the federation.
      config: steps, rate, rule and start.
      initial_weights: the shared model before the first round, to compare its training with; None: with nothing.
      fine_tune: makes the personal models.
      compute_resources: (state) -> R_i of every device, new ones last; read by a rule of fine-tuning alone.
    """

    process: FederatedProcess
    clients: FederatedData
    config: FineTuningConfig
    initial_weights: Weights | None
    fine_tune: FineTune
    compute_resources: Callable[[State], np.ndarray]

    is_personal = True

    fine_tuning_start = property(lambda self: "" if self.initial_weights is None else self.config.start)
    curve = property(operator.attrgetter("config.curve"))
    map_models = property(operator.attrgetter("process.map_models"))
    list_work = property(operator.attrgetter("process.list_work"))
    # Clients that are asked fine-tune themselves.
    ask = property(operator.attrgetter("process.ask"))
    obstacle = property(lambda self: find_obstacle(self.process))

    def find_current(self, state: State) -> tuple[FederatedProcess, State]:
        return self.process, state

    def initialize(self) -> State:
        return self.process.initialize()

    def next(self, state: State) -> RoundOutput:
        return self.process.next(state)

    def plan(self, state: State) -> FineTuningPlan:
        """Steps and rate of every device."""
        resources = self.compute_resources(state)
        return plan_fine_tuning(self.config.rule, resources, self.config.steps, self.config.learning_rate)

    def personalize(self, state: State, clients: Sequence[ClientFiles]) -> Iterator[tuple[ClientFiles, Weights]]:
        return self.personalize_from(state, clients, self.config.start)

    def personalize_from(
        self, state: State, clients: Sequence[ClientFiles], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientFiles, Weights]]:
        plan = self.plan(state)
        if start == INITIAL:
            assert self.initial_weights is not None, "only of algorithms with a `fine_tuning_start`"
            yield from self.fine_tune(self.initial_weights, clients, plan, most_steps)
            return
        # As clients have the models, compressed or not: that is what they fine-tune.
        models, names = self.process.get_models(state), self.process.client_model(state)
        # One call for neighbours with the same model, which an evaluation puts side by side.
        for name, users in itertools.groupby(clients, lambda client: names[client.index]):
            yield from self.fine_tune(models[name], list(users), plan, most_steps)

    def client_columns(self, state: State) -> dict[str, list]:
        columns = self.process.client_columns(state)
        is_by_resources = self.config.rule != SAME
        return columns | (list_plan(self.compute_resources(state), self.plan(state)) if is_by_resources else {})

    def summarize(self, state: State) -> dict[str, Any]:
        return {**self.process.summarize(state), **self._summarize_plan(state)}

    def compute_final_s(self, state: State) -> float:
        return self._summarize_plan(state)[FINE_TUNING_S]

    def _summarize_plan(self, state: State) -> dict[str, float]:
        return summarize_plan(self.plan(state), self.config.batch_size, self.clients)


def add_fine_tuning(
    process: Any,
    model_spec: ModelSpec,
    config: FineTuningConfig,
    compute_resources: Callable[[State], np.ndarray] | None = None,
) -> FederatedProcess:
    """The process, with fine-tuning at its end if there are steps of it.

    Args:
      process: with the attributes `clients`, `seed` and `initial_weights`.
      model_spec: the model.
      config: settings.
      compute_resources: None: as the devices are drawn from the seed, the same for every algorithm.
    """
    if not config.steps:
        return process
    clients, seed, weights = process.clients, process.seed, process.initial_weights
    fine_tune = build_fine_tuning(model_spec, config, weights, seed)
    compute_resources = compute_resources or _build_draw(clients, seed)
    return FineTunedProcess(process, clients, config, weights, fine_tune, compute_resources)


def add_final_steps(
    process: FederatedProcess, model_spec: ModelSpec, clients: FederatedData, config: FineTuningConfig, seed: int
) -> FederatedProcess:
    """Any process, with fine-tuning of each client's shared model at its end; what training is worth is not measured.

    Args:
      process: the algorithm; its clients share models, and have none of their own yet.
      model_spec: that of all its models.
      clients: the federation.
      config: settings, those of training from its end.
      seed: the run's.
    """
    fine_tune = build_fine_tuning(model_spec, config, initialize_weights(model_spec, seed), seed)
    return FineTunedProcess(process, clients, config, None, fine_tune, _build_draw(clients, seed))


def _build_draw(clients: FederatedData, seed: int) -> Callable[[State], np.ndarray]:
    return lambda state: draw_devices(len(clients.everyone), seed, known=clients.profiles.resources)[0]
