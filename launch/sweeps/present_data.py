"""What runs that are finished would get now: whether their data and their own code are still those that they had.

A table may be corrected and a model edited under the same name, of which the flags say nothing. Imports no TensorFlow.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from datasets.errors import DatasetError
from datasets.options import is_users_own
from launch.console.progress import say
from launch.runs.columns import CLASS_WEIGHTS, CLASS_WEIGHTS_DIGEST, DEVICES, DIGEST, OWN_MODULES
from launch.runs.data_versions import DATA_FLAGS, READING_FLAGS
from launch.runs.run_records import RunPath, RunRecordError, read_config
from launch.settings.module_sums import list_changed, sum_run_modules
from launch.settings.resuming import PLACES
from launch.settings.run_config import RunConfig
from tff_algos.settings.config_fields import ConfigError


class PresentData:
    """The data and the code as they are while a command runs: each distinct data are opened once, at the first need."""

    def __init__(self):
        self._digests: dict[tuple, Mapping[str, str]] = {}
        self._names: dict[tuple, str] = {}
        self._found: dict[RunPath, str] = {}

    def find_change(self, run_dir: RunPath, config: RunConfig, is_there: bool = True) -> str:
        """What has changed since a stored run was made, as "on other data than ..."; "" for nothing.

        The first look decides: what this command makes itself needs no second opinion.

        Args:
          run_dir: of the run.
          config: what is asked for now.
          is_there: whether there is a run that counts.
        """
        if run_dir not in self._found:
            self._found[run_dir] = self._compare(run_dir, config) if is_there else ""
        return self._found[run_dir]

    def _compare(self, run_dir: RunPath, config: RunConfig) -> str:
        try:
            stored = read_config(run_dir)
        except RunRecordError:
            return ""
        # Before the data, which may be made by the very code that has changed.
        if changed := list_changed(stored.get(OWN_MODULES), sum_run_modules(config)):
            return f"of other code than {', '.join(changed)} holds now"
        other = self.find_other_data(stored, config)
        return f"on other data than {other} holds now" if other else ""

    def find_other_data(self, stored: Mapping[str, Any], config: RunConfig) -> str:
        """Which sources have changed since a run with this `config.json` was made, by its digests; "" for none."""
        data = stored.get("data")
        # Of an earlier version, or in an archive, where nothing says on which data.
        if not isinstance(data, dict) or not data.get(DIGEST):
            return ""
        now = self._identify(config, stored.get("flags", {}))
        sources = {
            DIGEST: config.npz or config.data or config.dataset,
            DEVICES: config.device_profiles,
            CLASS_WEIGHTS_DIGEST: config.class_weights,
        }
        return " and ".join(
            source for name, source in sources.items() if name in data and now.get(name, data[name]) != data[name]
        )

    def name(self, config: RunConfig) -> str:
        """What a data set of ours is called, a subset by its sizes; "" if it is a user's own, or cannot be opened."""
        from launch.training.opened_data import name_data

        if is_users_own(config.dataset):
            return ""
        names = sorted(READING_FLAGS | PLACES & vars(config).keys())
        key = tuple(vars(config).get(name) for name in names)
        if key not in self._names:
            try:
                self._names[key] = name_data(config)
            except (DatasetError, ConfigError, OSError) as error:
                say(f"note     {error}; the data of kept runs are taken to be these")
                self._names[key] = ""
        return self._names[key]

    def _identify(self, config: RunConfig, stored: Mapping[str, Any]) -> Mapping[str, str]:
        """The digests of the data; none where they are not there any more, so that nothing can be compared.

        Settings that do nothing may be others than those `stored`, but are in the digest; so the latter are taken.
        """
        # The import takes a while, and only finished runs need it.
        from launch.training.opened_data import identify_data

        values = vars(config) | {name: stored[name] for name in DATA_FLAGS - PLACES if name in stored}
        names = sorted(DATA_FLAGS | {"seed", DEVICES, CLASS_WEIGHTS})
        key = tuple(values[name] for name in names)
        if key not in self._digests:
            try:
                self._digests[key] = identify_data(dataclasses.replace(config, **dict(zip(names, key, strict=True))))
            except (DatasetError, ConfigError, OSError) as error:
                say(f"note     {error}; what is finished is taken to be of these data")
                self._digests[key] = {}
        return self._digests[key]
