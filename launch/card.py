"""`python -m launch.card <file.tflite>` prints the model card that launch.export has put into a file.

What the model is, how good it is and for whom, whether it may be sold, what it must not be used for. With --json, the
card's own bytes. Exit codes: 0 done, 2 the file cannot be read, has no card, or a damaged one.
"""

import dataclasses
import json
import pathlib
import sys
import textwrap
from collections.abc import Sequence

from files.reading import describe, read_regular
from launch.command_line import parse_flags, run_command
from launch.console.shown_text import escape_lines
from launch.console.stop_signals import leave
from launch.settings.errors import FlagError
from launch.tflite.card_page import card_rows
from launch.tflite.embedded_card import read_card, split_file
from models.model_names import ModelError
from tff_algos.settings.config_fields import setting

USAGE = "python -m launch.card <file.tflite> [--json]"
WIDTH = 120


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    json: bool = setting(False, "Print the card as it stands in the file.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "card", USAGE, Flags, argv)


def _run(arguments: Sequence[str]) -> None:
    # The parser of flags takes nothing but flags.
    names = [argument for argument in arguments if not argument.startswith("-")]
    flags = parse_flags(Flags, [argument for argument in arguments if argument not in names])
    if len(names) != 1:
        raise FlagError(f"expected one file that launch.export has written, got {' '.join(names) or 'none'}: {USAGE}")
    path = pathlib.Path(names[0]).expanduser()
    try:
        content = read_regular(path)
    except OSError as error:
        hint = "name a file in it" if path.is_dir() else f"expected a file that launch.export has written: {USAGE}"
        raise FlagError(f"{path}: {describe(error).lower()}; {hint}") from None
    try:
        card = read_card(content)
        rows = [] if flags.json else card_rows(card)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    # A card of another version has other keys, or other values behind them.
    except (KeyError, TypeError, ValueError, AttributeError):
        reason = "its card is of another version of launch.export; --json prints it as it is"
        raise ModelError(f"{path}: {reason}") from None
    if flags.json:
        # The card's bytes go past the text stream, whose lines must not come after them.
        sys.stdout.flush()
        sys.stdout.buffer.write(_show_json(split_file(content).card))
        return
    width = max(len(title) for title, _ in rows)
    for title, text in rows:
        lines = textwrap.wrap(text, WIDTH - width - 2) or [""]
        print(f"{title:<{width}}  {lines[0]}", *(f"{'':<{width}}  {line}" for line in lines[1:]), sep="\n")


def _show_json(card: bytes) -> bytes:
    """The card as it stands in the file or, if it would steer a terminal, the same JSON without such characters."""
    text = card.decode("utf-8", "replace")
    if escape_lines(text) == text:
        return card
    # JSON in ASCII escapes every other character that steers a terminal itself.
    return json.dumps(json.loads(card), indent=2).replace("\x7f", "\\u007f").encode()


if __name__ == "__main__":
    leave(main())
