"""The table that grows by a row a round."""

import pytest

from launch.runs.round_table import RoundTable


def write(path, *rows):
    table = RoundTable(path)
    for row in rows:
        table.append(row)


def test_a_run_of_an_earlier_version_gets_the_new_columns_when_it_is_resumed(tmp_path):
    path = tmp_path / "metrics.csv"
    write(path, {"round": 1, "loss": 0.5, "own": 3}, {"round": 2, "loss": 0.25, "own": 4})
    table = RoundTable(path, 2)
    table.append({"round": 3, "loss": 0.125, "accuracy": 0.75, "own": 5})
    assert path.read_text().split() == ["round,loss,accuracy,own", "1,0.5,,3", "2,0.25,,4", "3,0.125,0.75,5"]
    assert table.column("accuracy") == [None, None, 0.75]
    with pytest.raises(ValueError, match="expected"):
        table.append({"round": 4, "loss": 0.1, "accuracy": 0.8, "own": 5, "another": 1})


@pytest.mark.parametrize("row", [{"round": 2, "loss": 0.5}, {"round": 2, "loss": 0.5, "other": 1}])
def test_a_resumed_run_may_not_lose_a_column(tmp_path, row):
    path = tmp_path / "metrics.csv"
    write(path, {"round": 1, "loss": 0.5, "own": 3})
    with pytest.raises(ValueError, match="gave the columns"):
        RoundTable(path, 1).append(row)
