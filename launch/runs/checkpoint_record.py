"""What a checkpoint knows of its run's other files: the settings, and digests of the tables up to its round.

So a resumed run notices a flipped bit in them, or a file of another run, which the checkpoint's own digest cannot.
"""

import json
from collections.abc import Mapping
from typing import Any

from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder
from launch.settings.renamed_flags import rename_stored_flags
from launch.settings.resuming import CHANGEABLE_ON_RESUME
from launch.settings.run_config import RunConfig, find_algorithm, flag_values


def format_record(config: RunConfig, digests: Mapping[str, str]) -> str:
    """The record as JSON: `flags`, those that may not change on resume, and `digests` by the table's name."""
    return json.dumps({"flags": _list_flags(config), "digests": dict(digests)}, sort_keys=True)


def check_record(record: str, folder: RunFolder, config: RunConfig, digests: Mapping[str, str]) -> None:
    """Compares a run that is resumed with the record of its checkpoint.

    Raises:
      RunFolderError: the settings or a table have changed since.
    """
    kept: dict[str, Any] = json.loads(record)
    flags = _list_flags(config)
    # A flag that only one of them has was added or removed by another version.
    kept_flags = rename_stored_flags(kept["flags"], find_algorithm(config.algo))
    changed = [name for name, value in kept_flags.items() if name in flags and flags[name] != value]
    if changed:
        name = changed[0]
        raise RunFolderError(
            f"{folder.config}: says --{name}={flags[name]}, but its checkpoint was made with {kept_flags[name]}; "
            "restore the file that is damaged or another run's, or start a new run"
        )
    for name, digest in digests.items():
        if kept["digests"].get(name, digest) != digest:
            raise RunFolderError(
                f"{folder.path / name}: changed since its checkpoint was made: damaged, or another run's; "
                "restore it, or start a new run"
            )


def _list_flags(config: RunConfig) -> dict[str, Any]:
    values = json.loads(json.dumps(flag_values(config)))
    return {name: value for name, value in values.items() if name not in CHANGEABLE_ON_RESUME}
