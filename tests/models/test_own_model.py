"""A user's own model: what is accepted, and one line for each thing that can be wrong with it."""

import numpy as np
import pytest

from models.model_names import ModelError
from models.own_model import load_own_model

SOURCE = """
import sys
import tensorflow as tf

def build(input_shape, num_classes):
    return tf.keras.Sequential(
        [tf.keras.Input(input_shape), tf.keras.layers.Flatten(), tf.keras.layers.Dense(num_classes)])

class Subclassed(tf.keras.Model):
    def __init__(self, num_classes):
        super().__init__()
        self.dense = tf.keras.layers.Dense(num_classes)
    def call(self, x):
        return self.dense(x)

def build_subclassed(input_shape, num_classes):
    model = Subclassed(num_classes)
    model.build((None, *input_shape))
    return model

def too_wide(input_shape, num_classes):
    return build(input_shape, num_classes + 1)

def other_input(input_shape, num_classes):
    return build((7,), num_classes)

def two_outputs(input_shape, num_classes):
    x = tf.keras.Input(input_shape)
    return tf.keras.Model(x, [tf.keras.layers.Dense(num_classes)(x), tf.keras.layers.Dense(num_classes)(x)])

def unbuilt(input_shape, num_classes):
    return tf.keras.Sequential([tf.keras.layers.Dense(num_classes)])

def no_model(input_shape, num_classes):
    return "a model"

def fails(input_shape, num_classes):
    raise RuntimeError("first line\\nsecond line")

def exits(input_shape, num_classes):
    sys.exit()

_calls = []

def exits_later(input_shape, num_classes):
    _calls.append(None)
    return build(input_shape, num_classes) if len(_calls) <= 3 else sys.exit(0)

def no_arguments():
    return None

_shared = []

def same_object(input_shape, num_classes):
    if not _shared:
        _shared.append(build(input_shape, num_classes))
    return _shared[0]

not_a_function = 3

def with_width(input_shape, num_classes, width):
    return build(input_shape, num_classes)

def returns_nothing(input_shape, num_classes):
    build(input_shape, num_classes)

def returns_the_class(input_shape, num_classes):
    return Subclassed

_turns = []

def fails_the_second_time(input_shape, num_classes):
    _turns.append(None)
    return build(input_shape, num_classes) if len(_turns) == 1 else [][0]

def grows(input_shape, num_classes):
    _turns.append(None)
    layers = [tf.keras.layers.Dense(len(_turns)), tf.keras.layers.Dense(num_classes)]
    return tf.keras.Sequential([tf.keras.Input(input_shape), *layers])
"""

