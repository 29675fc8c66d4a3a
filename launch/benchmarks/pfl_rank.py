"""One process of pfl-research in `.venv-pfl`, with nothing of this project: trains its share of the users of a round.

Started by `pfl_research`, never by hand: directly for one process, by torchrun for several. It is what pfl-research's
own benchmarks do for speed: each user's tensors stay in memory, the GPU's if it computes there, ready to train on,
images and kernels in PyTorch's channels-last layout, and local Adam is fused into one call.

It asks for orders on a Unix socket, a line each: "round" is answered with "done", "accuracy" with the share of the test
set that the model gets right. It ends with the socket, or with its parent.
"""

import ctypes
import functools
import itertools
import json
import os
import signal
import socket
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

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1
# Those of `models.image_cnn`'s student.
FILTERS = (32, 16, 16, 64)
NEVER = 10**9


class ImageStudent(torch.nn.Module):
    """Images (batch, 1, 28, 28) in float32 to logits (batch, 10): strided convolutions without activation, one dense.

    The weights start as Keras's do. PyTorch pads each side by one where Keras pads an even side at its end alone; sizes
    and arithmetic are the same.
    """

    def __init__(self):
        super().__init__()
        pairs = itertools.pairwise((1, *FILTERS))
        convolutions = [torch.nn.Conv2d(before, after, 3, stride=2, padding=1) for before, after in pairs]
        self.layers = torch.nn.Sequential(*convolutions, torch.nn.Flatten(), torch.nn.Linear(FILTERS[-1] * 4, 10))
        for name, weights in self.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.zeros_(weights)
            else:
                torch.nn.init.xavier_uniform_(weights)

    def forward(self, x):
        """Logits."""
        return self.layers(x)

    def loss(self, x, y):
        """Mean cross-entropy of a batch."""
        return torch.nn.functional.cross_entropy(self(x), y)

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
        self._answer_until_next_round(model)
        return Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Says that the round is done."""
        self._answer_until_next_round(model)
        return False, Metrics()

    def _answer_until_next_round(self, model):
        answer = "done"
        if torch.cuda.is_available():
            # Calls return before the GPU has done their work, which belongs to this round.
            torch.cuda.synchronize()
        while True:
            print(answer, file=self._channel, flush=True)
            order = self._channel.readline().strip()
            if order == "round":
                return
            # An empty line means that the benchmark has closed the socket.
            if order != "accuracy":
                os._exit(0)
            answer = repr(compute_accuracy(model.pytorch_model, *self._test_set))


@torch.no_grad()
def compute_accuracy(module, x, y):
    """The share of examples whose largest logit is that of their label."""
    return (module(x).argmax(dim=1) == y).float().mean().item()


def read_users(path, scale, offset, device):
    """The users' (images, labels), each a pair of tensors, and the test set's, from an .npz with the users' sizes."""
    with np.load(path) as arrays:
        ends = np.cumsum(arrays["sizes"])[:-1]
        splits = [np.split(arrays[name], ends) for name in ("x", "y")]
        pairs = [*zip(*splits, strict=True), (arrays["test_x"], arrays["test_y"])]
        *users, test_set = [
            (
                torch.from_numpy(np.moveaxis(x.astype(np.float32) * np.float32(scale) + np.float32(offset), -1, 1)).to(
                    device, memory_format=torch.channels_last
                ),
                torch.from_numpy(y.astype(np.int64)).to(device),
            )
            for x, y in pairs
        ]
    return users, test_set


def main(settings):
    """Trains until the socket closes. `settings` are those of `pfl_research.open_processes`."""
    # macOS has none; there the socket's end is enough.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl and prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    orders = socket.socket(socket.AF_UNIX)
    orders.connect(settings["socket"])
    # pfl-research draws its seeds from NumPy, and all processes need the same.
    np.random.seed(settings["seed"])
    torch.manual_seed(settings["seed"])
    device = get_default_device()
    users, test_set = read_users(settings["arrays"], settings["scale"], settings["offset"], device)
    datasets = [Dataset(user, user_id=str(index)) for index, user in enumerate(users)]
    federation = FederatedDataset(lambda index: datasets[index], get_user_sampler("minimize_reuse", range(len(users))))
    module = ImageStudent().to(device, memory_format=torch.channels_last)
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
        callbacks=[Orders(orders.makefile("rw", encoding="utf-8"), test_set)],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
