"""UCI HAR's containers with a few rows instead of all, and the real files where they lie."""

import io
import os
import zipfile

import numpy as np
import pytest
from refusals import assert_refused

from datasets import har
from datasets.dataset import DatasetOptions

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
    np.savez(folder / "har.npz", **{key: value for key, value in arrays.items() if not key.startswith("windows")})
    windows = {f"x_{part}": arrays[f"windows_{part}"] for part in ROWS}
    np.savez(folder / "har_inertial.npz", channels=np.array(har.CHANNELS), **windows)


def write_texts(folder, arrays):
    for part in ROWS:
        signals = folder / har.FOLDER_NAME / part / "Inertial Signals"
        signals.mkdir(parents=True)
        np.savetxt(signals.parent / f"X_{part}.txt", arrays[f"x_{part}"], fmt="%16.9e")
        for kind in ("y", "subject"):
            np.savetxt(signals.parent / f"{kind}_{part}.txt", arrays[f"{kind}_{part}"], fmt="%d")
        for index, channel in enumerate(har.CHANNELS):
            np.savetxt(signals / f"{channel}_{part}.txt", arrays[f"windows_{part}"][..., index], fmt="%16.9e")


def write_zip(folder, arrays, nested):
    write_texts(folder / "unpacked", arrays)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in (folder / "unpacked").rglob("*.txt"):
            archive.write(path, path.relative_to(folder / "unpacked"))
    if not nested:
        (folder / "UCI HAR Dataset.zip").write_bytes(content.getvalue())
        return
    with zipfile.ZipFile(folder / har.REMOTE_FILE.name, "w") as archive:
        archive.writestr("UCI HAR Dataset.zip", content.getvalue())
        archive.writestr("UCI HAR Dataset.names", "")


WRITERS = {
    "npz": write_npz,
    "folder": write_texts,
    "zip": lambda folder, arrays: write_zip(folder, arrays, nested=False),
    "nested": lambda folder, arrays: write_zip(folder, arrays, nested=True),
}


@pytest.mark.parametrize("container", WRITERS)
def test_every_container_gives_the_same_examples(tmp_path, arrays, container):
    (tmp_path / "har").mkdir()
    WRITERS[container](tmp_path / "har", arrays)
    statistics = har.load_har(DatasetOptions(str(tmp_path), har_features="statistics", download=False))
    windows = har.load_har(DatasetOptions(str(tmp_path), har_features="inertial", download=False))
    np.testing.assert_array_equal(statistics.train_x[..., 0], arrays["x_train"])
    np.testing.assert_array_equal(windows.test_x, arrays["windows_test"])
    np.testing.assert_array_equal(windows.train_y, arrays["y_train"].astype(int) - 1)
    assert windows.train_x.shape == (24, 128, 9) and statistics.test_x.shape == (6, 561, 1)


# As the official file is: 561 lines, of which some names repeat.
OFFICIAL = ["tBodyAcc-mean()-X", *(f"f{n}" for n in range(2, 560)), "bandsEnergy()-1,8", "bandsEnergy()-1,8"]


@pytest.mark.parametrize("container", WRITERS)
def test_the_statistics_have_the_names_of_the_official_file(tmp_path, arrays, container):
    """In every container, each name once; the digest, by which client files and runs know the data, stays."""
    (tmp_path / "har").mkdir()
    options = DatasetOptions(str(tmp_path), download=False)
    WRITERS[container](tmp_path / "har", arrays)
    before = har.load_har(options)
    assert before.format.feature_names == () and not before.notes
    text = "".join(f"{place} {name}\n" for place, name in enumerate(OFFICIAL, 1))
    put_names(tmp_path / "har", container, text)
    named = har.load_har(options)
    names = named.format.feature_names
    assert names[:2] == ("tBodyAcc-mean()-X", "f2") and len(set(names)) == len(names) == 561
    assert names[-2:] == ("bandsEnergy()-1,8 (560)", "bandsEnergy()-1,8 (561)")
    assert named.source_digest == before.source_digest and not named.notes
    windows = har.load_har(DatasetOptions(str(tmp_path), har_features="inertial", download=False))
    assert windows.format.feature_names == har.CHANNELS


def test_names_beside_the_arrays_may_be_in_the_official_folder(tmp_path, arrays):
    """Windows' editors put a mark before the first line; a folder of the file's name is none."""
    write_npz(tmp_path, arrays)
    (tmp_path / "features.txt").mkdir()
    (tmp_path / har.FOLDER_NAME).mkdir()
    text = "".join(f"{place} {name}\r\n" for place, name in enumerate(OFFICIAL, 1))
    (tmp_path / har.FOLDER_NAME / "features.txt").write_text(text, encoding="utf-8-sig", newline="")
    loaded = har.load_har(DatasetOptions(str(tmp_path), download=False))
    assert loaded.format.feature_names[:2] == ("tBodyAcc-mean()-X", "f2") and not loaded.notes


