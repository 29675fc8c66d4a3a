"""The table that grows by a row a round."""

import pytest

from launch.runs.round_table import RoundTable


def write(path, *rows):
    table = RoundTable(path)
    for row in rows:
        table.append(row)


@pytest.mark.parametrize("row", [{"round": 2, "loss": 0.5}, {"round": 2, "loss": 0.5, "other": 1}])
def test_a_resumed_run_may_not_lose_a_column(tmp_path, row):
    path = tmp_path / "metrics.csv"
    write(path, {"round": 1, "loss": 0.5, "own": 3})
    with pytest.raises(ValueError, match="gave the columns"):
        RoundTable(path, 1).append(row)
