"""The training file of a live run, which its clients train by, and which settings of a run it cannot do.

TensorFlow is imported when a file is made: settings are refused before it.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from launch.live.private_runs import is_private_run
from launch.settings.data_flags import CLIENT, FEDERATED, NONE
from launch.settings.run_config import RunConfig, flag_values
from launch.settings.runtimes import IN_PROCESS
from tff_algos.settings.aggregation import COMPRESSION, DP_TREE, LABEL_FLIP, QUANTIZATION, SECURE
from tff_algos.settings.config_fields import ConfigError, is_own
from tff_algos.settings.fine_tuning import SAME, TRAINED
from tff_algos.settings.local_training import LocalTrainingConfig

if TYPE_CHECKING:
    import numpy as np

    from models.model_spec import ModelSpec
    from tff_algos.protocol import Weights

# Those whose clients can be asked; whether a user's own can, only its process knows.
ASKED = ("fedavg", "fedadam", "fedyogi", "fedavgm", "fine_tuning", "async_periodic", "buffered")


_OF_FILES = ("EnsureShape", "Restore", "Save")  # of what such files have beside the training


class LiveFile(NamedTuple):
    """A training file as the clients of a run get it.

    Attributes:
      content: of the file, TFLite with the signatures train, infer, get_weights and set_weights.
      sha256: of the content, in hex.
      names: "weight_<i>" of each weight that training changes, in order of i, its position among the model's weights.
      shapes: of these weights; all are float32.
      positions: the numbers i.
    """

    content: bytes
    sha256: str
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    positions: tuple[int, ...]


def make_training_file(
    spec: "ModelSpec", weights: "Weights", training: LocalTrainingConfig, examples: "np.ndarray | None" = None
) -> LiveFile:
    """The file whose steps are those of the run's local training.

    Args:
      spec: of the model.
      weights: those that the file begins with, in the order of `spec.build().weights`.
      training: optimizer, momentum, weight decay, proximal weight and batch size are built in; the rest is told.
      examples: some as stored, (n, *spec.format.input_shape); recurrent layers are written out step by step where that
        does not change the answers for these.

    Raises:
      ConfigError: the data have another task, or training the model takes operators of TensorFlow that clients lack.
      ModelError: the model cannot be converted at all.
    """
    from models.on_device_training import LocalStep
    from models.tflite_export import convert_training_module

    _check_spec(spec)
    step = LocalStep(training.optimizer, training.momentum, training.weight_decay, training.proximal_weight)
    file = convert_training_module(spec, weights, training.batch_size, examples=examples, step=step)
    if lacking := list_lacking(file.select_operators):
        known = "image_student" if len(spec.model_input_shape) == 3 else "perceptron"
        expected = (
            f"one that trains without TensorFlow's {', '.join(lacking)}, which clients of live rounds lack; take other "
            f"layers, or --model={known}"
        )
        raise ConfigError("model", spec.name, expected)
    positions = tuple(int(name.removeprefix("weight_")) for name in file.weight_names)
    shapes = tuple(tuple(weights[position].shape) for position in positions)
    sha256 = hashlib.sha256(file.content).hexdigest()
    return LiveFile(file.content, sha256, tuple(file.weight_names), shapes, positions)


def list_lacking(select_operators: Sequence[str]) -> list[str]:
    """Of the operators of TensorFlow that a training file has, those that training takes: LiteRT alone has none."""
    return [name for name in select_operators if name not in _OF_FILES]


def prepare_examples(spec: "ModelSpec", x: "np.ndarray") -> "np.ndarray":
    """Stored examples, (n, *input_shape), as `train` of the file takes them: float32 (n, *spec.model_input_shape).

    They are scaled and shifted as data are, in float32; what standardizes features is inside the file.
    """
    import numpy as np

    shaped, preprocessing = x if spec.has_channel_axis else x[..., 0], spec.format.preprocessing
    return shaped.astype(np.float32) * np.float32(preprocessing.scale) + np.float32(preprocessing.offset)


def _check_spec(spec: "ModelSpec") -> None:
    """Raises ConfigError for what only the data tell."""
    if spec.format.takes_tokens:
        raise ConfigError("model", spec.name, "a model of numbers: clients of live rounds train on none of tokens")
    kind = spec.task.kind
    if kind.name != "classification":
        expected = "classification in a live run, whose clients train by cross-entropy over classes"
        raise ConfigError("task", kind.name, expected)


class _Rule(NamedTuple):
    """What a setting must be in a live run; one that the algorithm does not have is as it must be."""

    name: str
    is_met: Callable[[Any], bool]
    expected: str
    of_own_data: bool = False
    of_private: bool = False


def _must_be(name: str, value: Any, reason: str, of_own_data: bool = False, of_private: bool = False) -> _Rule:
    shown = "nothing" if value == "" else f"{value:g}" if type(value) in (int, float) else str(value).lower()
    kind = "private live run" if of_private else "live run"
    return _Rule(name, lambda given: given == value, f"{shown} in a {kind}: {reason}", of_own_data, of_private)


_REAL = "its clients take the time that they take, and come and go as they do"
_NOT_PLANNED = "what a round takes is known when it is over"
_NOT_THERE = "validation examples stay with the clients who brought them"
_RULES = (
    _Rule(
        "algo",
        lambda name: name in ASKED or is_own(name),
        f"one whose clients can be asked over a network: {', '.join(ASKED)}",
    ),
    _must_be("quantize", "none", "clients train the float model; launch.export makes int8 files of it afterwards"),
    _must_be("augment", "none", "the training file takes examples as they are"),
    _must_be("precision", "float32", "the training file computes in it"),
    _Rule("loss", lambda name: not is_own(name), "auto in a live run, whose clients train by cross-entropy"),
    _must_be("class_weights", NONE, "all examples count alike on the clients"),
    _must_be("weight_column", "", "all examples count alike on the clients"),
    _must_be("compression_bits", 32, "clients send what they have trained as float32"),
    _Rule(
        "aggregator",
        lambda name: name not in (COMPRESSION, QUANTIZATION, DP_TREE, SECURE),
        "another one in a live run: compressed, private or summed in secret it is in simulations alone",
    ),
    _Rule(
        "algo",
        lambda name: name != "fine_tuning",
        "another one with --dp_epsilon: what clients measure when they fine-tune would be told without noise",
        of_private=True,
    ),
    # A round that is done again has other noise, so that its model must be kept before anybody gets it.
    _must_be("rounds_per_checkpoint", 1, "a round done again after a stop is one more to pay for", of_private=True),
    _Rule("standardize", lambda way: way != FEDERATED, f"{NONE} in a live run: clients are not asked for sums"),
    _Rule("standardize", lambda way: way != CLIENT, f"{NONE} where clients bring their own data", True),
    _must_be("device_profiles", "", "its devices are real ones, and nothing is known of their energy"),
    _must_be("most_bytes", 0.0, _NOT_PLANNED),
    _must_be("most_virtual_s", 0.0, _NOT_PLANNED),
    _must_be("new_clients", 0, "each client that is there takes part"),
    _must_be("runtime", IN_PROCESS, "the server only adds up what clients have trained"),
    _must_be("patience", 0, _NOT_THERE, True),
    _must_be("keep_best", False, _NOT_THERE, True),
    _must_be("fairness", False, "clients are measured on test examples of their own, and only sums are sent", True),
    _must_be("clients_by_round", False, "only sums of what clients measure are kept", True),
    _Rule("attack", lambda name: name != LABEL_FLIP, "another attack: the server has no labels to flip", True),
    # Simulated times; `max_training_s` stays, since the period is a share of it.
    *(_must_be(name, value, _REAL) for name, value in (("speed", "redrawn"), ("dropout", 0.0))),
    _must_be("max_away_s", 1.0, _REAL),
    *(_must_be(f"availability_{name}", value, _REAL) for name, value in (("cycle_s", 0.0), ("share", 1.0))),
    # Of fine-tuning, which is the last task of each client.
    _must_be("rule", SAME, "the resources that the other rules go by are simulated"),
    _must_be("start", TRAINED, "clients fine-tune the model that they have trained"),
    _must_be("final_steps", 0, "take --algo=fine_tuning, whose clients fine-tune as their last task"),
    _must_be("curve", "", "clients measure once before they fine-tune, and once after it"),
)


def check_can_train(config: RunConfig, own_data: bool = False) -> None:
    """Raises ConfigError, one line with the flag to give, for the first setting that a live run cannot do.

    What only the data tell is refused by `make_training_file`, and what only a process knows by `FederatedProcess.ask`.

    Args:
      config: of the run.
      own_data: whether clients bring their own data, of which the server has nothing.
    """
    values, is_private = flag_values(config), is_private_run(config)
    for rule in _RULES:
        applies = (own_data or not rule.of_own_data) and (is_private or not rule.of_private)
        if rule.name in values and applies and not rule.is_met(values[rule.name]):
            raise ConfigError(rule.name, values[rule.name], rule.expected)


def build_fine_tuning(config: RunConfig) -> LocalTrainingConfig | None:
    """The last task of an algorithm that fine-tunes: plain steps, so its training file is another one; else None."""
    settings = getattr(config.algorithm, "fine_tuning", None)
    if settings is None or not settings.steps:
        return None
    return LocalTrainingConfig(
        steps=settings.steps,
        batch_size=settings.batch_size,
        optimizer="sgd",
        learning_rate=settings.learning_rate,
    )
