"""What the commands share: reading flags, and ending in one line and an exit code, whatever happens.

Exit codes: 0 done, 1 it failed, 2 the request was wrong, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. Imports no TensorFlow.
"""

import dataclasses
import os
import pathlib
import re
import sys
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

from datasets.errors import DatasetError
from datasets.own_objects import describe_failure, find_own_line, iterate_causes
from files.cache_folder import default_cache_dir
from files.reading import describe
from files.writing import write_text
from launch.console import stop_signals
from launch.console.shown_text import escape_hidden, show_text
from launch.console.stop_signals import get_stop_code, stop_on_signals
from launch.console.temporary_folder import own_temporary_folder
from launch.runs.errors import RunFolderError, RunStopped
from launch.settings.errors import FlagError
from launch.settings.flag_fields import DEBUG, FlagField, format_default, iterate_fields
from launch.settings.flag_parsing import FULL_HELP, HELP_FLAGS, define_flags, read_flags, read_given
from launch.settings.flags import describe_unknown
from models.model_names import ModelError
from tff_algos.protocol import ClientStateError
from tff_algos.settings.config_fields import ConfigError

# What each command does, in the order in which a person may need them.
COMMANDS = {
    "advise": "Says whether to federate your data, and with what.",
    "inspect": "Says what is in your data, and how training would read them.",
    "train": "Trains an algorithm on a data set.",
    "serve": "Trains with clients that take part over the network.",
    "evaluate": "Evaluates a finished run's models again, or on your file.",
    "compare": "Compares runs: a page, a figure or a table.",
    "tune": "Searches the settings that do best on validation data.",
    "sweep": "Trains several algorithms or settings on several seeds.",
    "export": "Writes a run's models as TFLite files for phones.",
    "card": "Prints what an exported file says about its model.",
    "report": "Compares runs of a paper's experiments with what it prints.",
    "doctor": "Checks this machine, and suggests a fix for each problem.",
    "check": "Checks your own algorithm, model, loss, aggregator or data set.",
    "track": "Sends runs to MLflow, W&B or TensorBoard.",
    "benchmark": "Measures the seconds of a round, ours beside others'.",
}
Flags = TypeVar("Flags")
NOT_UTF8 = "not UTF-8; expected arguments and names of files in UTF-8, with PYTHONUTF8=1 where the locale is not"
DEBUG_HELP = "prints the traceback of an error, too"
MOST_TRACEBACKS = 20
WRONG_REQUESTS = (FlagError, ConfigError, RunFolderError, DatasetError, ModelError, ClientStateError)


