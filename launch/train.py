"""`python -m launch.train --algo=...` trains one algorithm on one data set. `--help` lists the flags.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import sys
from collections.abc import Sequence

from launch.command_line import run_main
from launch.settings.flags import parse_config
from launch.settings.help_pages import format_help, format_start
from launch.stop_signals import leave


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_main(_run, lambda: format_help(arguments), arguments, stopped="stopped before the training began")


def _run(arguments: Sequence[str]) -> int | None:
    if not arguments:
        print(format_start(), file=sys.stderr)
        return 2
    config = parse_config(arguments)
    from launch.training import training_run

    training_run.run_training(config)
    return None


if __name__ == "__main__":
    leave(main())
