"""The server's step against equations that are worked by hand, and what it leaves alone."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tff_algos.rounds.server_step import build_server_step
from tff_algos.settings.aggregation import OPTIMIZERS, ServerStepConfig
from tff_algos.weights import add_deltas

ETA, DECAY, TAU = 0.1, 0.75, 0.5  # of two steps from a weight of 1, along the updates 1 and 2
MOMENTS = {"beta_1": 0.5, "beta_2": DECAY, "epsilon": TAU}


def correct(step):
    """The rate of a step of Adam and Yogi, which has a correction of the first steps' bias."""
    return ETA * math.sqrt(1 - DECAY**step) / (1 - 0.5**step)


HAND_WORKED = {
    "sgd": ({}, (0.1, 0.2)),
    # a = 1, then 0.5 * 1 + 2
    "momentum": ({"momentum": 0.5}, (0.1, 0.25)),
    # Delta + 0.5 a
    "nesterov": ({"momentum": 0.5, "nesterov": True}, (0.15, 0.325)),
    # m = 0.5, then 0.25 + 1; v = 0.25, then 0.1875 + 1
    "adam": (
        {"optimizer": "adam", **MOMENTS},
        (correct(1) * 0.5 / (0.5 + TAU), correct(2) * 1.25 / (math.sqrt(1.1875) + TAU)),
    ),
    # v = 1e-6 + 0.25 * 1, then that + 0.25 * 4, as both squares are above v
    "yogi": (
        {"optimizer": "yogi", **MOMENTS},
        (
            correct(1) * 0.5 / (math.sqrt(0.250001) + TAU),
            correct(2) * 1.25 / (math.sqrt(1.250001) + TAU),
        ),
    ),
    # v = 0.25 + 1, then that + 4
    "adagrad": (
        {"optimizer": "adagrad", "initial_accumulator": 0.25, "epsilon": TAU},
        (ETA * 1 / math.sqrt(1.25 + TAU), ETA * 2 / math.sqrt(5.25 + TAU)),
    ),
    # v = 0.25, then 0.1875 + 1
    "rmsprop": (
        {"optimizer": "rmsprop", "decay": DECAY, "epsilon": TAU},
        (ETA * 1 / (0.5 + TAU), ETA * 2 / (math.sqrt(1.1875) + TAU)),
    ),
    "rmsprop with momentum": (
        {"optimizer": "rmsprop", "decay": DECAY, "epsilon": TAU, "momentum": 0.5},
        (0.1, 0.5 * 0.1 + ETA * 2 / (math.sqrt(1.1875) + TAU)),
    ),
}
SETTINGS = {name: ServerStepConfig(learning_rate=ETA, **given) for name, (given, _) in HAND_WORKED.items()}
STATEFUL = [name for name in SETTINGS if not SETTINGS[name].is_plain]


def row(value):
    return [np.array([[value]], np.float32)]


@pytest.mark.parametrize("name", HAND_WORKED)
def test_two_steps_are_those_worked_by_hand(name):
    step = build_server_step(SETTINGS[name], (np.zeros(1, np.float32),))
    models, state = (np.ones((1, 1), np.float32),), step.initialize(1)
    expected = 1.0
    for update, moved in zip((1.0, 2.0), HAND_WORKED[name][1], strict=True):
        models, state = step.step(models, row(update), state, np.array([True]))
        expected += moved
        np.testing.assert_allclose(models[0], [[expected]], rtol=1e-6)
        assert models[0].dtype == np.float32


def test_yogi_lets_the_second_moment_fall_by_a_small_update_only():
    """v = 0.250001, then that - 0.25 * 0.01, since 0.1^2 is below it; Adam's would fall to 0.19."""
    step, moved = build_server_step(SETTINGS["yogi"], (np.zeros(1, np.float32),)), np.array([True])
    models, state = step.step((np.ones((1, 1), np.float32),), row(1.0), step.initialize(1), moved)
    after, _ = step.step(models, row(0.1), state, moved)
    expected = correct(2) * (0.5 * 0.5 + 0.5 * 0.1) / (math.sqrt(0.247501) + TAU)
    np.testing.assert_allclose(after[0] - models[0], [[expected]], rtol=1e-5)


