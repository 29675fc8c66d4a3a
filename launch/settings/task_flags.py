"""The flags of the task and of how own models take their examples, as `RunConfig` declares them. No TensorFlow."""

from datasets.catalog import is_users_own
from datasets.layouts import AUTO
from models.model_names import is_own_model
from models.task_kinds import LOSSES, TASK_NAMES
from tff_algos.settings.config_fields import Needs, needs_value, setting

HUBER = "huber"
OF_OWN_DATA = Needs("dataset", is_users_own, "--data=<your file>")

TASK = setting(
    AUTO,
    "What the labels of your own data are; auto: as they say themselves, or guessed from their form.",
    choices=(AUTO, *TASK_NAMES),
    needs=OF_OWN_DATA,
    of_old_runs="classification",
)
LOSS = setting(
    AUTO,
    "Loss that a regression trains by; auto: squared errors, or the only loss of other tasks.",
    choices=(AUTO, *LOSSES),
    needs=OF_OWN_DATA,
    of_old_runs=AUTO,
)
HUBER_DELTA = setting(
    1.0,
    "Where the Huber loss turns from squares to lines, in deviations of the labels.",
    above=0,
    needs=needs_value("loss", HUBER),
)
CHANNEL_AXIS = setting(
    False,
    "Give your own model features as (features, 1), as runs of earlier versions did, not as (features,).",
    needs=Needs("model", is_own_model, "--model=module:function"),
    of_old_runs=True,
)
TARGET_METRIC = setting(
    0.0,
    "Stop where the task's main metric is as good as this on the test set; 0 means never.",
    minimum=0,
)
