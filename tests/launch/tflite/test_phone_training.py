"""Training files whose step is a run's, against local training; and what a file says of how the run trained."""

import numpy as np
import pytest
import tensorflow as tf
from phones import Phone, open_phone
from small_formats import make_format

from launch.settings.run_config import build_run_config
from launch.tflite.card_page import describe_local_training
from launch.tflite.export_plan import ModelExport
from launch.tflite.phone_training import PhoneTraining, find_phone_training
from launch.training.finished_run import FinishedRun
from models.model_spec import ModelSpec
from models.on_device_training import LocalStep, build_training_module
from models.tflite_export import convert_training_module
from tff_algos.client.local_training import train_locally
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas

LAYERS = tf.keras.layers
STEPS, BATCH_SIZE = 22, 8
RULES = [LocalStep("sgd", 0.9, 0.1, 0.5), LocalStep("adam", 0.0, 0.1, 0.5)]


def build_with_everything():
    """A loss of its own, a constraint, BatchNorm's statistics and a frozen layer."""
    return tf.keras.Sequential(
        [
            tf.keras.Input((3,)),
            LAYERS.Dense(
                4, use_bias=False, kernel_regularizer="l2", kernel_constraint=tf.keras.constraints.MaxNorm(0.9)
            ),
            LAYERS.BatchNormalization(momentum=0.9),
            LAYERS.Dense(4, activation="tanh", trainable=False),
            LAYERS.Dense(3),
        ]
    )


def build_counting():
    """A model that counts its calls in training, which dampen what it says."""
    inputs = tf.keras.Input((3,))
    return tf.keras.Model(inputs, LAYERS.Dense(3)(Counting()(inputs)))


class Counting(LAYERS.Layer):
    def build(self, shape):
        self.count = self.add_weight("count", (), "int32", "zeros", trainable=False)

    def call(self, inputs, training=None):
        if training:
            self.count.assign_add(1)
        return inputs / (1.0 + tf.cast(self.count, tf.float32))


def draw():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(BATCH_SIZE, 3)) * [1, 10, 0.1] + [5, 0, 0]).astype(np.float32)
    return x, rng.integers(0, 3, BATCH_SIZE, dtype=np.int32)


def start(build):
    """(specification, weights); BatchNorm's statistics and all biases as they begin."""
    tf.keras.utils.set_random_seed(0)
    return ModelSpec("own", build, make_format((3,), "float32", 3)), tuple(build().get_weights())


@pytest.mark.parametrize("rule", RULES)
def test_a_file_trains_as_the_clients_did(rule):
    """One batch again and again: 22 steps, then the same round once more, then the next one."""
    (spec, weights), (x, y), rate = start(build_with_everything), draw(), 0.02
    config = LocalTrainingConfig(epochs=STEPS, batch_size=BATCH_SIZE, **rule._asdict())
    trained = train_locally(
        spec, config, tuple(map(tf.constant, weights)), x, tf.constant(y), tf.constant((3, 4)), tf.constant(rate)
    )
    expected = add_deltas(weights, [delta.numpy() for delta in trained.weights_delta])
    file = convert_training_module(spec, weights, BATCH_SIZE, step=rule)
    assert file.select_operators == ()
    phone = open_phone(file.content)

    def train(begin=None):
        if begin is not None:
            phone.run["set_weights"](**begin)
        phone.train(x, y, rate, STEPS)
        return phone.get_weights()

    first = train()
    assert sorted(first) == sorted(f"weight_{i}" for i in (0, 1, 2, 3, 4, 7, 8))  # 5 and 6 are frozen
    start_of = {name: weights[int(name.removeprefix("weight_"))] for name in first}
    for name, value in first.items():
        np.testing.assert_allclose(value, expected[int(name.removeprefix("weight_"))], rtol=1e-5, atol=1e-5)
        assert np.abs(value - start_of[name]).max() > 1e-3
    continued, again, second_round = train(), train(start_of), train(first)
    for name, value in first.items():
        np.testing.assert_array_equal(again[name], value)
    assert max(np.abs(second_round[name] - continued[name]).max() for name in first) > 1e-3


def test_the_head_has_state_of_what_it_trains():
    def build():
        return tf.keras.Sequential(
            [tf.keras.Input((3,)), LAYERS.Reshape((3, 1)), LAYERS.Conv1D(2, 2), LAYERS.Flatten(), LAYERS.Dense(3)]
        )

    module = build_training_module(*start(build), BATCH_SIZE, "head", step=LocalStep("adam", proximal_weight=0.1))
    assert [tuple(variable.shape) for variable in module.state] == [*[(4, 3), (3,)] * 3, ()]


def test_what_is_frozen_inside_of_another_layer_does_not_travel():
    """Of a kernel and a bias that stay, and a BatchNorm that does, only the last kernel and bias are left."""

    def build():
        frozen = [LAYERS.Dense(2, trainable=False), LAYERS.BatchNormalization(trainable=False)]
        inner = tf.keras.Sequential([tf.keras.Input((3,)), *frozen])
        return tf.keras.Sequential([tf.keras.Input((3,)), inner, LAYERS.Dense(3, name="logits")])

    names = build_training_module(*start(build), BATCH_SIZE).weight_names
    assert names == {"weight_6": "logits/kernel", "weight_7": "logits/bias"}