@pytest.fixture
def models():
    """Three stacked models of two float weights, one of them a scalar, and an integer weight."""
    rng = np.random.default_rng(3)
    kernel, scalar = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 4, 2), (3,)))
    return kernel, np.array([7, 8, 9], np.int32), scalar


@pytest.fixture
def means(models):
    rng = np.random.default_rng(4)
    return [rng.normal(size=array.shape).astype(np.float32) for array in (models[0], models[2])]


def build(config, models):
    return build_server_step(config, tuple(array[0] for array in models))


def list_bytes(arrays):
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize(("divisor", "factor"), [(1, 1.0), (7, 1.0), (1, 0.3)])
def test_a_plain_step_adds_the_update_bitwise(models, means, divisor, factor):
    step = build(ServerStepConfig(learning_rate=0.7), models)
    assert step.initialize(3) == step.initialize_one() == ()
    moved, state = step.step(models, means, (), np.array([True, False, True]), divisor, factor)
    assert state == ()
    assert list_bytes(moved) == list_bytes(add_deltas(models, means, 0.7 * factor / divisor))


@pytest.mark.parametrize("name", STATEFUL)
def test_a_model_without_an_update_keeps_weights_and_state(models, means, name):
    step = build(SETTINGS[name], models)
    first, state = step.step(models, means, step.initialize(3), np.array([True, True, True]))
    means = [np.where([[True], [False], [True]], array.reshape(3, -1), 0).reshape(array.shape) for array in means]
    second, after = step.step(first, means, state, np.array([True, False, True]))
    for index, is_moved in enumerate((True, False, True)):
        assert np.array_equal(second[0][index], first[0][index]) != is_moved
        is_same = all(np.array_equal(a[index], b[index]) for a, b in zip(state, after, strict=True))
        assert is_same != is_moved
    assert second[1].tobytes() == models[1].tobytes()
    assert [array.dtype for array in second] == [array.dtype for array in models]


@pytest.mark.parametrize("name", STATEFUL)
def test_stacked_models_step_as_each_would_alone(models, means, name):
    step = build(SETTINGS[name], models)
    states, alone = step.initialize(3), [step.initialize_one()] * 3
    together, singles = models, [tuple(np.asarray(array[i]) for array in models) for i in range(3)]
    for _ in range(2):
        together, states = step.step(together, means, states, np.array([True] * 3), divisor=2, factor=0.5)
        for i in range(3):
            singles[i], alone[i] = step.step_one(
                singles[i], [array[i] for array in means], alone[i], divisor=2, factor=0.5
            )
    for i in range(3):
        assert list_bytes(singles[i]) == list_bytes([array[i] for array in together])
        assert list_bytes(alone[i]) == list_bytes([array[i] for array in states])


def test_copies_of_a_model_go_on_from_its_state(models, means):
    step = build(SETTINGS["momentum"], models)
    _, state = step.step(models, means, step.initialize(3), np.array([True] * 3))
    copied = step.copy_rows(state, [0, 1, 2, 2])
    assert all(len(leaf) == 4 and np.array_equal(leaf[3], leaf[2]) for leaf in copied)
    assert all(np.array_equal(leaf[:3], before) for leaf, before in zip(copied, state, strict=True))
    assert step.copy_rows((), [0, 0]) == ()


def test_a_plain_step_by_the_optimizer_has_a_state_and_the_same_bytes(models, means):
    template = tuple(array[0] for array in models)
    by_optimizer = build_server_step(ServerStepConfig(learning_rate=0.7), template, always_by_optimizer=True)
    state = by_optimizer.initialize_one()
    assert [float(leaf) for leaf in state] == [np.float32(0.7)]  # as AMFL-P's checkpoints hold it
    mean = [array[0] for array in means]
    moved, _ = by_optimizer.step_one(template, mean, state)
    kernel = tf.constant(template[0]) + tf.constant(0.7) * tf.constant(mean[0])
    assert moved[0].tobytes() == kernel.numpy().tobytes()


def test_every_optimizer_was_tried_and_only_plain_averaging_is_plain():
    assert {config.optimizer for config in SETTINGS.values()} == set(OPTIMIZERS)
    assert [name for name, config in SETTINGS.items() if config.is_plain] == ["sgd"]
