"""What the reader of EMNIST may be told. Imports nothing heavy."""

from datasets.options import declare_options, of_files_or
from tff_algos.settings.config_fields import setting

EMNIST_LABELS = ("digits", "all")


@declare_options
class EmnistOptions:
    """See `datasets.emnist`."""

    emnist_labels: str = setting(
        "digits",
        "Classes of emnist: the 10 digits, or all 62.",
        choices=EMNIST_LABELS,
        needs=of_files_or("emnist"),
    )
