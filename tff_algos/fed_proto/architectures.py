"""The architectures of the clients: whether they go together, and which client has which."""

import numpy as np

from models.embedding import Head, find_head
from models.model_spec import ModelSpec
from tff_algos.fed_proto.config import SPEED
from tff_algos.settings.config_fields import ConfigError


def find_heads(specs: tuple[ModelSpec, ...], models: str) -> tuple[Head, ...]:
    """The last layer of each architecture.

    Args:
      specs: of the architectures, of one task.
      models: the setting that names them.

    Raises:
      ConfigError: labels are no classes, training is quantization-aware, or the architectures do not go together.
      ModelError: a model does not end in a dense layer.
    """
    task, names = specs[0].task.kind.name, [spec.name for spec in specs]
    if task != "classification":
        raise ConfigError(
            "--algo", "fedproto", f"classes as labels, since a prototype is of a class; the task is {task}"
        )
    if specs[0].quantization is not None:
        raise ConfigError("quantize", "qat", "none, since prototypes are of float embeddings; export with int8")
    heads = tuple(map(find_head, specs))
    if len({head.width for head in heads}) > 1:
        found = ", ".join(f"{head.width} of {name}" for name, head in zip(names, heads, strict=True))
        raise ConfigError("models", models, f"models of one width before their last layer, found {found}")
    if len({spec.weight_shapes for spec in specs}) < len(specs):
        raise ConfigError("models", models, "models whose weights differ in shape, by which they are told apart")
    return heads


def assign_models(num_clients: int, num_models: int, assignment: str, examples_per_s: np.ndarray) -> np.ndarray:
    """The architecture of each client, int64, shape (clients,).

    Args:
      num_clients: clients that train.
      num_models: architectures.
      assignment: "turns": one after another; "speed": equal shares of the devices, the slowest the first architecture.
      examples_per_s: of each device, shape (at least clients,).
    """
    if assignment != SPEED:
        return np.arange(num_clients) % num_models
    ranks = np.argsort(np.argsort(examples_per_s[:num_clients], kind="stable"), kind="stable")
    return ranks * num_models // num_clients
