"""What the tests of AMFL-P's report share."""

import pytest

from reproductions.amfl_p.measures import ACCURACY


@pytest.fixture
def find_row():
    """(table, cells by column) -> the one row that has them, {column: cell}."""

    def find(table, **wanted):
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        (row,) = [row for row in rows if wanted.items() <= row.items()]
        return row

    return find


@pytest.fixture
def name_values():
    """(name={degree: accuracies of the seeds}, ...) -> Values of these experiments on the building."""
    return lambda **found: {
        (f"{name}_building_{degree}", ACCURACY): dict(enumerate(accuracies))
        for name, by_degree in found.items()
        for degree, accuracies in by_degree.items()
    }
