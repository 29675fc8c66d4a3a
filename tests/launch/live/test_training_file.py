"""The training file of a live run, and the settings that a live run refuses."""

import hashlib

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_spec

from datasets.example_format import LabelFormat
from launch.live.training_file import ASKED, build_fine_tuning, check_can_train, make_training_file, prepare_examples
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import build_run_config
from models.model_spec import ModelSpec
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import initialize_weights

LAYERS = tf.keras.layers


def refuse(own_data=False, **values):
    """The line with which settings are refused; "" if they are not."""
    try:
        check_can_train(build_run_config({"algo": "fedavg", **values}), own_data)
    except ConfigError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


def test_the_file_names_what_training_changes():
    """A frozen layer is not in it; positions are those of all weights."""

    def build():
        layers = LAYERS.Dense(4, trainable=False), LAYERS.BatchNormalization(), LAYERS.Dense(3)
        return tf.keras.Sequential([tf.keras.Input((2,)), *layers])

    spec = ModelSpec("own", build, make_spec("perceptron", (2,)).format)
    weights = initialize_weights(spec, seed=1)
    file = make_training_file(spec, weights, LocalTrainingConfig(batch_size=4))
    assert file.positions == (2, 3, 4, 5, 6, 7)  # after the frozen kernel and bias
    assert file.names == tuple(f"weight_{i}" for i in file.positions)
    assert file.shapes == tuple(weights[i].shape for i in file.positions)
    assert file.sha256 == hashlib.sha256(file.content).hexdigest()


def test_models_and_tasks_that_no_client_can_train_are_refused():
    def build():
        return tf.keras.Sequential([tf.keras.Input((4,)), LAYERS.Dense(3, activation="softsign"), LAYERS.Dense(3)])

    spec = ModelSpec("own", build, make_spec("perceptron", (4,)).format)
    with pytest.raises(ConfigError, match=r"^model=own: expected .* Softsign, SoftsignGrad, .* --model=perceptron$"):
        make_training_file(spec, initialize_weights(spec, seed=1), LocalTrainingConfig())
    binary = make_spec("perceptron", (4,), num_classes=1, labels=LabelFormat("binary"))
    with pytest.raises(ConfigError, match=r"^task=binary: expected classification in a live run"):
        make_training_file(binary, initialize_weights(binary, seed=1), LocalTrainingConfig())


PRIVATE = {"dp_epsilon": 2.0, "client_weighting": "equal"}
SIMULATED = ("compression", "quantization", "dp_tree", "secure")


def test_examples_are_scaled_but_not_standardized():
    spec = make_spec("perceptron", (2, 1), "uint8", scale=0.5, offset=-1.0)
    assert prepare_examples(spec, np.uint8([[[0], [4]]])).ravel().tolist() == [-1.0, 1.0]


def test_all_algorithms_that_can_be_asked_run_with_their_defaults():
    assert [name for name in ALGORITHMS if not refuse(algo=name)] == [name for name in ALGORITHMS if name in ASKED]
    assert len(ASKED) == 7
    expected = f"algo=scaffold: expected one whose clients can be asked over a network: {', '.join(ASKED)}"
    assert refuse(algo="scaffold") == expected


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"quantize": "qat"}, "quantize=qat: expected none in a live run: "),
        ({"augment": "crop_flip"}, "augment=crop_flip: expected none in"),
        ({"precision": "bfloat16"}, "precision=bfloat16: expected float32 in"),
        ({"loss": "mine:loss"}, "loss=mine:loss: expected auto in"),
        ({"class_weights": "balanced"}, "class_weights=balanced: expected none in"),
        ({"compression_bits": 8}, "compression_bits=8: expected 32 in"),
        *(({"aggregator": name}, f"aggregator={name}: expected another one in") for name in SIMULATED),
        ({**PRIVATE, "rounds_per_checkpoint": 2}, "rounds_per_checkpoint=2: expected 1 in a private live run: "),
        ({**PRIVATE, "algo": "fine_tuning"}, "algo=fine_tuning: expected another one with --dp_epsilon: "),
        ({"standardize": "federated"}, "standardize=federated: expected none in"),
        ({"device_profiles": "phones"}, "device_profiles=phones: expected nothing in"),
        ({"most_bytes": 1e6}, "most_bytes=1000000.0: expected 0 in"),
        ({"most_virtual_s": 5.0}, "most_virtual_s=5.0: expected 0 in"),
        ({"new_clients": 1}, "new_clients=1: expected 0 in"),
        ({"final_steps": 5}, "final_steps=5: expected 0 in a live run: take --algo=fine_tuning, whose clients "),
        ({"runtime": "tff"}, "runtime=tff: expected in_process in"),
        ({"algo": "buffered", "speed": "persistent"}, "speed=persistent: expected redrawn in"),
        ({"algo": "buffered", "dropout": 0.1}, "dropout=0.1: expected 0 in"),
        ({"algo": "async_periodic", "availability_cycle_s": 9.0}, "availability_cycle_s=9.0: expected 0 in"),
        ({"algo": "fine_tuning", "rule": "resources"}, "rule=resources: expected same in"),
        ({"algo": "fine_tuning", "start": "initial"}, "start=initial: expected trained in"),
        ({"algo": "fine_tuning", "curve": "0,5"}, "curve=0,5: expected nothing in"),
    ],
)
def test_settings_that_the_file_cannot_do_are_refused(values, line):
    assert refuse(**values).startswith(line)


@pytest.mark.parametrize(
    "values",
    [{"patience": 3}, {"keep_best": True}, {"fairness": True}, {"clients_by_round": True}, {"attack": "label_flip"}],
)
def test_what_takes_the_clients_own_examples_is_refused_where_they_stay_there(values):
    assert not refuse(**values)
    assert refuse(own_data=True, **values).startswith(next(iter(values)))


def test_updates_can_be_private_where_rounds_wait():
    for algo in ("fedavg", "fedadam", "fedyogi", "fedavgm"):
        assert not refuse(algo=algo, **PRIVATE, dp_clipping="adaptive")
    assert not refuse(rounds_per_checkpoint=2) and not refuse(algo="fine_tuning")


def test_the_period_stays():
    assert not refuse(algo="async_periodic", max_training_s=8.0, period_fraction=0.5)
    assert not refuse(optimizer="sgd", momentum=0.9, weight_decay=0.1, proximal_weight=0.1, aggregator="median")


def test_fine_tuning_is_plain_steps():
    config = build_run_config({"algo": "fine_tuning", "steps": 7, "learning_rate": 0.5, "batch_size": 9})
    expected = LocalTrainingConfig(steps=7, batch_size=9, optimizer="sgd", learning_rate=0.5)
    assert build_fine_tuning(config) == expected
    assert build_fine_tuning(build_run_config({"algo": "fedavg"})) is None
