"""The flags of data: beside those that readers declare as their options, what is the run's own. No TensorFlow."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from datasets.catalog import DATASET_NAMES
from datasets.dataset import CatalogOptions, DatasetOptions, OwnDataOptions
from datasets.layouts import AUTO
from datasets.unscaled_flag import NOTHING
from models.task_kinds import LOSSES
from tff_algos.settings.config_fields import Needs, needs_value, setting

NONE, FEDERATED, CLIENT = "none", "federated", "client"
BALANCED = "balanced"
STANDARDIZATIONS = (NONE, FEDERATED, CLIENT)
HUBER = "huber"


@dataclasses.dataclass(frozen=True)
class _DatasetFlags:
    """The first ones, since dataclasses take the fields of the last base first."""

    dataset: str = setting(
        "digits",
        f"Data set: {', '.join(DATASET_NAMES)}, or module:OBJECT of your own; digits and building need no download, "
        f"npz is your own file.",
    )
    data_dir: str = setting(
        lambda: os.environ.get("FL_DATA_DIR", ""),
        "Folder of the data sets' files; by default the variable FL_DATA_DIR.",
    )
    client_dir: str = setting("", "Folder of the client files; empty: a cache folder.")


@dataclasses.dataclass(frozen=True)
class DataFlags(CatalogOptions, _DatasetFlags):
    """Data sets"""


@dataclasses.dataclass(frozen=True)
class OwnDataFlags(OwnDataOptions):
    """Your own data"""

    most_test_examples: int = setting(
        100_000,
        "Most examples in the global test set of data that are read client by client, drawn by the seed; 0: all.",
        minimum=0,
    )
    standardize: str = setting(
        NONE,
        "Scales features. federated: by the mean and deviation over all clients; client: each client by its own.",
        choices=STANDARDIZATIONS,
    )
    unscaled: str = setting(
        AUTO,
        "What is not scaled. auto: categories, columns of 0 and 1, and padding, which is the value of the model's "
        "Masking layer, else 0; a number: with padding of that value; categories: no padding; nothing: all is scaled.",
        needs=Needs("standardize", lambda value: value != NONE, f"--standardize={FEDERATED} or {CLIENT}"),
        of_old_runs=NOTHING,
    )


@dataclasses.dataclass(frozen=True)
class LossFlags:
    """What training minimises"""

    loss: str = setting(
        AUTO,
        "Loss that training minimises. auto: a regression's squared errors, other tasks' cross-entropy. Or your own "
        "function (labels, outputs) -> the loss of each example, shape (batch,): labels as stored, but those of a "
        "regression standardised, outputs as the model gives them, such as logits. Tests keep the loss of auto.",
        choices=(AUTO, *LOSSES),
        or_own="module:function",
    )
    huber_delta: float = setting(
        1.0,
        "Error above which the Huber loss is linear, in standard deviations of the labels.",
        above=0,
        needs=needs_value("loss", HUBER),
    )
    class_weights: str = setting(
        NONE,
        "Weights of the classes in the loss that trains, not in tests. balanced: train examples / (classes * examples "
        'of the class), over all clients; or your file: .json of {"class": weight}, or .csv of class,weight.',
    )


def choose_options(values: Mapping[str, Any]) -> DatasetOptions:
    """What the loader is told, of flags by name; those that are no options are left out.

    Each option but `download` has a flag of its name. `--task=auto` leaves the task to the labels.
    """
    names = {field.name for field in dataclasses.fields(DatasetOptions)} & values.keys()
    return DatasetOptions(**{name: values[name] for name in names if (name, values[name]) != ("task", AUTO)})