def test_integers_begin_each_round_as_a_client_got_them():
    """Otherwise a second round with the same weights would go another way."""
    (spec, weights), (x, y) = start(build_counting), draw()
    module = build_training_module(spec, weights, BATCH_SIZE)
    phone = Phone({"train": module.train, "get_weights": module.get_weights})
    first = phone.train(x, y, 0.1, steps=3)
    module.set_weights(*weights[1:])
    assert phone.train(x, y, 0.1, steps=3) == first


def find(rounds=4, is_teacher=False, is_personal=False, **flags):
    run = FinishedRun(None, build_run_config({"rounds": 4, **flags}), {}, {}, frozenset(), rounds)
    return find_phone_training(run, ModelExport("a", "a", is_teacher, (), (), is_personal))


def test_the_step_is_that_of_the_run():
    fedavg = find(algo="fedavg", optimizer="sgd", momentum=0.5, weight_decay=0.1, proximal_weight=0.2)
    assert fedavg == PhoneTraining("sgd", 0.5, 0.1, 0.2, 0.003)
    assert find(algo="fedavg", learning_rate=0.8, learning_rate_decay=0.5, rounds=3).learning_rate == pytest.approx(0.2)
    assert find(algo="fedavg").optimizer == "adam"


@pytest.mark.parametrize(
    ("flags", "expected", "left_out"),
    [
        (
            {"algo": "fedsikd", "student_learning_rate": 0.1, "student_proximal_weight": 0.3},
            ("adam", 0, 0, 0.3, 0.1),
            ["the teacher's part of the loss (label_weight=0.5): it trains on labels alone"],
        ),
        ({"algo": "fedsikd", "teacher_optimizer": "sgd", "is_teacher": True}, ("sgd", 0, 0, 0, 0.003), []),
        ({"algo": "fedsikd", "label_weight": 1.0}, ("adam", 0, 0, 0, 0.003), []),
        ({"algo": "scaffold"}, ("sgd", 0, 0, 0, 0.05), ["SCAFFOLD's correction of every gradient"]),
        (
            {"algo": "ditto", "pull": 0.7},
            ("adam", 0, 0, 0, 0.003),
            ["the pull of a client's own model to the shared one (pull=0.7)"],
        ),
        (
            {"algo": "ditto", "pull": 0.7, "proximal_weight": 0.3, "is_personal": True},
            ("adam", 0, 0, 0, 0.003),
            ["the pull of a client's own model to the shared one (pull=0.7)"],
        ),
        (
            {"algo": "pfedme", "pull": 2.0},
            ("sgd", 0, 0, 2, 0.05),
            [
                "the steps of w towards the client's own model (inner_steps=5, outer_rate=0.5): it trains the own "
                "model, near the weights set"
            ],
        ),
        (
            {"algo": "moon", "contrast_weight": 5.0},
            ("adam", 0, 0, 0, 0.003),
            ["the contrast with the client's last model (contrast_weight=5)"],
        ),
        ({"algo": "amfl_p"}, ("sgd", 0, 0, 0, 0.1), ["the meta-gradient: it takes the inner steps"]),
        ({"algo": "amfl_p", "is_personal": True}, ("sgd", 0, 0, 0, 0.025), []),
        ({"algo": "fine_tuning", "local_optimizer": "sgd", "local_momentum": 0.5}, ("sgd", 0.5, 0, 0, 0.003), []),
        ({"algo": "fine_tuning", "is_personal": True}, ("sgd", 0, 0, 0, 0.025), []),
        ({"algo": "fine_tuning", "rule": "resources", "is_personal": True}, ("sgd", 0, 0, 0, None), []),
        ({"algo": "scaffold", "final_steps": 9, "is_personal": True}, ("sgd", 0, 0, 0, 0.05), []),
        (
            {"algo": "scaffold", "final_steps": 9, "learning_rate": 0.2},
            ("sgd", 0, 0, 0, 0.2),
            ["SCAFFOLD's correction of every gradient"],
        ),
        ({"algo": "fed_async"}, ("sgd", 0, 0, 0.005, 0.1), []),
        ({"algo": "fedavg", "augment": "crop_flip"}, ("adam", 0, 0, 0, 0.003), ["augmentation (augment=crop_flip)"]),
        (
            {"algo": "fedavg", "data": "rows.csv", "weight_column": "dose"},
            ("adam", 0, 0, 0, 0.003),
            ["the weights of examples (weight_column=dose): all count alike"],
        ),
        (
            {"algo": "fedavg", "quantize": "qat"},
            ("adam", 0, 0, 0, 0.003),
            ["the rounding of quantization-aware training: it trains the float model"],
        ),
    ],
)
def test_where_settings_lie_elsewhere_and_what_is_left_out(flags, expected, left_out):
    found = find(**flags)
    assert found == PhoneTraining(*expected, tuple(left_out))


def test_in_words():
    facts = PhoneTraining("adam", 0.0, 0.1, 0.5, 0.003, ("a", "b"))._asdict()
    assert describe_local_training({**facts, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}) == (
        "adam (beta_1 0.9, beta_2 0.999, epsilon 1e-07), weight decay 0.1 of kernels, pull 0.5 to the weights that "
        "were set, learning rate in the run 0.003; not in the file: a; b"
    )
    assert describe_local_training(PhoneTraining(momentum=0.9)._asdict()) == "sgd, momentum 0.9"
