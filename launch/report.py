"""`python -m launch.report --tables=<name>` makes a paper's page and tables, or those of quantization, from runs.

The papers lie in a folder of the checkout that no package imports. This command finds it and hands its arguments over.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

from collections.abc import Sequence

from launch.command_line import run_main
from launch.console.stop_signals import leave
from launch.settings.errors import FlagError
from launch.settings.experiments import import_reproduction


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    try:
        report = import_reproduction("report")
    # There is no such folder, or a claim in it cannot be read.
    except FlagError as error:
        why = error

        def refuse(arguments: Sequence[str]) -> None:
            raise why

        return run_main(refuse, lambda: __doc__.strip(), argv)
    return report.main(argv)


if __name__ == "__main__":
    leave(main())
