"""Whether Keras can write the user's models of a run, found out and said before the first round."""

import dataclasses

from launch.console.progress import say
from launch.runs.columns import MODELS
from launch.settings.run_config import RunConfig
from models.model_names import ARRAYS_FILE, KERAS_FILE, is_own_model
from models.model_spec import ModelSpec
from models.saving_trial import try_saving


def check_saving(config: RunConfig, spec: ModelSpec) -> ModelSpec:
    """The specification, with those of its teacher and variants, that knows which of them Keras cannot write.

    Says in a line of each what is written in its place, and what to change. Our own models need no trial.

    Args:
      config: of the run.
      spec: its model.
    """
    checked: dict[tuple[str, bool], ModelSpec] = {}

    def check(each: ModelSpec) -> ModelSpec:
        key = each.name, each.quantization is not None  # a teacher may be of the same function
        if is_own_model(each.name) and key not in checked:
            checked[key] = _check(each)
        is_written = checked[key].has_keras_file if key in checked else True
        return dataclasses.replace(each, has_keras_file=is_written)

    changed = {"peers": tuple(map(check, spec.peers))}
    if spec.teacher is not None and config.algorithm.trains_teacher:
        changed["teacher"] = check(spec.teacher)
    if spec.quantization is not None and config.qat_start_round > 1:
        float_spec = check(spec.quantization.float_spec)
        changed["quantization"] = dataclasses.replace(spec.quantization, float_spec=float_spec)
    return dataclasses.replace(check(spec), **changed)


def _check(spec: ModelSpec) -> ModelSpec:
    trial = try_saving(spec)
    readers = "evaluate, export, predict and --resume"
    if trial.unwritten:
        say(f"note     {spec.name}: {MODELS}/<name>/ will hold its weights alone, {ARRAYS_FILE} in place of "
            f"{KERAS_FILE} ({readers} read them all the same), since {trial.unwritten}")  # fmt: skip
    elif trial.unread:
        say(f"note     {spec.name}: tf.keras.models.load_model will not read its {KERAS_FILE} as it is "
            f"({readers} do): {trial.unread}")  # fmt: skip
    return dataclasses.replace(spec, has_keras_file=not trial.unwritten)
