"""What the reader of CIFAR-100 may be told. Imports nothing heavy."""

from datasets.options import declare_options, of_files_or
from tff_algos.settings.config_fields import setting

CIFAR100_FORMS = ("whole", "cropped")


@declare_options
class Cifar100Options:
    """See `datasets.cifar100`."""

    cifar100_form: str = setting(
        "whole",
        "Images of cifar100: whole, or the middle 24 x 24 pixels, each image standardised, as in TFF's baseline.",
        choices=CIFAR100_FORMS,
        needs=of_files_or("cifar100"),
    )
