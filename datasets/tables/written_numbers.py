"""Numbers as people write them: 1,230 and 1.230,50, 45 %, $45, 45 kg, (45). One text at a time, and all it can mean.

A number has a body, of digits and marks, and a dress: the currency, the unit or the percent sign beside it. What a mark
means is left open here; `datasets.tables.number_styles` decides it from all values of a column.
"""

import math
import re
from typing import NamedTuple

POINT, COMMA, OPEN, EITHER = "point", "comma", "open", "either"
PLAIN, ZERO, PERCENT = "", "0", "%"  # dresses: none, of a zero, which is one in any unit, and percent
MOST_CHARACTERS = 40  # of a number with its unit
EXCEL_ERRORS = frozenset({"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!", "#spill!", "#calc!"})
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ALIKE = str.maketrans(
    {
        **_FULL_WIDTH,
        **dict.fromkeys("\u00a0\u202f\u2009\u2007\u2002\u2003\u3000\t", " "),
        **dict.fromkeys("\u2019\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u2212\ufe63\u2010\u2011", "-"),
        **{chr(first + digit): str(digit) for first in (0x660, 0x6F0, 0x966) for digit in range(10)},
        "\u066b": ".",
        "\u066c": "'",
        "\u03bc": "\u00b5",
    }
)
_SYMBOLS = "$€£¥₹₽₩₺₪฿₫₴₦₱₡₲₵"
_CODES = """
USD EUR GBP JPY CHF CNY RMB INR RUB KRW TRY BRL CAD AUD NZD SEK NOK DKK PLN CZK HUF ILS MXN ZAR SGD HKD TWD THB IDR MYR
PHP VND UAH RON BGN NGN EGP AED SAR KWD ARS CLP COP PEN PKR
"""
_CURRENCY = rf"(?:[A-Z]{{1,2}}\$|[{_SYMBOLS}]|Rs\.?|kr\.?|Fr\.?|{'|'.join(_CODES.split())})"
_NUMBER = re.compile(
    rf"(?P<open>\()? ?(?P<sign>[+-])? ?(?P<before>{_CURRENCY}|%)? ?(?(open)|(?P<within>\()?) ?(?P<inner>[+-])? ?"
    r"(?!0[xX][\dA-Fa-f])(?P<body>[.,]?\d(?:[.,' ]?\d)*[.,]?)(?P<power>[eE][+-]?\d+)?"
    rf" ?(?P<after>(?:[^\W\d_²³¹]|[%‰°/{_SYMBOLS}])[^\s(),;<>=]{{0,14}}(?: (?:ft|m|oz|in))?)?"
    r" ?(?P<close>\))? ?(?P<last>-)?"
)
_GROUPED = {mark: re.compile(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+") for mark in (r"\.", ",", "'", " ")}
_INDIAN = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}")
_LOOSE = r"[-+]?[\d.,' ]*\d ?[%‰]?"  # a number in a text that says more than one
_ODD = re.compile(
    rf"(?:[<>≤≥~≈±]=?|ca\.?|approx\.?|about) ?{_LOOSE}|{_LOOSE}\+|0x[0-9a-f]+|[^\w#]+"
    rf"|{_LOOSE} ?(?:-|\u2013|\u2014|to|\.\.|/|±) ?{_LOOSE}",
    re.IGNORECASE,
)
_NO_CENTS = re.compile(r"(?<=\d)[.,][-\u2013\u2014]+(?!\d)")  # as prices end: 45,-
_NO_UNITS = frozenset({"st", "nd", "rd", "th", "am", "pm", "a.m", "p.m"})  # 1st, 8pm
_SAME = {
    "€": "EUR",
    "euro": "EUR",
    "£": "GBP",
    "₹": "INR",
    "Rs": "INR",
    "US$": "USD",
    "Fr": "CHF",
    "percent": PERCENT,
    "pct": PERCENT,
}
_UNIT_WORDS = """
g kg mg µg ug t lb oz ton tonne m cm mm km µm um nm in inch ft feet foot yd yard mi mile m2 m² km2 km² cm2 cm² ft2 ft²
sqft sqm ha acre l ml cl dl L mL µl m3 m³ cm3 cc gal gallon s sec second ms µs us ns min minute h hr hour d day wk week
mo month yr year ° °C °F mV V kV mA W kW MW GW kWh MWh Wh Hz kHz MHz GHz Ω dB dBm J kJ Pa kPa hPa bar mbar psi kB KB MB
GB TB kbps Mbps Gbps bit byte bpm mmHg IU kcal cal ppm ppb mph kph kmh kn rpm pcs pc piece px K M k bn mn mio mrd
thousand million billion kr zł Kč
"""
_UNITS = frozenset(_UNIT_WORDS.split()) | {"sq ft", "sq m", "fl oz", "sq in", PERCENT, "‰"}


class Written(NamedTuple):
    """A text that is a number.

    Attributes:
      dress: the currency, unit or percent sign; `PLAIN`, or `ZERO` for a zero without one.
      point: the number if a point is the decimal mark; NaN if it can be none then.
      comma: the same of a comma.
      is_code: whether it begins with a zero that a number does not need, as 007 does.
      is_whole: whether it is digits alone.
    """

    dress: str
    point: float
    comma: float
    is_code: bool
    is_whole: bool

    @property
    def mark(self) -> str:
        """Which mark is the decimal one: `POINT`, `COMMA`, `OPEN` if both could be, `EITHER` if it does not matter."""
        if math.isnan(self.comma) or math.isnan(self.point):
            return POINT if math.isnan(self.comma) else COMMA
        return EITHER if self.point == self.comma else OPEN


def read_written(text: str) -> Written | None:
    """What a text says as a number with a unit or without; None if it is none."""
    tidy = _tidy(text)
    found = _NUMBER.fullmatch(tidy) if 0 < len(tidy) <= MOST_CHARACTERS else None
    opened = found and (found["open"] or (found["before"] and found["within"]))  # ($45) or $(45)
    if not found or bool(opened) != bool(found["close"]):
        return None
    signs = [found[name] for name in ("sign", "inner", "last") if found[name]]
    after = _name_unit(found["after"] or "")
    # 12/2020 is a date, but $45/hour a price.
    if len(signs) > 1 or after in _NO_UNITS or (signs and opened) or (after[:1] == "/" and not found["before"]):
        return None
    dress = " ".join(filter(None, (_name_unit(found["before"] or ""), after)))
    # Accountants write negative amounts in brackets.
    factor = -1.0 if "-" in signs or opened else 1.0
    divisor = {PERCENT: 100.0, "‰": 1000.0}.get(dress, 1.0)
    body = found["body"]
    point, comma = (factor * _read_body(body, found["power"] or "", mark) / divisor for mark in ".,")
    if math.isnan(point) and math.isnan(comma):
        return None
    is_whole = body.isdigit() and not (found["power"] or signs or opened)
    # 0 stands beside 5 kg and beside 5 %.
    dress = ZERO if dress == PLAIN and 0 in (point, comma) else dress
    return Written(dress, point, comma, is_whole and len(body) > 1 and body[0] == "0", is_whole)


def is_odd(text: str) -> bool:
    """Whether a text among numbers says one that is none: a bound, a range, a fraction, an error of Excel, a dash."""
    return 0 < len(text) <= MOST_CHARACTERS and (
        text.strip().lower() in EXCEL_ERRORS or _ODD.fullmatch(_tidy(text)) is not None
    )


def is_unit(dress: str) -> bool:
    """Whether it is surely a unit, a currency or percent; other words are one where all values have the same."""
    known = _UNITS | set(_SAME.values())
    return dress in known or all(
        part in known or "/" in part or re.fullmatch(_CURRENCY, part) is not None for part in dress.split()
    )


def _tidy(text: str) -> str:
    """With the digits, blanks and signs of ASCII, and without the marks by which Excel says that it is text."""
    tidy = text if text.isascii() else text.translate(_ALIKE)
    tidy = " ".join(tidy.split())
    if tidy.startswith("\u2013"):  # the dash that word processors make of a minus
        tidy = f"-{tidy[1:]}"
    if tidy.startswith('="') and tidy.endswith('"'):
        tidy = tidy[2:-1]
    return _NO_CENTS.sub("", tidy.removeprefix("'"))


def _name_unit(written: str) -> str:
    """One name for the ways in which a unit is written: days and day, hrs and hr, € and EUR."""
    name = written if written in _UNITS else written.rstrip(".")
    # Short units differ in case: mV and MV, g and G.
    if len(name) > 3 and name.isalpha():
        name = name if name.isupper() or name in _UNITS else name.lower()
    # The plural.
    if len(name) > 2 and name.endswith("s") and name not in _UNITS:
        name = name[:-1]
    if name not in _UNITS and len(name) > 1 and name.lower() in _UNITS:  # KG, but not G
        name = name.lower()
    return _SAME.get(name, name)


def _read_body(body: str, power: str, mark: str) -> float:
    """Digits with this decimal mark and any other one between groups of digits; NaN if they do not stand so."""
    whole, _, decimals = body.partition(mark)
    marks = set(whole) - set("0123456789")
    if (decimals and not decimals.isdigit()) or len(marks) > 1:
        return math.nan
    if marks:
        group = marks.pop()
        is_grouped = _GROUPED[r"\." if group == "." else group].fullmatch(whole) or (
            group == "," and _INDIAN.fullmatch(whole)
        )
        if not is_grouped or power:
            return math.nan
        whole = whole.replace(group, "")
    return float(f"{whole or '0'}.{decimals or '0'}{power}")
