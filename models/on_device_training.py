"""A model that a phone trains further on its own data: functions to train and infer, and to take and give weights.

A step is that of the run's clients (`LocalStep`), whose state lies beside the weights. Float models only: TFLite cannot
train 8-bit models. The functions are written so that TFLite needs none of TensorFlow's select operators, for the
operations whose gradients `models.builtin_gradients` has. `models.tflite_export.convert_training_module` makes a file
of it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.builtin_gradients import use_builtin_gradients
from models.model_names import TRAINED_PARTS, ModelError
from models.model_spec import ModelSpec
from models.recurrent_layers import MAX_TRAINED_STEPS, use_loops, write_out_steps
from models.task import Task
from models.training_terms import add_own_losses, constrain

# The step that a training file takes: the local optimizer of a run, with its state among the file's variables.
#
# It is the step of `tff_algos.client.training_steps` with TFF's optimizers, in operations that TFLite has itself. A
# round begins where the weights are set: the optimizer starts afresh there, and the proximal term pulls to those
# weights.

OPTIMIZERS = SGD, ADAM = ("sgd", "adam")
# Those of TFF's `build_adam`.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7


class LocalStep(NamedTuple):
    """How a step follows from a gradient; by default plain gradient descent.

    Attributes:
      optimizer: of OPTIMIZERS.
      momentum: of sgd, from 0 to below 1.
      weight_decay: times a kernel, a trained weight of two or more axes, is added to its gradient.
      proximal_weight: times what lies between a weight and the one that the round began with is added to its gradient.
    """

    optimizer: str = SGD
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal_weight: float = 0.0


PLAIN = LocalStep()


class StepState:
    """The variables of a step beside the weights, of those that are trained only, and what is done with them.

    Args:
      rule: the step.
      trained: the variables that are trained, float32, with the values that the first round begins with.

    Raises:
      ModelError: an unknown optimizer, or a momentum with adam.
    """

    def __init__(self, rule: LocalStep, trained: Sequence[tf.Variable]):
        if rule.optimizer not in OPTIMIZERS:
            raise ModelError(f"local optimizer {rule.optimizer}: expected one of {', '.join(OPTIMIZERS)}")
        if rule.momentum and rule.optimizer == ADAM:
            raise ModelError(f"momentum={rule.momentum:g}: expected 0 with adam, which has no such setting")
        self._rule, self._trained = rule, list(trained)
        averages = {"accumulator": rule.momentum or rule.optimizer == ADAM, "preconditioner": rule.optimizer == ADAM}
        zeros = {name: [np.zeros(variable.shape, np.float32) for variable in trained] for name in averages}
        self._anchors = self._make("anchor", [variable.numpy() for variable in trained] if rule.proximal_weight else [])
        self._accumulators, self._preconditioners = (
            self._make(name, zeros[name] if is_kept else []) for name, is_kept in averages.items()
        )
        self._count = self._make("step", [np.float32(0)] if self._accumulators else [])

    def _make(self, name: str, values: Sequence[np.ndarray]) -> list[tf.Variable]:
        return [tf.Variable(value, trainable=False, name=f"{name}_{i}") for i, value in enumerate(values)]

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """All of them, by name."""
        beside = (*self._anchors, *self._accumulators, *self._preconditioners, *self._count)
        return {variable.name.removesuffix(":0"): variable for variable in beside}

    def begin_round(self, weights: Mapping[int, tf.Tensor]) -> None:
        """Starts the optimizer afresh and pulls to these weights from now on, by the id of their variable."""
        for anchor, variable in zip(self._anchors, self._trained, strict=True) if self._anchors else ():
            anchor.assign(weights[id(variable)])
        for count in self._count:
            count.assign(0.0)  # at which a step takes the averages for zeros, whatever they are

    def take(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes a step; gradients are of the loss with the model's own losses, one for each trained variable."""
        values = [variable.read_value() for variable in self._trained]
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's are the rows looked up
        pull, decay = self._rule.proximal_weight, self._rule.weight_decay
        if pull:
            moved = zip(gradients, values, self._anchors, strict=True)
            gradients = [gradient + pull * (value - anchor) for gradient, value, anchor in moved]
        if decay:
            pairs = zip(gradients, values, strict=True)
            gradients = [gradient + decay * value if value.shape.rank >= 2 else gradient for gradient, value in pairs]
        steps, further = self._compute_steps(gradients, learning_rate)
        stepped = constrain(self._trained, [value - step for value, step in zip(values, steps, strict=True)])
        # All are computed before the first is assigned.
        for variable, value in (*zip(self._trained, stepped, strict=True), *further):
            variable.assign(value)

    def _compute_steps(
        self, gradients: Sequence[tf.Tensor], rate: tf.Tensor
    ) -> tuple[list[tf.Tensor], list[tuple[tf.Variable, tf.Tensor]]]:
        """(what to subtract from each weight, the new value of each variable of the optimizer)."""
        if not self._count:
            return [rate * gradient for gradient in gradients], []
        count = self._count[0].read_value()
        counted = (self._count[0], count + 1.0)
        accumulators = self._read(self._accumulators, count)
        if self._rule.optimizer == SGD:
            pairs = zip(accumulators, gradients, strict=True)
            moments = [self._rule.momentum * average + gradient for average, gradient in pairs]
            return [rate * moment for moment in moments], [*zip(self._accumulators, moments, strict=True), counted]
        first, second = np.float32(1) - np.float32(BETA_1), np.float32(1) - np.float32(BETA_2)
        squares = [tf.square(gradient) for gradient in gradients]
        means = _move(accumulators, gradients, first)
        spreads = _move(self._read(self._preconditioners, count), squares, second)
        powers = [1.0 - tf.pow(base, counted[1]) for base in (BETA_1, BETA_2)]
        scaled = rate * tf.sqrt(powers[1]) / powers[0]
        steps = [scaled * mean / (tf.sqrt(spread) + EPSILON) for mean, spread in zip(means, spreads, strict=True)]
        further = [*zip(self._accumulators, means, strict=True), *zip(self._preconditioners, spreads, strict=True)]
        return steps, [*further, counted]

    def _read(self, averages: Sequence[tf.Variable], count: tf.Tensor) -> list[tf.Tensor]:
        """The averages, or zeros in the first step of a round: not a product, since NaN times 0 is NaN."""
        return [tf.where(count > 0, average.read_value(), 0.0) for average in averages]


