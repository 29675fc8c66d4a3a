"""Devices from a CSV file: speeds, links, energy and availability windows, and which client has which device.

A row is a kind of device, or with the column `client` the device of one client. Lines that begin with # are comments.
The columns, whose names have the units:

  examples_per_s, downlink_bytes_per_s, uplink_bytes_per_s                as in `DeviceProfiles`; always needed
  joules_per_example, joules_per_byte_down, joules_per_byte_up            as in `EnergyRates`; all three or none
  availability       chance in (0, 1] that the device can be reached; 1 without the column
  available_h        windows as hours of the day, such as 22-7 or 12-13;22-6.5; empty: always
  resource           AMFL-P's R_i in (0, 1]; without the column, the speed as a share of the fastest row's
  device             what it is called
  share              how many of the clients have it, in proportion to the other rows' shares; 1 without the column
  client             whose device it is, counted from 0; in place of `share`

Without `client`, each client draws its row by the shares, from the seed and its own index alone.

Simulated devices: how fast each client computes and how fast its link is, drawn from a seed.

Speeds and link rates of phones spread over an order of magnitude and are skewed to the right, so both are log-normal:
  value = median * exp(sigma * z), z ~ N(0, 1), with one z for the processor and another for the link.
With sigma 0.6 a device at the 90th percentile computes 4.7 times as fast as one at the 10th; with sigma 0.8 its link is
7.8 times as fast. A client's uplink and downlink share their z: bad reception is bad both ways. The default medians
are those of a mobile link: 32 Mbit/s down, 8 Mbit/s up. They are assumptions, not measurements.
"""

import csv
import difflib
import hashlib
import math
import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.federated_data import DAY_S, DeviceProfiles, EnergyRates, Windows
from datasets.names import check_names
from files.reading import describe
from tff_algos.settings.config_fields import Setting

PHONES = "phones"  # the sample that comes with the package
PHONES_FILE = pathlib.Path(__file__).with_name("phones.csv")
HOUR_S = 3600.0


_POSITIVE = Setting("", above=0)
_NOT_NEGATIVE = Setting("", minimum=0, expected="a number of at least 0")
_SHARE = Setting("", above=0, maximum=1)
_RATES = ("examples_per_s", "downlink_bytes_per_s", "uplink_bytes_per_s")
_NUMBERS = {
    **dict.fromkeys((*_RATES, "share"), _POSITIVE),
    **dict.fromkeys(EnergyRates._fields, _NOT_NEGATIVE),
    **dict.fromkeys(("availability", "resource"), _SHARE),
    "client": Setting("", minimum=0, expected="a whole number from 0"),
}
COLUMNS = (*_RATES, *EnergyRates._fields, "availability", "available_h", "resource", "device", "share", "client")

Intervals = list[tuple[float, float]]  # (start, length), in seconds of the day


class _Row(NamedTuple):
    """A row of the file: its line there, its numbers by column, its windows and its name."""

    line: int
    numbers: Mapping[str, float]
    windows: Intervals
    device: str


def load_device_profiles(source: str, num_clients: int, seed: int) -> DeviceProfiles:
    """The devices of a federation's clients, from a file.

    Args:
      source: path of the CSV file, or "phones" for the sample that comes with the package.
      num_clients: at least 1; rows for further clients are passed over.
      seed: which row each client draws; a client's device depends on it, the file and the client's index alone.

    Raises:
      DatasetError: the file cannot be read, or a column, a number or a window is not as described above.
    """
    try:
        content = (PHONES_FILE if source == PHONES else pathlib.Path(source).expanduser()).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise DatasetError(f"device_profiles={source}: {describe(error)}; expected a CSV file, or {PHONES}") from None
    except UnicodeDecodeError:
        raise DatasetError(f"device_profiles={source}: expected a CSV file in UTF-8") from None
    try:
        rows = _read_rows(text)
        chosen = _choose_rows(rows, num_clients, seed)
    except DatasetError as error:
        raise DatasetError(f"device_profiles={source}: {error}") from None

    def gather(name: str) -> np.ndarray:
        return np.array([row.numbers[name] for row in rows])[chosen]

    known = rows[0].numbers
    speeds, fastest = gather("examples_per_s"), max(row.numbers["examples_per_s"] for row in rows)
    has_energy = "joules_per_example" in known
    windows = None  # all can be reached always
    if any(rows[index].windows != [(0.0, DAY_S)] for index in set(chosen.tolist())):
        # One array holds all rows: those with fewer windows are padded by windows of length 0.
        most = max(len(row.windows) for row in rows)
        padded = np.array([row.windows + [(0.0, 0.0)] * (most - len(row.windows)) for row in rows])
        windows = Windows(padded[chosen, :, 0], padded[chosen, :, 1])
    return DeviceProfiles(
        examples_per_s=speeds,
        downlink_bytes_per_s=gather("downlink_bytes_per_s"),
        uplink_bytes_per_s=gather("uplink_bytes_per_s"),
        availability=gather("availability") if "availability" in known else np.ones(len(chosen)),
        names=tuple(rows[index].device for index in chosen.tolist()),
        energy=EnergyRates(*map(gather, EnergyRates._fields)) if has_energy else None,
        windows=windows,
        resources=gather("resource") if "resource" in known else speeds / fastest,
        digest=hashlib.sha256(content).hexdigest(),
    )


