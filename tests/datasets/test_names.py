"""Names with control characters are refused in one line, wherever they come in; all others are taken."""

import numpy as np
import pytest
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.device_table import load_device_profiles
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.npz import load_npz_arrays

CONTROL = ["a\nb", "a\rb", "a\tb", "a\0b", "\x1b[31m", "\x7f", "\x9b", "a\u2028b", "\u2029", "\udcfc"]
ODD = [
    "",
    " ",
    "../../outside",
    "/",
    "a,b",
    "<script>",
    "=cmd()",
    "\N{GRINNING FACE}",
    "r\u200ftl",
    "x" * 300,
    "W",
    "w",
]


def make(name="toy", classes=("a", "b"), clients=None):
    x, y = np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1])
    return make_array_dataset(name, (x, y), (x, y), format_of(x, classes), clients)


@pytest.mark.parametrize("bad", CONTROL)
def test_a_name_with_a_control_character_is_refused_in_one_line(bad):
    clients = np.array(["p", "q", bad, "p"])
    for fields in ({"name": bad}, {"classes": ("a", bad)}, {"clients": clients}):
        with pytest.raises(DatasetError, match="holds the control character") as caught:
            make(**fields)
        assert len(str(caught.value).splitlines()) == 1 and str(caught.value).isprintable()
    with pytest.raises(DatasetError, match="holds the control character"):
        ExampleFormat(input_shape=(3,), input_dtype="float32", class_names=("a", bad))


def test_all_other_names_are_taken_as_they_are():
    x, y = np.zeros((len(ODD), 3), np.float32), np.arange(len(ODD)) % 2
    arrays = make_array_dataset("toy", (x, y), (x, y), format_of(x, ("<b>", "=1+1")), np.array(ODD))
    assert set(arrays.client_names) == set(ODD) and arrays.format.class_names == ("<b>", "=1+1")


def test_names_of_a_users_file_are_checked(tmp_path):
    y = np.array(["first\nline", "second"] * 10)
    np.savez(tmp_path / "d.npz", x=np.zeros((20, 3), np.float32), y=y)
    with pytest.raises(DatasetError, match=r"the class 'first\\nline' holds the control character \\n"):
        load_npz_arrays(str(tmp_path / "d.npz"))


def test_names_of_devices_are_checked(tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text("device,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s\nold\x1b[2J,1,1,1\n")
    with pytest.raises(DatasetError, match=r"line 2: the device 'old\\x1b\[2J' holds the control character"):
        load_device_profiles(str(path), 2, 0)
