"""One process of pfl-research in `.venv-pfl`, with nothing of this project: trains its share of the users of a round.

Started by `pfl_research`, never by hand: directly for one process, by torchrun for several. It is what pfl-research's
own benchmarks do for speed: each user's tensors stay in memory, the GPU's if it computes there, ready to train on,
images and kernels in PyTorch's channels-last layout, and local Adam is fused into one call. How it is asked is in
`torch_student`, which lies beside it.
"""

import functools
import json
import sys

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops.pytorch_ops import get_default_device
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch_student import ImageStudent, answer_until_next_round, open_orders, read_users

NEVER = 10**9


class Student(ImageStudent):
    """With what pfl-research asks of a model besides."""

    @torch.no_grad()
    def metrics(self, x, y):
        """What pfl-research computes of every user in the first round, which is not timed."""
        return {"loss": Weighted(torch.nn.functional.cross_entropy(self(x), y, reduction="sum").item(), len(y))}


class Orders(TrainingProcessCallback):
    """Waits for an order before the first round and after each one."""

    def __init__(self, channel, test_set):
        self._channel = channel
        self._test_set = test_set

    def on_train_begin(self, *, model):
        """Says that all is ready."""
        answer_until_next_round(self._channel, model.pytorch_model, self._test_set)
        return Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Says that the round is done."""
        answer_until_next_round(self._channel, model.pytorch_model, self._test_set)
        return False, Metrics()


def main(settings):
    """Trains until the socket closes. `settings` are those of `pfl_research.open_processes`."""
    orders = open_orders(settings["socket"])
    # pfl-research draws its seeds from NumPy, and all processes need the same.
    np.random.seed(settings["seed"])
    torch.manual_seed(settings["seed"])
    device = get_default_device()
    users, test_set = read_users(settings["arrays"], settings["scale"], settings["offset"], device)
    datasets = [Dataset(user, user_id=str(index)) for index, user in enumerate(users)]
    federation = FederatedDataset(lambda index: datasets[index], get_user_sampler("minimize_reuse", range(len(users))))
    module = Student().to(device, memory_format=torch.channels_last)
    model = PyTorchModel(
        module,
        # Keras's epsilon; PyTorch's own is 1e-8.
        functools.partial(torch.optim.Adam, eps=1e-7, fused=True),
        central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=NEVER,
            evaluation_frequency=NEVER,
            train_cohort_size=len(users),
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=federation, val_data=federation, postprocessors=[WeightByDatapoints()]),
        model,
        NNTrainHyperParams(
            local_batch_size=settings["batch_size"],
            local_num_epochs=settings["epochs"],
            local_learning_rate=settings["learning_rate"],
        ),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[Orders(orders, test_set)],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
