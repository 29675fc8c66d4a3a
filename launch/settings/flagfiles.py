"""Flagfiles: flags in a file, in UTF-8 with or without a mark at its start, whatever the locale.

absl would read them in the locale's encoding, and take the mark that some editors write for a part of the first flag.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from files.reading import describe
from launch.settings.errors import FlagError

_DIRECTIVE = re.compile("--?flagfile(?:=(.*))?", re.DOTALL)


def expand_flagfiles(argv: Sequence[str]) -> list[str]:
    """The arguments, with the flags in the place of each `--flagfile=<file>`; what stands after a lone `--` stays.

    Raises:
      FlagError: a file cannot be read, or reads itself again.
    """
    return replace_directives(argv, "flagfile", lambda name: _read_flagfile(name, ()), "<value>")


def replace_directives(
    argv: Sequence[str], flag: str, expand: Callable[[str], Iterable[str]], expected: str
) -> list[str]:
    """The arguments, with `expand(value)` in the place of each `--<flag>=value`; what stands after a lone `--` stays.

    Raises:
      FlagError: the flag is the last argument, without the `expected` value.
    """
    expanded, arguments, directive = [], iter(argv), re.compile(f"--?{flag}(?:=(.*))?", re.DOTALL)
    for argument in arguments:
        found = directive.fullmatch(argument)
        if found is None:
            expanded.append(argument)
            if argument == "--":
                break
            continue
        value = found[1] if found[1] is not None else next(arguments, None)
        if value is None:
            raise FlagError(f"--{flag}: no value, expected --{flag}={expected}")
        expanded += expand(value)
    return [*expanded, *arguments]


def _read_flagfile(name: str, readers: tuple[str, ...]) -> Iterator[str]:
    """The flags of a file, which those of `readers` read one from the other."""
    path = os.path.expanduser(name.strip())
    if not path:
        return
    if path in readers:
        raise FlagError(f"--flagfile={path}: includes itself; expected flagfiles without a circle")
    for line in _read_lines(path):
        directive = _DIRECTIVE.fullmatch(line)
        if directive is not None and directive[1] is not None:
            yield from _read_flagfile(directive[1], (*readers, path))
        elif line and not line.startswith(("#", "//")):
            yield line


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return [line.strip() for line in file]
    except OSError as error:
        raise FlagError(f"cannot read the flagfile {path}: {describe(error)}") from None
    except ValueError:  # no UTF-8, or a name with a NUL
        raise FlagError(f"cannot read the flagfile {ascii(path)[1:-1]}: it is not a text file in UTF-8") from None