# Models of (5,) examples and 3 classes: `end(layer, ...)` has a dense layer of logits before them.
LAYERS = """
import tensorflow as tf
from models.stateless_dropout import StatelessDropout
K, L = tf.keras, tf.keras.layers

def end(*layers, input_shape=(5,), num_classes=3, **options):
    return K.Sequential([K.Input(input_shape), L.Flatten(), L.Dense(num_classes, **options), *layers])

def sequence(*layers):
    return lambda shape, classes: K.Sequential([K.Input(shape), L.Reshape((-1, 1)), *layers, L.Flatten(), L.Dense(3)])

def image(*layers):
    return lambda shape, classes: K.Sequential(
        [K.Input(shape), L.Reshape((1, 5, 1)), *layers, L.Flatten(), L.Dense(classes)])

def _of(*layers, **options):
    return lambda shape, classes: end(*layers, **options)

class OwnDropout(L.Dropout):
    pass

class Function(K.Model):
    def __init__(self, *layers, wrap=lambda x: x):
        super().__init__()
        self.all, self.wrap = layers, wrap
    @tf.function
    def call(self, x, training=None):
        for layer in self.all:
            x = layer(x, training=training)
        return self.wrap(x)

def subclassed(*layers, wrap=lambda x: x):
    def build(shape, classes):
        model = Function(*(make(classes) for make in layers), wrap=wrap)
        model.build((None, *shape))
        return model
    return build

class Counter(L.Layer):
    def __init__(self):
        super().__init__()
        count = tf.Variable(0.0, trainable=False)
        self.count = lambda: count.assign_add(1.0)
    def call(self, x):
        return x + self.count()

class Branch(L.Layer):
    def call(self, x):
        if tf.reduce_sum(x) > 0:
            x = 2.0 * x
        return x

class Losses(L.Layer):
    def call(self, x):
        self.add_loss(tf.reduce_sum(x, axis=1))
        return x

noise = _of(L.GaussianNoise(0.1))
gaussian_dropout = _of(L.GaussianDropout(0.1))
alpha_dropout = _of(L.AlphaDropout(0.1))
spatial_dropout = sequence(L.SpatialDropout1D(0.1))
dropout = _of(L.Dropout(0.1, seed=1))
own_dropout = _of(OwnDropout(0.1))
nested_dropout = _of(K.Sequential([K.Input(3), L.Dropout(0.1), L.Dense(3)]))
gru = sequence(L.GRU(2, dropout=0.1))
recurrent_dropout = sequence(L.LSTM(2, recurrent_dropout=0.1))
cell = sequence(L.Bidirectional(L.RNN(L.GRUCell(2, dropout=0.1))))
lambda_noise = _of(L.Lambda(lambda x: x + tf.random.normal(tf.shape(x))))
lambda_shuffle = _of(L.Lambda(tf.random.shuffle))
flip = image(L.RandomFlip())
rotation = image(L.RandomRotation(0.1))
in_function = subclassed(L.Dense, lambda classes: L.GaussianNoise(0.1))
only_in_inference = _of(L.Lambda(lambda x, training=None: x if training else x + tf.random.uniform(tf.shape(x))))
in_a_loop = _of(L.Lambda(lambda x: tf.while_loop(
    lambda i, y: i < 3, lambda i, y: (i + 1, y + tf.random.uniform([])), (0, x))[1]))
counter = _of(Counter())
python = _of(L.Lambda(lambda x: tf.ensure_shape(tf.numpy_function(lambda v: v, [x], tf.float32), (None, 3))))

softmax = _of(activation="softmax")
softmax_layer = _of(L.Softmax())
clipped = _of(L.Lambda(lambda p: tf.clip_by_value(p, 1e-7, 1.0)), activation="softmax")
normalised = _of(L.Lambda(lambda x: tf.exp(tf.minimum(x, 50.0)) / tf.reduce_sum(tf.exp(tf.minimum(x, 50.0)), 1, True)))
smoothed = _of(L.Lambda(lambda p: 0.9 * p + 0.1 / 3), activation="softmax")
in_a_function = subclassed(lambda classes: L.Dense(classes, activation="softmax"))
of_tokens = lambda shape, classes: K.Sequential(
    [K.Input(shape), L.Embedding(4, 2), L.Flatten(), L.Dense(classes, activation="softmax")])
sigmoid = _of(activation="sigmoid")
hard_sigmoid = _of(L.Lambda(lambda x: tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0)))

as_dict = subclassed(L.Dense, wrap=lambda x: {"logits": x})
as_list = subclassed(L.Dense, wrap=lambda x: [x])
functional_dict = lambda shape, classes: K.Model(x := K.Input(shape), {"logits": L.Dense(classes)(x)})
further_axis = _of(L.Reshape((3, 1)))
two_inputs = lambda shape, classes: K.Model([a := K.Input(shape), b := K.Input(shape)], L.Dense(classes)(a + b))
vector_losses = _of(Losses())
float16 = _of(dtype="float16")
of_batch = _of(L.Lambda(lambda x: tf.reduce_mean(x, 0)))

log_softmax = _of(L.Lambda(tf.nn.log_softmax))
zeros = _of(kernel_initializer="zeros")
positive = _of(kernel_initializer="ones", kernel_constraint=K.constraints.NonNeg())
relu = _of(activation="relu")
branch = _of(Branch())
stateless = _of(StatelessDropout(0.5), L.Dense(3))
quiet_gru = sequence(L.GRU(2))
tokens = lambda shape, classes: K.Sequential(
    [K.Input(shape, dtype="int32"), L.Embedding(4, 2), L.Flatten(), L.Dense(classes)])
batch_norm = image(L.Conv2D(6, 1), L.BatchNormalization(), L.ReLU())
one_in_a_list = lambda shape, classes: K.Model(x := K.Input(shape), [L.Dense(classes)(x)])
losses = _of(L.ActivityRegularization(0.1), kernel_regularizer=K.regularizers.OrthogonalRegularizer())
"""
OWN_MODULES = {
    "own_networks": SOURCE,
    "own_layers": LAYERS,
    "own_broken": "def f(:\n",
    "own_exits": "import sys\nsys.exit(0)\n",
    "own_missing_import": "import a_package_that_is_not_there\n",
}
pytestmark = pytest.mark.usefixtures("own_modules")
ACCEPTED = (
    "log_softmax",
    "zeros",
    "positive",
    "relu",
    "branch",
    "stateless",
    "quiet_gru",
    "tokens",
    "batch_norm",
    "one_in_a_list",
)


