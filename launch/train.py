"""`python -m launch.train --algo=...` trains one algorithm on one data set. `--help` lists the flags.

`--experiment=<paper>/<name>` takes the settings of a paper's experiment; flags after it override them.
`--list_experiments` lists them, `--list_experiments=fedcd` those of FedCD, and `--show_experiment=<paper>/<name>`
prints one as a flagfile, with where each setting comes from.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import sys
from collections.abc import Sequence

from launch.command_line import run_main
from launch.console.stop_signals import leave
from launch.settings.errors import FlagError
from launch.settings.experiments import format_flagfile, format_list, get_experiment
from launch.settings.flags import LISTING, parse_config
from launch.settings.help_pages import format_help, format_start


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_main(_run, lambda: format_help(arguments), arguments, stopped="stopped before the training began")


def _run(arguments: Sequence[str]) -> int | None:
    if not arguments:
        print(format_start(), file=sys.stderr)
        return 2
    if (shown := show_experiments(arguments)) is not None:
        print(shown)
        return None
    config = parse_config(arguments)
    from launch.training import training_run

    training_run.run_training(config)
    return None


def show_experiments(arguments: Sequence[str]) -> str | None:
    """What `--list_experiments` or `--show_experiment` asks for; None if neither is among the arguments.

    Raises:
      FlagError: there is no such experiment, or other flags stand beside it.
    """
    asked = [each.lstrip("-").partition("=") for each in arguments if each.startswith("-")]
    found = [(name, value) for name, _, value in asked if name in LISTING]
    if not found:
        return None
    (name, value), *_ = found
    if len(arguments) > 1:
        raise FlagError(f"--{name}: expected nothing else beside it; a name is given as --{name}=<name>")
    try:
        return format_list(value) if name == "list_experiments" else format_flagfile(get_experiment(value)).rstrip("\n")
    except FlagError as error:
        raise FlagError(f"--{name}={error}") from None


if __name__ == "__main__":
    leave(main())
