"""Training, weights out and weights in by the TFLite interpreter, through the signatures that a phone calls."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from model_answers import rebuild
from small_formats import make_format, make_spec

from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.on_device_training import SIGNATURES, LocalStep, build_training_module
from models.quantization import build_quantized_spec
from models.stateless_dropout import StatelessDropout
from models.tflite_export import convert_training_module

BATCH_SIZE = 16
NUM_CLASSES = 4
LAYERS = tf.keras.layers


def spec_of(name, shape, *layers):
    """A model of these layers, each made anew by a function, and a layer for the logits."""

    def build():
        body = [layer() for layer in layers]
        return tf.keras.Sequential([tf.keras.Input(shape), *body, LAYERS.Dense(NUM_CLASSES, name="logits")])

    return ModelSpec(name, build, make_format(shape, "float32", NUM_CLASSES))


BATCH_NORM = spec_of(
    "batch_norm",
    (8, 8, 1),
    lambda: LAYERS.Conv2D(8, 3, name="convolution"),
    lambda: LAYERS.BatchNormalization(name="normalization"),
    LAYERS.ReLU,
    LAYERS.GlobalAveragePooling2D,
)
SEQUENCE = spec_of(
    "sequence",
    (16, 3),
    lambda: LAYERS.Conv1D(8, 3, padding="same", activation="relu"),
    lambda: LAYERS.MaxPooling1D(2),
    lambda: LAYERS.Conv1D(8, 3, strides=2, activation="tanh"),
    LAYERS.Flatten,
)
MOBILE = spec_of(
    "mobile",
    (8, 8, 3),
    lambda: LAYERS.DepthwiseConv2D(3, padding="same"),
    lambda: LAYERS.ReLU(6),
    lambda: LAYERS.Conv2D(8, 1),
    lambda: LAYERS.AveragePooling2D(2),
    LAYERS.Flatten,
)
REGULARIZED = spec_of(
    "regularized",
    (6,),
    lambda: LAYERS.Dense(8, kernel_regularizer="l2", bias_regularizer="l1", kernel_constraint="non_neg"),
    lambda: LAYERS.Dense(8, activity_regularizer="l2", kernel_constraint="max_norm"),
)
# An operation that TFLite lacks.
LACKING = spec_of("lacking", (6,), lambda: LAYERS.Dense(8), lambda: LAYERS.Dense(8, activation="softsign"))
SPECS = {
    "perceptron": make_spec("perceptron", (8, 8, 1), "float32", NUM_CLASSES),
    "image_student": make_spec("auto", (8, 8, 1), "float32", NUM_CLASSES, activation="relu"),
    "sensor_student": make_spec("auto", (16, 3), "float32", NUM_CLASSES),
    "batch_norm": BATCH_NORM,
    "sequence": SEQUENCE,
    "mobile": MOBILE,
    "regularized": REGULARIZED,
    "dense": spec_of("dense", (6,), lambda: LAYERS.Dense(8)),
    "image_cnn10": make_spec("image_cnn10", (8, 8, 1), "float32", NUM_CLASSES, width=0.1),
}
HEADS = {
    "perceptron": [
        "hidden_1/kernel",
        "hidden_1/bias",
        "hidden_2/kernel",
        "hidden_2/bias",
        "logits/kernel",
        "logits/bias",
    ],
    "image_student": ["logits/kernel", "logits/bias"],
    "sensor_student": ["hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"],
    "image_cnn10": ["logits/kernel", "logits/bias"],
}
SLOW = pytest.mark.slow
PARTS = [
    *((name, "full") for name in ("image_student", "batch_norm")),
    ("sensor_student", "head"),
    *(
        pytest.param(name, "full", marks=SLOW)
        for name in ("sensor_student", "perceptron", "sequence", "mobile", "image_cnn10")
    ),
    pytest.param("image_student", "head", marks=SLOW),
]
DESCENDING = [
    *("image_student", "batch_norm", "regularized"),
    *(pytest.param(name, marks=SLOW) for name in ("perceptron", "sequence", "mobile", "image_cnn10")),
]


def first_weights(spec):
    tf.keras.utils.set_random_seed(0)
    return tuple(spec.build().get_weights())


def assert_close(ours, theirs, atol):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=atol)


def draw_batch(spec):
    """Examples around a center for each class."""
    generator = np.random.default_rng(0)
    y = np.arange(BATCH_SIZE, dtype=np.int32) % NUM_CLASSES
    centers = generator.normal(size=(NUM_CLASSES, *spec.format.input_shape))
    return (centers[y] + generator.normal(0, 0.3, (BATCH_SIZE, *spec.format.input_shape))).astype(np.float32), y


class Phone:
    """The functions of a training file, as an app calls them."""

    def __init__(self, file):
        self.interpreter = tf.lite.Interpreter(model_content=file.content)
        self.run = {name: self.interpreter.get_signature_runner(name) for name in self.interpreter.get_signature_list()}

    def train(self, x, y, rate=0.1):
        return float(self.run["train"](x=x, y=y, learning_rate=np.float32(rate))["loss"])

    def infer(self, x):
        return np.concatenate([self.run["infer"](x=example[None])["logits"] for example in x])

    def get_weights(self):
        return self.run["get_weights"](unused=np.int32(0))

    def set_weights(self, weights):
        return int(self.run["set_weights"](**weights)["num_weights"])


@functools.cache
def convert(name, part="full"):
    """The file of one of SPECS."""
    return convert_training_module(SPECS[name], first_weights(SPECS[name]), BATCH_SIZE, part)


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_ten_steps_weights_out_and_in(name, part):
    spec, file = SPECS[name], convert(name, part)
    assert file.select_operators == ()
    phone = Phone(file)
    assert sorted(phone.run) == sorted(SIGNATURES)
    x, y = draw_batch(spec)
    model = rebuild(spec, first_weights(spec))
    np.testing.assert_allclose(phone.infer(x), model(x, training=False), atol=1e-5)

    losses = [phone.train(x, y) for _ in range(10)]
    assert losses[-1] < losses[0]
    after, weights = phone.infer(x), phone.get_weights()
    assert np.abs(after - model(x, training=False)).max() > 1e-4
    for _ in range(5):
        phone.train(x, y, 0.5)
    assert np.abs(phone.infer(x) - after).max() > 1e-4
    assert phone.set_weights(weights) == len(weights) == len(file.weight_names)
    np.testing.assert_array_equal(phone.infer(x), after)

    another = Phone(file)  # a second phone, or the app started again
    another.set_weights(weights)
    np.testing.assert_array_equal(another.infer(x), after)
    # The server has these weights in Keras.
    whole = list(first_weights(spec))
    for key, value in weights.items():
        whole[int(key.removeprefix("weight_"))] = value
    model.set_weights(whole)
    np.testing.assert_allclose(model(x, training=False), after, atol=1e-4)


@pytest.mark.parametrize("name", HEADS)
def test_the_head_is_the_last_dense_layers(name):
    spec = SPECS[name]
    names = build_training_module(spec, first_weights(spec), BATCH_SIZE, "head").weight_names
    assert list(names.values()) == HEADS[name]
    built = [variable.name.removesuffix(":0") for variable in spec.build().weights]
    assert [built[int(key.removeprefix("weight_"))] for key in names] == HEADS[name]


def test_what_is_frozen_stays_and_is_in_the_file_once():
    file = convert("sensor_student", "head")
    spec = SPECS["sensor_student"]
    x, y = draw_batch(spec)
    module = build_training_module(spec, first_weights(spec), BATCH_SIZE, "head")
    module.train(x, y, 0.5)
    changed = [not np.array_equal(new, old) for new, old in zip(module.weights, first_weights(spec), strict=True)]
    assert changed == [False] * 4 + [True] * 4
    assert len(file.content) < 1.1 * sum(weight.nbytes for weight in first_weights(spec))


def test_a_file_holds_no_arrays_of_a_batch():
    large = convert_training_module(BATCH_NORM, first_weights(BATCH_NORM), 8 * BATCH_SIZE)
    assert len(large.content) < len(convert("batch_norm").content) + 1000


@pytest.mark.parametrize("name", DESCENDING)
def test_steps_are_plain_gradient_descent(name):
    """Ten steps in Keras give the same weights, BatchNorm's statistics too; regularizers and constraints are heeded."""
    spec = SPECS[name]
    x, y = draw_batch(spec)
    file = convert(name)
    assert file.select_operators == ()
    phone = Phone(file)
    phone.set_weights({key: first_weights(spec)[int(key.removeprefix("weight_"))] for key in phone.get_weights()})
    model = rebuild(spec, first_weights(spec))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)) + sum(model.losses)
        variables = model.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.05 * gradient)
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))

    for _ in range(10):
        phone.train(x, y, 0.05)
        step()
    weights = phone.get_weights()
    assert_close([weights[f"weight_{position}"] for position in range(len(weights))], model.get_weights(), 1e-4)


