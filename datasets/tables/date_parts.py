"""Dates in their parts: the year, month and day of texts and of numbers, in any order, as seconds since 1970."""

import re
from typing import NamedTuple

import numpy as np

from datasets.tables.options import DAY_FIRST, MONTH_FIRST, YEAR_FIRST

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
_CLOCK = re.compile(
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
        places = {YEAR_FIRST: (0, 1, 2), DAY_FIRST: (2, 1, 0), MONTH_FIRST: (2, 0, 1)}[order]
        year, month, day = (self.parts[chosen][:, place] for place in places)
        digits, of_day = (self.num_digits[chosen][:, place] for place in (places[0], places[2]))
        year = np.where(digits == 2, widen_years(year), year)
        is_right = np.isin(digits, (2, 4)) & (of_day < 3)
        return np.where(is_right, count_seconds(year, month, day), np.nan) + self.clocks[chosen]


def count_seconds(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Seconds since 1970 of days, float64; NaN where there is no such day. Takes int64 arrays of one shape."""
    is_right = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1) & (year < 10_000)
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
    stamps = pandas.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    nanoseconds = stamps.tz_localize(None).to_numpy().astype("datetime64[ns]")
    is_iso = ~np.isnat(nanoseconds)
    seconds = np.where(is_iso, nanoseconds.astype(np.int64) / 1e9, np.nan)
    kinds = np.where(is_iso, "iso", "").astype(object)
    parts, digits = np.zeros((count, 3), np.int64), np.zeros((count, 3), np.int64)
    clocks = np.zeros(count)
    has_clock = np.array([":" in text for text in texts], bool) & is_iso
    has_zone = np.array([text[-1:] == "Z" or "+" in text or "-" in text[10:] for text in texts], bool) & has_clock
    for place in np.flatnonzero(~is_iso):
        text = texts[place].strip()
        found = _NUMERIC.fullmatch(text)
        named = None if found else next(filter(None, (form.fullmatch(text) for form in _NAMED)), None)
        rest = (found or named) and _read_clock((found or named)["rest"])
        if not rest:
            continue
        clocks[place], has_clock[place], has_zone[place] = rest
        if found:
            kinds[place] = found["by"]
            parts[place] = [int(found[part]) for part in "abc"]
            digits[place] = [len(found[part]) for part in "abc"]
        elif month := _MONTHS.get(named["month"].lower()):
            year = int(named["year"])
            day = count_seconds(
                *(np.array([each]) for each in (widen_years(year) if year < 100 else year, month, int(named["day"])))
            )
            seconds[place] = day[0] + clocks[place]
            kinds[place] = "" if np.isnan(day[0]) else "name"
    return TextDates(kinds, seconds, parts, digits, clocks, has_clock, has_zone)


def _read_clock(text: str | None) -> tuple[float, bool, bool] | None:
    """(seconds since midnight, whether there is a clock, whether it has a zone); None if it is no time of day."""
    if not text:
        return 0.0, False, False
    found = _CLOCK.fullmatch(text.strip())
    if not found:
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"]), float((found["second"] or "0").replace(",", "."))
    if half := (found["half"] or "").lower():
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    if hour > 23 or minute > 59 or second >= 61:
        return None
    zone = found["zone"] or ""
    offset = 0.0
    if zone[:1] in ("+", "-"):
        offset = (int(zone[1:3]) * 60 + int(zone[-2:])) * 60.0 * (1 if zone[0] == "+" else -1)
    return hour * 3600 + minute * 60 + second - offset, True, bool(zone)
