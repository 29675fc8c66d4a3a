"""Flags that earlier versions had, or called otherwise: records of their runs are read under today's names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

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


def rename_stored_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of a stored run under today's names; a removed one is left out if it is empty and so did nothing.

    Some of Fine-Tuning's names mean something else today, such as `fine_tuning_steps`. A run of an earlier version is
    known by `fine_tuning_fine_tuning_steps`, which every one of them has.
    """
    is_earlier = any(name.startswith(_OF_THE_FINISH) for name in flags)
    kept = [name for name in flags if name not in REMOVED or flags[name]]
    return {find_new_name(name) or name if is_earlier or name in _OTHERS else name: flags[name] for name in kept}


def find_new_name(flag: str) -> str:
    """What a flag of earlier versions is called today; "" for a flag that has no other name."""
    if flag.startswith(_OF_THE_FINISH):
        return flag.replace(_OF_THE_FINISH, f"{FINE_TUNING}_", 1)
    return _OF_LOCAL_TRAINING.get(flag) or _OTHERS.get(flag, "")
