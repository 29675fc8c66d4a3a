"""What the reader of EMNIST may be told. Imports nothing heavy."""

import dataclasses

from datasets.option_needs import of_files_or
from tff_algos.settings.config_fields import setting

EMNIST_LABELS = ("digits", "all")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmnistOptions:
    """See `datasets.emnist`."""

    emnist_labels: str = setting(
        "digits",
        "Classes of emnist: the 10 digits, or all 62.",
        choices=EMNIST_LABELS,
        needs=of_files_or("emnist"),
    )
