"""UCI HAR's containers with a few rows instead of all, and the real files where they lie."""

import dataclasses
import os
import zipfile

import numpy as np
import pytest
from refusals import assert_refused

from datasets import har
from datasets.dataset import DatasetOptions
from datasets.federate import build_federated_data
from datasets.federated_data import SPLITS
from datasets.partition_settings import PartitionSettings

ROWS = {"train": 24, "test": 6}


def make_arrays():
    rng = np.random.default_rng(0)
    arrays = {}
    for part, num_rows in ROWS.items():
        arrays[f"x_{part}"] = rng.uniform(-1, 1, (num_rows, 561)).astype(np.float32)
        arrays[f"windows_{part}"] = rng.normal(0, 3, (num_rows, 128, 9)).astype(np.float32)
        arrays[f"y_{part}"] = (np.arange(num_rows) % 6 + 1).astype(np.uint8)
        subjects = har.TRAIN_SUBJECTS if part == "train" else (2, 4)
        arrays[f"subject_{part}"] = np.resize(subjects, num_rows).astype(np.uint8)
    return arrays


@pytest.fixture
def arrays(monkeypatch, tmp_path):
    monkeypatch.setattr(har, "CLASS_COUNTS", {"train": (4,) * 6, "test": (1,) * 6})
    return make_arrays()


def write_npz(folder, arrays):
    of_statistics = {key: value for key, value in arrays.items() if key.startswith(("x_", "y_", "subject_"))}
    np.savez(folder / "har.npz", **of_statistics)
    windows = {f"x_{part}": arrays[f"windows_{part}"] for part in ROWS}
    np.savez(folder / "har_inertial.npz", channels=np.array(har.CHANNELS), **windows)
    if "names" in arrays:
        (folder / "features.txt").write_text(arrays["names"])


def write_texts(folder, arrays):
    for part in ROWS:
        signals = folder / har.FOLDER_NAME / part / "Inertial Signals"
        signals.mkdir(parents=True)
        np.savetxt(signals.parent / f"X_{part}.txt", arrays[f"x_{part}"], fmt="%16.9e")
        for kind in ("y", "subject"):
            np.savetxt(signals.parent / f"{kind}_{part}.txt", arrays[f"{kind}_{part}"], fmt="%d")
        for index, channel in enumerate(har.CHANNELS):
            np.savetxt(signals / f"{channel}_{part}.txt", arrays[f"windows_{part}"][..., index], fmt="%16.9e")
    if "names" in arrays:
        (folder / har.FOLDER_NAME / "features.txt").write_text(arrays["names"])


def write_zip(folder, arrays):
    write_texts(folder / "unpacked", arrays)
    with zipfile.ZipFile(folder / har.ZIP_FILES[0], "w") as archive:
        for path in (folder / "unpacked").rglob("*.txt"):
            archive.write(path, path.relative_to(folder / "unpacked"))


def write_nested_zip(folder, arrays):
    """A zip in a zip, as the host serves it."""
    write_zip(folder, arrays)
    with zipfile.ZipFile(folder / har.REMOTE_FILE.name, "w") as archive:
        archive.write(folder / har.ZIP_FILES[0], har.ZIP_FILES[0])
        archive.writestr("UCI HAR Dataset.names", "")
    (folder / har.ZIP_FILES[0]).unlink()


WRITERS = {"npz": write_npz, "folder": write_texts, "zip": write_zip, "nested": write_nested_zip}


def load(folder, features="statistics", **options):
    return har.load_har(DatasetOptions(str(folder), har_features=features, download=False, **options))


@pytest.mark.parametrize("container", WRITERS)
def test_every_container_gives_the_same_examples(tmp_path, arrays, container):
    (tmp_path / "har").mkdir()
    WRITERS[container](tmp_path / "har", arrays)
    statistics, windows = load(tmp_path), load(tmp_path, "inertial")
    np.testing.assert_array_equal(statistics.train_x[..., 0], arrays["x_train"])
    np.testing.assert_array_equal(windows.test_x, arrays["windows_test"])
    np.testing.assert_array_equal(windows.train_y, arrays["y_train"].astype(int) - 1)
    assert windows.train_x.shape == (24, 128, 9) and statistics.test_x.shape == (6, 561, 1)
    ranges = [each.format.preprocessing.feature_range for each in (statistics, windows)]
    assert ranges == [(-1.0, 1.0), None] and len(windows.client_names) == 21
    names = [windows.client_names[client] for client in windows.train_clients]
    assert names == [f"subject_{subject:02}" for subject in arrays["subject_train"]]


