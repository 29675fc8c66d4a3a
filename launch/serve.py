"""`python -m launch.serve --algo=fedavg` trains with clients that answer over the network; `--help` lists the flags.

It takes the flags of `launch.train`, prints a link, waits for clients, and deals each its part of the data set; with
--own_data they bring their own. The run folder is like any other. It listens on 127.0.0.1 alone, unless
--host says otherwise. `--resume --run_dir=<folder>` goes on with a run; its clients come back by themselves.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import NamedTuple

from launch.command_line import format_command_help, list_fields, run_main
from launch.console.stop_signals import leave
from launch.settings.errors import FlagError
from launch.settings.experiments import expand_experiments
from launch.settings.flag_fields import DEBUG
from launch.settings.flag_parsing import HELP_FLAGS, define_flags, expand_flagfiles, read_given, read_known
from launch.settings.flags import parse_config, parse_given
from launch.settings.help_pages import format_all_flags
from launch.settings.run_config import RunConfig
from launch.settings.serving import ServeFlags as Flags
from launch.settings.serving import build_serve_flags, check_waits, choose_resumed_flags
from tff_algos.rounds.synchronous_config import SynchronousConfig

PROGRAM = "python -m launch.serve"
USAGE = f"""\
{PROGRAM} --algo=<algorithm> [--flag=value ...] [--flag of train ...]
Trains with clients that take part over the network: python launch/live/join.py <link>"""
# Of its own flags, those that --help shows.
COMMON = ("host", "port", "start_with", "own_data", "round_deadline_s", "least_answers", "evaluate_on")
OF_DATA = ("data", "dataset", "npz")  # of launch.train: what a schema is in place of
OF_TRAIN = "The flags of launch.train go with it; python -m launch.train --help shows those that people use."


class Request(NamedTuple):
    """What a command line asks for: the run, and how its clients are asked; `given` names the flags of the latter."""

    config: RunConfig
    flags: Flags
    given: frozenset[str]


def parse_request(argv: Sequence[str]) -> Request:
    """What a command line asks for; with --resume, flags left out come from the run folder.

    Raises:
      FlagError: a wrong flag of either kind, or values in conflict.
    """
    own = define_flags(list_fields(Flags))
    rest = read_known(own, expand_experiments(expand_flagfiles(argv)))
    config, given = parse_config(rest, beside=list(own)), read_given(own)
    config = dataclasses.replace(config, algorithm=config.algorithm.plan_asked())
    flags = choose_resumed_flags(config.run_dir, given) if config.resume else build_serve_flags(given)
    if flags.free_seat and not config.resume:
        raise FlagError(f"--free_seat={given['free_seat']}: expected --resume beside it; seats of a new run are free")
    if flags.schema and not config.resume:
        for name in OF_DATA:
            if name in parse_given(rest, beside=list(own)):
                raise FlagError(f"--schema={flags.schema}: expected no --{name} beside it; either describes the data")
    check_waits(flags, given.keys(), isinstance(config.algorithm, SynchronousConfig), config.algo)
    return Request(config, flags, frozenset(given))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_main(_run, _format_help, arguments, "stopped before the training began", lambda: _format_all(arguments))


def _format_help() -> str:
    return f"{format_command_help(USAGE, list_fields(Flags), COMMON)}\n\n{OF_TRAIN}"


def _format_all(arguments: Sequence[str]) -> str:
    of_run = [argument for argument in arguments if argument not in (*HELP_FLAGS, DEBUG)]
    of_run = read_known(define_flags(list_fields(Flags)), of_run)
    own = format_command_help(USAGE, list_fields(Flags))
    return f"{own}\n\nThe flags of launch.train:\n\n{format_all_flags(of_run)}"


def _run(arguments: Sequence[str]) -> None:
    if not arguments:
        raise FlagError(f"--algo is missing: expected {PROGRAM} --algo=fedavg, or --help")
    config, flags, given = parse_request(arguments)
    from launch.live.session import Session
    from launch.training.training_run import run_training

    with Session(flags, given) as session:
        run_training(config, session)


if __name__ == "__main__":
    leave(main())
