"""Makes a ModelSpec, with its teacher, from a model's name or a user's own function."""

import dataclasses
import functools
from typing import NamedTuple

import tensorflow as tf

from datasets.example_format import ExampleFormat
from datasets.own_objects import import_object
from models.input_dtypes import settle_input
from models.model_names import (
    ACTIVATIONS,
    ARCHITECTURES,
    AUGMENTATIONS,
    MODEL_NAMES,
    PRECISIONS,
    QUANTIZATIONS,
    STUDENT_OF_RANK,
    TEXT_MODELS,
    TOKEN_MODELS,
    WIDTH_MODELS,
    ModelError,
    check_model_name,
    is_own_model,
)
from models.model_spec import ModelSpec
from models.own_model import load_own_model
from models.precision import build_in_precision
from models.task import Task, build_format_task

__all__ = ["MODEL_NAMES", "ModelError", "ModelOptions", "build_model_spec"]


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """What can be chosen of a model.

    Attributes:
      activation: of the convolutions in image_student and image_teacher, "linear" (as printed) or "relu".
      width: factor on the numbers of filters of WIDTH_MODELS, above 0.
      precision: what model and teacher compute in, "float32" or "bfloat16"; weights and logits are float32.
      quantize: "qat" to train the model for 8-bit integers, "none"; its teacher is always a float model.
      augment: "crop_flip" to train model and teacher on images that are shifted and mirrored at random, "none".
      teacher_model: a model as `build_model_spec` takes it; "auto" is the larger model of the same kind. For a user's
        own model it is the one that fits the shape, or None if there is none.
      channel_axis: False gives a user's own model features that are stored as (features, 1) as (features,); the models
        of this package take them as they are stored.
    """

    activation: str = "linear"
    width: float = 1.0
    precision: str = "float32"
    quantize: str = "none"
    augment: str = "none"
    teacher_model: str = "auto"
    channel_axis: bool = True


_SHAPES = {3: "(height, width, channels)", 2: "(steps, channels)", 1: "(positions,)"}


def build_model_spec(
    model: str,
    example_format: ExampleFormat,
    options: ModelOptions = ModelOptions(),
    task: Task | None = None,
    to_train: bool = True,
) -> ModelSpec:
    """The specification of a model, with that of the larger model that can teach it as its `teacher`.

    Args:
      model: "auto", one of MODEL_NAMES, or "module:function". "auto" goes by the shape of an example: the image student
        for (height, width, channels), the sensor student for (steps, channels), the perceptron for (features,),
        char_lstm for tokens whose next ones are the labels, and text_mean for the words of a text. "module:function" is
        the user's own: a function of (input_shape, num_outputs) that returns a new, built Keras model with the task's
        outputs, for example logits.
      example_format: of the stored examples. Tokens are for a user's own model, for TOKEN_MODELS if the labels are the
        next ones, and for TEXT_MODELS if the format has their vocabulary: how many there are must be known.
      options: what can be chosen.
      task: what the models are trained to do; None is that of the format's labels.
      to_train: False for a run that is finished: a user's own model was fit to be trained in its time.

    Raises:
      ModelError: a model is unknown or does not fit the shape; a user's own cannot be used; a layer cannot be
        quantized; quantization and bfloat16 are asked for together; what is to be shifted and mirrored is no image.
    """
    task = task or build_format_task(example_format)
    input_shape, precision, data = example_format.input_shape, options.precision, _Data(example_format, task)
    student_name = _resolve(model, data)
    teacher_name = _resolve_teacher(options.teacher_model, student_name, data)
    _check_options(options, (student_name, teacher_name), input_shape)
    change = None if options.augment == "none" else crop_and_flip
    are_columns = example_format.are_features and input_shape[1:] == (1,)

    def build_spec(name: str, flag: str) -> ModelSpec:
        has_channel_axis = options.channel_axis or not (is_own_model(name) and are_columns)
        if is_own_model(name):
            shape = input_shape if has_channel_axis else input_shape[:-1]
            dtype = "int32" if example_format.takes_tokens else "float32"
            build = load_own_model(name, shape, task.num_outputs, flag, precision, to_train, task, dtype)
            received, input_dtype = settle_input(build(), example_format, shape)
        else:
            received, input_dtype = example_format, ""
            architecture = ARCHITECTURES[name]
            if architecture.rank not in (None, len(input_shape)):
                raise ModelError(
                    f"{flag}={name}: expected examples of shape {_SHAPES[architecture.rank]}, got {input_shape}"
                )
            side = architecture.smallest_side
            if side > 1 and min(input_shape[:2]) < side:
                raise ModelError(f"{flag}={name}: expected images of at least {side} pixels a side, got {input_shape}")
            builder = import_object(architecture.builder, name, ModelError)
            chosen = {option: getattr(options, option) for option in architecture.options}
            if architecture.takes_vocabulary:
                chosen["vocabulary"] = len(example_format.text.vocabulary)
            build = functools.partial(builder, input_shape, task.num_outputs, **chosen)
            build = build if precision == "float32" else functools.partial(build_in_precision, build, precision)
        return ModelSpec(
            name, build, received, precision=precision, augment=change, task=task, has_channel_axis=has_channel_axis,
            input_dtype=input_dtype,
        )  # fmt: skip

    student = build_spec(student_name, "model")
    student = dataclasses.replace(student, teacher=build_spec(teacher_name, "teacher_model") if teacher_name else None)
    if options.quantize != "qat":
        return student
    from models.quantization import build_quantized_spec  # TF-MOT takes seconds to import, and few runs need it

    return build_quantized_spec(student)


