"""`--data` from the command line to clients: what a file says is trained on, and what is wrong with it is one line."""

import numpy as np
import PIL.Image
import pytest

from launch import train
from launch.settings.flag_fields import complete_stored_flags
from launch.settings.flags import parse_config
from launch.settings.run_config import shared_fields
from launch.training.federation import load_federated_data


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def load(*flags):
    return load_federated_data(parse_config(["--algo=fedavg", *flags]))


def write_table(path, num_rows=120):
    rows = [f"{['Zoë', 'bob', '../up'][n % 3]},{n // 3},{n * 0.5},{n % 7},{n % 2}" for n in range(num_rows)]
    path.write_text("\n".join(["user,time,a,b,label", *rows]) + "\n", encoding="utf-8")


def test_the_clients_of_a_table_are_the_clients_of_a_run(tmp_path):
    write_table(tmp_path / "mine.csv")
    data = load("--data=mine.csv")
    assert (data.dataset, data.format.input_shape, data.format.class_names) == ("mine", (2, 1), ("0", "1"))
    assert [client.name for client in data.clients] == ["../up", "Zoë", "bob"]
    assert data.format.feature_names == ("a", "b") and "client user (by its name)" in data.reading
    # In order of time, so that a client's test examples come after those that it trains on.
    # Clients are sorted by name, in which capitals come first: Zoë is the second.
    last = max(np.fromfile(f"{data.clients[1].path}.train.x", np.float32).reshape(-1, 2)[:, 0])
    assert last < min(np.fromfile(f"{data.clients[1].path}.test.x", np.float32).reshape(-1, 2)[:, 0])


def test_windows_and_partitions_that_mix_are_for_files_too(tmp_path):
    write_table(tmp_path / "mine.csv")
    assert load("--data=mine.csv", "--window=4", "--window_step=2").format.input_shape == (4, 2)
    kept = load("--data=mine.csv", "--window=4", "--window_step=2", "--shared_rows=keep")
    assert "--window_step=4 makes them apart" in kept.notes[0]
    mixed = load("--data=mine.csv", "--partition=iid", "--num_clients=4", "--scale=0.1")
    assert [client.name for client in mixed.clients] == [f"client_{n}" for n in range(4)]
    assert mixed.format.preprocessing.scale == 0.1
    named = load("--data=mine.csv", "--label_column=a", "--feature_columns=b")
    assert named.format.labels.task == "regression" and len(named.clients) == 3


