"""What an algorithm knows of a model: how to build it, and how a stored example becomes its input."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from datasets.example_format import ExampleFormat
from models.standardization import Standardization, put_before
from models.task import Task, build_format_task

# Keeps the seed of the augmentation apart from those of the dropout layers, which fold in their small salts.
_AUGMENTATION = 1_000_003


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A Keras model that can be built anew inside any graph.

    Attributes:
      name: for reports, for example "image_student".
      build: takes nothing, returns a built Keras model with the task's outputs, for example logits.
      format: of the stored examples, and how the model gets them. Tokens reach it as int32, all else as float32.
      teacher: the larger model that can teach this one, if there is one.
      quantization: how it relates to a float model, if it is trained for 8-bit integers (see `models.quantization`).
      precision: what its layers compute in, "float32" or "bfloat16"; weights and logits are float32.
      augment: (stored examples (batch, *input_shape), seed int32 (2,)) -> examples to train on instead; None trains on
        the stored ones.
      task: labels, loss and metrics; None is that of the format's labels.
      has_channel_axis: False if the last axis of a stored example is that of its one channel, and the model does not
        want it: features stored as (features, 1) reach it as (features,).
      standardization: by which numbers its inputs are scaled; None leaves them as they are.
      compiled: whether XLA compiles its training; see `models.compilation`.
      peers: the other models that clients of the run train, where not all have the same; see `of_weights`.
      input_dtype: that of the Input of a user's model where it does not hold all numbers, for example "uint8"; it still
        gets float32, of numbers of that dtype (see `models.input_dtypes`).
      has_keras_file: whether Keras can write it; False saves the weights alone, see `models.saved_models`.
    """

    name: str
    build: Callable[[], tf.keras.Model]
    format: ExampleFormat
    teacher: "ModelSpec | None" = None
    quantization: "Quantization | None" = None
    precision: str = "float32"
    augment: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None
    task: Task = None  # type: ignore[assignment]  # set below, after which it is never None
    has_channel_axis: bool = True
    standardization: Standardization | None = None
    compiled: bool = False
    peers: "tuple[ModelSpec, ...]" = ()
    input_dtype: str = ""
    has_keras_file: bool = True

    def __post_init__(self):
        if self.task is None:
            object.__setattr__(self, "task", build_format_task(self.format))

    @property
    def model_input_shape(self) -> tuple[int, ...]:
        """Shape of one example as the model gets it, without the batch axis."""
        return self.format.input_shape if self.has_channel_axis else self.format.input_shape[:-1]

    @property
    def model_input_dtype(self) -> str:
        """Dtype in which the model gets examples: "int32" for tokens, else "float32"."""
        return "int32" if self.format.takes_tokens else "float32"

    @tf.autograph.experimental.do_not_convert  # parsing and rewriting it would take longer than tracing it
    def preprocess(self, x: tf.Tensor) -> tf.Tensor:
        """Stored examples, shape (batch, *input_shape), to what `build`'s model gets, (batch, *model_input_shape).

        Tokens become int32, everything else float32, scaled, shifted and standardized; in any graph.
        """
        if not self.has_channel_axis:  # decided while the graph is made, like the next
            x = tf.squeeze(x, axis=-1)
        if self.format.takes_tokens:
            # In a loop inside a loop, Keras finds no input that is of the outer graph, which a cast to int32 leaves it.
            return tf.identity(tf.cast(x, tf.int32))
        preprocessing = self.format.preprocessing
        return self.standardize(tf.cast(x, tf.float32) * preprocessing.scale + preprocessing.offset)

    @tf.autograph.experimental.do_not_convert
    def standardize(self, x: tf.Tensor) -> tf.Tensor:
        """What a saved model does first with its input, (batch, *model_input_shape), in any graph."""
        return x if self.standardization is None else self.standardization.apply(x, self.model_input_shape)

    @tf.autograph.experimental.do_not_convert
    def preprocess_to_train(self, x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """`preprocess` for a batch to train on, which is augmented first by the seed of its step, int32 (2,)."""
        if self.augment is None:
            return self.preprocess(x)
        return self.preprocess(self.augment(x, tf.random.experimental.stateless_fold_in(seed, _AUGMENTATION)))

    @functools.cached_property
    def weight_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all weights, in the order of `keras_model.weights`; the model is built once to know them."""
        return tuple(tuple(weight.shape) for weight in self.build().weights)

    def with_standardization(self, standardization: Standardization | None) -> "ModelSpec":
        """The same, with this scaling of its inputs, its teacher's, its peers' and those of the float model inside."""
        if standardization is not None:
            standardization.arrange(self.model_input_shape)  # whether it fits
        peers = tuple(peer.with_standardization(standardization) for peer in self.peers)
        changed = {"standardization": standardization, "peers": peers}
        if self.teacher is not None:
            changed["teacher"] = self.teacher.with_standardization(standardization)
        if self.quantization is not None:
            float_spec = self.quantization.float_spec.with_standardization(standardization)
            changed["quantization"] = dataclasses.replace(self.quantization, float_spec=float_spec)
        return dataclasses.replace(self, **changed)

    def build_whole(self) -> tuple[tf.keras.Model, tf.keras.Model]:
        """(the model of unscaled inputs, the one of `build` inside it), with the same weights; one without scaling."""
        model = self.build()
        if self.standardization is None:
            return model, model
        return put_before(self.standardization, model, self.model_input_shape), model

    @property
    def variants(self) -> "tuple[ModelSpec, ...]":
        """All whose weights a run may have, this one first: the float model inside it, or its peers."""
        return (self, *self.peers) if self.quantization is None else (self, self.quantization.float_spec)

    def of_weights(self, weights: tuple[np.ndarray, ...]) -> "ModelSpec":
        """The one of the variants that these weights belong to, by their shapes; several may be stacked."""
        if len(self.variants) == 1:  # whose shapes need not be known
            return self
        return next((variant for variant in self.variants if variant._has_shapes_of(weights)), self)

    def _has_shapes_of(self, weights: tuple[np.ndarray, ...]) -> bool:
        shapes = self.weight_shapes
        ends = [array.shape[max(array.ndim - len(shape), 0) :] for array, shape in zip(weights, shapes, strict=False)]
        return len(weights) == len(shapes) and ends == list(shapes)


@dataclasses.dataclass(frozen=True)
class Quantization:
    """The float model inside a quantization-aware one. The latter has more weights: value ranges and step counters.

    Attributes:
      float_spec: the float model.
      positions: the position of each of its weights among those of the quantization-aware model.
    """

    float_spec: ModelSpec
    positions: tuple[int, ...]

    def strip(self, weights: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """The float model's weights among those of a quantization-aware model, or of several, stacked."""
        return tuple(weights[position] for position in self.positions)

    def wrap(self, float_weights: tuple[np.ndarray, ...], template: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """A quantization-aware model's weights: the float ones as given, all others from `template`, one such model.

        If `float_weights` are of several models, stacked along new first axes, so is the result.
        """
        first = float_weights[0]
        stacked = first.shape[: first.ndim - template[self.positions[0]].ndim]
        weights = [np.broadcast_to(array, (*stacked, *array.shape)).copy() for array in template]
        for position, weight in zip(self.positions, float_weights, strict=True):
            weights[position] = weight
        return tuple(weights)
