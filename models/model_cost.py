"""What a model costs a phone: its parameters, and the multiply-accumulates of one inference."""

import tensorflow as tf

from models.model_spec import ModelSpec

_MULTIPLYING_OPERATIONS = ["Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul", "BatchMatMul.*"]


def count_multiply_accumulates(spec: ModelSpec) -> int:
    """The multiply-accumulates of the convolutions and matrix products in one inference, as TensorFlow counts them.

    Padding counts as if it were data. Of a quantization-aware model, the float model inside is counted.
    """
    profiler = tf.compat.v1.profiler
    builder = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.float_operation())
    options = builder.with_accounted_types(_MULTIPLYING_OPERATIONS).with_empty_output().build()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # the profiler uses a function that TensorFlow calls deprecated
    try:
        profile = profiler.profile(_trace_inference(_find_float_spec(spec)), cmd="op", options=options)
    finally:
        logger.setLevel(level)
    return profile.total_float_ops // 2  # a multiplication and an addition each


def count_parameters(spec: ModelSpec) -> int:
    """All weights, BatchNorm's statistics too; of a quantization-aware model, those of the float model inside."""
    return _find_float_spec(spec).build().count_params()


def _trace_inference(spec: ModelSpec) -> tf.Graph:
    """The graph of one inference without function calls, into which the profiler does not look.

    Keras wraps some layers in functions, for example grouped convolutions. Run eagerly, they are traced in place.
    """
    model = spec.build()
    x = tf.TensorSpec((1, *spec.model_input_shape), spec.model_input_dtype)
    were_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        return tf.compat.v1.wrap_function(lambda x: model(x, training=False), [x]).graph
    finally:
        tf.config.run_functions_eagerly(were_eager)


def _find_float_spec(spec: ModelSpec) -> ModelSpec:
    return spec.quantization.float_spec if spec.quantization else spec