# As the official file is: 561 lines, of which some names repeat.
OFFICIAL = ["tBodyAcc-mean()-X", *(f"f{n}" for n in range(2, 560)), "bandsEnergy()-1,8", "bandsEnergy()-1,8"]


NAMES = "".join(f"{number} {name}\n" for number, name in enumerate(OFFICIAL, 1))


@pytest.mark.parametrize("container", WRITERS)
def test_the_statistics_have_the_names_of_the_official_file(tmp_path, arrays, container):
    """In every container, each name once; the digest, by which client files and runs know the data, stays."""
    before, after = (tmp_path / name for name in ("before", "after"))
    for folder in (before, after):
        folder.mkdir()
        WRITERS[container](folder, arrays | ({"names": NAMES} if folder == after else {}))
    named, unnamed = load(after), load(before)
    assert unnamed.format.feature_names == () and unnamed.notes == (har.OVERLAP_NOTE,)
    names = named.format.feature_names
    assert names[:2] == ("tBodyAcc-mean()-X", "f2") and len(set(names)) == len(names) == 561
    assert names[-2:] == ("bandsEnergy()-1,8 (560)", "bandsEnergy()-1,8 (561)")
    assert named.source_digest == unnamed.source_digest and named.notes == (har.OVERLAP_NOTE,)
    assert load(after, "inertial").format.feature_names == har.CHANNELS


def test_names_beside_the_arrays_may_be_in_the_official_folder(tmp_path, arrays):
    """Windows' editors put a mark before the first line; a folder of the file's name is none."""
    write_npz(tmp_path, arrays)
    (tmp_path / "features.txt").mkdir()
    (tmp_path / har.FOLDER_NAME).mkdir()
    (tmp_path / har.FOLDER_NAME / "features.txt").write_text(NAMES, encoding="utf-8-sig", newline="\r\n")
    loaded = load(tmp_path)
    assert loaded.format.feature_names[:2] == ("tBodyAcc-mean()-X", "f2") and loaded.notes == (har.OVERLAP_NOTE,)


@pytest.mark.parametrize("text", ["", "1 a\n2 b\n", "\n".join(OFFICIAL), "my notes", "\xff\xfe"])
def test_another_file_of_that_name_is_noted_and_gives_no_names(tmp_path, arrays, text):
    write_npz(tmp_path, arrays)
    (tmp_path / "features.txt").write_bytes(text.encode("latin-1"))
    loaded = load(tmp_path)
    note, _ = loaded.notes
    assert loaded.format.feature_names == ()
    assert "features.txt" in note and "561 features, which so have no names; put the official one there" in note


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("x_train", lambda x: x[:-1], "x_train has 23 rows, expected 24"),
        ("y_test", lambda y: y[:-1], "y_test has 5 rows, expected 6"),
        ("x_test", lambda x: x[:, :-1], r"expected float32 with \(561, 1\)"),
        ("y_train", lambda y: np.ones_like(y), "class counts"),
        ("x_train", lambda x: x * 2, "within"),
        ("subject_train", lambda s: s * 0 + 1, "subjects"),
    ],
)
def test_what_is_not_uci_har_is_named(tmp_path, arrays, key, change, message):
    arrays[key] = change(arrays[key])
    write_npz(tmp_path, arrays)
    assert_refused(rf"har\.npz: .*{message}", load, tmp_path)


