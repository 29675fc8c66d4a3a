"""Reads the flags of a small command (sweep, report) so that a mistake is one line. Imports no TensorFlow."""

from collections.abc import Sequence

from absl import flags as absl_flags

from launch.flags import FlagError, suggest


def parse_command(values: absl_flags.FlagValues, argv: Sequence[str]) -> list[str]:
    """Sets `values` from the arguments, without the program's name, and returns those after a lone `--`.

    Raises:
      FlagError: an unknown flag, a stray argument, a value of the wrong type or out of range.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    values.set_gnu_getopt(True)
    try:
        stray = values(["command", *argv[:split]])[1:]
    except absl_flags.UnrecognizedFlagError as error:
        hint = suggest(error.flagname, values) or "; --help lists them all"
        raise FlagError(f"--{error.flagname}: unknown flag{hint}") from None
    except (absl_flags.Error, ValueError) as error:
        raise FlagError(" ".join(str(error).removeprefix("flag ").split())) from None
    if stray:
        raise FlagError(f"{stray[0]}: expected flags only, each as --name=value")
    return list(argv[split + 1 :])


def format_command_help(usage: str, values: absl_flags.FlagValues) -> str:
    """The text of --help: how to call the command, then its flags with their defaults in brackets."""
    lines = [usage, ""]
    for name in values:
        flag = values[name]
        default = "" if flag.default in (None, "", []) else f" [{flag.default_as_str.strip(chr(39))}]"
        lines.append(f"  --{name}{default}\n      {flag.help}")
    return "\n".join(lines)
