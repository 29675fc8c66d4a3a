"""UCI Occupancy Detection's format in small files: whole, with gaps, and damaged in every way a user may meet."""

import numpy as np
import pytest
from refusals import assert_refused

from datasets import occupancy
from datasets.dataset import DatasetOptions

HEADER = ",".join(f'"{name}"' for name in occupancy.COLUMNS)


def make_row(number, date="2015-02-04 17:51:00", values="22.0,31,320,750,0.0055", occupied=1):
    return f'"{number}","{date}",{values},{occupied}'


def make_rows(num_rows, first_hour=17):
    """A row an hour from 4 February on, alternately occupied and empty."""
    return [
        make_row(number + 1, f"2015-02-{4 + hour // 24:02} {hour % 24:02}:51:00", occupied=number % 2)
        for number, hour in enumerate(range(first_hour, first_hour + num_rows))
    ]


def write(folder, rows, header=HEADER, name=occupancy.TRAIN_FILE):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join([header, *rows]) + "\n")


def load(folder, **options):
    return occupancy.load_occupancy(DatasetOptions(str(folder.parent), **options))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write(tmp_path / "occupancy", make_rows(30))
    write(tmp_path / "occupancy", make_rows(3), name="datatest.txt")
    write(tmp_path / "occupancy", make_rows(4), name="datatest2.txt")
    return tmp_path / "occupancy"


def test_features_are_standardised_with_constants(folder):
    arrays = load(folder, occupancy_features="all")
    assert (arrays.train_x.shape, arrays.test_x.shape, arrays.train_x.dtype) == ((30, 5), (7, 5), np.float32)
    np.testing.assert_allclose(arrays.train_x[0], [1.0, 1.0, 1.0, 0.5, 1.5], rtol=1e-6)
    assert arrays.train_y[:4].tolist() == [0, 1, 0, 1]
    two = load(folder)
    np.testing.assert_array_equal(two.train_x, arrays.train_x[:, :2])
    assert arrays.num_dropped == 0


def test_clients_are_blocks_of_time_from_midnight_on(folder):
    """30 hours from 17:51 on are 7, 12 and 11 readings in blocks of 12 hours: 12 to 24, 0 to 12, 12 to 24 o'clock."""
    arrays = load(folder, occupancy_client_hours=12)
    assert arrays.client_names == ("block_00", "block_01", "block_02")
    assert np.bincount(arrays.train_clients).tolist() == [7, 12, 11]
    assert len(load(folder, occupancy_client_hours=24).client_names) == 2


def test_blocks_without_a_reading_are_left_out():
    names = occupancy.name_blocks(np.array([0.5, 1.5, 100.5]), 1)
    assert names.tolist() == ["block_00", "block_01", "block_02"]


def test_rows_with_missing_readings_are_dropped_and_counted(folder):
    gaps = [make_row(1, values=values) for values in ("NA,31,320,750,0.0055", "22,,320,750,0.0055", "22,nan,1,2,3")]
    write(folder, [*make_rows(4), *gaps, make_row(2, date=""), make_row(3, occupied="")])
    write(folder, [*make_rows(2), gaps[0]], name="datatest2.txt")
    arrays = load(folder)
    assert (len(arrays.train_y), len(arrays.test_y), arrays.num_dropped) == (4, 5, 6)


@pytest.mark.parametrize(
    ("bad_row", "message"),
    [
        (make_row(3, values="22.0,wet,320,750,0.0055"), "line 4: Humidity is 'wet', expected a number"),
        (make_row(3, values="22.0,31,inf,750,0.0055"), "line 4: Light is inf, expected a finite number"),
        (make_row(3, date="04.02.2015 17:51"), "line 4: date is '04.02.2015 17:51', expected one such as 2015"),
        (make_row(3, date="2015-02-30 17:51:00"), "line 4: date is '2015-02-30 17:51:00'"),
        (make_row(3, values="22.0,31,320,750"), "line 4: 7 fields, expected 8"),
        (make_row(3, values="22.0,31,320,750,0.0055,9"), "line 4: 9 fields, expected 8"),
        (make_row(3, occupied=2), "line 4: Occupancy is 2, expected 0 or 1"),
    ],
)
def test_damaged_row_is_named_by_file_and_line(folder, bad_row, message):
    write(folder, [*make_rows(2), bad_row, *make_rows(2)])
    caught = assert_refused("", load, folder)
    assert str(folder / occupancy.TRAIN_FILE) in caught
    assert message in caught


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace('"Light",', ""), "line 1: column Light is missing; expected date, Temperature"),
        ("", "line 1: column date is missing"),
        (make_row(1), "line 1: column date is missing"),
    ],
)
def test_wrong_header(folder, header, message):
    write(folder, make_rows(2), header, name="datatest.txt")
    assert_refused(rf"datatest\.txt, {message}", load, folder)


def test_columns_are_found_by_name(folder):
    names = ["Occupancy", *occupancy.COLUMNS[:-1]]
    rows = ['"1",1,"2015-02-04 17:51:00",22,31,320,750,0.0055', '"2",0,"2015-02-04 17:52:00",21,26,120,600,0.004']
    write(folder, rows, ",".join(names))
    arrays = load(folder, occupancy_features="all")
    assert arrays.train_y.tolist() == [1, 0]
    np.testing.assert_allclose(arrays.train_x[1], 0, atol=1e-6)


def test_unusable_files_are_one_line(folder):
    (folder / "datatest.txt").write_bytes(b"\xff\xfe\x00\x81")
    assert_refused(r"datatest\.txt: cannot be read as a text file", load, folder)
    write(folder, [], name="datatest.txt")
    assert_refused(r"datatest\.txt: no row without a missing reading", load, folder)
    (folder / "datatest.txt").unlink()
    assert_refused(r"not found; put datatraining\.txt, datatest\.txt, datatest2\.txt into", load, folder)