def run_main(
    run: Callable[[list[str]], int | None],
    format_help: Callable[[], str],
    argv: Sequence[str] | None = None,
    stopped: str = "stopped",
    format_all: Callable[[], str] | None = None,
) -> int:
    """Runs a command, or prints its help, and returns its exit code; what a user can cause is one line on stderr.

    With --debug among the arguments, the traceback stands before that line.

    Args:
      run: does the work for the arguments; None means 0.
      format_help: the text of --help.
      argv: the arguments without the program's name; None: those of this program.
      stopped: what to say after Ctrl-C.
      format_all: the text of --helpfull, if it is another.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    is_full = format_all is not None and FULL_HELP in arguments
    with show_text():
        return _run_main(run, format_all if is_full else format_help, arguments, stopped)


def run_command(
    run: Callable[[list[str]], int | None],
    name: str,
    usage: str,
    flags: type,
    argv: Sequence[str] | None = None,
    common: Sequence[str] = (),
    **further: str,
) -> int:
    """The same for a command with flags of its own, whose help comes from these.

    Args:
      run: does the work, as for `run_main`.
      name: one of `COMMANDS`.
      usage: how to call it.
      flags: its flags, a dataclass of settings.
      argv: the arguments.
      common: the flags that people use, shown by --help; () for all. --helpfull shows all.
      further: what else `run_main` takes.
    """
    usage = f"{usage}\n{COMMANDS[name]}"
    format_some, format_all = (lambda shown=shown: format_command_help(usage, list_fields(flags), shown)
                               for shown in (common, ()))  # fmt: skip
    return run_main(run, format_some, argv, format_all=format_all, **further)


def _run_main(
    run: Callable[[list[str]], int | None], format_help: Callable[[], str], arguments: list[str], stopped: str
) -> int:
    try:
        with stop_on_signals():
            for argument in arguments:
                argument.encode()  # or else it is no text
            if any(argument in HELP_FLAGS for argument in arguments):
                print(format_help())
                exit_code = 0
            else:
                with own_temporary_folder():
                    exit_code = run([argument for argument in arguments if argument != DEBUG]) or 0
            sys.stdout.flush()
            return exit_code
    except BaseException as error:
        if DEBUG in arguments:
            traceback.print_exc()
        end = _describe_end(error, stopped)
        if end is None:
            raise
        return _fail(*end)


def _describe_end(error: BaseException, stopped: str) -> tuple[str, int] | None:
    """What is said of an error that ends a command, "" for nothing, and the exit code; None of a bug of ours."""
    if isinstance(error, WRONG_REQUESTS):
        # What flags solve is seldom alone in a table, and a run stops at the first of it.
        hint = "; python -m launch.inspect names all that is wrong at once" if getattr(error, "fix", None) else ""
        return f"error: {put_suggestion_first(name_flag(str(error)))}{hint}{keep_traceback(error)}", 2
    match error:
        case RunStopped(exit_code=exit_code):
            return str(error) if stop_signals.IS_SAID or exit_code < 128 else "", exit_code
        case KeyboardInterrupt():
            return stopped if stop_signals.IS_SAID else "", get_stop_code(error)
        case SystemExit():  # nothing here exits, but a user's own code may; exit code 0 would look like success
            return f"error: the command was ended by {describe_failure(error)}{keep_traceback(error)}", 2
        case BrokenPipeError():  # `| head`: the reader has enough, so there is nothing to say
            return "", 1
        case OSError():
            return f"error: {describe_os_error(error)}", 1
        case MemoryError():
            return f"error: {describe_memory_error(error)}", 1
        case UnicodeEncodeError(reason="surrogates not allowed"):  # it came from bytes that are not UTF-8
            return f"error: {error.object}: {NOT_UTF8}", 2
        case Exception() if not isinstance(error, UnicodeEncodeError) and find_own_line(error):
            return f"error: {describe_failure(error)}{keep_traceback(error)}", 2
    return None


def keep_traceback(error: BaseException) -> str:
    """Where the traceback of an error of a user's own code lies, "; traceback: <file>"; "" for other errors.

    What the user's code raises with a line of its own, as a ConfigError, needs none. The newest are kept.
    """
    raised = next((each for each in iterate_causes(error) if not isinstance(each, WRONG_REQUESTS)), None)
    if raised is None or not find_own_line(raised):
        return ""
    folder = pathlib.Path(default_cache_dir("tracebacks"))
    # Names sort by time, and those of one second differ.
    path = folder / f"{time.strftime('%Y%m%d_%H%M%S')}_{time.perf_counter_ns()}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(traceback.format_exception(error)))
        for old in sorted(folder.glob("*.txt"))[:-MOST_TRACEBACKS]:
            old.unlink(missing_ok=True)
    except OSError:
        return f"; {DEBUG} prints the traceback"
    return f"; traceback: {path}"


def _fail(message: str, exit_code: int) -> int:
    """Says why, if anybody listens, and keeps Python from complaining when it flushes its streams at the end."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, escape_hidden(message))):
        try:
            print(text, end="\n" if text else "", file=stream, flush=True)
        except OSError:
            # Python flushes its streams once more at the end, and would complain then.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    return exit_code


def describe_os_error(error: OSError) -> str:
    """An error of the operating system in one line: the file, if one is named, and what is wrong with it."""
    reason = " ".join(describe(error).split())
    return reason if error.filename is None else f"{error.filename}: {reason}"


