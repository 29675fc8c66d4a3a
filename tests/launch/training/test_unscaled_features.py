"""What a run's scaling leaves as it is: categories, switches, padding, and what a user's model looks up or masks."""

import dataclasses
import types

import numpy as np
import pytest
from small_formats import change_format

from datasets.example_format import Padding
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import build_run_config
from launch.training.announcements import find_largest_input
from launch.training.feature_scaling import scale_features
from tff_algos.settings.config_fields import ConfigError

NEW_FOLDER = types.SimpleNamespace(is_new=True)
FLAGS = {"algo": "fedavg", "model": "mine:build", "standardize": "federated"}
TABLE = np.array([[2, 1, 150, 5], [4, 0, 7, 9]], np.float32)  # a number, a switch, an index, another number
STEPS = np.array([[[3], [5], [0], [0]], [[7], [0], [9], [0]]], np.float32)
PAIRS = np.array([[[4, 5], [-1, -1], [0, 0]], [[8, 5], [-1, -1], [-1, -1]]], np.float32)


@pytest.fixture
def scale(tff_runtime, make_federation, linear_spec, capsys):
    """(examples, layer of the model, or None, flags, fields of the format) -> (scaled data, what was said)."""
    import tensorflow as tf

    def build_one(shape, layer):
        inputs = tf.keras.Input(shape)
        outputs = tf.keras.layers.Dense(3)(tf.keras.layers.Flatten()(inputs))
        return tf.keras.Model(inputs, outputs if layer is None else outputs + 0.0 * layer(inputs))

    def run(x, layer=None, fields=None, **flags):
        data = make_federation([1, 1])
        for client, part in zip(data.clients, x, strict=True):
            part.tofile(f"{client.path}.train.x")
        fields = {"input_shape": x.shape[1:], **(fields or {})}
        spec = change_format(dataclasses.replace(linear_spec, teacher=None), **fields)
        spec = dataclasses.replace(spec, build=lambda: build_one(x.shape[1:], layer))
        config = build_run_config({**FLAGS, **flags})
        return scale_features(config, NEW_FOLDER, change_format(data, **fields), spec)[0], capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def layers():
    import tensorflow as tf

    def mask(*values):
        def apply(x):
            masked = [tf.keras.layers.Masking(value)(x) for value in values]
            return tf.keras.layers.Dense(3)(tf.keras.layers.GlobalAveragePooling1D()(sum(masked[1:], masked[0])))

        return apply

    def look_up(x):
        return tf.keras.layers.Dense(3)(tf.keras.layers.Flatten()(tf.keras.layers.Embedding(200, 2)(x[:, 2:3])))

    return mask, look_up


def test_categories_and_switches_are_left_alone(scale):
    data, said = scale(TABLE, fields={"categories": (2,)})
    assert data.feature_means == (3.0, 0.0, 0.0, 7.0) and data.feature_deviations == (1.0, 1.0, 1.0, 2.0)
    assert "scaling  2 means and deviations" in said and "feature 1 (0 or 1), feature 2 (category)" in said
    assert find_largest_input(data) == 5.0  # an index of 150 is no reason to scale


def test_what_a_model_looks_up_is_left_alone_or_refused(scale, layers):
    _, look_up = layers
    data, said = scale(TABLE, look_up)
    assert data.feature_means == (3.0, 0.0, 0.0, 7.0) and "feature 2 (looked up)" in said
    assert "scales them, too" not in said  # which --unscaled=nothing is refused for
    with pytest.raises(ConfigError, match=r"unscaled=nothing: expected auto, .* \(feature 2\)"):
        scale(TABLE, look_up, unscaled="nothing")
    client = {"standardize": "client", "partition": "natural"}
    with pytest.raises(ConfigError, match=r"federated, which leaves alone what the model looks up \(feature 2\)"):
        scale(TABLE, look_up, **client)
    scale(TABLE, look_up, {"categories": (2,)}, **client)


def test_zeros_that_a_model_masks_are_padding_anywhere(scale, layers):
    mask, _ = layers
    data, said = scale(STEPS, mask(0.0))
    assert data.feature_padding == Padding(0.0, True) and "50.0 % of the steps" in said and "masks these" in said
    assert data.feature_means == (5.0, 5.0, 9.0, 0.0) and data.feature_deviations == (2.0, 1.0, 1.0, 1.0)
    # Without a Masking layer a 0 between others may be a measurement: that is said, and so is what decides it.
    data, said = scale(STEPS)
    assert data.feature_padding is None and data.feature_means == (5.0, 2.5, 4.5, 0.0)
    assert "50.0 % of the steps are 0, also between others" in said and "--unscaled=0" in said


def test_the_value_of_the_mask_is_that_of_the_padding(scale, layers):
    mask, _ = layers
    data, said = scale(PAIRS, mask(-1.0))
    # 4, 8 and a measured 0 in channel 0, 5, 5 and 0 in the other.
    assert data.feature_padding == Padding(-1.0, True) and data.feature_means == pytest.approx((4, 10 / 3))
    assert "50.0 % of the steps hold nothing but -1: the model masks these" in said
    client = {"standardize": "client", "partition": "natural", "unscaled": "categories"}
    assert "note     the model masks -1, but --unscaled=categories" in scale(PAIRS, mask(-1.0), **client)[1]


def test_steps_of_another_number_than_the_padding_are_told(scale, layers):
    mask, _ = layers
    x = np.array([[[4, 5], [-1, -1], [-1, -1]], [[8, 5], [6, 2], [-1, -1]]], np.float32)  # 3 of 6 steps
    line = "50.0 % of the steps hold nothing but -1 at the ends of sequences and are scaled as measurements; if they"
    data, said = scale(x)
    assert data.feature_padding is None and f"{line} are padding, give --unscaled=-1" in said
    assert f"{line} are padding, let the model mask -1, not 0" in scale(x, mask(0.0))[1]
    for told in (scale(x, unscaled="-1"), scale(x, unscaled="categories"), scale(x, mask(-1.0)), scale(-x)):
        assert line not in told[1]


def test_a_mask_that_cannot_be_kept_is_one_line(scale, layers):
    mask, _ = layers
    for values, flags, expected in (
        ((0.0, -1.0), {}, "none: Masking layers look for -1 and 0, not for one"),
        ((float("nan"),), {}, "none: a Masking layer looks for NaN"),
        ((-1.0,), {"unscaled": "0"}, "-1, which a Masking layer of the model looks for"),
        ((-1.0,), {"standardize": "client", "partition": "natural"}, "-1, which a Masking layer"),
    ):
        with pytest.raises(ConfigError, match=f"expected {expected}"):
            scale(PAIRS, mask(*values), **flags)


def test_the_flag_is_checked_and_does_nothing_alone():
    with pytest.raises(FlagError, match="unscaled=none: expected auto, categories, nothing, or the number"):
        parse_config(["--algo=fedavg", "--standardize=federated", "--unscaled=none"])
    with pytest.raises(FlagError, match="--standardize=federated"):
        parse_config(["--algo=fedavg", "--unscaled=-1"])
