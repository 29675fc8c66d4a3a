"""The errors of runs. The message of each is one line for the user."""


class RunFolderError(ValueError):
    """A run folder cannot be used as asked. The message says which, why, and how to fix it."""


class RunStopped(Exception):
    """A run ended early. The message says how to go on."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code
