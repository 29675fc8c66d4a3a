"""What tests of a client's work share."""

import pytest

from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.rounds.training_phase import SlotInput, TrainingPhase, build_group_training
from tff_algos.rounds.transport import build_transport
from tff_algos.weights import add_deltas, is_float


@pytest.fixture(scope="module")
def build_mean_round(tff_runtime):
    """A function (spec, training, weights) -> (models stacked alone, inputs) -> the next models: a round of FedAvg."""

    def build(spec, training, weights):
        shapes = tuple(array.shape for array in weights if is_float(array))
        work, transport = build_group_training(spec, training), build_transport(spec, weights, 0)
        phase = TrainingPhase(work, transport, SumAggregator(), shapes)

        def run_round(models, inputs):
            placed = [SlotInput(each) for each in inputs]
            return add_deltas(models, phase.run(models, placed, 1, (), 1).aggregate.update)

        return run_round

    return build