def _check_options(options: ModelOptions, names: tuple[str, str | None], input_shape: tuple[int, ...]) -> None:
    """Refuses what no model has, and what these, a student and its teacher, or such examples have not."""
    choices = {"activation": ACTIVATIONS, "quantize": QUANTIZATIONS, "precision": PRECISIONS, "augment": AUGMENTATIONS}
    for flag, allowed in choices.items():
        if getattr(options, flag) not in allowed:
            raise ModelError(f"{flag}={getattr(options, flag)}: expected one of {', '.join(allowed)}")
    activation, width, quantize, augment = options.activation, options.width, options.quantize, options.augment
    known = [ARCHITECTURES[name] for name in names if name in ARCHITECTURES]
    if activation != "linear" and not any("activation" in each.options for each in known):
        reason = f"only the image models have this choice, not {names[0]}"
        raise ModelError(f"activation={activation}: {reason}; leave it out")
    if width <= 0:
        raise ModelError(f"width={width}: expected a number above 0")
    if width != 1 and not set(WIDTH_MODELS) & set(names):
        reason = f"only {' and '.join(WIDTH_MODELS)} have this choice, not {names[0]}"
        raise ModelError(f"width={width}: {reason}; leave it out")
    if options.precision != "float32" and quantize != "none":
        reason = f"expected float32 with quantize={quantize}, whose rounding computes in it"
        raise ModelError(f"precision={options.precision}: {reason}")
    if quantize == "qat" and not is_own_model(names[0]) and (part := ARCHITECTURES[names[0]].unquantized):
        reason = f"TF-MOT cannot quantize the {part} of {names[0]} while it is trained"
        raise ModelError(f"quantize=qat: {reason}; leave it out, and export int8, which is quantized after training")
    if augment != "none" and len(input_shape) != 3:
        raise ModelError(f"augment={augment}: expected images of shape {_SHAPES[3]}, got {input_shape}; leave it out")


