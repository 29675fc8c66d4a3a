"""Meta-gradients (section 3.2; Finn et al. 2017) of a model whose weights are tensors, in any graph.

A gradient through the inner steps needs weights that are functions of the start, but Keras layers hold variables. So
the model is called through TFF's functional form of it, which supports neither BatchNorm nor quantization.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from models.model_spec import ModelSpec
from models.task import CLASSIFICATION, Task
from tff_algos.client.client_data import split_labels
from tff_algos.client.training_steps import make_dense
from tff_algos.settings.config_fields import ConfigError

WeightTensors = tuple[tf.Tensor, ...]
BuildModel = Callable[[], tf.keras.Model]
Predict = Callable[[WeightTensors, tf.Tensor], tf.Tensor]  # (weights, examples as stored) -> outputs


class Batch(NamedTuple):
    """Examples as stored, shape (examples, *input_shape), and labels as `read_split` gives them; possibly none."""

    x: tf.Tensor
    y: tf.Tensor


class MetaGradient(NamedTuple):
    """What a device computes in a round.

    Attributes:
      gradient: of the query loss at the adapted weights with respect to the start, one tensor a weight.
      adapted: the weights after the inner steps.
      query_loss: at the adapted weights, float32; 0 without query examples.
    """

    gradient: WeightTensors
    adapted: WeightTensors
    query_loss: tf.Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class FunctionalModel:
    """The model as a function of weights in the order of `keras_model.weights`, and examples as stored."""

    model_spec: ModelSpec

    @functools.cached_property
    def _build(self) -> BuildModel:
        return _choose_build(self.model_spec.build)

    @functools.cached_property
    def _functional(self) -> Any:
        """TFF's form of the model; first asked for while no graph is traced."""
        spec = self.model_spec
        x = tf.TensorSpec((None, *spec.model_input_shape), spec.model_input_dtype)
        labels = tf.TensorSpec((None, *spec.task.label_shape), spec.task.label_dtype)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)  # TFF asks for one, and nothing calls it
        return tff.learning.models.functional_model_from_keras(self._build, loss, (x, labels))

    @functools.cached_property
    def _order(self) -> list[int]:
        """The positions in `keras_model.weights` in the order in which TFF takes them."""
        return _find_order_of_creation(self._build)

    def __call__(self, weights: WeightTensors, x: tf.Tensor) -> tf.Tensor:
        ordered = tuple(weights[position] for position in self._order)
        return self._functional.predict_on_batch((ordered, ()), self.model_spec.preprocess(x), training=True)

    def try_out(self) -> None:
        """Calls the model, since a user's layers may do to a variable what a tensor lacks; raises what they raise."""
        spec, functional, order = self.model_spec, self._functional, self._order
        with tf.Graph().as_default():
            tensors = tuple(tf.zeros(spec.weight_shapes[position]) for position in order)
            x = tf.zeros(spec.model_input_shape, spec.model_input_dtype)[tf.newaxis]
            functional.predict_on_batch((tensors, ()), x, training=True)


def build_predict(model_spec: ModelSpec) -> Predict:
    """The model as a function of weights in the order of `keras_model.weights`; call it while no graph is traced.

    Raises:
      ConfigError: the model cannot be called so, for example since it has BatchNorm or assigns to its weights.
    """
    predict = FunctionalModel(model_spec)
    try:
        predict.try_out()
    except Exception as error:  # the user's code may raise anything
        name = type(error).__name__
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith(f"{name}: ")), ": ".join([name, *lines[:1]]))
        expected = f"a model that can be called with tensors as weights, which fails with {reason}"
        raise ConfigError("model", model_spec.name, expected) from error
    return predict


def _choose_build(build: BuildModel) -> BuildModel:
    """`build`, or copies of its model where that computes with TensorFlow's functions between its layers.

    In the graph in which TFF builds the model, Keras would look for the constants of such functions in another graph.
    A copy takes them from what the layers say of themselves.
    """
    model = build()
    names = {type(part).__name__ for part in model.submodules}
    if names.isdisjoint({"TFOpLambda", "SlicingOpLambda"}):  # which Keras does not export
        return build
    return functools.partial(tf.keras.models.clone_model, model)


