"""What a model gets: features scaled over the clients, and numbers of the dtype that a user's model asks for.

Means and deviations are computed once, when a run begins, and stored. Imports no TensorFlow itself.
"""

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from datasets.example_format import Padding, Preprocessing, count_features
from datasets.federated_data import SPLITS, FederatedData
from datasets.layouts import AUTO
from datasets.names import name_some
from datasets.unscaled import (
    OTHER_FILLS,
    StepCounts,
    choose_padding,
    choose_places,
    describe_other_fill,
    describe_padding,
    describe_places,
    is_padding,
)
from datasets.unscaled_flag import CATEGORIES, NOTHING
from launch.console.progress import say
from launch.console.shown_text import format_count
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import Scaling, read_data_section, read_scaling
from launch.settings.data_flags import CLIENT, FEDERATED, NONE
from launch.settings.run_config import RunConfig
from models.model_names import ModelError, is_own_model
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    import tensorflow as tf

    from models.model_spec import ModelSpec


def check_model_inputs(data: FederatedData, spec: "ModelSpec") -> None:
    """Says how models whose Input is of another dtype than float32 get the examples, all of which must be of it.

    Raises:
      ModelError: some are not, and Keras would make other numbers of them without a word; or a model itself makes
        whole numbers of scaled ones.
    """
    # TensorFlow is loaded by now.
    from models.input_dtypes import describe_input, find_misfit, holds_all

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
    if len(data.test_x):
        yield "the test set", data.test_x
    for client in data.everyone:
        for split in SPLITS:
            if data.count(client, split):
                yield client.name, data.read_split(client, split)[0]


def _check_not_cut_off(data: FederatedData, spec: "ModelSpec", flag: str) -> None:
    """Looks for numbers that the model itself casts to whole ones, as an Embedding does, though they are not.

    It is said where the stored numbers are no whole ones, and refused where scaling has made them so.
    """
    from models.input_dtypes import find_misfit
    from models.own_model_checks import find_cut_off

    example_format = spec.format
    # No layer that casts can be quantized.
    if example_format.takes_tokens or spec.quantization is not None:
        return
    found = find_cut_off(spec.build(), spec.model_input_shape)
    unscaled = dataclasses.replace(example_format, preprocessing=Preprocessing())
    for _, x in _iterate_examples(data) if found.places else ():
        columns = x.reshape(len(x), -1, count_features(example_format.input_shape))
        for index in found.places:
            misfit = find_misfit(found.dtype, example_format, columns[..., index])
            if not misfit:
                continue
            name = example_format.name_feature(index)
            what = f"makes whole numbers ({found.dtype}) of its inputs, but {name} has {misfit}"
            if not find_misfit(found.dtype, unscaled, columns[..., index]):
                raise ModelError(
                    f"{flag}={spec.name}: {what}, since it is scaled; start with "
                    f'tf.keras.Input({spec.model_input_shape}, dtype="{found.dtype}"), which gets the stored numbers, '
                    "or undo the scaling before the cast"
                )
            say(f"note     {spec.name} {what}")
            return