def describe_memory_error(error: MemoryError) -> str:
    """Too little memory in one line, with what was asked for where NumPy says it."""
    asked = re.search(r"allocate (\S+ \S+)", str(error))
    wanted = f" for {asked[1]} more" if asked else ""
    return f"this machine has not enough memory{wanted}; use fewer or smaller examples, or a larger machine"


def name_flag(message: str) -> str:
    """`message` with "--" before it if it starts with a setting, as the errors of data sets and models do."""
    return f"--{message}" if re.match("[a-z][a-z0-9_]*=", message) else message


def put_suggestion_first(message: str) -> str:
    """`message` with what was probably meant, if it ends with that, right behind what was typed.

    For example "--rouns: did you mean --rounds? unknown flag": a list of what is expected may take lines.
    """
    return re.sub(r"^(.+?: (?:\S+: )*)(.*); (did you mean .*\?)$", r"\1\3 \2", message)


def list_fields(flags: type) -> tuple[FlagField, ...]:
    """The flags of a command, of the dataclass that declares them."""
    return tuple(iterate_fields(flags()))


class Given(NamedTuple):
    """What a command line says.

    Attributes:
      flags: every flag with its value, the default where it was left out.
      names: the flags that were given.
    """

    flags: Any
    names: Collection[str]


def parse_command(flags: type[Flags], argv: Sequence[str], instead: str = "") -> Given:
    """Reads the arguments, without the program's name.

    An error on a flag that belongs to `launch.train`, or on what stands after a lone `--`, says what to do `instead`.

    Raises:
      FlagError: an unknown flag, a stray argument, a value of the wrong type or out of range.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    values = define_flags(list_fields(flags))
    read_flags(values, argv[:split], lambda name: describe_unknown(name, list(values), instead))
    if argv[split + 1 :]:
        raise FlagError(f"nothing is expected after --{instead and f'; {instead}'}")
    given = read_given(values)
    return Given(dataclasses.replace(flags(), **given), given.keys())


def parse_flags(flags: type[Flags], argv: Sequence[str], instead: str = "") -> Flags:
    """Every flag of a command with its value. Raises FlagError, as `parse_command` does."""
    return parse_command(flags, argv, instead).flags


def find_paths(argv: Sequence[str]) -> list[str]:
    """The arguments before a lone `--` that are no flags and not the value of the flag before them."""
    before = argv[: list(argv).index("--")] if "--" in argv else argv
    return [
        argument
        for i, argument in enumerate(before)
        if not argument.startswith("-") and (i == 0 or "=" in before[i - 1] or not before[i - 1].startswith("-"))
    ]


def take_run_dir(arguments: Sequence[str]) -> list[str]:
    """The arguments, with a run's folder that stands there alone given to --run_dir: `runs/x` in place of a flag.

    It is taken where it cannot be the value of the flag before it: in the first place, or after `--name=value`.
    """
    before = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
    if any(re.match(r"--?run_dir(=|$)", argument) for argument in before):
        return list(arguments)
    for place, argument in enumerate(before):
        if not argument.startswith("-") and (place == 0 or ("=" in before[place - 1] and os.path.isdir(argument))):
            return [*arguments[:place], f"--run_dir={argument}", *arguments[place + 1 :]]
    return list(arguments)


def format_command_help(usage: str, fields: Sequence[FlagField], common: Sequence[str] = ()) -> str:
    """The text of --help: how to call the command, then its flags with their defaults in brackets.

    With `common` only these flags, in this order, and how to see the others.
    """
    lines, by_name = [usage, ""], {field.name: field for field in fields}
    for field in map(by_name.get, common or by_name):
        repeated = " May be given several times." if field.setting.repeated else ""
        lines.append(f"  --{field.name}{format_default(field)}\n      {field.setting.help_text}{repeated}")
    lines.append(f"  {DEBUG}\n      {DEBUG_HELP.capitalize()}.")
    if common and len(common) < len(fields):
        lines += ["", f"{FULL_HELP} shows all {len(fields)} flags."]
    return "\n".join(lines)