def _move(averages: Sequence[tf.Tensor], values: Sequence[tf.Tensor], share: np.float32) -> list[tf.Tensor]:
    return [average + (value - average) * share for average, value in zip(averages, values, strict=True)]


SIGNATURES = ("train", "infer", "get_weights", "set_weights")
FILE_SIGNATURES = ("save", "restore")

_LAYERS = tf.keras.layers
_OF_A_HEAD = (_LAYERS.Dense, _LAYERS.BatchNormalization, _LAYERS.LayerNormalization)


def build_training_module(
    spec: ModelSpec,
    weights: tuple[np.ndarray, ...],
    batch_size: int,
    part: str = "full",
    examples: np.ndarray | None = None,
    step: LocalStep = PLAIN,
) -> tf.Module:
    """A module whose functions share one model; it starts with these weights.

        train(x float32 (batch_size, *input_shape), y int32 (batch_size,), learning_rate float32 ()) -> {"loss"}
        infer(x float32 (1, *input_shape)) -> {"logits"}, float32 (1, num_classes)
        get_weights(unused int32 ()) -> {"weight_<i>": ...}
        set_weights(weight_<i>=..., ...) -> {"num_weights"}, int32 (), how many were set
        save(path string ()) -> {"path"}
        restore(path string ()) -> {"path"}

    `x` is preprocessed, and `loss`, float32 (), the mean cross-entropy before the step, without losses of the model's
    own (regularizers), which the step does follow. Where `y` is -1, the row is no
    example and does not count; so the last examples of a phone fill a batch, too. (BatchNorm's statistics do take such
    rows in.) Dropout draws new masks in each step.

    The weights are those that training changes, BatchNorm's statistics too, in float32; `weight_<i>` has position i in
    `spec.build().weights`, and `module.weight_names` says {"weight_<i>": Keras's name}. `get_weights` has an input
    since Android's Interpreter calls no signature without one.

    `set_weights` begins a round: the optimizer starts afresh, the proximal term pulls to these weights from then on,
    and integers among the model's weights, such as counters of steps, are again those that the module began with.
    Until the first call the term pulls to the weights that the module starts with.

    `save` and `restore` write and read a file in TensorFlow's checkpoint format, the optimizer's state with it; they
    need the select operators. (Through Python's interpreter, a path is an array of bytes: `np.array(b"weights")`.)

    Args:
      spec: the specification that has these weights; of a quantization-aware one, the float model inside is taken.
      weights: in the order of `spec.build().weights`.
      batch_size: number of examples in one training step.
      part: "full", or "head" to train the last dense layers only and freeze what is before them.
      examples: as stored, (n, *input_shape); recurrent layers are written out step by step where that does not change
        the answers for these. None leaves them as loops, whose gradients need the select operators.
      step: how a step follows from a gradient.

    Raises:
      ModelError: a batch size below 1, an unknown part or optimizer, the head of a model that does not end in dense
        layers or whose last ones are frozen, a stateful layer, a task other than classification, or tokens.
    """
    if batch_size < 1:
        raise ModelError(f"batch_size={batch_size}: expected at least 1")
    if part not in TRAINED_PARTS:
        raise ModelError(f"on_device_training={part}: expected one of {', '.join(TRAINED_PARTS)}")
    if spec.task.kind.name != "classification" or spec.format.takes_tokens:
        what = "tokens" if spec.format.takes_tokens else spec.task.kind.title
        raise ModelError(f"on_device_training={part}: expected classification of numbers, got {what}; leave it out")
    if spec.quantization is not None:
        spec, weights = spec.quantization.float_spec, spec.quantization.strip(weights)
    model = spec.build()
    model.set_weights(weights)
    use_loops(model)
    if examples is not None:
        write_out_steps(model, spec.preprocess(examples).numpy(), MAX_TRAINED_STEPS)
    if part == "head":
        _freeze_body(model, spec.name)
    changing = _find_changing_weights(model)
    module = tf.Module()
    state = StepState(step, model.trainable_variables)
    module.weights, module.state = model.weights, list(state.variables.values())
    module.weight_names = {name: variable.name.removesuffix(":0") for name, variable in changing.items()}
    module.train = _build_train(model, spec, batch_size, state)

    @tf.function(input_signature=[tf.TensorSpec((1, *spec.model_input_shape), tf.float32)], autograph=False)
    def infer(x):
        return {"logits": model(spec.standardize(x), training=False)}

    module.infer = infer
    counters = [variable for variable in model.weights if variable.dtype.is_integer]
    module.get_weights, module.set_weights = _build_get_and_set_weights(changing, counters, state)
    module.save, module.restore = _build_save_and_restore({**changing, **state.variables})
    return module


