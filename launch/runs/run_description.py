"""`config.json`: what a run was asked for, on which data, and with which code and libraries. Imports no TensorFlow."""

import dataclasses
import json
import os
import pathlib
import platform
import subprocess
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from datasets.example_format import GROUPS
from datasets.federated_data import FederatedData
from launch.runs.columns import (
    ARRAYS_DIGEST,
    CHECKSUMS_FILE,
    CLASS_WEIGHTS,
    DEVICES,
    DIGEST,
    FILLED,
    IS_REMOTE,
    NOTES,
    NUM_CLIENTS_LEFT_OUT,
    OWN_ALGORITHM,
    OWN_MODULES,
    READING,
    SOURCE_DIGEST,
)
from launch.runs.errors import RunFolderError
from launch.runs.library_versions import find_version
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import FEATURE_DEVIATIONS, FEATURE_MEANS, FEATURE_PADDING
from launch.runs.tables import write_json
from launch.settings.module_sums import list_changed, sum_run_modules
from launch.settings.resuming import ASKED_ONCE
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.settings.run_titles import ShownAlgorithm
from launch.settings.typed_places import remember_places
from tff_algos.settings.config_fields import is_own

LIBRARIES = ("tensorflow-federated", "tensorflow", "tensorflow-model-optimization", "numpy", "scipy", "scikit-learn")
NUM_SHARES = "num_shares"  # of earlier versions: how many workers shared the clients of a round
# Of the data section, what does not say that the data are others: words, which another version may choose otherwise,
# and the sum of a file, which may hold the same in other bytes.
NOT_COMPARED = (READING, NOTES, SOURCE_DIGEST, ARRAYS_DIGEST)
# What the same features are called, which a file beside the data may tell, or an earlier version have left out.
NAMES = ("feature_names", "feature_units", GROUPS)


def describe_data(data: FederatedData) -> dict[str, Any]:
    """Name and sizes of a federated data set, and its archetypes if it has any, as `config.json` keeps them."""
    kinds = dataclasses.asdict(data.archetypes) if data.archetypes else {}
    archetypes = {"archetypes": {name: list(values) for name, values in kinds.items()}} if kinds else {}
    devices = {DEVICES: data.profiles.digest} if data.profiles.digest else {}
    scaling = {FEATURE_MEANS: list(data.feature_means), FEATURE_DEVIATIONS: list(data.feature_deviations)}
    scaling = scaling if data.feature_means else {}
    if data.feature_padding is not None:
        scaling[FEATURE_PADDING] = data.feature_padding._asdict()
    return {
        "dataset": data.dataset,
        DIGEST: data.digest,
        **data.source_digests,
        "num_clients": len(data.clients),
        **data.format.to_json(),
        "num_train": int(data.num_train.sum()),
        "num_validation": sum(client.num_validation for client in data.clients),
        "num_client_test": sum(client.num_test for client in data.clients),
        "num_test": len(data.test_y),
        "num_dropped": data.num_dropped,
        NUM_CLIENTS_LEFT_OUT: data.num_clients_left_out,
        READING: data.reading,
        NOTES: list(data.notes),
        **({FILLED: dict(data.filled)} if data.filled else {}),
        # Of data that are read client by client, and not counted by class, there is nothing to list.
        "label_counts": [] if data.reader and not data.label_counts.size else data.label_counts.tolist(),
        **({CLASS_WEIGHTS: list(data.class_weights)} if data.class_weights else {}),
        **({IS_REMOTE: True} if data.is_remote else {}),
        **scaling,
        **archetypes,
        **devices,
    }


def check_same_data(folder: RunFolder, data: FederatedData) -> None:
    """Raises RunFolderError if the folder's run, which is to be resumed, cannot go on, or not on these data."""
    try:
        config = json.loads(folder.config.read_text(encoding="utf-8"))
        before, num_shares = config["data"], config.get(NUM_SHARES, 1)
        # What an earlier version did not describe is not compared.
        now = {name: value for name, value in describe_data(data).items() if name not in NOT_COMPARED}
        changed = [
            name
            for name, value in now.items()
            if name in before and before[name] != value and not (name in NAMES and not (before[name] and value))
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise RunFolderError(f"{folder.config}: damaged, does not describe the data; start a new run") from None
    if num_shares != 1:  # float sums depend on where they were cut
        raise RunFolderError(f"{folder.path}: was begun on {num_shares} TFF workers, which are gone; start a new run")
    if changed:
        raise RunFolderError(f"{folder.path}: the data changed since it began ({', '.join(changed)}); start a new run")


def check_same_modules(folder: RunFolder, config: RunConfig) -> None:
    """Raises RunFolderError if a module of the user's own changed since the folder's run, to be resumed, began."""
    try:
        stored = json.loads(folder.config.read_text(encoding="utf-8")).get(OWN_MODULES)
    except (OSError, ValueError, AttributeError, RecursionError):
        return  # whose data are not described either, which is said
    if changed := list_changed(stored, sum_run_modules(config)):
        raise RunFolderError(
            f"{folder.path}: your code changed since it began ({', '.join(changed)}); put the former files back, or "
            "start a new run"
        )


def write_config(
    folder: RunFolder, config: RunConfig, data: FederatedData, further: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Writes `config.json`: every flag's value, places of data in full, data sizes, versions, git revision.

    `further` is what else it says, by key, as of a live run.

    Its places are recorded as the user's own: who evaluates the run later need not name them again.
    """
    given = {name: getattr(config, name) for name in ("data_dir", "client_dir", "npz", "data", "replay")}
    places = {name: path and os.path.abspath(os.path.expanduser(path)) for name, path in given.items()}
    stored = dataclasses.replace(config, run_dir=str(folder.path), **ASKED_ONCE, **places)
    # Summed when the run begins: what is edited later is not what it runs.
    modules = sum_run_modules(config)
    content = {
        "flags": flag_values(stored),
        **(
            {OWN_ALGORITHM: ShownAlgorithm.of_row(find_algorithm(config.algo))._asdict()} if is_own(config.algo) else {}
        ),
        **({OWN_MODULES: modules} if modules else {}),
        **further,
        "data": describe_data(data),
        "versions": {"python": platform.python_version()} | {name: find_version(name) for name in LIBRARIES},
        "git_revision": find_git_revision(),
    }
    (folder.path / CHECKSUMS_FILE).unlink(missing_ok=True)  # those of the run's end so far
    write_json(folder.config, content)
    remember_places(vars(stored))
    folder.has_begun = True


def find_git_revision() -> str | None:
    """The commit of this checkout, with "-dirty" if files differ from it; None outside of git."""
    source = pathlib.Path(__file__).parent
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=source, capture_output=True, encoding="utf-8", timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip()
