"""`python -m launch.report --tables=<name>` makes a paper's page and tables, or those of quantization, from runs.

The papers lie in a folder of the checkout that no package imports. This command finds it and hands its arguments over.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

from collections.abc import Sequence

from launch.command_line import run_main
from launch.settings.experiments import has_reproductions, import_reproduction
from launch.stop_signals import leave


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    if has_reproductions():
        return import_reproduction("report").main(argv)
    return run_main(lambda arguments: import_reproduction("report"), lambda: __doc__.strip(), argv)


if __name__ == "__main__":
    leave(main())
