"""`python -m launch.train --algo=...` trains one algorithm on one data set. `--help` lists the flags.

Exit codes: 0 done, 1 the run failed, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import errno
import sys
from collections.abc import Sequence

from datasets.arrays import DatasetError
from launch.flags import HELP_FLAGS, FlagError, format_help, parse_config
from launch.run_folder import RunFolderError, RunStopped
from models.model_names import ModelError
from tff_algos.config_fields import ConfigError

WRONG_REQUESTS = (FlagError, ConfigError, RunFolderError, DatasetError, ModelError)
FAILURES_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if any(argument in HELP_FLAGS for argument in arguments):
        print(format_help())
        return 0
    try:
        config = parse_config(arguments)
        from launch import experiment

        experiment.run_experiment(config)
    except WRONG_REQUESTS as error:
        return _fail(f"error: {error}", 2)
    except RunStopped as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("stopped before the training began", 130)
    except OSError as error:
        if error.errno not in FAILURES_OF_THE_DISK:
            raise
        return _fail(f"error: {error}", 1)
    return 0


def _fail(message: str, exit_code: int) -> int:
    print(message, file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
