"""Shakespeare's plays by speaking role: text of natural clients, of which the next character is predicted.

Source: the file that TFF publishes, which LEAF (Caldas et al., LEAF: A Benchmark for Federated Settings, 2018) cut from
The Complete Works of William Shakespeare: 715 roles, 16,068 speeches to train on and 2,356 to test on. Any file of
TFF's form with snippets of text, in its place, is read alike. LEAF's own JSON has, of the same text, 80 characters and
the one after them an example: there only that one is predicted.
"""

import os

from datasets.client_source import ClientSource
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import RemoteFile, fetch_missing, locate_downloaded, search_dirs
from datasets.formats.leaf import CHARACTERS, find_leaf_files, open_leaf
from datasets.formats.tff import open_tff

REMOTE_FILE = RemoteFile(
    "shakespeare.sqlite.lzma", ("https://storage.googleapis.com/tff-datasets-public/shakespeare.sqlite.lzma",)
)
FILES = ("shakespeare.sqlite", REMOTE_FILE.name)


def load_shakespeare(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a role, an example 80 characters (`--sequence_length`) and those after each.

    Raises:
      DatasetError: the file is missing and cannot be downloaded, or is damaged or of another form.
    """
    path = find_shakespeare(options.data_dir)
    if path is None:
        path = fetch_missing(REMOTE_FILE, "shakespeare", options)
    if os.path.isdir(path):
        return open_leaf(path, options, "shakespeare", form=CHARACTERS)
    return open_tff(path, options, "shakespeare", form="shakespeare")


def locate_shakespeare(data_dir: str | None) -> DatasetLocation:
    """Where the file lies, for the doctor."""
    return locate_downloaded(find_shakespeare(data_dir), "shakespeare", REMOTE_FILE.name, data_dir)


def find_shakespeare(data_dir: str | None) -> str | None:
    """Path of TFF's file, or of a folder `shakespeare` with LEAF's, whichever is found first; None if there is none."""
    for folder in search_dirs(data_dir, "shakespeare"):
        path = next(filter(os.path.isfile, (os.path.join(folder, name) for name in FILES)), None)
        if path is None and os.path.basename(folder) == "shakespeare" and find_leaf_files(folder):
            path = folder
        if path is not None:
            return path
    return None
