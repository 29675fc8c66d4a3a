"""A loss of the user's own: what is taken, and one line for each that would go wrong in silence."""

import numpy as np
import pytest
import tensorflow as tf

from models.model_names import ModelError
from models.own_loss import load_own_loss
from models.task import build_task

SOURCE = """
import tensorflow as tf

LOSSES, VARIABLE = tf.keras.losses, tf.Variable(2.0)
NUMBER = 3

def plain(labels, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)

def ranked(labels, outputs):
    losses = plain(labels, outputs)
    if tf.reduce_max(losses) > 1e9:
        losses = losses * 1.0
    return 2.0 * losses

def positions(labels, outputs):
    return tf.reduce_mean(plain(labels, outputs), axis=1)

def known(labels, outputs):
    return tf.reduce_mean(tf.where(labels < 0, 0.0, plain(tf.maximum(labels, 0), outputs)), axis=1)

def hundred(labels, outputs):
    return tf.reduce_mean(tf.where(labels == -100, 0.0, plain(tf.where(labels == -100, 0, labels), outputs)), axis=1)

class Focal(LOSSES.Loss):
    def call(self, labels, outputs):
        losses = LOSSES.sparse_categorical_crossentropy(labels, outputs, from_logits=True)
        return (1 - tf.exp(-losses)) ** 2 * losses

class Needy(LOSSES.Loss):
    def __init__(self, gamma):
        super().__init__()

OBJECT = LOSSES.SparseCategoricalCrossentropy(from_logits=True)
BINARY = LOSSES.BinaryCrossentropy(from_logits=True)
SUM = LOSSES.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
PROBABILITIES = LOSSES.SparseCategoricalCrossentropy()

def one_hot(labels, outputs):
    return LOSSES.categorical_crossentropy(tf.one_hot(labels, 3), outputs)

def mean(labels, outputs):
    return tf.reduce_mean(plain(labels, outputs))

def column(labels, outputs):
    return plain(labels, outputs)[:, tf.newaxis]

def squeezed(labels, outputs):
    return tf.squeeze(column(labels, outputs))

def normalised(labels, outputs):
    return plain(labels, outputs) / tf.reduce_mean(plain(labels, outputs))

def broadcast(labels, outputs):
    return tf.reduce_mean((labels[:, 0] - outputs) ** 2, axis=1)

def noisy(labels, outputs):
    return plain(labels, outputs) + tf.random.normal(tf.shape(labels))

def python(labels, outputs):
    return tf.py_function(lambda each: each, [plain(labels, outputs)], tf.float32)

def variable(labels, outputs):
    return VARIABLE * plain(labels, outputs)

def errors(labels, outputs):
    return tf.cast(tf.argmax(outputs, 1, output_type=tf.int32) != labels, tf.float32)

def double(labels, outputs):
    return tf.cast(plain(labels, outputs), tf.float64)

def unstable(labels, outputs):
    return -tf.math.log(tf.gather(tf.nn.softmax(40 * outputs), labels, batch_dims=1))

def raises(labels, outputs):
    raise RuntimeError("first line\\nsecond line")

def lonely(labels):
    return labels

def pinball(labels, outputs):
    error = labels - outputs
    return tf.reduce_mean(tf.maximum(0.9 * error, -0.1 * error), axis=1)

def tokens(labels, outputs):
    kept = tf.cast(labels > 0, tf.float32)
    return tf.reduce_sum(kept * plain(labels, outputs), 1) / tf.maximum(tf.reduce_sum(kept, 1), 1.0)
"""
CLASSES, SWITCH, NUMBER = build_task("classification", 3), build_task("binary", 1), build_task("regression", 1)
TEXT = build_task("next_token", 11, (5,))
OWN_MODULES = {"own_losses": SOURCE}
pytestmark = pytest.mark.usefixtures("own_modules")
LABELS, OUTPUTS = np.int32([0, 2]), np.float32([[0, 0, 0], [0, 0, 0]])
LN3 = np.log(3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", [LN3, LN3]),
        ("ranked", [2 * LN3, 2 * LN3]),
        ("OBJECT", [LN3, LN3]),
        ("Focal", [4 / 9 * LN3, 4 / 9 * LN3]),
    ],
)
def test_functions_and_losses_of_keras_are_taken_by_the_example(name, expected):
    loss = load_own_loss(f"own_losses:{name}", CLASSES)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:  # as in the computation of a round
        losses = session.run(loss(tf.constant(LABELS), tf.constant(OUTPUTS)))
    assert losses.dtype == np.float32
    np.testing.assert_allclose(losses, expected, rtol=1e-6)


