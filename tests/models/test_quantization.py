"""Which layers can be quantized, and the wrapped model beside its float model."""

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format, make_spec

from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.quantization import (
    BY_DEFAULT,
    BY_OUR_CONFIG,
    UNSUPPORTED,
    MovingRange,
    build_quantized_spec,
    plan_quantization,
)

layers = tf.keras.layers
SHAPES = {"image_student": (8, 8, 1), "sensor_student": (15, 3), "perceptron": (20,)}


def build_own_spec(*body, input_shape=(8, 4), name="own"):
    def build():
        copies = [layer.__class__.from_config(layer.get_config()) for layer in body]
        return tf.keras.Sequential([tf.keras.Input(input_shape), *copies])

    return ModelSpec(name, build, make_format(input_shape))


def plan(*body, input_shape=(8, 4)):
    return plan_quantization(build_own_spec(*body, input_shape=input_shape).build())


def make_batch_norm_spec():
    return build_own_spec(
        layers.Conv2D(4, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.GlobalAveragePooling2D(),
        layers.Dense(3),
        input_shape=(6, 6, 2),
    )


@pytest.fixture(scope="module", params=[*SHAPES, "batch_norm"])
def float_spec(request):
    if request.param == "batch_norm":
        return make_batch_norm_spec()
    return make_spec(request.param, SHAPES[request.param])


@pytest.fixture(scope="module")
def spec(float_spec):
    return build_quantized_spec(float_spec)


@pytest.fixture(scope="module")
def built(spec):
    """(a model of the spec, its first weights); a test that changes the model sets them first."""
    model = spec.build()
    return model, tuple(model.get_weights())


def test_the_projects_models_need_one_rule_of_ours(float_spec):
    plans = plan_quantization(float_spec.build())
    ours = [each.layer for each in plans if each.treatment == BY_OUR_CONFIG]
    assert ours == (["dropout"] if float_spec.name == "sensor_student" else [])
    assert all(each.treatment == BY_DEFAULT for each in plans if each.layer not in ours)


@pytest.mark.parametrize(
    ("body", "treatment", "word"),
    [
        ((layers.Conv1D(4, 3),), BY_OUR_CONFIG, "one scale"),
        ((layers.MaxPooling1D(),), BY_OUR_CONFIG, "as it is"),
        ((layers.LSTM(3),), UNSUPPORTED, "take Conv1D"),
        ((layers.Conv1D(4, 3), layers.BatchNormalization()), UNSUPPORTED, "right after"),
        ((layers.Dense(4), layers.BatchNormalization()), BY_DEFAULT, "in float"),
        ((layers.Dense(4, activation="relu"), layers.BatchNormalization()), UNSUPPORTED, "without activation"),
        ((layers.BatchNormalization(),), UNSUPPORTED, "right after"),
        ((layers.LayerNormalization(),), UNSUPPORTED, "BatchNormalization"),
        ((layers.ELU(),), UNSUPPORTED, "LeakyReLU"),
        ((layers.Rescaling(0.5),), UNSUPPORTED, "preprocessing"),
        ((tf.keras.Sequential([tf.keras.Input((8, 4)), layers.Dense(4)]),), UNSUPPORTED, "one by one"),
        ((layers.GaussianNoise(0.1),), UNSUPPORTED, "--quantize=none"),
    ],
)
def test_treatments(body, treatment, word):
    last = plan(*body)[-1]
    assert (last.layer, last.kind, last.treatment) == (body[-1].name, type(body[-1]).__name__, treatment)
    assert word in last.remark


def test_what_cannot_be_quantized_is_one_line_with_the_fix():
    spec = build_own_spec(layers.Conv1D(4, 3), layers.LayerNormalization(name="norm"), layers.PReLU(name="bend"))
    with pytest.raises(ModelError) as caught:
        build_quantized_spec(spec)
    message = str(caught.value)
    assert message.startswith("quantize=qat with model=own: ") and "\n" not in message
    assert "norm (LayerNormalization)" in message and "bend (PReLU): take ReLU" in message


def test_a_model_that_is_no_graph_of_layers_is_refused():
    class Own(tf.keras.Model):
        def call(self, x):
            return x

    with pytest.raises(ModelError, match="Sequential or functional model, got Own"):
        build_quantized_spec(ModelSpec("own", Own, make_format((4,))))


def build_frozen_backbone():
    """Its layers are part of the outer model, used twice, and frozen by the inner one's attribute afterwards."""
    x = tf.keras.Input((4,))
    dense = layers.Dense(4, name="a")
    backbone = tf.keras.Model(x, dense(dense(x)))
    backbone.trainable = False
    return tf.keras.Model(backbone.input, layers.Dense(3, name="head")(backbone.output))


def make_frozen_spec(input_shape, *body):
    return build_own_spec(*body, layers.Flatten(), layers.Dense(3, name="head"), input_shape=input_shape)


FROZEN_IMAGES = make_frozen_spec(
    (6, 6, 2),
    layers.Conv2D(2, 3, name="a", trainable=False),
    layers.BatchNormalization(name="b", trainable=False),
    layers.ReLU(),
    layers.DepthwiseConv2D(3, name="c", trainable=False),
)
FROZEN = {
    "dense": make_frozen_spec((4,), layers.Dense(4, name="a", trainable=False)),
    "conv1d": make_frozen_spec((6, 4), layers.Conv1D(2, 3, name="a", trainable=False)),
    "transposed": make_frozen_spec((3, 3, 1), layers.Conv2DTranspose(2, 2, name="a", trainable=False)),
    "images": FROZEN_IMAGES,
    "backbone": ModelSpec("own", build_frozen_backbone, make_format((4,))),
    "all but the first": build_own_spec(
        layers.Dense(4, name="head"), layers.Dense(3, name="a", trainable=False), input_shape=(4,)
    ),
}


def name_weights(weights):
    """The names of weights, those that wrappers add left out."""
    names = [weight.name.removesuffix(":0") for weight in weights]
    return [name for name in names if not name.startswith("quant")]


@pytest.mark.parametrize("spec", FROZEN.values(), ids=FROZEN)
def test_frozen_layers_are_not_trained(spec):
    model = build_quantized_spec(spec).build()
    assert name_weights(model.trainable_weights) == ["head/kernel", "head/bias"]


def test_freezing_keeps_the_order_in_which_runs_have_their_weights():
    model = build_quantized_spec(FROZEN_IMAGES).build()
    assert name_weights(model.weights) == [
        *("a/kernel", "a/bias", "b/gamma", "b/beta", "b/moving_mean", "b/moving_variance"),
        *("c/depthwise_kernel", "c/bias", "head/kernel", "head/bias"),
    ]
    first = [weight.name.split("/")[-1] for weight in model.weights][:8]
    assert first[3:] == ["kernel:0", "bias:0", "optimizer_step:0", "kernel_min:0", "kernel_max:0"]


@pytest.mark.parametrize("position", [0, 1])
def test_a_weight_that_is_frozen_alone_is_one_line(position):
    """Its layer's copy would train it."""

    def build():
        model = tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(4, name="a"), layers.Dense(3)])
        dense = model.layers[0]
        dense._non_trainable_weights.append(dense._trainable_weights.pop(position))
        return model

    name = ["a/kernel", "a/bias"][position]
    with pytest.raises(ModelError, match=f"^quantize=qat with model=own: {name} alone is frozen, in layer a .Dense.*;"):
        build_quantized_spec(ModelSpec("own", build, make_format((4,))))


