"""What orders the rows of a table: dates and times in all the ways that people write them, as seconds since 1970.

Which part of a date is the day follows from all values of a column together: 25/12/2024 says it for 01/02/2024, too.
So a column is looked through first (`TimeScan`), and read then (`read_times`). What all values leave open is refused.
"""

import re
from typing import NamedTuple

import numpy as np

from datasets.errors import DatasetError
from datasets.options import AUTO, DAY_FIRST, MONTH_FIRST, NUMBER, YEAR_FIRST
from datasets.tables.cells import DATE, TEXT, Cells
from datasets.tables.table import Piece, Sighting, simplify

_FIRST_YEAR, _LAST_YEAR = 1900, 2100  # of numbers that are taken as dates
_PIVOT = 69  # of years of two digits: 69 is 1969, 68 is 2068, as in POSIX
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("january", "february", "march", "april", "may", "june"),
            *("july", "august", "september", "october", "november", "december"),
        ),
        1,
    )
    for name in (names, names[:3])
} | {"sept": 9}
_REST = r"(?:[T ,]+(?P<rest>.*))?"
_NUMERIC = re.compile(rf"(?P<a>\d{{1,2}}|\d{{4}})(?P<by>[./-])(?P<b>\d{{1,2}})(?P=by)(?P<c>\d{{4}}|\d{{1,2}}){_REST}")
_NAME = r"(?P<month>[A-Za-z]{3,9})\.?"
_WEEKDAY = r"(?:[A-Za-z]{3,9},? +)?"
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_NAMED = (
    re.compile(rf"{_WEEKDAY}{_DAY_OF_MONTH}[ ./-]*{_NAME}[ ,./-]*(?P<year>\d{{4}}|\d{{2}}){_REST}"),
    re.compile(rf"{_WEEKDAY}{_NAME}[ -]+{_DAY_OF_MONTH},?[ -]+(?P<year>\d{{4}}){_REST}"),
    re.compile(rf"(?P<year>\d{{4}})[ ./-]*{_NAME}[ ./-]*{_DAY_OF_MONTH}{_REST}"),
)
_CLOCK_PART = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))? *(?P<half>[AaPp])?(?(half)\.?[Mm]\.?)"
    r" *(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)


class TextDates(NamedTuple):
    """Dates that are texts.

    Attributes:
      kinds: what parts day, month and year, where a text is a date; "" where it is none; shape (texts,).
      seconds: since 1970 of those whose order is no question, float64 (texts,); NaN of others.
      parts: the three numbers of those others, int64 (texts, 3).
      num_digits: of how many digits the parts are, int64 (texts, 3).
      clocks: seconds since midnight, less the offset of the time zone, float64 (texts,).
      has_clock: which have a time of day.
      has_zone: which have a time zone.
    """

    kinds: np.ndarray
    seconds: np.ndarray
    parts: np.ndarray
    num_digits: np.ndarray
    clocks: np.ndarray
    has_clock: np.ndarray
    has_zone: np.ndarray

    def read(self, order: str, chosen: np.ndarray) -> np.ndarray:
        """Seconds since 1970 of the chosen ones in an order; NaN where they are no date in it."""
        columns = {YEAR_FIRST: (0, 1, 2), DAY_FIRST: (2, 1, 0), MONTH_FIRST: (2, 0, 1)}[order]
        year, month, day = (self.parts[chosen][:, at] for at in columns)
        digits, of_day = (self.num_digits[chosen][:, at] for at in (columns[0], columns[2]))
        year = np.where(digits == 2, widen_years(year), year)
        is_right = np.isin(digits, (2, 4)) & (of_day < 3)
        return np.where(is_right, count_seconds(year, month, day), np.nan) + self.clocks[chosen]


