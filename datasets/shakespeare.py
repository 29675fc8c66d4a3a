"""Shakespeare's plays by speaking role: text of natural clients, of which the next character is predicted.

Source: the file that TFF publishes, which LEAF (Caldas et al., LEAF: A Benchmark for Federated Settings, 2018) cut from
The Complete Works of William Shakespeare: 715 roles, 16,068 speeches to train on and 2,356 to test on. Any file of
TFF's form with snippets of text, in its place, is read alike. LEAF's own JSON has, of the same text, 80 characters and
the one after them an example: there only that one is predicted.
"""

import os

from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles, RemoteFile, look_for
from datasets.formats.leaf import CHARACTERS, find_leaf_files, open_leaf
from datasets.formats.tff import open_tff

REMOTE_FILE = RemoteFile(
    "shakespeare.sqlite.lzma", ("https://storage.googleapis.com/tff-datasets-public/shakespeare.sqlite.lzma",)
)


def _look(folder: str) -> str | None:
    """TFF's file, or the folder `shakespeare` with LEAF's."""
    # Any data set of LEAF's has such files, so that the folder must have the name.
    is_leaf = os.path.basename(folder) == "shakespeare" and find_leaf_files(folder)
    return look_for("shakespeare.sqlite", REMOTE_FILE.name)(folder) or (folder if is_leaf else None)


FILES = KnownFiles("shakespeare", _look, (REMOTE_FILE,))


def load_shakespeare(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a role, an example 80 characters (`--sequence_length`) and those after each.

    Raises:
      DatasetError: the file is missing and cannot be downloaded, or is damaged or of another form.
    """
    path = FILES.find_or_fetch(options)
    if os.path.isdir(path):
        return open_leaf(path, options, "shakespeare", schema=CHARACTERS)
    return open_tff(path, options, "shakespeare", schema="shakespeare")
