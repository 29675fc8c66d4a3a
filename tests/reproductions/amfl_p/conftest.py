"""What the tests of AMFL-P's report share: made-up runs, whose seeds count from 5, since no search saw those."""

from collections.abc import Mapping

import pandas as pd
import pytest

from reproductions.amfl_p.measures import ACCURACY, CURVE_INDEX, INDEX, LAST_ROUND, make_curves, make_runs, place_runs
from reproductions.amfl_p.pooled_reference import COLUMNS
from reproductions.engine.tables import list_results

FIRST_SEED = 5


@pytest.fixture
def find_row():
    """(table, cells by column) -> the one row that has them, {column: cell}."""

    def find(table, **wanted):
        (row,) = [row for row in table.records if wanted.items() <= row.items()]
        return row

    return find


@pytest.fixture
def make_frame():
    """({(variant, setting): accuracies of the seeds, or several numbers by column}) -> a frame as of `make_runs`."""

    def make(found, preset="tuned"):
        frame = make_runs([]).reset_index()
        rows = []
        for (variant, setting), numbers in found.items():
            numbers = numbers if isinstance(numbers, Mapping) else {ACCURACY: numbers}
            for i in range(max(map(len, numbers.values()))):
                place = {"preset": preset, "variant": variant, "setting": setting, "seed": FIRST_SEED + i}
                rows.append(place | {name: each[i] for name, each in numbers.items() if i < len(each)})
        return pd.DataFrame(rows, columns=frame.columns).set_index(INDEX).sort_index()

    return make


@pytest.fixture
def make_few_shot():
    """({(variant, readings, sensors, steps): accuracies of the seeds}) -> a series as of `make_curves`."""

    def make(found):
        rows = [(*place, FIRST_SEED + i, each) for place, numbers in found.items() for i, each in enumerate(numbers)]
        return pd.DataFrame(rows, columns=[*CURVE_INDEX, ACCURACY]).set_index(CURVE_INDEX)[ACCURACY].sort_index()

    return make


@pytest.fixture
def make_placed():
    """(frame, series with few readings, rows of the pooled study) -> what `place_runs` makes of them."""

    def make(frame, few_shot=None, pooled=()):
        few_shot = make_curves(frame[:0], "few_shot_") if few_shot is None else few_shot
        return place_runs(frame, few_shot, pd.DataFrame(pooled, columns=COLUMNS))

    return make


@pytest.fixture
def make_results(make_placed):
    """The same, as results by preset, cell and seed."""
    return lambda *made: list_results(make_placed(*made).drop(columns="run"), LAST_ROUND)
