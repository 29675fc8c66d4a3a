"""Whether the stored examples are numbers of the dtype that a user's model asks for. Imports no TensorFlow itself."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from datasets.example_format import Preprocessing, count_features
from datasets.federated_data import FederatedData
from launch.console.progress import say
from models.model_names import ModelError, is_own_model

if TYPE_CHECKING:
    from models.model_spec import ModelSpec


def check_model_inputs(data: FederatedData, spec: "ModelSpec") -> None:
    """Says how models whose Input is of another dtype than float32 get the examples, all of which must be of it.

    Raises:
      ModelError: some are not, and Keras would make other numbers of them without a word; or a model itself makes
        whole numbers of scaled ones.
    """
    from models.input_dtypes import describe_input, find_misfit, holds_all  # TensorFlow is loaded by now

    for flag, each in (*(("model", each) for each in (spec, *spec.peers)), ("teacher_model", spec.teacher)):
        if each is None or not is_own_model(each.name):
            continue
        if not each.input_dtype:
            _check_not_cut_off(data, each, flag)
            continue
        # Reading all clients' files takes long where they are many.
        is_looked_at = not holds_all(each.input_dtype, each.format, np.dtype(each.format.input_dtype))
        for where, x in _iterate_examples(data) if is_looked_at else ():
            if misfit := find_misfit(each.input_dtype, each.format, x):
                raise ModelError(
                    f"{flag}={each.name}: its Input has dtype {each.input_dtype}, but {where} has {misfit}; start with "
                    f"tf.keras.Input({each.model_input_shape}), and cast inside"
                )
        say(f"note     {each.name}: {describe_input(each.input_dtype)}")


def _iterate_examples(data: FederatedData) -> Iterator[tuple[str, np.ndarray]]:
    """All stored examples, and whose they are."""
    yield "the test set", data.test_x
    for client in data.everyone:
        sizes = {"train": client.num_train, "validation": client.num_validation, "test": client.num_test}
        for split, size in sizes.items():
            if size:
                yield client.name, data.read_split(client, split)[0]


def _check_not_cut_off(data: FederatedData, spec: "ModelSpec", flag: str) -> None:
    """Looks for numbers that the model itself casts to whole ones, as an Embedding does, though they are not.

    It is said where the stored numbers are no whole ones, and refused where scaling has made them so.
    """
    from models.input_dtypes import find_misfit
    from models.own_model_checks import find_cut_off

    form = spec.format
    if form.takes_tokens or spec.quantization is not None:  # no layer that casts can be quantized
        return
    found = find_cut_off(spec.build(), spec.model_input_shape)
    unscaled = dataclasses.replace(form, preprocessing=Preprocessing())
    for _, x in _iterate_examples(data) if found.places else ():
        columns = x.reshape(len(x), -1, count_features(form.input_shape))
        for place in found.places:
            misfit = find_misfit(found.dtype, form, columns[..., place])
            if not misfit:
                continue
            what = f"makes whole numbers ({found.dtype}) of its inputs, but {form.name_feature(place)} has {misfit}"
            if not find_misfit(found.dtype, unscaled, columns[..., place]):
                raise ModelError(
                    f"{flag}={spec.name}: {what}, since it is scaled; start with "
                    f'tf.keras.Input({spec.model_input_shape}, dtype="{found.dtype}"), which gets the stored numbers, '
                    "or undo the scaling before the cast"
                )
            say(f"note     {spec.name} {what}")
            return
