"""What a model brings for Keras's `fit`: steps of its own are refused, and what it was compiled with is said."""

import dataclasses

import pytest
import tensorflow as tf

from models.model_names import ModelError
from models.own_model_checks import check_own_model
from models.own_training import list_unused_parts
from models.task import build_task

K, L = tf.keras, tf.keras.layers
CLASSES, SWITCH, NUMBER = build_task("classification", 3), build_task("binary", 1), build_task("regression", 1)
USUAL = K.losses.SparseCategoricalCrossentropy(from_logits=True)


class Stepping(K.Model):
    def train_step(self, data):
        raise RuntimeError("never called")


class Losing(K.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        return tf.constant(0.0)


class Inheriting(Losing):
    pass


class Fitting(K.Sequential):
    def fit(self, *args, **kwargs):
        raise RuntimeError("never called")


class Predicting(K.Model):
    def predict_step(self, data):
        return tf.nn.softmax(self(data))


class Checked(K.Model):
    def test_step(self, data):
        return {}


def build(kind=K.Model):
    if issubclass(kind, K.Sequential):
        return kind([K.Input((4,)), L.Dense(3)])
    x = K.Input((4,))
    return kind(x, L.Dense(3)(x))


def build_patched():
    model = build()
    model.train_step = lambda data: {}
    return model


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: build(Stepping), "Stepping has a train_step"),
        (lambda: build(Losing), "Losing has a compute_loss"),
        (lambda: build(Inheriting), "Inheriting has a compute_loss"),
        (lambda: build(Fitting), "Fitting has a fit"),
        (build_patched, "Functional has a train_step"),
    ],
)
def test_a_step_of_its_own_is_refused_where_it_would_train(make, name):
    with pytest.raises(ModelError) as error:
        check_own_model("model=mine:build", make(), (4,), CLASSES)
    assert str(error.value).startswith(f"model=mine:build: {name} of its own, which clients do not call; leave it out")
    check_own_model("model=mine:build", make(), (4,), CLASSES, to_train=False)


def test_what_changes_no_training_is_taken():
    for kind in (Predicting, Checked):
        check_own_model("model=mine:build", build(kind), (4,), CLASSES)
    assert list_unused_parts(build(Predicting), CLASSES) == ()
    assert list_unused_parts(build(Checked), CLASSES) == (
        "Checked has test_step of its own, which the run does not call",
    )


def test_steps_of_a_model_inside_are_said():
    x = K.Input((4,))
    model = K.Model(x, L.Dense(3)(build(Stepping)(x)))
    check_own_model("model=mine:build", model, (4,), CLASSES)  # which Keras does not call either
    assert list_unused_parts(model, CLASSES) == ("Stepping has train_step of its own, which the run does not call",)


def weigh(labels, outputs):
    return outputs[:, 0]


LOSS = "--loss=module:function or --class_weights"
OPTIMIZER = "--optimizer and --learning_rate"


@pytest.mark.parametrize(
    ("task", "loss", "expected"),
    [
        (CLASSES, weigh, f"loss (weigh) and optimizer (Adam) are not used: give {LOSS} and {OPTIMIZER}"),
        (CLASSES, "mse", f"loss (mse) and optimizer (Adam) are not used: give {LOSS} and {OPTIMIZER}"),
        (CLASSES, K.losses.CategoricalFocalCrossentropy(), "loss (CategoricalFocalCrossentropy) and"),
        (CLASSES, K.losses.SparseCategoricalCrossentropy(True, ignore_class=0), "loss (SparseCategoricalCrossentropy)"),
        (
            CLASSES,
            K.losses.SparseCategoricalCrossentropy(True, reduction="sum"),
            "loss (SparseCategoricalCrossentropy)",
        ),
        (CLASSES, USUAL, f"its optimizer (Adam) is not used: give {OPTIMIZER}"),
        (CLASSES, [USUAL], f"its optimizer (Adam) is not used: give {OPTIMIZER}"),
        (CLASSES, "sparse_categorical_crossentropy", f"its optimizer (Adam) is not used: give {OPTIMIZER}"),
        (CLASSES, K.losses.sparse_categorical_crossentropy, "its optimizer (Adam) is not used"),
        (CLASSES, None, "its optimizer (Adam) is not used"),
        (SWITCH, K.losses.BinaryCrossentropy(True), "its optimizer (Adam) is not used"),
        (SWITCH, K.losses.BinaryCrossentropy(True, label_smoothing=0.1), "loss (BinaryCrossentropy) and"),
        (NUMBER, "MSE", "its optimizer (Adam) is not used"),
        (NUMBER, "mae", "its loss (mae) and optimizer (Adam) are not used: give --loss=absolute and --optimizer"),
        (NUMBER, K.losses.Huber(2.5), "optimizer (Adam) are not used: give --loss=huber --huber_delta=2.5 and --optim"),
        (NUMBER, "huber", "optimizer (Adam) are not used: give --loss=huber --huber_delta=1 and --optimizer"),
        (NUMBER, K.losses.LogCosh(), "optimizer (Adam) are not used: give --loss=module:function and --optimizer"),
        (CLASSES, "categorical_crossentropy", "its optimizer (Adam) is not used"),
        (CLASSES, K.losses.CategoricalCrossentropy(True), "its optimizer (Adam) is not used"),
        (CLASSES, K.losses.CategoricalCrossentropy(True, label_smoothing=0.1), "loss (CategoricalCrossentropy) and"),
        (build_task("regression", 1, loss="huber", huber_delta=2.0), K.losses.Huber(2.0), "its optimizer (Adam)"),
        (build_task("regression", 1, loss="huber", huber_delta=2.0), "huber", "loss (huber) and optimizer"),
    ],
)
def test_the_loss_it_was_compiled_with_is_said(task, loss, expected):
    model = build()
    model.compile("adam", loss=loss)
    [line] = list_unused_parts(model, task)
    assert line.startswith("the model was compiled, but its ") and expected in line


class Named(K.Model):
    def loss(self, x):
        return x


@pytest.mark.parametrize(
    ("task", "compiled", "expected"),
    [
        # What the run was given is not asked for again.
        (
            dataclasses.replace(CLASSES, own_loss=weigh),
            {"loss": weigh, "loss_weights": [3.0]},
            f"optimizer (Adam) is not used: give {OPTIMIZER}",
        ),
        (
            dataclasses.replace(CLASSES, class_weights=(1.0,) * CLASSES.num_classes),
            {"loss": weigh, "loss_weights": [3.0]},
            "loss (weigh), optimizer (Adam) and loss weights are not used: give --loss=module:function, "
            f"{OPTIMIZER} and them in the function of --loss",
        ),
        (
            CLASSES,
            {"loss": USUAL, "loss_weights": [3.0]},
            f"optimizer (Adam) and loss weights are not used: give {OPTIMIZER} and them in the function of --loss",
        ),
        (
            CLASSES,
            {"loss": weigh, "metrics": ["accuracy"]},
            f"loss (weigh), optimizer (Adam) and metrics are not used: give {LOSS} and {OPTIMIZER}",
        ),
    ],
)
def test_what_else_it_was_compiled_with_is_said(task, compiled, expected):
    model = build(Named)
    assert list_unused_parts(model, CLASSES) == ()  # before it is compiled
    model.compile("adam", **compiled)
    [line] = list_unused_parts(model, task)
    assert line.startswith(f"the model was compiled, but its {expected}")
