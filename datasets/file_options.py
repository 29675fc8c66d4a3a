"""Where a user's own file lies and what it is. Imports nothing heavy."""

import pathlib

from datasets.options import OF_FILES, declare_options
from tff_algos.settings.config_fields import setting

AUTO = "auto"
# The spellings of `--data_format`. They are the names of the modules, so that listing them imports none.
FORMAT_NAMES = tuple(
    sorted(path.stem for path in pathlib.Path(__file__).with_name("formats").glob("*.py") if path.stem != "__init__")
)


@declare_options
class FileOptions:
    """See `datasets.file_formats`."""

    data: str = setting(
        "", "Your own file or folder: CSV, LEAF, TFF's SQLite, parquet, npz, images; see docs/data_sets.md."
    )
    data_format: str = setting(
        AUTO, "Format of --data; auto: by looking.", choices=(AUTO, *FORMAT_NAMES), needs=OF_FILES
    )