def test_damaged_files_are_named(tmp_path, arrays):
    write_zip(tmp_path, arrays)
    path = tmp_path / har.ZIP_FILES[0]
    path.write_bytes(path.read_bytes()[:-100])
    assert_refused(r"UCI HAR Dataset\.zip: damaged or truncated", load, tmp_path)
    path = tmp_path / "unpacked" / har.FOLDER_NAME / "train" / "X_train.txt"
    path.write_bytes(path.read_bytes()[:-40])
    assert_refused(r"train/X_train\.txt is damaged or truncated", load, tmp_path / "unpacked")
    path.unlink()
    assert_refused(r"train/X_train\.txt is missing", load, tmp_path / "unpacked")


def test_nothing_found_names_the_folder_or_downloads(tmp_path, arrays, monkeypatch):
    assert_refused(rf"put har\.npz or 'UCI HAR Dataset\.zip' into {tmp_path}", load, tmp_path)
    (tmp_path / "server").mkdir()
    write_nested_zip(tmp_path / "server", arrays)
    monkeypatch.setattr("datasets.download.fetch_file", lambda remote, folder: str(tmp_path / "server" / remote.name))
    assert len(har.load_har(DatasetOptions(str(tmp_path / "data"))).train_x) == 24


def test_a_bout_is_a_run_of_one_person_and_activity():
    subjects, activities = np.array([1, 1, 1, 1, 3, 3, 1], np.uint8), np.array([5, 5, 4, 5, 5, 5, 5], np.uint8)
    assert har.find_bouts(subjects, activities).tolist() == [0, 0, 1, 2, 3, 3, 4]


def test_bouts_are_other_data_of_the_same_examples_and_say_so(tmp_path, arrays):
    """A run that does not ask for them has the digest that it had, by which its files and its resume go."""
    write_npz(tmp_path, arrays)
    windows, asked, bouts = load(tmp_path), load(tmp_path, har_split="windows"), load(tmp_path, har_split="bouts")
    np.testing.assert_array_equal(windows.train_x, bouts.train_x)
    np.testing.assert_array_equal(windows.test_x, bouts.test_x)
    # As computed before there were bouts.
    assert windows.source_digest == asked.source_digest != bouts.source_digest
    assert windows.source_digest == "4dce19fad2728c868797c802b2bb430e19e4951772968506d4b55203a964edae"
    assert windows.blocks is None and "--har_split=bouts" in windows.notes[0]
    assert bouts.notes == () and bouts.reading == (
        "561 features or steps of 1 channel, as they are; 24 bouts, of which whole ones are held out"
    )


REAL = pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")


def count_shared(arrays, folder, validation, test):
    """How many half windows a person has on two sides. Of consecutive windows the second half of one is the first of
    the next, bit by bit: 64 steps of 9 channels."""
    settings = PartitionSettings(partition="natural", validation_fraction=validation, test_fraction=test)
    data = build_federated_data(arrays, settings, str(folder))
    assert len(data.test_y) == 2947 and sum(client.num_test for client in data.clients) > 500
    number = 0
    for client in data.clients:
        train, validated, tested = (
            {half.tobytes() for window in data.read_split(client, split)[0] for half in (window[:64], window[64:])}
            for split in SPLITS
        )
        number += len(train & validated) + len(train & tested) + len(validated & tested)
    return number


@REAL
def test_no_sample_of_a_real_person_stands_on_two_sides_of_bouts(tmp_path):
    bouts = load(os.environ["FL_DATA_DIR"], "inertial", har_split="bouts")
    for shares in ((1 / 12, 1 / 12), (0.15, 0.25), (0, 0.25)):
        assert count_shared(bouts, tmp_path, *shares) == 0
    # Without blocks, windows are drawn one by one.
    assert count_shared(dataclasses.replace(bouts, blocks=None), tmp_path / "windows", 0.15, 0.25) > 1000


@REAL
@pytest.mark.parametrize(("features", "shape"), [("statistics", (561, 1)), ("inertial", (128, 9))])
def test_the_real_files(features, shape):
    loaded = load(os.environ["FL_DATA_DIR"], features)
    assert loaded.train_x.shape == (7352, *shape) and loaded.test_x.shape == (2947, *shape)
    assert np.bincount(loaded.train_y).tolist() == [1226, 1073, 986, 1286, 1374, 1407]
