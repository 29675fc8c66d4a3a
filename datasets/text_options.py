"""How text becomes tokens, whatever the format. Imports nothing heavy."""

from datasets.options import FILES, declare_options, of_files_or
from tff_algos.settings.config_fields import Needs, setting

TEXT_DATASETS = (FILES, "shakespeare", "stackoverflow")


@declare_options
class TextOptions:
    """Each format of text has a protocol of its own, which 0 stands for."""

    sequence_length: int = setting(
        0,
        "Tokens in an example of text; 0: as the data set's protocol says.",
        minimum=0,
        needs=Needs("dataset", lambda name: name in TEXT_DATASETS, "--data=<your file>, or --dataset=shakespeare"),
    )
    vocabulary_size: int = setting(
        0,
        "Words that a model of text knows; 0: as the data set's protocol says.",
        minimum=0,
        needs=of_files_or("stackoverflow"),
    )
