"""What the reader of Stack Overflow may be told. Imports nothing heavy."""

from datasets.options import declare_options, of_files_or
from tff_algos.settings.config_fields import setting

STACKOVERFLOW_TASKS = ("next_word", "tags")


@declare_options
class StackOverflowOptions:
    """See `datasets.stackoverflow`; beside it `TextOptions`."""

    stackoverflow_task: str = setting(
        "next_word",
        "What is predicted from stackoverflow.",
        choices=STACKOVERFLOW_TASKS,
        needs=of_files_or("stackoverflow"),
    )
