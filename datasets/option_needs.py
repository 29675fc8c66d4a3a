"""What options of several readers need to do anything. Imports nothing heavy, as no module that declares options does.

An option is a field made by `setting` in a class beside its reader. `datasets.dataset.DatasetOptions` inherits from all
these classes, and so do the flags of a run.
"""

from tff_algos.settings.config_fields import Needs, is_own

FILES, NPZ = "files", "npz"  # the data sets of a user's file or folder
OF_FILES = Needs("data", bool, "--data=<your file or folder>")


def of_files_or(dataset: str) -> Needs:
    """For what concerns a data set that may also come as a file of one's own."""
    return Needs("dataset", lambda name: name in (FILES, dataset), f"--dataset={dataset}")


def is_users_own(dataset: str) -> bool:
    """Whether the data are a user's: a file of theirs, or what a loader of theirs gives."""
    return dataset in (FILES, NPZ) or is_own(dataset)