class _Data(NamedTuple):
    """What a model has to suit: the examples, and the task."""

    format: ExampleFormat
    task: Task

    @property
    def have_next_tokens(self) -> bool:
        """Whether examples are sequences of tokens, and labels the tokens that come next: what TOKEN_MODELS are for."""
        return self.format.takes_tokens and self.task.output_shape == (*self.format.input_shape, self.task.num_outputs)

    @property
    def have_words(self) -> bool:
        """Whether examples are the words of a text, each of which has one row of outputs: what TEXT_MODELS are for."""
        return self.format.text is not None and self.task.output_shape == (self.task.num_outputs,)

    @property
    def takers(self) -> tuple[str, ...]:
        """The models of this package that take such tokens, the default first; () for numbers and for other tokens."""
        if self.have_words:
            return TEXT_MODELS
        return TOKEN_MODELS if self.have_next_tokens else ()

    @property
    def must_be_own(self) -> bool:
        """Whether no model of this package is for it: they take numbers or words and have one row of outputs, or next
        tokens."""
        return not self.takers and (self.format.takes_tokens or self.task.output_shape != (self.task.num_outputs,))


def _resolve(model: str, data: _Data) -> str:
    check_model_name(model)
    if model == "auto" and data.takers:
        return data.takers[0]
    _check_kind(model, data, "model")
    if model != "auto":
        return model
    rank = len(data.format.input_shape)
    if rank not in STUDENT_OF_RANK:
        shape = data.format.input_shape
        raise ModelError(f"model=auto: no model for examples of shape {shape}; give your own as module:function")
    return STUDENT_OF_RANK[rank]


def _check_kind(model: str, data: _Data, flag: str) -> None:
    """Refuses models of this package that take other data or put out something else."""
    if is_own_model(model):
        return
    if data.must_be_own:
        has_rows = data.task.output_shape != (data.task.num_outputs,)
        what = f"task {data.task.kind.name} of such examples" if has_rows else f"tokens with task {data.task.kind.name}"
        raise ModelError(f"{flag}={model}: no model of this package is for {what}; give your own as module:function")
    takers = data.takers
    if takers and model != "auto" and model not in takers:
        expected = ", ".join(takers)
        raise ModelError(f"{flag}={model}: expected one that takes tokens, {expected}, or your own as module:function")
    if not takers and model in (*TOKEN_MODELS, *TEXT_MODELS):
        wanted = "the words of a text (--text_column)" if model in TEXT_MODELS else "tokens with task next_token"
        raise ModelError(f"{flag}={model}: expected examples of {wanted}, these are numbers")


def _resolve_teacher(teacher_model: str, student_name: str, data: _Data) -> str | None:
    check_model_name(teacher_model, "teacher_model")
    if teacher_model != "auto":
        _check_kind(teacher_model, data, "teacher_model")
        return teacher_model
    if is_own_model(student_name):  # Its teacher is that of our model for the same shape.
        if data.must_be_own or data.have_next_tokens:
            return None
        if data.have_words:
            return ARCHITECTURES[TEXT_MODELS[0]].teacher
        student_name = STUDENT_OF_RANK.get(len(data.format.input_shape))
    return ARCHITECTURES[student_name].teacher if student_name else None


MARGIN = 4  # pixels on each side


def crop_and_flip(x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Each image shifted by up to `MARGIN` pixels in both directions, zeros coming in, and mirrored half of the time.

    It is the usual crop of a padded image and flip (He et al., Deep Residual Learning, 2016, section 4.2). The shifts
    -4..4 are equally likely; images of a batch are changed independently of each other.

    Args:
      x: images as stored, shape (batch, height, width, channels), any dtype.
      seed: int32, shape (2,); the same seed gives the same images.

    Returns:
      The same shape and dtype.
    """
    num_images, height, width = tf.shape(x)[0], tf.shape(x)[1], tf.shape(x)[2]
    top_seed, left_seed, flip_seed = tf.unstack(tf.random.experimental.stateless_split(seed, 3))

    def draw(number, below):
        return tf.random.stateless_uniform((num_images, 1), number, 0, below, tf.int32)

    rows = draw(top_seed, 2 * MARGIN + 1) + tf.range(height)
    columns = draw(left_seed, 2 * MARGIN + 1) + tf.range(width)
    columns = tf.where(tf.equal(draw(flip_seed, 2), 1), tf.reverse(columns, [1]), columns)
    padded = tf.pad(x, [[0, 0], [MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]])
    changed = tf.gather(tf.gather(padded, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    return tf.ensure_shape(changed, x.shape)