def _freeze_body(model: tf.keras.Model, name: str) -> None:
    """Freezes the layers before the first of the last dense layers; others with weights of their own end the search."""
    head = len(model.layers)
    for position in reversed(range(len(model.layers))):
        layer = model.layers[position]
        if layer.weights and not isinstance(layer, _OF_A_HEAD):
            break
        head = position if isinstance(layer, _LAYERS.Dense) else head
    if head == len(model.layers):
        raise ModelError(
            f"on_device_training=head: expected a model that ends in dense layers, {name} does not; take full"
        )
    for layer in model.layers[:head]:
        layer.trainable = False
    if not model.trainable_variables:
        raise ModelError(f"on_device_training=head: the last dense layers of {name} are frozen; take full")


def _find_changing_weights(model: tf.keras.Model) -> dict[str, tf.Variable]:
    """The weights of the layers that are not frozen, as {"weight_<position>": variable}; none of them is an integer."""
    layers = [part for part in model.submodules if isinstance(part, _LAYERS.Layer)]  # also those inside of others
    frozen = {id(weight) for layer in layers if not layer.trainable for weight in layer.weights}
    return {
        f"weight_{position}": variable
        for position, variable in enumerate(model.weights)
        if id(variable) not in frozen and variable.dtype == tf.float32
    }