def put_names(folder, container, text):
    """Puts `features.txt` where the container has it."""
    if container == "npz":
        (folder / "har.npz").with_name("features.txt").write_text(text)
    elif container == "folder":
        (folder / har.FOLDER_NAME / "features.txt").write_text(text)
    else:
        outer = next(folder.glob("*.zip"))
        inner = outer
        if container == "nested":
            with zipfile.ZipFile(outer) as archive:
                archive.extract("UCI HAR Dataset.zip", folder / "inner")
            inner = folder / "inner" / "UCI HAR Dataset.zip"
        with zipfile.ZipFile(inner, "a") as archive:
            archive.writestr(f"{har.FOLDER_NAME}/features.txt", text)
        if container == "nested":
            with zipfile.ZipFile(outer, "w") as archive:
                archive.write(inner, "UCI HAR Dataset.zip")


@pytest.mark.parametrize("text", ["", "1 a\n2 b\n", "\n".join(OFFICIAL), "my notes", "\xff\xfe"])
def test_another_file_of_that_name_is_noted_and_gives_no_names(tmp_path, arrays, text):
    write_npz(tmp_path, arrays)
    (tmp_path / "features.txt").write_bytes(text.encode("latin-1"))
    loaded = har.load_har(DatasetOptions(str(tmp_path), download=False))
    assert loaded.format.feature_names == ()
    [note] = loaded.notes
    assert "features.txt" in note and "561 features, which so have no names; put the official one there" in note


def test_clients_are_the_train_subjects(tmp_path, arrays):
    write_npz(tmp_path, arrays)
    loaded = har.load_har(DatasetOptions(str(tmp_path), download=False))
    assert loaded.client_names[:3] == ("subject_01", "subject_03", "subject_05") and len(loaded.client_names) == 21
    names = [loaded.client_names[client] for client in loaded.train_clients]
    assert names == [f"subject_{subject:02}" for subject in arrays["subject_train"]]


def test_feature_range_is_known_for_the_statistics_only(tmp_path, arrays):
    write_npz(tmp_path, arrays)
    ranges = [
        har.load_har(
            DatasetOptions(str(tmp_path), har_features=kind, download=False)
        ).format.preprocessing.feature_range
        for kind in har.HAR_FORMATS
    ]
    assert ranges == [(-1.0, 1.0), None]


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
    assert_refused(rf"har\.npz: .*{message}", har.load_har, DatasetOptions(str(tmp_path), download=False))


def test_damaged_texts_are_named(tmp_path, arrays):
    write_texts(tmp_path, arrays)
    path = tmp_path / har.FOLDER_NAME / "train" / "X_train.txt"
    path.write_bytes(path.read_bytes()[:-40])
    assert_refused(
        r"train/X_train\.txt is damaged or truncated", har.load_har, DatasetOptions(str(tmp_path), download=False)
    )
    path.unlink()
    assert_refused(r"train/X_train\.txt is missing", har.load_har, DatasetOptions(str(tmp_path), download=False))


def test_a_truncated_zip_is_named(tmp_path, arrays):
    write_zip(tmp_path, arrays, nested=False)
    path = tmp_path / "UCI HAR Dataset.zip"
    path.write_bytes(path.read_bytes()[:-100])
    assert_refused(
        r"UCI HAR Dataset\.zip: damaged or truncated", har.load_har, DatasetOptions(str(tmp_path), download=False)
    )


def test_nothing_found_names_the_folder_or_downloads(tmp_path, arrays, monkeypatch):
    assert_refused(
        rf"put har\.npz or 'UCI HAR Dataset\.zip' into {tmp_path}",
        har.load_har,
        DatasetOptions(str(tmp_path), download=False),
    )
    (tmp_path / "server").mkdir()
    write_zip(tmp_path / "server", arrays, nested=True)
    monkeypatch.setattr("datasets.download.fetch_file", lambda remote, folder: str(tmp_path / "server" / remote.name))
    assert len(har.load_har(DatasetOptions(str(tmp_path / "data"))).train_x) == 24


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
@pytest.mark.parametrize(("features", "shape"), [("statistics", (561, 1)), ("inertial", (128, 9))])
def test_the_real_files(features, shape):
    loaded = har.load_har(DatasetOptions(os.environ["FL_DATA_DIR"], har_features=features, download=False))
    assert loaded.train_x.shape == (7352, *shape) and loaded.test_x.shape == (2947, *shape)
    assert np.bincount(loaded.train_y).tolist() == [1226, 1073, 986, 1286, 1374, 1407]
