"""What a run's config is held to beyond the range of each setting: settings that conflict, and names of things."""

import pathlib
from typing import Any

from datasets.catalog import DATASET_NAMES, check_dataset_name
from datasets.errors import DatasetError
from datasets.layouts import AUTO, BYTES, NO_SCALE, SCALE_FORM, parse_factor
from datasets.options import FILES, NPZ
from datasets.unscaled_flag import FORM, is_unscaled
from launch.settings.data_flags import BALANCED, CLIENT, FEDERATED
from launch.settings.runtimes import CPU, CPU_ONLY, IN_PROCESS, OFF, ON, RAY_CLIENT, RAY_PLACES, TFF
from launch.settings.suggestions import simplify, suggest_value
from models.model_names import MODEL_NAMES, WIDTH_MODELS, ModelError, check_model_name
from tff_algos.settings.config_fields import ConfigError

RUN_TO_RESUME = "--run_dir=<folder of the run to go on with> beside it"
OWN_FILE = "--data=<your file or folder>"
OWN_SUFFIXES = (".csv", ".tsv", ".gz", ".npz", ".npy", ".pt", ".parquet", ".arrow", ".json", ".sqlite", ".lzma", ".zip")
# Data sets and models that other tools bring, by their names in small letters and digits.
ELSEWHERE = {
    "svhn": "SVHN",
    "imagenet": "ImageNet",
    "tinyimagenet": "Tiny ImageNet",
    "adult": "Adult",
}
MODELS_ELSEWHERE = {
    "mlp": "perceptron",
    "dnn": "perceptron",
    "cnn": "image_student",
    "2nn": "perceptron_2nn",
    "resnet": "resnet18_gn",
    "resnet18": "resnet18_gn",
    "mobilenet": "mobilenet_v2",
    "lstm": "char_lstm",
    "gru": "char_gru",
    "transformer": "char_transformer",
    "logistic": "logistic_regression",
}


def check_run_settings(config: Any) -> None:
    """Raises ConfigError for the first setting of a `RunConfig` that cannot be meant."""
    check_dataset(config.dataset)
    for is_broken, field, expected in _list_rules(config):
        if is_broken:
            raise ConfigError(field, getattr(config, field), expected)
    if config.scale not in (AUTO, NO_SCALE, BYTES):
        try:
            parse_factor(config.scale)
        except ValueError:
            raise ConfigError("scale", config.scale, SCALE_FORM) from None
    for field in ("model", "teacher_model"):
        _check_model(field, getattr(config, field))
    check_ray_address(config.ray_address)


def _list_rules(config: Any) -> list[tuple[bool, str, str]]:
    """(whether it is broken, the setting that breaks it, what is expected) of each rule on settings beside others."""
    adds_noise = getattr(getattr(config.algorithm, "privacy", None), "is_active", False)
    is_private = adds_noise or getattr(config.algorithm, "privacy_epsilon", 0) > 0
    without_noise = "with private updates: a result without noise must not"
    outside = "with privacy: its {} are without noise and outside the budget"
    runtime, natural = f"--runtime={config.runtime}", "--partition=natural, whose clients have examples of their own"
    return [
        (config.resume and config.overwrite, "overwrite", "either --resume or --overwrite, not both"),
        (config.resume and not config.run_dir, "resume", RUN_TO_RESUME),
        (config.overwrite and not config.run_dir, "overwrite", "--run_dir=<folder of the run to replace> beside it"),
        (
            bool(config.data) != (config.dataset == FILES),
            "data",
            "a file or folder of yours, and no other --dataset beside it",
        ),
        (
            bool(config.npz) != (config.dataset == NPZ),
            "npz",
            "a file together with --dataset=npz, and only then",
        ),
        (config.bias_min > config.bias_max, "bias_min", f"at most --bias_max={config.bias_max}"),
        (config.qat_start_round > config.rounds, "qat_start_round", f"at most --rounds={config.rounds}"),
        (
            config.precision != "float32" and config.quantize != "none",
            "precision",
            f"float32 with --quantize={config.quantize}",
        ),
        (
            config.target_metric > 0 and config.target_accuracy > 0,
            "target_metric",
            "either --target_accuracy or --target_metric, not both",
        ),
        *(
            (adds_noise and getattr(config, name) > 0, name, f"0 {without_noise} end the run")
            for name in ("target_accuracy", "target_metric", "patience")
        ),
        (adds_noise and config.keep_best, "keep_best", f"false {without_noise} choose the models"),
        (
            config.width != 1 and not {config.model, config.teacher_model} & set(WIDTH_MODELS),
            "width",
            f"1, or --model={' or '.join(WIDTH_MODELS)} beside it",
        ),
        # To add noise, values must be clipped to a range that is known beforehand; a table's is not.
        (
            config.standardize == FEDERATED and is_private,
            "standardize",
            f"none or {CLIENT} {outside.format('sums')}",
        ),
        (
            config.class_weights == BALANCED and is_private,
            "class_weights",
            f"none or a file {outside.format('counts of labels')}",
        ),
        (config.standardize == CLIENT and config.partition != "natural", "standardize", natural),
        (not is_unscaled(config.unscaled), "unscaled", FORM),
        (
            config.device != CPU and config.runtime in CPU_ONLY,
            "device",
            f"{CPU} with {runtime}, which has no GPU; for one, give --runtime={IN_PROCESS}",
        ),
        (
            config.compile == ON and config.runtime == TFF,
            "compile",
            f"{OFF} with {runtime}, whose worker has no XLA; to compile, give --runtime={IN_PROCESS}",
        ),
    ]


def check_dataset(dataset: str) -> None:
    """Raises ConfigError if no data set is spelled so; a user's own is not looked for."""
    try:
        check_dataset_name(dataset)
    except DatasetError as error:
        expected = str(error).partition(": expected ")[2].partition("; did you mean")[0]
        raise ConfigError("dataset", dataset, expected + _suggest_dataset(dataset)) from None


def _suggest_dataset(dataset: str) -> str:
    """What was probably meant by a data set that there is none of."""
    plain = simplify(dataset)
    if plain in ELSEWHERE:
        return f"; {ELSEWHERE[plain]} is not among them; if you have its files, give {OWN_FILE}"
    if "/" in dataset or pathlib.PurePath(dataset).suffix in OWN_SUFFIXES:
        return f"; did you mean --data={dataset}?"
    return suggest_value(dataset, DATASET_NAMES, "module:OBJECT")


def _check_model(field: str, name: str) -> None:
    try:
        check_model_name(name)
    except ModelError:
        near = MODELS_ELSEWHERE.get(simplify(name))
        hint = f"; did you mean {near}?" if near else suggest_value(name, ("auto", *MODEL_NAMES), "module:function")
        raise ConfigError(
            field, name, f"auto, {', '.join(MODEL_NAMES)}, or your own as module:function{hint}"
        ) from None


def check_client_models(config: Any) -> None:
    """Raises ConfigError if the algorithm's clients train models of their own that there are not, or --model, too."""
    for name in (names := config.algorithm.model_names):
        _check_model("models", name)
    if names and config.model != AUTO:
        raise ConfigError("models", ",".join(names), f"no --model={config.model} beside it; give one or the other")


def check_ray_address(address: str) -> None:
    """Raises ConfigError if no Ray cluster is written so."""
    host, _, port = address.removeprefix(RAY_CLIENT).rpartition(":")
    if address not in RAY_PLACES and not (host and port.isdecimal() and 0 < int(port) < 65536):
        expected = "auto, host:port or ray://host:port, such as 192.0.2.7:6379; empty for a Ray of this run's own"
        raise ConfigError("ray_address", address, expected)
