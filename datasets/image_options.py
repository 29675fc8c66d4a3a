"""How images of files are read, whatever the format. Imports nothing heavy."""

from datasets.options import declare_options, of_files_or
from tff_algos.settings.config_fields import setting

IMAGE_COLOURS = ("auto", "grey", "colour")


@declare_options
class ImageOptions:
    """See `datasets.image_pixels`."""

    image_size: int = setting(
        0,
        "Side in pixels that images of files are resized to; 0: as they are, 84 for celeba.",
        minimum=0,
        maximum=4096,
        needs=of_files_or("celeba"),
    )
    image_colour: str = setting(
        "auto",
        "Whether images of files are read in grey or in colour.",
        choices=IMAGE_COLOURS,
        needs=of_files_or("celeba"),
    )
