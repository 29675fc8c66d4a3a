"""What readers declare their options with. Neither it nor a module of options imports anything heavy, for `--help`.

A class of options stands beside its reader; its fields are made by `setting`. `datasets.dataset.DatasetOptions`
inherits from all these classes, and so do the flags of a run.
"""

import dataclasses
import functools

from tff_algos.settings.config_fields import Needs, is_own

FILES, NPZ = "files", "npz"  # the data sets of a user's file or folder
OF_FILES = Needs("data", bool, "--data=<your file or folder>")
# Of a class that is inherited from and never made: methods of its own would take `--help` a millisecond each.
declare_options = functools.partial(dataclasses.dataclass, frozen=True, kw_only=True, init=False, repr=False, eq=False)


def of_files_or(dataset: str) -> Needs:
    """For what concerns a data set that may also come as a file of one's own."""
    return Needs("dataset", lambda name: name in (FILES, dataset), f"--dataset={dataset}")


def is_users_own(dataset: str) -> bool:
    """Whether the data are a user's: a file of theirs, or what a loader of theirs gives."""
    return dataset in (FILES, NPZ) or is_own(dataset)