def test_rows_with_the_label_minus_one_do_not_count(descend):
    """A batch of 16 with 5 examples is a batch of 5."""
    spec = SPECS["image_student"]
    weights = first_weights(spec)
    x, y = draw_batch(spec)
    module = build_training_module(spec, weights, BATCH_SIZE)
    loss = module.train(x, np.where(np.arange(BATCH_SIZE) < 5, y, -1).astype(np.int32), 0.5)["loss"]
    assert_close(module.weights, descend(spec, weights, x[:5], y[:5], 0.5), 1e-6)
    assert float(loss) == pytest.approx(
        float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y[:5], rebuild(spec, weights)(x[:5])))),
        rel=1e-5,
    )
    before = [weight.numpy() for weight in module.weights]
    assert float(module.train(x, np.full(BATCH_SIZE, -1, np.int32), 0.5)["loss"]) == 0
    assert_close(module.weights, before, 0)


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.normalization, self.logits = LAYERS.BatchNormalization(momentum=0.9), LAYERS.Dense(NUM_CLASSES)

    def call(self, x, training=None):
        return self.logits(self.normalization(x, training=training))


def build_subclassed():
    model = Subclassed()
    model(tf.zeros((1, 6)))
    return model


def build_normalizing_twice():
    """One normalization for images of two sizes."""
    x, normalization = tf.keras.Input((6,)), LAYERS.BatchNormalization(momentum=0.9)
    parts = [normalization(LAYERS.Reshape(shape)(x)) for shape in ((1, 6, 1), (3, 2, 1))]
    parts = [LAYERS.Flatten()(part) for part in parts]
    return tf.keras.Model(x, LAYERS.Dense(NUM_CLASSES)(LAYERS.Concatenate()(parts)))