def parse_windows(text: str) -> Intervals:
    """Windows of a day as hours, "22-7" or "12-13;22-6.5", as disjoint (start, length) in seconds; "" is the whole day.

    Windows that touch or overlap become one, also over midnight.

    Raises:
      ValueError: one is not written so, or never opens.
    """
    hours = []
    for part in text.split(";") if text.strip() else ["0-24"]:
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*-\s*([0-9]+(?:\.[0-9]+)?)\s*", part, re.ASCII)
        start, end = (float(number) for number in match.groups()) if match else (math.nan, math.nan)
        if not (0 <= start <= 24 and 0 <= end <= 24):
            raise ValueError("expected hours of the day such as 22-7 or 12-13;22-6.5")
        if start == end:
            raise ValueError("a window that never opens; expected two different hours, or an empty cell for always")
        # One that goes past midnight is two for the moment.
        hours += [(start, end)] if start < end else [(start, 24.0), (0.0, end)]
    merged: list[tuple[float, float]] = []
    for start, end in sorted(each for each in hours if each[0] < each[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    if len(merged) > 1 and merged[0][0] == 0 and merged[-1][1] == 24:
        (_, morning), (evening, _) = merged[0], merged[-1]
        merged = [*merged[1:-1], (evening, 24 + morning)]
    return [(start * HOUR_S, (end - start) * HOUR_S) for start, end in merged]


def _read_rows(text: str) -> list[_Row]:
    lines = enumerate(text.splitlines(), start=1)
    used = [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
    header, *others = [(number, [cell.strip() for cell in next(csv.reader([line]))]) for number, line in used] or [
        (0, [])
    ]
    columns = header[1]
    _check_columns(columns)
    rows = [_read_row(number, columns, cells) for number, cells in others]
    if not rows:
        raise DatasetError("no row; expected a header and a row for each kind of device")
    return rows


def _check_columns(columns: list[str]) -> None:
    for name in columns:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            fix = f"did you mean {near[0]}?" if near else f"expected {', '.join(COLUMNS)}"
            raise DatasetError(f"unknown column {name}; {fix}")
        if columns.count(name) > 1:
            raise DatasetError(f"the column {name} stands there twice; expected it once")
    if "share" in columns and "client" in columns:
        raise DatasetError("the columns share and client; expected one of them")
    energy = any(name in columns for name in EnergyRates._fields)
    for name in (*_RATES, *(EnergyRates._fields if energy else ())):
        if name not in columns:
            needed = f"{', '.join(EnergyRates._fields)}, or none of them" if name not in _RATES else ", ".join(_RATES)
            raise DatasetError(f"no column {name}; expected {needed}")


def _read_row(line: int, columns: list[str], cells: list[str]) -> _Row:
    if len(cells) != len(columns):
        raise DatasetError(f"line {line} has {len(cells)} cells; expected {len(columns)}, as in the header")
    texts = dict(zip(columns, cells, strict=True))
    check_names(f"line {line}", "device", [texts.get("device", "")])
    numbers = {name: _read_number(line, name, text) for name, text in texts.items() if name in _NUMBERS}
    try:
        windows = parse_windows(texts.get("available_h", ""))
    except ValueError as error:
        raise DatasetError(f"line {line}, available_h={texts['available_h']}: {error}") from None
    return _Row(line, numbers, windows, texts.get("device") or f"device of line {line}")


def _read_number(line: int, name: str, text: str) -> float:
    limits = _NUMBERS[name]
    try:
        # Python would take 1_0 for 10, and digits of other scripts; the comparison leaves out NaN.
        value = float(text) if re.fullmatch("[-+.0-9eE]+", text) else math.nan
    except ValueError:
        value = math.nan
    if not limits.admits(value) or (name == "client" and not value.is_integer()):
        raise DatasetError(f"line {line}, {name}={text}: expected {limits.describe_range(value)}")
    return value


def _choose_rows(rows: list[_Row], num_clients: int, seed: int) -> np.ndarray:
    """The row of each client, int64, shape (clients,)."""
    if "client" in rows[0].numbers:
        row_of: dict[int, int] = {}
        for index, row in enumerate(rows):
            client = int(row.numbers["client"])
            if client in row_of:
                raise DatasetError(f"line {row.line}, client={client}: a second row for it; expected one a client")
            row_of[client] = index
        missing = next((client for client in range(num_clients) if client not in row_of), None)
        if missing is not None:
            raise DatasetError(f"no row for client {missing}; expected one for each of 0 to {num_clients - 1}")
        return np.array([row_of[client] for client in range(num_clients)])
    shares = np.array([row.numbers.get("share", 1.0) for row in rows])
    ends = np.cumsum(shares / shares.sum())
    # The last end may lie a rounding below 1. Draws for more clients go on where those for fewer end.
    drawn = np.random.default_rng([seed, 4, 2]).random(num_clients)
    return np.minimum(np.searchsorted(ends, drawn, side="right"), len(rows) - 1)


MEDIAN_EXAMPLES_PER_S, SPEED_SIGMA = 500.0, 0.6
MEDIAN_DOWNLINK_BYTES_PER_S, MEDIAN_UPLINK_BYTES_PER_S, LINK_SIGMA = 4e6, 1e6, 0.8


def draw_device_profiles(num_clients: int, seed: int) -> DeviceProfiles:
    """Draws a device, always reachable, for every client, by the distributions of the module.

    Client i's device depends on the seed and i alone, not on `num_clients`.

    Args:
      num_clients: at least 1.
      seed: a non-negative integer.
    """
    speed_factor, link_factor = (
        np.exp(sigma * np.random.default_rng([seed, 4, quantity]).standard_normal(num_clients))
        for quantity, sigma in enumerate((SPEED_SIGMA, LINK_SIGMA))
    )
    return DeviceProfiles(
        examples_per_s=MEDIAN_EXAMPLES_PER_S * speed_factor,
        downlink_bytes_per_s=MEDIAN_DOWNLINK_BYTES_PER_S * link_factor,
        uplink_bytes_per_s=MEDIAN_UPLINK_BYTES_PER_S * link_factor,
        availability=np.ones(num_clients),
    )
