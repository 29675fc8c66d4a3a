"""What a header holds, read with its bounds: the other side may say anything. Imports no TensorFlow."""

import math
from collections.abc import Mapping
from typing import Any

from launch.live.messages import MessageError

MOST_COUNT = 2**31 - 1
MOST_TOKEN = 200  # characters


def read_count(header: Mapping[str, Any], name: str, least: int = 0, most: int = MOST_COUNT) -> int:
    """A whole number from `least` to `most`. Raises MessageError."""
    value = header.get(name)
    if type(value) is not int or not least <= value <= most:
        raise MessageError(f"{name}: expected a whole number from {least} to {most}")
    return value


def read_number(header: Mapping[str, Any], name: str) -> float:
    """A finite number. Raises MessageError."""
    value = header.get(name)
    if type(value) not in (int, float) or not -1e300 < value < 1e300:  # a whole number may be too long for a float
        raise MessageError(f"{name}: expected a finite number")
    return float(value)


def read_duration(header: Mapping[str, Any], name: str) -> float:
    """Seconds, at least 0. Raises MessageError."""
    value = read_number(header, name)
    if math.copysign(1, value) < 0:
        raise MessageError(f"{name}: expected seconds, at least 0")
    return value


def read_text(header: Mapping[str, Any], name: str, most: int = 200) -> str:
    """A text of at most so many characters, which UTF-8 can write. Raises MessageError."""
    value = header.get(name)
    if not isinstance(value, str) or len(value) > most or not _is_whole(value):
        raise MessageError(f"{name}: expected a text of at most {most} characters")
    return value


def _is_whole(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which JSON can name."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