def count_seconds(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Seconds since 1970 of days, float64; NaN where there is no such day. Takes int64 arrays of one shape."""
    is_right = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1) & (year < 10_000)
    # NumPy knows how long months are.
    months = np.where(is_right, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first, after = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    is_right &= day <= (after - first).astype(np.int64)
    return np.where(is_right, (first.astype(np.int64) + day - 1) * 86400.0, np.nan)


def widen_years(years: np.ndarray) -> np.ndarray:
    """Years of two digits with their century."""
    return np.where(years < _PIVOT, 2000, 1900) + years


def read_number_dates(numbers: np.ndarray, kind: str, order: str) -> np.ndarray:
    """Seconds since 1970 of numbers whose digits are a date; NaN where they are none. A zero in front may be lost.

    Args:
      numbers: float64.
      kind: "day" (20241231, 31122024), "month" (202412, 122024), "minute" and "second" (a day, and four or six digits
        of a clock behind it) or "short" (241231, 311224).
      order: of year, month and day, as `--date_form` has it.
    """
    with np.errstate(invalid="ignore"):
        # No date has more than 14 digits.
        is_whole = (numbers >= 0) & (numbers < 1e15) & (numbers == np.rint(numbers))
    whole, clock = np.where(is_whole, numbers, 0).astype(np.int64), np.zeros(len(numbers))
    if kind in ("minute", "second"):
        size = 10**4 if kind == "minute" else 10**6
        whole, rest = whole // size, whole % size * (100 if kind == "minute" else 1)
        hour, minute, second = rest // 10**4, rest // 100 % 100, rest % 100
        is_whole &= (hour < 24) & (minute < 60) & (second < 60)
        clock = hour * 3600.0 + minute * 60 + second
    years = 100 if kind == "short" else 10**4  # how many there are in the digits of a year
    if kind == "month":
        year, month = (whole // 100, whole % 100) if order == YEAR_FIRST else (whole % years, whole // years)
        day = np.ones_like(whole)
    elif order == YEAR_FIRST:
        year, month, day = whole // 10**4, whole // 100 % 100, whole % 100
    else:
        year, month, day = whole % years, whole // years % 100, whole // years // 100
        month, day = (day, month) if order == MONTH_FIRST else (month, day)
    if kind == "short":
        is_whole &= year < 100
        year = widen_years(np.minimum(year, 99))
    is_whole &= (year >= _FIRST_YEAR) & (year <= _LAST_YEAR)
    seconds = np.full(len(numbers), np.nan)  # of plain numbers, few have the digits of a year
    seconds[is_whole] = count_seconds(year[is_whole], month[is_whole], day[is_whole]) + clock[is_whole]
    return seconds


def are_whole_dates(numbers: np.ndarray) -> bool:
    """Whether each is a date with a year of four digits, in whatever order."""
    return all(
        any(not np.isnan(read_number_dates(part, "day", order)).any() for order in (YEAR_FIRST, DAY_FIRST, MONTH_FIRST))
        for part in (numbers[:1], numbers)  # most are no dates, which the first tells
    )


def split_dates(texts: list[str]) -> TextDates:
    """The dates that texts are: ISO 8601, numbers parted by . / or -, or with the English name of a month.

    A time of day may follow, with AM or PM and a time zone. Without a zone it is taken as UTC.
    """
    import pandas

    count = len(texts)
    # Nearly all dates of files are ISO 8601, and pandas reads them all at once; the others are matched one by one.
    stamps = pandas.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    nanoseconds = stamps.tz_localize(None).to_numpy().astype("datetime64[ns]")
    is_iso = ~np.isnat(nanoseconds)
    seconds = np.where(is_iso, nanoseconds.astype(np.int64) / 1e9, np.nan)
    kinds = np.where(is_iso, "iso", "").astype(object)
    parts, digits = np.zeros((count, 3), np.int64), np.zeros((count, 3), np.int64)
    clocks = np.zeros(count)
    has_clock = np.array([":" in text for text in texts], bool) & is_iso
    has_zone = np.array([text[-1:] == "Z" or "+" in text or "-" in text[10:] for text in texts], bool) & has_clock
    for at in np.flatnonzero(~is_iso):
        text = texts[at].strip()
        found = _NUMERIC.fullmatch(text)
        named = None if found else next(filter(None, (pattern.fullmatch(text) for pattern in _NAMED)), None)
        rest = (found or named) and _read_clock((found or named)["rest"])
        if not rest:
            continue
        clocks[at], has_clock[at], has_zone[at] = rest
        if found:
            kinds[at] = found["by"]
            parts[at] = [int(found[part]) for part in "abc"]
            digits[at] = [len(found[part]) for part in "abc"]
        elif month := _MONTHS.get(named["month"].lower()):
            year = int(named["year"])
            day = count_seconds(
                *(np.array([each]) for each in (widen_years(year) if year < 100 else year, month, int(named["day"])))
            )
            seconds[at] = day[0] + clocks[at]
            kinds[at] = "" if np.isnan(day[0]) else "name"
    return TextDates(kinds, seconds, parts, digits, clocks, has_clock, has_zone)


def _read_clock(text: str | None) -> tuple[float, bool, bool] | None:
    """(seconds since midnight, whether there is a clock, whether it has a zone); None if it is no time of day."""
    if not text:
        return 0.0, False, False
    found = _CLOCK_PART.fullmatch(text.strip())
    if not found:
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"]), float((found["second"] or "0").replace(",", "."))
    if half := (found["half"] or "").lower():
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    # A leap second is 60.
    if hour > 23 or minute > 59 or second >= 61:
        return None
    zone = found["zone"] or ""
    offset = 0.0
    if zone[:1] in ("+", "-"):
        offset = (int(zone[1:3]) * 60 + int(zone[-2:])) * 60.0 * (1 if zone[0] == "+" else -1)
    return hour * 3600 + minute * 60 + second - offset, True, bool(zone)


_ORDERS = (YEAR_FIRST, DAY_FIRST, MONTH_FIRST)
_WRITTEN = {YEAR_FIRST: "year, month, day", DAY_FIRST: "day, month, year", MONTH_FIRST: "month, day, year"}
# How many digits a number has that is a date: with a year of four digits, or (short) of two.
_DAY, _MONTH, _MINUTE, _SECOND, _SHORT = "day", "month", "minute", "second", "short"
_KINDS = (_DAY, _MONTH, _MINUTE, _SECOND, _SHORT)
_EPOCH_UNITS = (1.0, 1e3, 1e6, 1e9)  # parts of a second that numbers since 1970 count
_EPOCH_RANGE = (1e8, 1e10)  # seconds, 1973 to 2286, which keep the units apart
_FEW = 0.1  # of the numbers, that are no dates where the others are
_DATE_WORDS = ("date", "day", "datum", "fecha", "data", "jour")
_CLOCK = re.compile(r"[T ]?\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?")
_PARTED = re.compile(r"(\d{1,4})[.,](\d{1,2})")  # 31.12 or 2024.10
_PADDED = re.compile(r"0\d{3}|0\d{5}")  # 0010, of a clock
_DAYS_OF_YEAR, _MOST_YEARS = 366, 50
_LEAST_YEARS = 5  # different numbers all of which end like years, by chance one of 50 does
_OTHER = f"--date_form={NUMBER} if they are numbers"


class TimeStyle(NamedTuple):
    """How the values of a column are times.

    Attributes:
      numbers: (kind, order) of numbers that are dates; ("", "") for numbers as they are.
      is_epoch: whether numbers count parts of a second since 1970, in several units.
      orders: of texts, the order by what parts their day, month and year.
      reading: what was found from the values, in words; "" for nothing that needs saying.
      notes: what may have been meant otherwise.
    """

    numbers: tuple[str, str] = ("", "")
    is_epoch: bool = False
    orders: tuple[tuple[str, str], ...] = ()
    reading: str = ""
    notes: tuple[str, ...] = ()


class TimeScan:
    """Is shown all values of a column that orders rows, and decides then what they are."""

    def __init__(self, column: str, asked: str):
        """Takes the column's name and what `--date_form` says."""
        self._column, self._asked = column, asked
        self._is_date_column = any(word in simplify(column) for word in _DATE_WORDS)
        # How many different numbers are no date, of the kinds and orders of which few are none.
        self._numbers = {(kind, order): 0 for kind in _KINDS for order in _ORDERS}
        self._num_different = self._num_dated = 0  # numbers, and those that are dates in some order
        self._units: set[float] = set()
        self._are_epochs = self._are_clocks = True
        self._are_parted = self._is_date_column
        self._has_padded, self._parted = False, set()
        self._are_short_months, self._largest = True, 0.0  # 0124, of January 2024
        self._short_years: set[int] = set()
        self._are_years_last = True  # 112024, of 1/1/2024, as 13112024 is of 13/11/2024
        self._orders: dict[str, set[str]] = {}  # by what parts a date, those that all values allow
        self._differs: set[str] = set()  # what parts dates, or a kind of numbers, of which day and month differ
        self._first: dict[str, Sighting] = {}
        self._zones = [0, 0]  # texts without and with a time zone

    def add(self, cells: Cells, piece: Piece) -> None:
        """Looks at the next values."""
        if cells.kind == DATE or self._asked == NUMBER:
            return
        is_number = cells.is_number
        if is_number.any():
            self._note_first("number", is_number, cells, piece)
            self._add_numbers(cells, is_number, piece)
        is_text = ~(is_number | cells.is_missing | cells.is_boolean)
        if is_text.any():
            self._note_first("text", is_text, cells, piece)
            self._add_texts(cells, is_text, piece)

    def _note_first(self, key: str, is_it: np.ndarray, cells: Cells, piece: Piece) -> None:
        if key not in self._first:
            self._first[key] = piece.find_first(cells, is_it)

    def _add_numbers(self, cells: Cells, is_number: np.ndarray, piece: Piece) -> None:
        numbers = np.unique(cells.numbers[is_number])
        self._num_different += len(numbers)
        for kind in {kind for kind, _ in self._numbers}:
            read = {
                order: read_number_dates(numbers, kind, order) for order in _ORDERS if (kind, order) in self._numbers
            }
            for order, seconds in read.items():
                self._numbers[kind, order] += int(np.isnan(seconds).sum())
                if self._numbers[kind, order] > max(1, _FEW * self._num_different):
                    del self._numbers[kind, order]
                elif np.isnan(seconds).any() and order != YEAR_FIRST:
                    is_odd = is_number & (cells.numbers == numbers[np.isnan(seconds)][0])
                    self._note_first(f"{kind} {order}", is_odd, cells, piece)
                if (kind, order) in self._numbers and not np.isnan(seconds).all():
                    is_date = is_number & np.isin(cells.numbers, numbers[~np.isnan(seconds)])
                    self._note_first(f"date {kind} {order}", is_date, cells, piece)
            if len(read) > 1 and not np.array_equal(read.get(DAY_FIRST), read.get(MONTH_FIRST), equal_nan=True):
                self._differs.add(kind)
        self._add_orders(numbers, cells, piece)
        self._units |= {_EPOCH_UNITS[int(unit)] for unit in np.unique(find_epoch_units(numbers)) if unit >= 0}
        self._are_epochs = self._are_epochs and bool((find_epoch_units(numbers) >= 0).all())
        if cells.kind != TEXT:
            self._are_clocks = self._are_parted = False
        is_clock = (numbers >= 0) & (numbers < 240000) & (numbers % 100 < 60) & (numbers == np.rint(numbers))
        self._are_clocks = self._are_clocks and bool(is_clock.all())
        self._are_parted = self._are_parted and bool(((numbers > 1) & (numbers < 2101)).all())
        is_short = any(kind == _SHORT for kind, _ in self._numbers)
        if cells.kind == TEXT and (self._are_clocks or self._are_parted or is_short):
            codes, texts = cells.list_texts()
            texts = [texts[code] for code in np.unique(codes[is_number])]
            self._has_padded |= any(_PADDED.fullmatch(text) for text in texts)
            parted = [_PARTED.fullmatch(text) for text in texts]
            self._are_parted = self._are_parted and all(each and 0 < int(each[2]) <= 12 for each in parted)
            self._parted |= {(int(each[1]), int(each[2]), float(f"{each[1]}.{each[2]}")) for each in parted if each}

    def _add_orders(self, numbers: np.ndarray, cells: Cells, piece: Piece) -> None:
        """Whether numbers are dates in one order alone, or months of a year of two digits."""
        is_date = np.array([~np.isnan(read_number_dates(numbers, _DAY, order)) for order in _ORDERS])
        self._num_dated += int(is_date.any(axis=0).sum())
        for order, is_it in zip(_ORDERS, is_date & (is_date.sum(axis=0) == 1), strict=True):
            if is_it.any():
                self._note_first(f"only {order}", np.isin(cells.numbers, numbers[is_it]), cells, piece)
        is_month = (numbers >= 100) & (numbers < 1300) & (numbers == np.rint(numbers))
        self._are_short_months = self._are_short_months and bool(is_month.all())
        if self._are_short_months:  # of days that are counted, the last two digits have all values
            self._short_years.update(widen_years((numbers % 100).astype(int)).tolist())
            self._are_short_months = max(self._short_years) - min(self._short_years) <= _MOST_YEARS
        is_year_last = (
            (numbers >= 10**5) & (numbers < 32 * 10**6) & (numbers % 10**4 >= 1900) & (numbers % 10**4 <= 2100)
        )
        self._are_years_last = self._are_years_last and bool(is_year_last.all())
        self._largest = max(self._largest, numbers.max())

    def _add_texts(self, cells: Cells, is_text: np.ndarray, piece: Piece) -> None:
        codes, texts = cells.list_texts()
        used = np.unique(codes[is_text])
        dates = split_dates([texts[code] for code in used])
        for at in np.flatnonzero(dates.kinds == "")[:1]:
            self._refuse_text(piece.find_first(cells, is_text & (codes == used[at])))
        self._zones[0] += int((dates.has_clock & ~dates.has_zone).sum())
        self._zones[1] += int(dates.has_zone.sum())
        for separator in np.unique(dates.kinds[np.isnan(dates.seconds)]).tolist():
            chosen = (dates.kinds == separator) & np.isnan(dates.seconds)
            read = {order: dates.read(order, chosen) for order in _ORDERS}
            is_none = np.isnan(list(read.values())).all(axis=0)
            if is_none.any():
                first = used[chosen][np.argmax(is_none)]
                self._refuse_text(piece.find_first(cells, is_text & (codes == first)))
            alive = {order for order, seconds in read.items() if not np.isnan(seconds).any()}
            self._note_first(separator, np.isin(codes, used[chosen]) & is_text, cells, piece)
            self._orders[separator] = self._orders.get(separator, set(_ORDERS)) & alive
            if not np.array_equal(read[DAY_FIRST], read[MONTH_FIRST], equal_nan=True):
                self._differs.add(separator)

    def _refuse_text(self, wrong: Sighting) -> None:
        value, where = wrong
        names = "--time_column names another column, or is none"
        if _CLOCK.fullmatch(value):
            raise DatasetError(
                f"{where}: column {self._column!r} has {value!r}, a time of day without a date, expected both in one "
                f"column, since 00:10 may come after 23:50; {names}"
            )
        raise DatasetError(
            f"{where}: column {self._column!r} has {value!r}, expected numbers, dates as in 2024-12-31 23:59:59, or "
            f"31.12.2024; {names}"
        )

    def decide(self) -> TimeStyle:
        """What the values are.

        Raises:
          DatasetError: they leave it open, or contradict each other or `--date_form`; it names a value and the flag.
        """
        if self._asked == NUMBER:
            return TimeStyle()
        orders, words = {}, []
        for separator, alive in sorted(self._orders.items()):
            order = self._choose(separator, alive, separator == ".")
            orders[separator] = order
            if self._asked == AUTO and separator != "." and order != YEAR_FIRST:
                words.append(f"{self._column} as {_WRITTEN[order]}, as in {self._first[separator][0]}")
        numbers, is_epoch, notes = ("", ""), False, []
        if "number" in self._first:
            numbers = self._choose_numbers()
            is_epoch = numbers == ("", "") and self._are_epochs and len(self._units) > 1
            if numbers[1] and (numbers[1] != YEAR_FIRST or numbers[0] == _SHORT):
                order = "month, year" if numbers[0] == _MONTH else _WRITTEN[numbers[1]]
                words.append(f"{self._column} as {order}, as in {self._first['number'][0]}")
            if is_epoch:
                notes.append(
                    f"column {self._column} counts since 1970 in several units (seconds, or parts of them); each "
                    f"number is taken by its size; give {_OTHER}"
                )
            # Beside texts, numbers must be of one clock with these.
            is_clear = numbers != ("", "") or is_epoch or (self._are_epochs and self._units == {1.0})
            if "text" in self._first and not is_clear:
                value, where = self._first["number"]
                raise DatasetError(
                    f"{where}: column {self._column!r} has the number {value} beside dates such as "
                    f"{self._first['text'][0]!r}, expected either; write all of them as dates, or give "
                    f"--time_column=none"
                )
        if all(self._zones):
            notes.append(
                f"column {self._column} has a time zone in some values and none in others, which are taken as UTC"
            )
        return TimeStyle(numbers, is_epoch, tuple(orders.items()), "; ".join(words), tuple(notes))

    def _choose(self, key: str, alive: set[str], is_day_first: bool = False) -> str:
        """The one order that all dates of one kind allow."""
        value, where = self._first[key if key in self._first else "number"]
        if self._asked != AUTO:
            if self._asked in alive:
                return self._asked
            raise DatasetError(
                f"{where}: column {self._column!r} has dates such as {value!r} that are none in the order "
                f"{_WRITTEN[self._asked]}, as --date_form={self._asked} has it; expected all to be"
                + (f"; give --date_form={sorted(alive)[0]}" if len(alive) == 1 else ""),
                {"date_form": sorted(alive)[0]} if len(alive) == 1 else {},
            )
        # Who writes full stops writes the day first.
        if is_day_first and DAY_FIRST in alive:
            return DAY_FIRST
        if alive == {DAY_FIRST, MONTH_FIRST} and key not in self._differs:
            return DAY_FIRST  # which is the same
        if len(alive) == 1:
            return next(iter(alive))
        if not alive:
            raise DatasetError(
                f"{where}: column {self._column!r} has dates such as {value!r}, but no order of day, month and year "
                f"fits all of them, expected one; repair them, or give --time_column=none"
            )
        ways = ", ".join(f"--date_form={order} ({_WRITTEN[order]})" for order in _ORDERS if order in alive)
        raise DatasetError(
            f"{where}: column {self._column!r} has dates such as {value!r}, which can be read in several ways, and no "
            f"value of the column tells which; give {ways}" + (f", or {_OTHER}" if key in _KINDS else ""),
            {"date_form": next(order for order in _ORDERS if order in alive)},
        )

    def _choose_numbers(self) -> tuple[str, str]:
        value, where = self._first["number"]
        self._refuse_orders()
        for kind in _KINDS:
            alive = {order for (each, order), num_odd in self._numbers.items() if each == kind and not num_odd}
            is_meant = kind != _SHORT or self._is_date_column or self._has_padded or self._asked != AUTO
            if alive and is_meant:
                if kind == _MONTH and self._asked in (AUTO, DAY_FIRST, MONTH_FIRST) and YEAR_FIRST not in alive:
                    return kind, DAY_FIRST  # which have no day
                return kind, self._choose(kind, alive)
        # Where nearly all numbers are dates whose order is not that of the numbers, the others are mistakes.
        for (kind, order), num_odd in self._numbers.items():
            if order != YEAR_FIRST and kind in (_DAY, _MINUTE, _SECOND) and self._num_different > 2 * num_odd:
                odd, where = self._first[f"{kind} {order}"]
                raise DatasetError(
                    f"{where}: column {self._column!r} has {odd}, which is no date, beside others that are, such as "
                    f"{self._first[f'date {kind} {order}'][0]}; expected dates alone; repair it, give --missing_words "
                    f"if it stands for no value, or {_OTHER}"
                )
        if self._are_years_last and self._num_different >= _LEAST_YEARS:
            raise DatasetError(
                f"{where}: column {self._column!r} has dates such as {value} that end with the year, but some lack a "
                f"zero, so that 1112024 is January or November; expected eight digits each; write them so, or give "
                f"{_OTHER}"
            )
        if self._asked != AUTO:
            raise DatasetError(
                f"{where}: column {self._column!r} has {value}, expected dates in the order {_WRITTEN[self._asked]}, "
                f"as --date_form={self._asked} has it; give {_OTHER}"
            )
        if self._are_clocks and self._has_padded:
            raise DatasetError(
                f"{where}: column {self._column!r} has times of day without a date, such as {value}, expected both in "
                f"one column, since 0010 may come after 2350; give --time_column=none, or {_OTHER}"
            )
        pairs = sorted(self._parted)
        is_out_of_order = [each[2] for each in pairs] != sorted(each[2] for each in pairs)
        if self._is_date_column and self._are_parted and (is_out_of_order or all(each[0] <= 31 for each in pairs)):
            raise DatasetError(
                f"{where}: column {self._column!r} has dates such as {value} that are no numbers to order by, as 31.01 "
                f"comes before 01.02, and 2024.9 before 2024.10; expected whole dates; give {_OTHER}"
            )
        return "", ""

    def _refuse_orders(self) -> None:
        """Numbers are dates, but no order is that of all, or of 0124 none can be told."""
        only = [(order, *self._first[f"only {order}"]) for order in _ORDERS if f"only {order}" in self._first]
        if len(only) > 1 and self._num_dated > (1 - _FEW) * self._num_different:
            (first, value, _), (second, other, where) = only[:2]
            raise DatasetError(
                f"{where}: column {self._column!r} has {other}, which is a date as {_WRITTEN[second]}, and {value}, "
                f"which is one as {_WRITTEN[first]}; expected one order; write all dates in the same, or give {_OTHER}"
            )
        may_be_months = self._has_padded or (self._is_date_column and self._largest > _DAYS_OF_YEAR)
        if self._asked == AUTO and self._are_short_months and may_be_months:
            value, where = self._first["number"]
            raise DatasetError(
                f"{where}: column {self._column!r} has numbers such as {value}, which can be month and year, month and "
                f"day, or a time of day; expected whole dates, since 0124 comes after 1223 if the year is last; give "
                f"--date_form={YEAR_FIRST} (year, month, day, of 2000), or {_OTHER}"
            )


def find_epoch_units(numbers: np.ndarray) -> np.ndarray:
    """Index into `_EPOCH_UNITS` of the unit that a number counts since 1970, by its size; -1 for none."""
    found = np.full(len(numbers), -1)
    for at, unit in enumerate(_EPOCH_UNITS):
        low, high = _EPOCH_RANGE
        found[(numbers >= low * unit) & (numbers < high * unit)] = at
    return found


def read_times(cells: Cells, style: TimeStyle) -> np.ndarray:
    """Float64, shape (rows,): numbers as they are, dates in seconds since 1970; NaN for what is neither.

    Args:
      cells: of the column.
      style: what `TimeScan` decided.
    """
    if cells.kind == DATE:
        return cells.numbers
    # Yes and no have numbers, too, and are no times.
    times = np.where(cells.is_boolean, np.nan, cells.numbers) if cells.kind == TEXT else cells.numbers
    if style.numbers[0]:
        times = read_number_dates(times, *style.numbers)
    elif style.is_epoch:
        times = times / np.array([*_EPOCH_UNITS, 1.0])[find_epoch_units(times)]
    is_open = ~cells.is_missing & ~cells.is_boolean & ~cells.is_number
    if is_open.any():
        codes, texts = cells.list_texts()
        used, rows = np.unique(codes[is_open], return_inverse=True)
        dates = split_dates([texts[code] for code in used])
        seconds, orders = dates.seconds.copy(), dict(style.orders)
        for kind in np.unique(dates.kinds[np.isnan(seconds)]).tolist():
            chosen = (dates.kinds == kind) & np.isnan(seconds)
            seconds[chosen] = dates.read(orders.get(kind, DAY_FIRST), chosen) if kind in (*orders, ".") else np.nan
        # These are the numbers of the cells, which others read.
        times = times.copy()
        times[is_open] = seconds[rows]
    return times
