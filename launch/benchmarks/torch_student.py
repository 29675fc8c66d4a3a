"""What the peers on PyTorch share, in environments of their own: the model, the users' tensors, and how they are asked.

A program asks for orders on a Unix socket, a line each: "round" is answered with "done", "accuracy" with the share of
the test set that the model gets right. It ends with the socket, or with its parent. Nothing of this project is there.
"""

import ctypes
import itertools
import os
import signal
import socket
import sys

import numpy as np
import torch

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1
# Those of `models.image_cnn`'s student.
FILTERS = (32, 16, 16, 64)


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


def open_orders(path):
    """The channel of the socket at this path, a file of lines; the program ends with its parent from now on."""
    # macOS has none; there the socket's end is enough.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl and prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_PDEATHSIG) failed")
    orders = socket.socket(socket.AF_UNIX)
    orders.connect(path)
    return orders.makefile("rw", encoding="utf-8")


def answer_until_next_round(channel, module, test_set):
    """Says that all is ready, or that a round is done, and returns when the next one is ordered."""
    answer = "done"
    if torch.cuda.is_available():
        # Calls return before the GPU has done their work, which belongs to this round.
        torch.cuda.synchronize()
    while True:
        print(answer, file=channel, flush=True)
        order = channel.readline().strip()
        if order == "round":
            return
        # An empty line means that the benchmark has closed the socket.
        if order != "accuracy":
            os._exit(0)
        answer = repr(compute_accuracy(module, *test_set))


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