def test_other_tasks_have_their_own_labels():
    loss = load_own_loss("own_losses:BINARY", SWITCH)
    np.testing.assert_allclose(loss(tf.constant([0, 1]), tf.zeros((2, 1))), [np.log(2)] * 2, rtol=1e-6)
    loss = load_own_loss("own_losses:pinball", NUMBER)
    np.testing.assert_allclose(loss(tf.constant([[1.0], [0.0]]), tf.constant([[0.0], [1.0]])), [0.9, 0.1], rtol=1e-6)
    loss = load_own_loss("own_losses:tokens", TEXT)
    labels = tf.constant([[3, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_allclose(loss(labels, tf.zeros((2, 5, 11))), [np.log(11), 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "expected nowhere in own_losses, there is none"),
        ("NUMBER", "expected a function (labels, outputs) or a Keras loss, got int"),
        ("lonely", "expected a function of (labels, outputs): too many"),
        ("Needy", "expected a loss that can be made without arguments; name an object"),
        ("SUM", 'has reduction="sum", expected the loss of each example'),
        ("mean", "expected the loss of each example, shape (batch,), got one number for all"),
        ("column", "shape (batch,), got shape (batch, 1); take tf.reduce_mean"),
        ("squeezed", "shape (batch,), got shape () of 1 examples; let it keep the axis"),
        (
            "normalised",
            "the loss of an example depends on the others of its batch; labels (batch,) and outputs (batch, 3)",
        ),
        ("PROBABILITIES", "its gradient is 0 where outputs are wrong, as of a loss of probabilities"),
        ("one_hot", "its gradient is 0 where outputs are wrong, as of a loss of probabilities"),
        ("noisy", "draws random numbers that cannot be repeated; take tf.random.stateless_uniform"),
        ("python", "calls Python (tf.py_function), which the computation of a round cannot"),
        ("variable", "uses a tensor or variable made outside of it"),
        ("errors", "has no gradient by the outputs, as argmax"),
        ("double", "expected losses of dtype float32, got float64; take tf.cast"),
        ("unstable", "it is not finite for outputs from -3 to 3; compute it from logits"),
        ("raises", "failed with RuntimeError: first line"),
    ],
)
def test_a_wrong_loss_is_one_line_that_names_it(name, message):
    with pytest.raises(ModelError) as error:
        load_own_loss(f"own_losses:{name}", CLASSES)
    assert str(error.value).startswith(f"loss=own_losses:{name}: ") and message in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_that_are_broadcast_are_found():
    # (batch,) less (batch, 1) is (batch, batch): each example would be compared with all.
    with pytest.raises(ModelError, match=r"depends on the others of its batch; labels \(batch, 1\) and outputs"):
        load_own_loss("own_losses:broadcast", NUMBER)
    with pytest.raises(ModelError, match=r"got shape \(batch, 5\); take .* positions whose label is not 0, which is"):
        load_own_loss("own_losses:OBJECT", TEXT)


def test_negative_labels_that_a_loss_takes_for_tokens_are_found_before_a_round():
    """Where the data mark padding so; -1 and -100 are both usual."""
    marked = build_task("next_token", 11, (5,), padding_label=-1)
    with pytest.raises(ModelError, match="own_losses:positions: fails where a label is negative, as padding is in"):
        load_own_loss("own_losses:positions", marked)
    load_own_loss("own_losses:positions", TEXT)
    for name, padding in (("known", -1), ("known", -100), ("hundred", -100)):
        losses = load_own_loss(f"own_losses:{name}", marked)(tf.fill((1, 5), padding), tf.zeros((1, 5, 11)))
        assert losses.numpy().tolist() == [0]
