"""What a user's mistake in data is: a DatasetError of one line."""

import re

import pytest

from datasets.errors import DatasetError


def assert_refused(pattern, function, /, *arguments, **options):
    """Calls the function, which must raise a DatasetError of one line that holds the pattern. Returns the line."""
    with pytest.raises(DatasetError) as caught:
        function(*arguments, **options)
    line = str(caught.value)
    assert "\n" not in line and re.search(pattern, line), line
    return line
