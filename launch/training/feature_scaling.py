"""The scaling of features by means and deviations over the clients: computed once, when a run begins, and kept."""

import dataclasses
import json
from typing import TYPE_CHECKING

from datasets.federated_data import FederatedData
from launch.progress import say
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import FEATURE_DEVIATIONS, FEATURE_MEANS, read_data_section
from launch.settings.data_flags import FEDERATED, NONE
from launch.settings.run_config import RunConfig
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    from models.model_spec import ModelSpec


def check_can_be_scaled(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if tokens are to be scaled, which are numbers of words."""
    if config.standardize != NONE and data.format.takes_tokens:
        raise ConfigError("standardize", config.standardize, f"{NONE} for tokens, which a model looks up")


def scale_features(
    config: RunConfig, folder: RunFolder, data: FederatedData, spec: "ModelSpec"
) -> tuple[FederatedData, "ModelSpec"]:
    """(data, spec) with the means and deviations, if they are asked for; needs the run's runtime.

    A run that goes on has those that it began with: sums of floats depend on the runtime that adds them up.

    Raises:
      RunFolderError: the run's `config.json` is damaged.
    """
    if config.standardize != FEDERATED:
        return data, spec
    from models.standardization import Standardization  # TensorFlow is loaded by now

    data = _read_stored(folder, data) or _compute(config, data, spec)
    return data, spec.with_standardization(Standardization(data.feature_means, data.feature_deviations))


def _read_stored(folder: RunFolder, data: FederatedData) -> FederatedData | None:
    if folder.is_new or not folder.config.exists():
        return None
    stored = json.loads(folder.config.read_text(encoding="utf-8"))["data"]
    read_data_section(stored, folder.config)
    if not stored.get(FEATURE_MEANS):
        return None
    means, deviations = tuple(stored[FEATURE_MEANS]), tuple(stored[FEATURE_DEVIATIONS])
    return dataclasses.replace(data, feature_means=means, feature_deviations=deviations)


def _compute(config: RunConfig, data: FederatedData, spec: "ModelSpec") -> FederatedData:
    from tff_algos.rounds.feature_statistics import compute_feature_statistics

    found = compute_feature_statistics(spec, data, config.seed)
    asked = f"{found.num_clients:,} of {len(data.clients):,}" if found.num_clients < len(data.clients) else "all"
    say(f"scaling  {len(found.means):,} means and deviations, federated sums over {asked} clients, in the model")
    means, deviations = (tuple(each.tolist()) for each in (found.means, found.deviations))
    return dataclasses.replace(data, feature_means=means, feature_deviations=deviations)
