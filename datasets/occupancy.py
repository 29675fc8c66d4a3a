"""`occupancy`: the UCI Occupancy Detection data: one reading a minute in an office, and whether somebody is in it.

Source: Candanedo and Feldheim, Accurate occupancy detection of an office room from light, temperature, humidity and
CO2 measurements using statistical learning models, Energy and Buildings 112, 2016. Three text files: the train part is
`datatraining.txt`, the global test set `datatest.txt` followed by `datatest2.txt`. Each begins with a line of 7 quoted
names; a row has 8 fields between commas, the first of which is an unnamed row number:
  "date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"
  "1","2015-02-04 17:51:00",23.18,27.272,426,721.25,0.00479298817650529,1
Units: C, % relative humidity, lux, ppm, kg water vapour per kg of dry air; occupancy 0 or 1.

There is only one office, so the clients are blocks of time: `client_hours` each, from midnight of the first day on. A
block without a reading is no client. A row that lacks a reading (an empty field, NA or NaN) is dropped and counted.

Features, float32, standardised with constants, (value - offset) / unit, which need no data of any client:
  Temperature (21, 1)   Humidity (26, 5)   Light (120, 200)   CO2 (600, 300)   HumidityRatio (0.004, 0.001)
"""

import csv
import datetime
import math
import os
from typing import NamedTuple

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat

TRAIN_FILE = "datatraining.txt"
TEST_FILES = ("datatest.txt", "datatest2.txt")
COLUMNS = ("date", "Temperature", "Humidity", "Light", "CO2", "HumidityRatio", "Occupancy")
NUMBERS = COLUMNS[1:]
OFFSETS = np.array([21.0, 26.0, 120.0, 600.0, 0.004])
UNITS = np.array([1.0, 5.0, 200.0, 300.0, 0.001])
FEATURE_NAMES = ("temperature", "humidity", "light", "CO2", "humidity ratio")
FEATURE_UNITS = (  # of the standardised numbers
    *("(°C - 21) / 1", "(% - 26) / 5", "(lux - 120) / 200", "(ppm - 600) / 300"),
    "(kg water vapour per kg dry air - 0.004) / 0.001",
)
OCCUPANCY_FORMATS = {
    features: ExampleFormat(
        (number,), "float32", ("empty", "occupied"),
        feature_names=FEATURE_NAMES[:number], feature_units=FEATURE_UNITS[:number],
    )
    for features, number in (("temperature_humidity", 2), ("all", 5))
}  # fmt: skip
MISSING = frozenset({"", "na", "nan"})


class _Rows(NamedTuple):
    """The complete rows of a file: hours since 1970, float64 (rows,); the numbers, float64 (rows, 6); rows left out."""

    hours: np.ndarray
    numbers: np.ndarray
    num_dropped: int


def choose_occupancy_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the features asked for."""
    return OCCUPANCY_FORMATS[options.occupancy_features]


def _look(folder: str) -> str | None:
    return folder if all(os.path.isfile(os.path.join(folder, name)) for name in (TRAIN_FILE, *TEST_FILES)) else None


FILES = KnownFiles("occupancy", _look, wanted=", ".join((TRAIN_FILE, *TEST_FILES)))


def load_occupancy(options: DatasetOptions) -> ArrayDataset:
    """UCI Occupancy Detection; float32 features of shape (2,) or (5,), clients are blocks of time.

    The features are "temperature_humidity", or "all" for Light, CO2 and HumidityRatio as well.

    Raises:
      DatasetError: a file is missing or cannot be read, a value is out of its range; an error in a file names its line.
    """
    example_format = choose_occupancy_format(options)
    folder = FILES.find_or_fetch(options)
    train, *tests = (_read_rows(os.path.join(folder, name)) for name in (TRAIN_FILE, *TEST_FILES))
    return make_array_dataset(
        "occupancy",
        _make_examples(train.numbers, example_format.input_shape[0]),
        _make_examples(np.concatenate([rows.numbers for rows in tests]), example_format.input_shape[0]),
        example_format,
        name_blocks(train.hours, options.occupancy_client_hours),
        num_dropped=sum(rows.num_dropped for rows in (train, *tests)),
        # Neighbours in time are alike: drawn at random, a test reading would be predicted from them.
        is_ordered_by_time=True,
    )


def _make_examples(numbers: np.ndarray, num_features: int) -> tuple[np.ndarray, np.ndarray]:
    x = (numbers[:, :-1] - OFFSETS) / UNITS
    return x[:, :num_features].astype(np.float32), numbers[:, -1].astype(np.int32)


def name_blocks(hours: np.ndarray, client_hours: int) -> np.ndarray:
    """The client of each reading: "block_00", "block_01", ... in order of time; blocks without a reading are skipped.

    Args:
      hours: since 1970, shape (readings,).
      client_hours: length of a block; the first begins at midnight of the first day.
    """
    if not len(hours):
        return np.array([], str)
    midnight = hours.min() // 24 * 24
    blocks, positions = np.unique((hours - midnight) // client_hours, return_inverse=True)
    width = max(2, len(str(len(blocks) - 1)))
    return np.array([f"block_{position:0{width}}" for position in range(len(blocks))])[positions]


def _read_rows(path: str) -> _Rows:
    """The rows of one file.

    Raises:
      DatasetError: the file cannot be read, a column is missing, or a line is damaged.
    """
    hours, numbers, num_rows = [], [], 0
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            names = [name.strip() for name in next(reader, [])]
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise DatasetError(f"{path}, line 1: column {missing[0]} is missing; expected {', '.join(COLUMNS)}")
            # Before the columns that the header names, a row has an unnamed row number.
            positions = {name: names.index(name) + 1 for name in COLUMNS} | {"": len(names) + 1}
            for fields in reader:
                if not fields:
                    continue
                num_rows += 1
                row = _read_row(f"{path}, line {reader.line_num}", fields, positions)
                if row is not None:
                    hours.append(row[0])
                    numbers.append(row[1:])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: cannot be read as a text file with commas ({error})") from None
    if not numbers:
        raise DatasetError(f"{path}: no row without a missing reading, expected at least one")
    return _Rows(np.array(hours), np.array(numbers), num_rows - len(numbers))


def _read_row(where: str, fields: list[str], positions: dict[str, int]) -> list[float] | None:
    """Hours since 1970 and the numbers of a row; None if one is missing."""
    if len(fields) != positions[""]:
        raise DatasetError(f"{where}: {len(fields)} fields, expected {positions['']}, the first the row's number")
    texts = {name: fields[positions[name]].strip() for name in COLUMNS}
    row = [math.nan]
    if texts["date"].lower() not in MISSING:
        try:
            moment = datetime.datetime.strptime(texts["date"], "%Y-%m-%d %H:%M:%S")
        except ValueError:
            raise DatasetError(
                f"{where}: date is {texts['date']!r}, expected one such as 2015-02-04 17:51:00"
            ) from None
        row = [(moment - datetime.datetime(1970, 1, 1)).total_seconds() / 3600]
    row += [_read_number(where, name, texts[name]) for name in NUMBERS]
    if any(map(math.isnan, row)):
        return None
    if row[-1] not in (0, 1):
        raise DatasetError(f"{where}: Occupancy is {texts['Occupancy']}, expected 0 or 1")
    return row


def _read_number(where: str, name: str, text: str) -> float:
    """A number; NaN if it is missing."""
    if text.lower() in MISSING:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        raise DatasetError(f"{where}: {name} is {text!r}, expected a number") from None
    if not math.isfinite(number):
        raise DatasetError(f"{where}: {name} is {text}, expected a finite number")
    return number