@pytest.mark.parametrize(
    "function",
    ["own_networks:build", "own_networks:build_subclassed", *(f"own_layers:{name}" for name in ACCEPTED)],
)
def test_builds_a_new_model_each_time(function):
    build = load_own_model(function, (5,), 3)
    first, second = build(), build()
    assert first is not second
    assert first(np.zeros((2, 5), np.float32)).shape == (2, 3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("own_networks", "expected auto"),
        ("own_nowhere:build", "no module named own_nowhere; run from the folder"),
        ("own_nowhere.deep:build", "no module named own_nowhere; run from the folder"),
        ("own_missing_import:build", "no module named a_package_that_is_not_there; own_missing_import needs it"),
        ("own_broken:build", "importing own_broken failed: SyntaxError"),
        ("own_networks:nothing", "expected nothing in own_networks, there is none"),
        ("own_networks:not_a_function", "expected a function, got"),
        ("own_networks:fails", "failed with RuntimeError: first line"),
        ("own_networks:exits", "failed with a call of sys.exit"),
        ("own_exits:build", "importing own_exits failed: a call of sys.exit"),
        ("sys:nothing", "expected nothing in sys, there is none"),
        ("own_networks:no_arguments", r"expected a function of \(input_shape, num_classes\): too many positional"),
        ("own_networks:with_width", r"expected a function of \(input_shape, num_classes\): missing .* 'width'"),
        ("own_networks:returns_nothing", "expected the function to return a tf.keras.Model, got None; is a return"),
        ("own_networks:returns_the_class", "expected the function to return a tf.keras.Model, got type"),
        ("own_networks:fails_the_second_time", "failed with IndexError"),
        ("own_networks:grows", "expected weights of the same shapes from each call"),
        ("own_layers:as_dict", "got them in a dict; let the model return the tensor itself"),
        ("own_layers:functional_dict", "got them in a dict; let the model return the tensor itself"),
        ("own_layers:as_list", "got them in a list; let the model return the tensor itself"),
        ("own_layers:further_axis", r"expected logits of shape \(batch, 3\), got \(None, 3, 1\)"),
        ("own_layers:of_batch", r"expected logits of shape \(batch, 3\), got \(3,\)"),
        ("own_layers:two_inputs", "expected one input, got 2 of shapes"),
        ("own_layers:vector_losses", r"expected numbers from add_loss, got shape \(None,\); take tf.reduce_mean of it"),
        ("own_layers:float16", "expected float32 weights, got float16"),
        ("own_networks:no_model", "expected the function to return a tf.keras.Model"),
        ("own_networks:unbuilt", "expected a built model"),
        ("own_networks:same_object", "expected a new model from each call"),
        ("own_networks:too_wide", r"expected logits of shape \(batch, 3\), got \(None, 4\)"),
        ("own_networks:two_outputs", r"expected logits of shape \(batch, 3\), got \(None, 3\), \(None, 3\)"),
        ("own_networks:other_input", "failed with ValueError"),
    ],
)
def test_one_line_for_each_mistake(model, message):
    with pytest.raises(ModelError, match=message) as error:
        load_own_model(model, (5,), 3)
    assert str(error.value).startswith(f"model={model}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("model", "layer"),
    [
        ("noise", "GaussianNoise"),
        pytest.param("gaussian_dropout", "GaussianDropout", marks=pytest.mark.slow),
        pytest.param("alpha_dropout", "AlphaDropout", marks=pytest.mark.slow),
        ("spatial_dropout", "SpatialDropout1D"),
        ("dropout", "Dropout"),
        ("own_dropout", "OwnDropout"),
        ("nested_dropout", "Dropout"),
        pytest.param("gru", "GRU", marks=pytest.mark.slow),
        ("recurrent_dropout", "LSTM"),
        ("cell", "Bidirectional"),
        ("lambda_noise", "Lambda"),
        ("lambda_shuffle", "Lambda"),
        ("flip", "RandomFlip"),
        pytest.param("rotation", "RandomRotation", marks=pytest.mark.slow),
        ("in_function", "GaussianNoise"),
        ("only_in_inference", "Lambda"),
        ("in_a_loop", "Lambda"),
    ],
)
def test_randomness_that_no_seed_repeats_is_refused_and_its_layer_is_named(model, layer):
    said = rf": layer \w+ \({layer}\) draws random numbers that cannot be repeated; take models.state"
    with pytest.raises(ModelError, match=said):
        load_own_model(f"own_layers:{model}", (5,), 3)


PROBABILITIES = ("softmax", "softmax_layer", "clipped", "normalised", "smoothed", "in_a_function", "of_tokens")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("counter", "two calls with the same weights, examples and seed differ"),
        ("python", r"layer lambda\w* \(Lambda\) calls Python"),
        *((name, r"expected logits, got probabilities .* leave the softmax out") for name in PROBABILITIES),
        *((name, r"expected logits, got values in .* leave the sigmoid out") for name in ("sigmoid", "hard_sigmoid")),
    ],
)
def test_what_a_model_does_is_known_by_its_outputs(model, message):
    with pytest.raises(ModelError, match=message):
        load_own_model(f"own_layers:{model}", (5,), 3)


def test_a_finished_runs_model_is_only_looked_at():
    """Versions before this one trained with noise, too; such runs are still evaluated and exported."""
    build = load_own_model("own_layers:noise", (5,), 3, to_train=False)
    assert build()(np.zeros((2, 5), np.float32)).shape == (2, 3)
    with pytest.raises(ModelError, match="expected logits of shape"):
        load_own_model("own_networks:too_wide", (5,), 3, to_train=False)


def test_a_later_call_that_fails_is_one_line_too():
    build = load_own_model("own_networks:exits_later", (5,), 3)
    with pytest.raises(ModelError, match="own_networks:exits_later: failed with a call of sys"):
        build()
