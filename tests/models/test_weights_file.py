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


def make_a_circle(file):
    file["layers/dense/again"] = file["layers"]


def declare_much(file):
    file.create_dataset("layers/dense/vars/1", (2**40,), "f4", chunks=(1024,))


def test_a_file_with_its_own_numbers_is_fine(tmp_path):
    check_weights(write(tmp_path / "model.keras", lambda file: file.create_dataset("step", data=np.int64(3))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (link_outside, r"its /layers/\S+ is a link to elsewhere"),
        (link_inside, r"its /layers/\S+ is a link to elsewhere"),
        (link_a_group, r"its /layers/\S+ is a link to elsewhere"),
        (store_elsewhere, "its /layers/dense/vars/1 takes its numbers from other"),
        (put_together, "its /layers/dense/vars/1 takes its numbers from other"),
        (make_a_circle, "twice"),
        (declare_much, r"declared as \(1099511627776,\), more than the file holds"),  # before memory is taken for it
    ],
)
def test_what_is_not_its_own_is_refused(tmp_path, change, message):
    with pytest.raises(ForeignDataError, match=message):
        check_weights(write(tmp_path / "model.keras", change))
