"""What a command line can do wrong."""


class FlagError(ValueError):
    """A command line that cannot be meant: what was wrong, what was expected, how to fix it, in one line."""
