"""The errors of runs. The message of each is one line for the user."""

# How a run says that a limit of what it may cost is too low; whoever sets limits of runs looks for it.
FIRST_ROUND_TAKES = "which the first round takes"


class RunFolderError(ValueError):
    """A run folder cannot be used as asked. The message says which, why, and how to fix it."""


class RunStopped(Exception):
    """A run ended early. The message says how to go on."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code
