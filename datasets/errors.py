"""The error of everything that can be wrong with data: a file, a split, an option. Imports nothing."""


class DatasetError(ValueError):
    """A data set, file or split that cannot be used: one line that says what, what was expected and how to fix it."""