def check_can_be_scaled(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if tokens are to be scaled, which are numbers of words."""
    if config.standardize != NONE and data.format.takes_tokens:
        raise ConfigError("standardize", config.standardize, f"{NONE} for tokens, which a model looks up")


def scale_features(
    config: RunConfig, folder: RunFolder, data: FederatedData, spec: "ModelSpec"
) -> tuple[FederatedData, "ModelSpec"]:
    """(data, spec) with the means and deviations, if they are asked for; needs the run's runtime.

    Data that come with some, as those of clients far away, have these.

    A run that goes on has those that it began with: sums of floats depend on the runtime that adds them up.

    Raises:
      ConfigError: a model of the user's masks or looks up what would be scaled.
      RunFolderError: the run's `config.json` is damaged.
    """
    if config.standardize == CLIENT and folder.is_new:
        _check_scaled_by_clients(config, data, spec)
    if config.standardize != FEDERATED and not data.feature_means:
        return data, spec
    # TensorFlow is loaded by now.
    from models.standardization import Standardization

    if data.feature_means:
        return data, spec.with_standardization(Standardization(data.feature_means, data.feature_deviations))
    scaling = None
    if not folder.is_new and folder.config.exists():
        stored = json.loads(folder.config.read_text(encoding="utf-8"))["data"]
        read_data_section(stored, folder.config)
        scaling = read_scaling(stored)
    scaling = scaling or _compute(config, data, spec)
    data = dataclasses.replace(
        data,
        feature_means=scaling.means,
        feature_deviations=scaling.deviations,
        feature_padding=scaling.padding,
    )
    return data, spec.with_standardization(Standardization(*scaling))


def _compute(config: RunConfig, data: FederatedData, spec: "ModelSpec") -> Scaling:
    from tff_algos.rounds.feature_statistics import compute_feature_statistics

    models, example_format = _build_own_models(config, spec), data.format
    masked, looked_up = _find_masked(config, models), _find_looked_up(config, models, spec)
    if looked_up and config.unscaled == NOTHING:
        names = name_some([example_format.name_feature(index) for index in looked_up])
        raise ConfigError("unscaled", NOTHING, f"{AUTO}, since the model looks up whole numbers ({names})")
    padding = _find_padding(config, data, spec, masked)
    found = compute_feature_statistics(spec, data, config.seed, padding)
    indices = choose_places(config.unscaled, example_format, found.no_switches, looked_up)
    asked = f"{found.num_clients:,} of {len(data.clients):,}" if found.num_clients < len(data.clients) else "all"
    number = len(found.means) - len(indices)
    numbers = f"{format_count(number, 'mean')} and {'deviation' if number == 1 else 'deviations'}"
    say(f"scaling  {numbers}, federated sums over {asked} clients, in the model")
    if indices:
        # --unscaled=nothing is refused where the model looks something up.
        way_out = "" if looked_up else f"; --unscaled={NOTHING} scales them, too"
        stay = "stays as it is, no measurement" if len(indices) == 1 else "stay as they are, no measurements"
        say(f"note     {len(indices):,} of {format_count(len(found.means), 'feature')} {stay}: "
            f"{describe_places(example_format, indices, looked_up)}{way_out}")  # fmt: skip
    found.means[list(indices)], found.deviations[list(indices)] = 0, 1
    means, deviations = (tuple(each.tolist()) for each in (found.means, found.deviations))
    return Scaling(means, deviations, padding if number else None)


def _find_padding(config: RunConfig, data: FederatedData, spec: "ModelSpec", masked: float | None) -> Padding | None:
    """The steps that the scaling leaves as they are, with a line about them."""
    from tff_algos.rounds.feature_statistics import count_padded_steps

    padding = choose_padding(config.unscaled, data.format, masked)
    if masked is not None and padding is None:
        _note_lost_mask(config, data, masked)
    if padding is None:
        return None
    values = tuple(dict.fromkeys((padding.value, *OTHER_FILLS)))
    found = count_padded_steps(spec, data, config.seed, values)
    counts, *others = (StepCounts(*map(int, each)) for each in found)
    if config.unscaled == AUTO and not is_padding(padding, counts):
        advice = "give --unscaled={:g}" if masked is None else f"let the model mask {{:g}}, not {masked:g}"
        line = describe_other_fill(dict(zip(values[1:], others, strict=True)), advice)
        if line:
            say(f"note     {line}")
    is_told = masked is not None or config.unscaled != AUTO
    if not is_told and not is_padding(padding, counts):
        if counts.at_ends and not padding.is_anywhere:
            share = 100 * (counts.at_ends + counts.within) / counts.total
            say(f"note     {share:.1f} % of the steps are 0, also between others: they are taken for measurements; if "
                f"they are padding, give --unscaled=0")  # fmt: skip
        return None
    if counts.at_ends + counts.within:
        say(f"note     {describe_padding(padding, counts, masked is not None)}")
    return padding


def _note_lost_mask(config: RunConfig, data: FederatedData, masked: float) -> None:
    why = f"--unscaled={config.unscaled}" if data.format.is_series else "the examples are no sequences (see --layout)"
    say(f"note     the model masks {masked:g}, but {why}: these values are scaled, so that it masks others")


def _build_own_models(config: RunConfig, spec: "ModelSpec") -> "list[tf.keras.Model]":
    """The models of the run whose layers are the user's; those of the project neither mask nor look up numbers."""
    names = (config.model, config.teacher_model, *config.algorithm.model_names)
    if not any(":" in name for name in names):
        return []
    first = spec if spec.quantization is None else spec.quantization.float_spec
    return [each.build() for each in (first, *spec.peers, spec.teacher) if each is not None]


def _find_masked(config: RunConfig, models: "list[tf.keras.Model]") -> float | None:
    """The value that Masking layers look for; None if there is no such layer, or --unscaled=nothing."""
    from models.own_model_checks import list_mask_values

    values = sorted({value for model in models for value in list_mask_values(model)})
    if not values or config.unscaled == NOTHING:
        return None
    shown = " and ".join(f"{value:g}" for value in values)
    if len(values) > 1:
        raise ConfigError("standardize", config.standardize, f"{NONE}: Masking layers look for {shown}, not for one")
    if math.isnan(values[0]):
        expected = f"{NONE}: a Masking layer looks for NaN, which is equal to nothing; fill sequences up with a number"
        raise ConfigError("standardize", config.standardize, expected)
    if config.unscaled not in (AUTO, CATEGORIES) and float(config.unscaled) != values[0]:
        raise ConfigError("unscaled", config.unscaled, f"{shown}, which a Masking layer of the model looks for")
    return values[0]


def _find_looked_up(config: RunConfig, models: "list[tf.keras.Model]", spec: "ModelSpec") -> tuple[int, ...]:
    """The features that a model makes whole numbers of."""
    from models.input_dtypes import takes_whole_numbers
    from models.own_model_checks import find_looked_up

    if any(takes_whole_numbers(each.input_dtype) for each in (spec, *spec.peers, spec.teacher) if each is not None):
        return tuple(range(count_features(spec.format.input_shape)))
    try:
        return tuple(sorted({index for each in models for index in find_looked_up(each, spec.model_input_shape)}))
    except Exception as error:
        raise ModelError(f"model={config.model}: cannot tell which features it looks up: {error!s:.200}") from error


def _check_scaled_by_clients(config: RunConfig, data: FederatedData, spec: "ModelSpec") -> None:
    """Raises ConfigError if the model masks or looks up what clients have scaled, since they do not know the model."""
    models = _build_own_models(config, spec)
    masked, looked_up = _find_masked(config, models), _find_looked_up(config, models, spec)
    padding = choose_padding(config.unscaled, data.format)
    if masked is not None and padding != Padding(masked, True):
        if data.format.is_series and config.unscaled == AUTO:
            raise ConfigError("unscaled", AUTO, f"{masked:g}, which a Masking layer of the model looks for")
        _note_lost_mask(config, data, masked)
    if scaled := [index for index in looked_up if index not in data.format.categories]:
        names = name_some([data.format.name_feature(index) for index in scaled])
        raise ConfigError("standardize", CLIENT, f"{FEDERATED}, which leaves alone what the model looks up ({names})")
