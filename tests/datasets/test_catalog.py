import subprocess
import sys

import numpy as np
import pytest

from datasets import catalog
from datasets.arrays import HAR_FORMATS, DatasetError


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_names_cost_nothing_to_import():
    code = "import sys; from datasets.catalog import DATASET_NAMES; print({'numpy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_the_feature_names_are_those_of_the_loader():
    assert tuple(HAR_FORMATS) == catalog.HAR_FEATURES


def test_loads_digits_and_a_users_file(tmp_path):
    assert catalog.load_arrays("digits").name == "digits"
    np.savez(tmp_path / "mine.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    assert catalog.load_arrays("npz", npz_path=str(tmp_path / "mine.npz")).name == "npz"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "imagenet"}, "expected one of digits, mnist, har, npz"),
        ({"name": "npz"}, r"--npz \("),
        ({"name": "mnist", "download": False}, "not found"),
        ({"name": "har", "download": False, "har_features": "raw"}, "har_features=raw"),
    ],
)
def test_wrong_requests(arguments, message):
    with pytest.raises(DatasetError, match=message):
        catalog.load_arrays(**arguments)


def test_locate_says_what_is_where(tmp_path):
    assert catalog.locate("digits").found and catalog.locate("npz").found
    for name, wanted in (("mnist", "train-images-idx3-ubyte.gz"), ("har", "har.npz")):
        location = catalog.locate(name, str(tmp_path))
        assert not location.found and wanted in location.description and str(tmp_path / name) in location.description
    (tmp_path / "har.npz").touch()
    (tmp_path / "mnist.npz").touch()
    assert "har_inertial.npz beside it" in catalog.locate("har", str(tmp_path)).description
    assert catalog.locate("mnist", str(tmp_path)).description == f"{tmp_path} (mnist.npz)"
    with pytest.raises(DatasetError, match="imagenet"):
        catalog.locate("imagenet")
