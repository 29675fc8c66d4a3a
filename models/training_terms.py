"""What a model asks of its training beside the labels: losses of its own, and constraints on its weights.

A model without any is trained by the very same graph as if this module were not there.
"""

from collections.abc import Sequence

import tensorflow as tf


# Called from functions that AutoGraph rewrites; nothing here depends on a tensor's value.
@tf.autograph.experimental.do_not_convert
def add_own_losses(loss: tf.Tensor, model: tf.keras.Model) -> tf.Tensor:
    """`loss` plus the model's own: those of regularizers of weights and activities, and of `add_loss`.

    Call it right after the forward pass, under the same tape and in the same graph, since the losses are that pass's.

    Args:
      loss: float32 scalar, the mean over the batch.
      model: was just called with `training=True`.
    """
    own = list_own_losses(model)
    return tf.add_n([loss, *(tf.cast(term, loss.dtype) for term in own)]) if own else loss


def list_own_losses(model: tf.keras.Model) -> list[tf.Tensor]:
    """The model's own losses of the forward pass that the graph being traced has just had."""
    graph = tf.compat.v1.get_default_graph()
    # In the graph of a TFF computation, Keras also keeps the losses of the inputs that the model was built with, and
    # those of earlier graphs.
    return [term for term in model.losses if getattr(term, "graph", graph) is graph]


def has_constraints(variables: Sequence[tf.Variable]) -> bool:
    """Whether any of them must stay in a set, such as Keras's `NonNeg` or `MaxNorm`."""
    return any(variable.constraint is not None for variable in variables)


@tf.autograph.experimental.do_not_convert
def constrain(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The variables' new values, each brought back into its variable's set, as Keras's optimizers do after a step."""
    pairs = zip(variables, values, strict=True)
    return [value if variable.constraint is None else variable.constraint(value) for variable, value in pairs]


def find_training_terms(
    model: tf.keras.Model, input_shape: tuple[int, ...], input_dtype: str = "float32"
) -> tuple[str, ...]:
    """What of these the model has, in words: "losses of its own", "constraints"; usually nothing.

    Args:
      model: built.
      input_shape: of an example as the model gets it, without the batch axis.
      input_dtype: of such an example.
    """
    found = []

    @tf.function
    def run(x):
        model(x, training=True)
        found.extend(["losses of its own"] * bool(list_own_losses(model)))

    run.get_concrete_function(tf.TensorSpec((None, *input_shape), input_dtype))
    return (*found, *["constraints"] * has_constraints(model.trainable_variables))
