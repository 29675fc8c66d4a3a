"""What the reader of Stack Overflow may be told. Imports nothing heavy."""

import dataclasses

from datasets.option_needs import of_files_or
from tff_algos.settings.config_fields import setting

STACKOVERFLOW_TASKS = ("next_word", "tags")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackOverflowOptions:
    """See `datasets.stackoverflow`; beside it `TextOptions`."""

    stackoverflow_task: str = setting(
        "next_word",
        "What is predicted from stackoverflow.",
        choices=STACKOVERFLOW_TASKS,
        needs=of_files_or("stackoverflow"),
    )