def _find_order_of_creation(build: BuildModel) -> list[int]:
    """The positions in `keras_model.weights` in the order in which the model makes its weights, which is TFF's.

    The two differ where branches run beside each other, or where a class makes its layers in another order than it
    calls them.
    """
    created = []

    def note(create, **options):
        created.append(create(**options))
        return created[-1]

    with tf.variable_creator_scope(note):
        model = build()
    positions = {variable.ref(): position for position, variable in enumerate(model.weights)}
    return [positions[variable.ref()] for variable in created if variable.ref() in positions]


def compute_loss(predict: Predict, weights: WeightTensors, batch: Batch, task: Task = CLASSIFICATION) -> tf.Tensor:
    """The mean loss of labels in training of a batch by the examples' weights; 0 without examples.

    Class weights and the data's weights of examples multiply it, on support and on query examples.
    """
    num_examples = tf.shape(batch.y)[0]
    # A convolution may refuse to compute nothing, so an empty batch gets a row of zeros, which does not count.
    padded = [_add_zeros(values, tf.cast(tf.equal(num_examples, 0), tf.int32)) for values in (batch.x, batch.y)]
    labels, example_weights = split_labels(padded[1], task)
    losses = task.compute_training_losses(labels, predict(weights, padded[0]))
    losses = (losses if example_weights is None else losses * tf.cast(example_weights, losses.dtype))[:num_examples]
    if not task.kind.weighs_examples:  # decided while the graph is made
        return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.cast(num_examples, losses.dtype))
    shares = tf.cast(task.compute_weights(labels)[:num_examples], losses.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(shares * losses), tf.reduce_sum(shares))


def _add_zeros(values: tf.Tensor, num_rows: tf.Tensor) -> tf.Tensor:
    rows = tf.zeros(tf.concat([[num_rows], tf.shape(values)[1:]], 0), values.dtype)
    return tf.concat([values, rows], 0)


def adapt(
    predict: Predict,
    weights: WeightTensors,
    support: Batch,
    num_steps: int,
    learning_rate: tf.Tensor,
    first_order: bool,
    task: Task = CLASSIFICATION,
) -> WeightTensors:
    """`num_steps` gradient steps on the support batch, one after another.

    With `first_order`, an outer gradient takes the steps as constants.
    """
    for _ in range(num_steps):
        with tf.GradientTape() as tape:
            tape.watch(weights)  # a tape watches variables by itself, but not tensors
            loss = compute_loss(predict, weights, support, task)
        gradients = make_dense(tape.gradient(loss, weights))
        # Without this stop, the outer tape differentiates through the gradients: the second derivatives of MAML.
        if first_order:
            gradients = [tf.stop_gradient(gradient) for gradient in gradients]
        weights = tuple(w - learning_rate * gradient for w, gradient in zip(weights, gradients, strict=True))
    return weights


def compute_meta_gradient(
    predict: Predict,
    weights: WeightTensors,
    support: Batch,
    query: Batch,
    num_steps: int,
    learning_rate: tf.Tensor,
    first_order: bool,
    task: Task = CLASSIFICATION,
) -> MetaGradient:
    """The gradient of the query loss at the adapted weights with respect to the weights before the inner steps.

    Without inner steps it is the plain gradient of the query loss.
    """
    with tf.GradientTape() as tape:
        tape.watch(weights)
        adapted = adapt(predict, weights, support, num_steps, learning_rate, first_order, task)
        query_loss = compute_loss(predict, adapted, query, task)
    return MetaGradient(tuple(make_dense(tape.gradient(query_loss, weights))), adapted, query_loss)


def compute_reptile_gradient(
    predict: Predict,
    weights: WeightTensors,
    support: Batch,
    query: Batch,
    num_steps: int,
    learning_rate: tf.Tensor,
    task: Task = CLASSIFICATION,
) -> MetaGradient:
    """Reptile (Nichol et al. 2018): (start - adapted) / learning rate takes the place of a gradient.

    All steps are on the one support batch, where the paper has a new one for each.
    """
    adapted = adapt(predict, weights, support, num_steps, learning_rate, True, task)
    gradient = tuple((start - end) / learning_rate for start, end in zip(weights, adapted, strict=True))
    return MetaGradient(gradient, adapted, compute_loss(predict, adapted, query, task))
