"""Models whose function needs values, as `adapt` and `.numpy()` do: in a round's graph as they are made eagerly."""

import functools
import importlib

import numpy as np
import pytest
import tensorflow as tf

from datasets.example_format import ExampleFormat
from models.catalog import ModelOptions, build_model_spec
from models.model_names import ModelError
from models.own_model import load_own_model
from tff_algos.weights import initialize_weights

SOURCE = """
import numpy as np
import tensorflow as tf
K, L = tf.keras, tf.keras.layers
ROWS = np.array([[0, 0], [4, 10]], np.float32)  # means 2 and 5, deviations 2 and 5
PRETRAINED = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def adapt(layer, rows=ROWS):
    layer.adapt(rows)
    return layer

def model(shape, *layers):
    return K.Sequential([K.Input(shape), *layers])

def last(classes, **options):
    return L.Dense(classes, kernel_initializer="ones", **options)

def normalized(shape, classes):
    return model(shape, adapt(L.Normalization()), last(classes))

def nested(shape, classes):
    inputs = K.Input(shape)
    scale = float(tf.constant(2.0).numpy())
    inner = model(shape, L.Lambda(lambda x: scale * x), L.Dense(2, "relu", name="body"))
    inner.trainable = False
    return K.Model(inputs, last(classes)(inner(inputs)))

def assigned(shape, classes):
    layer = L.Normalization()
    layer.build((None, *shape))
    layer.adapt_mean.assign([2, 5])
    layer.adapt_variance.assign([4, 25])
    layer.finalize_state()
    return model(shape, layer, last(classes))

def binned(shape, classes):
    bins = adapt(L.Discretization(num_bins=2), np.arange(8, dtype=np.float32)[:, None])
    return model(shape, bins, L.CategoryEncoding(2, "multi_hot"), last(classes))

def looked_up(shape, classes):
    start = K.initializers.Constant([[1] * 3, [10] * 3, [100] * 3])
    words = adapt(L.IntegerLookup(output_mode="count"), np.array([[7], [7], [9]]))
    return model(shape, L.Lambda(lambda x: tf.cast(x, "int64")), words, L.Dense(classes, kernel_initializer=start))

def pretrained(shape, classes):
    kernel = tf.constant(PRETRAINED).numpy()
    network = model(shape, L.Dense(3, name="given"), L.Dense(classes, name="drawn"))
    network.layers[0].set_weights([kernel, np.zeros(3)])
    return network

BODY = model((2,), L.Dense(3, name="body"))
BODY.set_weights([PRETRAINED, np.zeros(3)])

def around(shape, classes):
    return model(shape, BODY, L.Dense(classes))

def plain(shape, classes):
    return model(shape, L.Dense(classes))

class Network(K.Model):
    def __init__(self, classes):
        super().__init__()
        self.scale, self.dense = L.Normalization(), L.Dense(classes)
    def call(self, x):
        return self.dense(self.scale(x))

def subclassed(shape, classes):
    network = Network(classes)
    network.scale.adapt(ROWS)
    network.build((None, *shape))
    return network

def drawn(shape, classes):
    matrix = np.random.default_rng().normal(size=(2, 8)).astype(np.float32)
    return model(shape, L.Lambda(lambda x: tf.cos(x @ matrix)), L.Dense(classes))

class Untold(L.Layer):
    def build(self, shape):
        factor = tf.Variable(1.0, trainable=False)
        self.find = lambda: factor
    def call(self, x):
        return x * self.find()

def untold(shape, classes):
    layer = Untold()
    network = model(shape, layer, L.Dense(classes))
    layer.find().assign(3.0)
    return network
"""
OWN_MODULES = {"eager_networks": SOURCE}
pytestmark = pytest.mark.usefixtures("own_modules")


@functools.cache
def load(name):
    return load_own_model(f"eager_networks:{name}", (2,), 3)


def run_in_graph(build, x):
    """What the model from a graph answers with the weights of one made eagerly, and how many of these are trained."""
    weights = build().get_weights()
    with tf.Graph().as_default() as graph:
        model = build()

        @tf.function
        def compute(x):
            for variable, value in zip(model.weights, weights, strict=True):
                variable.assign(value)
            return model(x)

        outputs = compute(tf.constant(x))
        start = [tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()]
        with tf.compat.v1.Session(graph=graph) as session:
            session.run(start)
            return session.run(outputs), len(model.trainable_weights)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("normalized", [6, 15], 4),  # (6 - 2) / 2 + (15 - 5) / 5
        ("assigned", [6, 15], 4),  # fails in no graph, and had means of 0 and deviations of 1 there, which is 21
        ("binned", [0, 7], 2),  # a value in each half of 0 to 7
        ("looked_up", [9, 3], 101),  # 9 is the second word, 3 none
    ],
)
def test_graphs_have_what_layers_adapted_to(name, x, expected):
    build, x = load(name), np.array([x], np.float32)
    model = build()
    for outputs in (model(x).numpy(), run_in_graph(build, x)[0]):
        np.testing.assert_allclose(outputs, np.full((1, 3), expected), rtol=1e-5)
    # What was adapted to is no weight, so noise, aggregation and meta-gradients leave it as it is.
    assert [weight.shape[1:] for weight in model.weights] == [(3,), ()] and not model.non_trainable_weights


def test_layers_inside_a_frozen_model_stay_frozen():
    build, x = load("nested"), np.array([[6, 15]], np.float32)
    outputs, num_trained = run_in_graph(build, x)
    assert num_trained == len(build().trainable_weights) == 2
    assert outputs.shape == (1, 3)


def test_a_run_starts_from_the_pretrained_weights_and_draws_the_others_by_its_seed():
    spec = build_model_spec(
        "eager_networks:pretrained", ExampleFormat((2,), "float32", tuple("abc")), ModelOptions(teacher_model="auto")
    )
    first, again, other = (initialize_weights(spec, seed) for seed in (1, 1, 2))
    for weights in (first, other):
        np.testing.assert_array_equal(weights[0], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(first[2], again[2])
    assert (first[2] != other[2]).any()


def test_a_pretrained_body_beside_the_function_stays_as_it_is():
    build = load("around")
    for weights in (importlib.import_module("eager_networks").BODY.get_weights(), build().get_weights()):
        np.testing.assert_array_equal(weights[0], [[1, 2, 3], [4, 5, 6]])


def test_a_function_that_graphs_can_call_is_left_alone():
    build = load("plain")
    tf.keras.utils.set_random_seed(7)
    expected = importlib.import_module("eager_networks").plain((2,), 3).get_weights()
    tf.keras.utils.set_random_seed(7)
    np.testing.assert_array_equal(build().get_weights()[0], expected[0])
    assert build.args[1].func.__name__ == "plain"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "subclassed",
            r"`adapt` .*\(.*line \d+: `network.scale.adapt\(ROWS\)`\); .*: Network is a class of its own",
        ),
        ("drawn", "answers otherwise there .* each call of the function makes other numbers that are no weights"),
        ("untold", "answers otherwise there .* a layer's get_config lacks some of its numbers"),
    ],
)
def test_one_line_where_no_graph_can_have_the_model(name, message):
    with pytest.raises(ModelError, match=message) as caught:
        load(name)
    assert "\n" not in str(caught.value)
