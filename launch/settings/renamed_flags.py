"""Flags that earlier versions had, or called otherwise: records of their runs are read under today's names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.run_config import shared_fields
from launch.settings.setting_names import read_name
from tff_algos.settings.local_training import LocalTrainingConfig

FINE_TUNING = "fine_tuning"
_OF_THE_FINISH = f"{FINE_TUNING}_fine_tuning_"  # what the settings of the algorithm's fine-tuning began with
_OF_LOCAL_TRAINING = {
    f"{FINE_TUNING}_{field.name}": f"{FINE_TUNING}_local_{field.name}"
    for field in dataclasses.fields(LocalTrainingConfig)
    if not field.metadata["setting"].shared
}
_OTHERS = {"shard_dir": "client_dir"}
REMOVED = {"workers": "TFF's workers on other machines are no more; for several machines give --runtime=ray"}


def rename_stored_flags(flags: Mapping[str, Any], algorithm: Algorithm | None = None) -> dict[str, Any]:
    """The flags of a stored run under today's names; a removed one is left out if it is empty and so did nothing.

    Earlier versions put the algorithm's name before those of its settings. Some of Fine-Tuning's names meant something
    else before that, such as `fine_tuning_steps`: such a run is known by `fine_tuning_fine_tuning_steps`, which every
    one of them has.

    Args:
      flags: {name: value}, as stored.
      algorithm: the run's; None to find it by its name. The name of a user's own is told by the flags.
    """
    is_earlier = any(name.startswith(_OF_THE_FINISH) for name in flags)
    kept = [name for name in flags if name not in REMOVED or flags[name]]
    flags = {find_new_name(name) or name if is_earlier or name in _OTHERS else name: flags[name] for name in kept}
    spelling = flags.get("algo")
    if algorithm is None and isinstance(spelling, str):
        algorithm = ALGORITHMS.get(spelling)
    if algorithm is not None:
        return {read_name(name, algorithm): value for name, value in flags.items()}
    shared = {field.name for field in shared_fields()}
    own = [name for name in flags if name not in shared]
    starts = (own[0][: place + 1] for place, letter in enumerate(own[0]) if letter == "_") if len(own) > 1 else ()
    prefix = max((start for start in starts if all(name.startswith(start) for name in own)), key=len, default="")
    return {name.removeprefix(prefix) if name in own else name: value for name, value in flags.items()}


def find_new_name(flag: str) -> str:
    """What a flag of earlier versions is called today, with the algorithm's name before it; "" for all others."""
    if flag.startswith(_OF_THE_FINISH):
        return flag.replace(_OF_THE_FINISH, f"{FINE_TUNING}_", 1)
    return _OF_LOCAL_TRAINING.get(flag) or _OTHERS.get(flag, "")