@pytest.mark.parametrize(
    "spec",
    [
        BATCH_NORM,
        # These models have no shape of the layer's input to look up.
        ModelSpec("subclassed", build_subclassed, make_format((6,), "float32", NUM_CLASSES)),
        ModelSpec("normalizing_twice", build_normalizing_twice, make_format((6,), "float32", NUM_CLASSES)),
    ],
    ids=lambda spec: spec.name,
)
def test_statistics_follow_the_data(spec):
    """Without a step (rate 0), training moves BatchNorm's statistics, wherever the layer is, and nothing else."""
    weights, (x, y) = first_weights(spec), draw_batch(spec)
    module, model = build_training_module(spec, weights, BATCH_SIZE), rebuild(spec, weights)
    for _ in range(2):
        module.train(x, y, 0.0)
        model(x, training=True)
    assert_close(module.weights, model.get_weights(), 1e-6)
    moved = [np.abs(new - old).max() > 1e-3 for new, old in zip(model.get_weights(), weights, strict=True)]
    assert moved == [not weight.trainable for weight in module.weights]


def test_dropout_draws_a_new_mask_each_step():
    spec = SPECS["sensor_student"]
    x, y = draw_batch(spec)
    module = build_training_module(spec, first_weights(spec), BATCH_SIZE)
    assert len({float(module.train(x, y, 0.0)["loss"]) for _ in range(4)}) > 1
    np.testing.assert_array_equal(module.infer(x[:1])["logits"], module.infer(x[:1])["logits"])


