"""How a run folder refuses, and how a run ends before its time; each is one line for the user."""


class RunFolderError(ValueError):
    """A run folder that cannot be used as asked: which, why, how to mend it, in one line."""


class RunStopped(Exception):
    """A run that ended before its time; the message is one line and says how to go on."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code