def test_folders_of_images_and_of_arrays(tmp_path):
    for client in ("ann", "bob"):
        for name in ("cat", "dog"):
            (tmp_path / "photos" / client / name).mkdir(parents=True)
            for n in range(8):
                PIL.Image.new("RGB", (6, 4), (n, 0, 0)).save(tmp_path / "photos" / client / name / f"{n}.png")
    photos = load("--data=photos", "--image_size=5", "--image_colour=grey")
    assert photos.format.input_shape == (5, 5, 1) and [client.name for client in photos.clients] == ["ann", "bob"]
    (tmp_path / "arrays" / "train").mkdir(parents=True)
    for n in range(3):
        arrays = {"x": np.zeros((20, 6, 5), np.float32), "y": np.arange(20) % 2}
        np.savez_compressed(tmp_path / "arrays" / "train" / f"{n}.npz", data=arrays)
    assert load("--data=arrays").format.input_shape == (6, 5)
    assert load("--data=arrays", "--layout=features").format.input_shape == (30, 1)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--data=none.csv"], "none.csv: no such file or folder"),
        (["--data=mine.csv", "--label_column=lable"], "did you mean label?"),
        (["--data=ragged.csv"], "ragged.csv, line 3: 2 fields, expected 3"),
        (["--data=mine.csv", "--image_size=9"], "image_size=9: does nothing with a table"),
        (["--data=mine.csv", "--window_step=2"], "--window=<rows>"),
        (["--window=2"], "--data=<your file or folder>"),
        (["--weight_column=a"], "--weight_column: does nothing with --dataset=digits; leave it out, or give --data=<"),
        (["--data=mine.csv", "--weight_column=user"], "mine.csv, line 2: weight column 'user' has 'Zoë', expected a"),
        (["--data=mine.npz", "--weight_column=a"], "weight_column=a: does nothing with an npz file; leave it out"),
        (["--data=leaf.json", "--weight_column=a"], "weight_column=a: does nothing with LEAF's JSON; leave it out"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(tmp_path, capfd, flags, expected):
    write_table(tmp_path / "mine.csv")
    (tmp_path / "ragged.csv").write_text("user,a,label\nu,1,x\nv,2\n")
    np.savez(tmp_path / "mine.npz", x=np.zeros((40, 3), np.float32), y=np.arange(40) % 2)
    (tmp_path / "leaf.json").write_text('{"users": ["u"], "user_data": {"u": {"x": [[1.0]], "y": [0]}}}')
    assert train.main(["--algo=fedavg", *flags]) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ") and expected in error and error.count("\n") == 1


def test_classes_and_clients_of_any_format_that_are_spelled_in_several_ways_are_noted(tmp_path):
    (tmp_path / "table").mkdir()
    for part, end in (("train", ""), ("test", ".")):
        rows = [f"{n % 7},{n % 2},{'<=50K' if n % 2 else '>50K'}{end}\n" for n in range(40)]
        (tmp_path / "table" / f"{part}.csv").write_text("a,b,label\n" + "".join(rows))
    unseen, alike = load("--data=table", "--partition=iid", "--num_clients=2", "--standardize=federated").notes
    assert unseen.startswith("40 of 40 test examples are of classes that no train example has")
    assert "'<=50K' (20) = '<=50K.' (20), '>50K' (20) = '>50K.' (20); 4 classes would be 2" in alike
    joined = load("--data=table", "--partition=iid", "--num_clients=2", "--join_spellings")
    assert joined.format.class_names == ("<=50K", ">50K") and not joined.notes
    for client in ("Ann", "ann", "bob"):
        for name in ("cat", "Cat"):
            (tmp_path / "photos" / client / name).mkdir(parents=True)
            for n in range(8):
                PIL.Image.new("L", (6, 4), n).save(tmp_path / "photos" / client / name / f"{n}.png")
    notes = load("--data=photos").notes
    assert any("'Cat' (" in note and "2 classes would be 1" in note for note in notes)
    assert any("'Ann' (16) = 'ann' (16); 3 clients would be 2" in note for note in notes)
    arrays = {"x": np.random.default_rng(0).normal(size=(40, 3)), "y": np.array(["cat", "cat "] * 20)}
    np.savez(tmp_path / "mine.npz", **arrays)
    assert any("'cat' (20) = 'cat ' (20)" in note for note in load("--data=mine.npz").notes)


def test_an_earlier_run_reads_words_and_dates_as_it_did(tmp_path):
    stored = {"dataset": "files", "data": "mine.csv", "algo": "fedavg"}
    completed = complete_stored_flags(stored, shared_fields())
    assert (completed["truth_names"], completed["date_form"]) == ("false_true", "number")
    assert completed["shared_rows"] == "keep"
    rows = [f"{n % 28 + 1:02d}{n % 12 + 1:02d}2024,{n},{'Yes' if n % 2 else 'No'}\n" for n in range(60)]
    (tmp_path / "mine.csv").write_text("date,a,label\n" + "".join(rows))
    flags = ("--data=mine.csv", "--partition=iid", "--num_clients=2")
    assert load(*flags).format.class_names == ("No", "Yes")
    assert load(*flags, "--truth_names=false_true", "--date_form=number").format.class_names == ("false", "true")
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    (tmp_path / "photos" / "dog").mkdir()
    for n in range(20):
        PIL.Image.new("L", (6, 4), n).save(tmp_path / "photos" / ("cat", "dog")[n % 2] / f"{n}.png")
    # As an earlier run of images.
    load("--data=photos", "--truth_names=false_true", "--date_form=number", *flags[1:])