def test_a_dense_normalization_and_dropout_belong_to_the_head():
    spec = spec_of(
        "own",
        (8, 8, 1),
        lambda: LAYERS.Conv2D(4, 3),
        lambda: LAYERS.BatchNormalization(name="of_images"),
        LAYERS.Flatten,
        lambda: LAYERS.Dense(8, name="hidden"),
        lambda: LAYERS.BatchNormalization(name="of_features"),
        lambda: StatelessDropout(0.5),
    )
    module = build_training_module(spec, first_weights(spec), BATCH_SIZE, "head")
    assert {name.split("/")[0] for name in module.weight_names.values()} == {"hidden", "of_features", "logits"}


def end_with(*layers):
    """A model that ends in these layers, each made anew by a function."""

    def build():
        first = LAYERS.Conv2D(NUM_CLASSES, 3), LAYERS.GlobalAveragePooling2D()
        return tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *first, *(layer() for layer in layers)])

    return ModelSpec("own", build, make_format((8, 8, 1), "float32", NUM_CLASSES))


FROZEN = end_with(lambda: LAYERS.Dense(NUM_CLASSES, trainable=False))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (end_with(), "expected a model that ends in dense layers, own does not; take full"),
        (FROZEN, "the last dense layers of own are frozen; take full"),  # such a file would train nothing
    ],
)
def test_a_model_without_a_head_to_train_is_one_line(spec, message):
    with pytest.raises(ModelError, match=f"^on_device_training=head: {message}$"):
        build_training_module(spec, first_weights(spec), BATCH_SIZE, "head")


def test_of_a_frozen_head_the_rest_is_trained():
    names = build_training_module(FROZEN, first_weights(FROZEN), BATCH_SIZE).weight_names
    assert list(names) == ["weight_0", "weight_1"]  # the convolution's


def test_where_tflite_lacks_an_operator_the_file_needs_the_select_operators(tmp_path):
    """Such a file has files of weights, too, as TensorFlow writes them."""
    x, y = draw_batch(LACKING)
    file = convert_training_module(LACKING, first_weights(LACKING), BATCH_SIZE, step=LocalStep("sgd", 0.9))
    assert "SoftsignGrad" in file.select_operators
    phone = Phone(file)
    assert sorted(phone.run) == sorted([*SIGNATURES, "save", "restore"])
    losses = [phone.train(x, y) for _ in range(10)]
    assert losses[-1] < 0.97 * losses[0]

    path, at_save = np.array(str(tmp_path / "weights").encode()), phone.infer(x)
    assert phone.run["save"](path=path)["path"] == path
    phone.train(x, y)
    another = Phone(file)
    assert np.abs(another.infer(x) - at_save).max() > 1e-3
    another.run["restore"](path=path)
    np.testing.assert_array_equal(another.infer(x), at_save)
    another.train(x, y)  # the next step of the same round
    np.testing.assert_array_equal(another.infer(x), phone.infer(x))
    another.set_weights(phone.get_weights())
    np.testing.assert_array_equal(another.infer(x), phone.infer(x))


def test_quantized_model_is_stripped():
    spec = build_quantized_spec(SPECS["dense"])
    weights, (x, _) = first_weights(spec), draw_batch(spec)
    model = rebuild(spec.quantization.float_spec, spec.quantization.strip(weights))
    module = build_training_module(spec, weights, BATCH_SIZE)
    np.testing.assert_array_equal(module.infer(x[:1])["logits"], model(x[:1]))


@pytest.mark.parametrize(
    ("batch_size", "part", "message"),
    [
        (0, "full", "batch_size=0: expected at least 1"),
        (BATCH_SIZE, "tail", "on_device_training=tail: expected one of head, full"),
    ],
)
def test_bad_requests(batch_size, part, message):
    with pytest.raises(ModelError, match=message):
        build_training_module(SPECS["dense"], first_weights(SPECS["dense"]), batch_size, part)
