"""What the reader of UCI HAR may be told. Imports nothing heavy."""

from datasets.options import declare_options
from tff_algos.settings.config_fields import needs_value, setting

HAR_FEATURES = ("statistics", "inertial")


@declare_options
class HarOptions:
    """See `datasets.har`."""

    har_features: str = setting(
        "statistics",
        "Input of har: the 561 statistics, or the windows of shape (128, 9).",
        choices=HAR_FEATURES,
        needs=needs_value("dataset", "har"),
    )
