"""A model that a phone trains further on its own data: functions to train, infer, save and restore, as one module.

Training is plain stochastic gradient descent, whose only state is the weights. Float models only: TFLite cannot train
8-bit models. `models.tflite_export.convert_training_module` makes a file of it.
"""

import numpy as np
import tensorflow as tf

from models.model_names import ModelError
from models.model_spec import ModelSpec


def build_training_module(spec: ModelSpec, weights: tuple[np.ndarray, ...], batch_size: int) -> tf.Module:
    """A module whose functions share one model; it starts with these weights.

        train(x float32 (batch_size, *input_shape), y int32 (batch_size,), learning_rate float32 ()) -> {"loss"}
        infer(x float32 (1, *input_shape)) -> {"logits"}, float32 (1, num_classes)
        save(path string ()) -> {"path"}
        restore(path string ()) -> {"path"}

    `x` is preprocessed, and `loss`, float32 (), the mean cross-entropy before the step. `save` writes all weights,
    BatchNorm's statistics too, to a file in TensorFlow's checkpoint format; `restore` reads what `save` wrote. Dropout
    draws new masks in each step. (Through Python's interpreter, a path is an array of bytes: `np.array(b"weights")`.)

    Args:
      spec: the specification that has these weights; of a quantization-aware one, the float model inside is taken.
      weights: in the order of `spec.build().weights`.
      batch_size: number of examples in one training step.

    Raises:
      ModelError: a batch size below 1.
    """
    if batch_size < 1:
        raise ModelError(f"batch_size={batch_size}: expected at least 1")
    if spec.quantization is not None:
        spec, weights = spec.quantization.float_spec, spec.quantization.strip(weights)
    model = spec.build()
    model.set_weights(weights)
    module = tf.Module()
    module.weights = model.weights
    module.train = _build_train(model, spec.input_shape, batch_size)
    module.infer = _build_infer(model, spec.input_shape)
    module.save, module.restore = _build_save_and_restore(model.weights)
    return module


def _build_train(model: tf.keras.Model, input_shape: tuple[int, ...], batch_size: int):
    @tf.function(
        input_signature=[
            tf.TensorSpec((batch_size, *input_shape), tf.float32),
            tf.TensorSpec((batch_size,), tf.int32),
            tf.TensorSpec((), tf.float32),
        ]
    )
    def train(x, y, learning_rate):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(learning_rate * gradient)
        return {"loss": loss}

    return train


def _build_infer(model: tf.keras.Model, input_shape: tuple[int, ...]):
    @tf.function(input_signature=[tf.TensorSpec((1, *input_shape), tf.float32)])
    def infer(x):
        return {"logits": model(x, training=False)}

    return infer


def _build_save_and_restore(variables: list[tf.Variable]):
    # Named by position: Keras numbers its own names anew in each process, but a later export must read older weights.
    names = [f"weight_{position}" for position in range(len(variables))]
    path_signature = [tf.TensorSpec((), tf.string)]

    @tf.function(input_signature=path_signature)
    def save(path):
        tf.raw_ops.Save(filename=path, tensor_names=names, data=[variable.read_value() for variable in variables])
        return {"path": path}

    @tf.function(input_signature=path_signature)
    def restore(path):
        for name, variable in zip(names, variables, strict=True):
            value = tf.raw_ops.Restore(file_pattern=path, tensor_name=name, dt=variable.dtype)
            variable.assign(tf.ensure_shape(value, variable.shape))
        return {"path": path}

    return save, restore