def _build_train(model: tf.keras.Model, spec: ModelSpec, batch_size: int, state: StepState):
    @tf.function(
        input_signature=[
            tf.TensorSpec((batch_size, *spec.model_input_shape), tf.float32),
            tf.TensorSpec((batch_size,), tf.int32),
            tf.TensorSpec((), tf.float32),
        ],
        autograph=False,
    )
    def train(x, y, learning_rate):
        with use_builtin_gradients(model):
            logits = model(spec.standardize(x), training=True)
            loss = _compute_loss(y, logits, spec.task)
            total = add_own_losses(loss, model)
        variables = model.trainable_variables
        gradients = tf.gradients(total, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        state.take(gradients, learning_rate)
        return {"loss": loss}

    return train


def _compute_loss(y: tf.Tensor, logits: tf.Tensor, task: Task) -> tf.Tensor:
    """Mean loss of training over the rows whose label is a class; 0 if there are none.

    It is the cross-entropy or the run's own loss, times the class weights, as on the clients of the run.
    """
    of_classes = tf.one_hot(y, task.num_outputs)  # zeros for -1
    num_examples = tf.maximum(tf.reduce_sum(of_classes), 1.0)
    if task.own_loss is not None:
        # The label of a row that is no example must be one, too: the loss may look it up.
        losses = task.compute_training_losses(tf.maximum(y, 0), logits)
        return tf.reduce_sum(tf.where(y >= 0, losses, 0.0)) / num_examples
    if set(task.class_weights) - {1.0}:  # decided while the graph is made
        of_classes *= tf.constant(task.class_weights)
    return -tf.reduce_sum(of_classes * tf.nn.log_softmax(logits)) / num_examples


def _build_get_and_set_weights(changing: dict[str, tf.Variable], counters: Sequence[tf.Variable], state: StepState):
    @tf.function(input_signature=[tf.TensorSpec((), tf.int32)], autograph=False)
    def get_weights(unused):
        return {name: variable.read_value() for name, variable in changing.items()}

    first_counts = [counter.numpy() for counter in counters]
    specs = [tf.TensorSpec(variable.shape, tf.float32, name) for name, variable in changing.items()]

    @tf.function(input_signature=specs, autograph=False)
    def set_weights(*values):
        for variable, value in zip(changing.values(), values, strict=True):
            variable.assign(value)
        state.begin_round({id(variable): value for variable, value in zip(changing.values(), values, strict=True)})
        for counter, value in zip(counters, first_counts, strict=True):
            counter.assign(value)
        return {"num_weights": tf.constant(len(values))}

    return get_weights, set_weights


def _build_save_and_restore(saved: dict[str, tf.Variable]):
    path_signature = [tf.TensorSpec((), tf.string)]

    @tf.function(input_signature=path_signature, autograph=False)
    def save(path):
        values = [variable.read_value() for variable in saved.values()]
        tf.raw_ops.Save(filename=path, tensor_names=list(saved), data=values)
        return {"path": path}

    @tf.function(input_signature=path_signature, autograph=False)
    def restore(path):
        for name, variable in saved.items():
            value = tf.raw_ops.Restore(file_pattern=path, tensor_name=name, dt=variable.dtype)
            variable.assign(tf.ensure_shape(value, variable.shape))
        return {"path": path}

    return save, restore
