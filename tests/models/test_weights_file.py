"""A weights file may hold nothing but its own numbers."""

import io
import zipfile

import h5py
import numpy as np
import pytest

from models.saved_models import ForeignDataError, check_weights


def write(path, change):
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file.create_dataset("layers/dense/vars/0", data=np.zeros((2, 3), np.float32))
        change(file)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.weights.h5", content.getvalue())
    return path


def link_outside(file):
    file["layers/dense/vars/1"] = h5py.ExternalLink("/etc/passwd", "/")


def link_inside(file):
    file["layers/dense/vars/1"] = h5py.SoftLink("/layers/dense/vars/0")


def link_a_group(file):
    file["layers/dense_1"] = h5py.ExternalLink("other.h5", "/layers")


def store_elsewhere(file):
    file.create_dataset("layers/dense/vars/1", (4,), "f4", external=[("/etc/passwd", 0, 16)])


def put_together(file):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("/tmp/other.h5", "x", (4,))
    file.create_virtual_dataset("layers/dense/vars/1", layout)


def test_a_file_with_its_own_numbers_is_fine(tmp_path):
    check_weights(write(tmp_path / "model.keras", lambda file: file.create_dataset("step", data=np.int64(3))))


@pytest.mark.parametrize("change", [link_outside, link_inside, link_a_group])
def test_links_are_refused(tmp_path, change):
    with pytest.raises(ForeignDataError, match=r"its /layers/\S+ is a link to elsewhere"):
        check_weights(write(tmp_path / "model.keras", change))


@pytest.mark.parametrize("change", [store_elsewhere, put_together])
def test_numbers_of_other_files_are_refused(tmp_path, change):
    with pytest.raises(ForeignDataError, match="its /layers/dense/vars/1 takes its numbers from other"):
        check_weights(write(tmp_path / "model.keras", change))


def test_a_link_that_makes_a_circle_ends(tmp_path):
    def change(file):
        file["layers/dense/again"] = file["layers"]

    with pytest.raises(ForeignDataError, match="twice"):
        check_weights(write(tmp_path / "model.keras", change))


def test_a_giant_array_without_numbers_is_refused_before_it_is_read(tmp_path):
    def change(file):
        file.create_dataset("layers/dense/vars/1", (2**40,), "f4", chunks=(1024,))

    with pytest.raises(ForeignDataError, match=r"declared as \(1099511627776,\), more than the file holds"):
        check_weights(write(tmp_path / "model.keras", change))