def test_the_first_weights_are_those_of_the_float_model(float_spec, spec):
    tf.keras.utils.set_random_seed(5)
    float_weights = float_spec.build().get_weights()
    tf.keras.utils.set_random_seed(5)
    model = spec.build()
    stripped = spec.quantization.strip(model.get_weights())
    assert len(stripped) < len(model.weights)
    np.testing.assert_equal(float_weights, stripped)


@pytest.mark.parametrize("stacked", [(), (3,)])
def test_wrapping_undoes_stripping(float_spec, spec, built, stacked):
    _, template = built
    rng = np.random.default_rng(0)
    float_weights = tuple(
        rng.normal(size=(*stacked, *template[i].shape)).astype(np.float32) for i in spec.quantization.positions
    )
    weights = spec.quantization.wrap(float_weights, template)
    assert [array.shape for array in weights] == [(*stacked, *array.shape) for array in template]
    np.testing.assert_equal(spec.quantization.strip(weights), float_weights)
    others = set(range(len(template))) - set(spec.quantization.positions)
    for i in others:
        np.testing.assert_array_equal(weights[i], np.broadcast_to(template[i], weights[i].shape))
    assert (spec.of_weights(weights), spec.of_weights(float_weights)) == (spec, float_spec)


def test_ranges_follow_the_activations_by_hand():
    low, high = tf.Variable(-6.0), tf.Variable(6.0)
    rounded = MovingRange(8, per_axis=False, symmetric=False, narrow_range=False)(
        tf.constant([2.0, 10.0]), True, {"min_var": low, "max_var": high}
    )
    np.testing.assert_allclose([low.numpy(), high.numpy()], [0.9 * -6 + 0.1 * 0, 0.9 * 6 + 0.1 * 10], rtol=1e-6)
    assert abs(rounded[0] - 2) <= (6.4 + 5.4) / 255  # a step of the range
    assert abs(rounded[1] - 6.4) <= (6.4 + 5.4) / 255  # cut off


def test_every_moving_range_is_ours(float_spec, built):
    model, first = built
    model.set_weights(first)
    slow = [variable.name for variable in model.weights if "_max" in variable.name and "kernel" not in variable.name]
    before = {variable.name: variable.numpy() for variable in model.weights}
    model(tf.fill((2, *float_spec.format.input_shape), 0.5), training=True)
    after = {variable.name: variable.numpy() for variable in model.weights}
    activations = [name for name in slow if not name.startswith("quantize_layer")]  # the input's range has no decay
    assert activations
    for name in activations:
        assert 0.9 * before[name] <= after[name] + 1e-6 and after[name] < 0.95 * before[name]


def test_rounding_is_slight_once_the_ranges_fit(float_spec, spec, built):
    (model, first), float_model = built, float_spec.build()
    model.set_weights(first)
    x = tf.random.stateless_uniform((16, *spec.format.input_shape), (1, 2))
    step = tf.function(lambda: model(x, training=True))
    for _ in range(60):
        step()
    float_model.set_weights(spec.quantization.strip(model.get_weights()))
    difference = np.abs(model(x, training=False) - float_model(x, training=False)).max()
    assert 0 < difference < 0.05 * np.ptp(float_model(x, training=False))


def test_the_teacher_stays_float():
    spec = make_spec("image_student", (8, 8, 1), "uint8", 10, quantize="qat")
    assert spec.teacher.quantization is None
    assert spec.quantization.float_spec.teacher.name == "image_teacher"
