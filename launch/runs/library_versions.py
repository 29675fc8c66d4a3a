"""The versions of installed libraries, by the names of their distributions. Imports none of them."""

import importlib.metadata

TENSORFLOW = "tensorflow"
# Who brings the package of that name: in this order, since the one for GPUs is laid over the one for the CPU alone.
BRINGING_TENSORFLOW = (TENSORFLOW, "tensorflow-cpu")


def name_library(distribution: str) -> str:
    """The name of a library whichever distribution brings it: `tensorflow-cpu` is "tensorflow"."""
    return TENSORFLOW if distribution in BRINGING_TENSORFLOW else distribution


def find_version(distribution: str) -> str | None:
    """The installed version of a distribution, of TensorFlow by any of its distributions; None if it is not there."""
    names = BRINGING_TENSORFLOW if distribution in BRINGING_TENSORFLOW else (distribution,)
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
