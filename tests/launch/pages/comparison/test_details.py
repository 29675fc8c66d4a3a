"""Plots, events and clients go into the page within bounds."""

import numpy as np
import pytest

from launch.pages.comparison import content
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.content import choose_client_tables, choose_detailed_runs, read_details
from launch.settings.errors import FlagError


@pytest.fixture
def runs(write_sweep):
    return collect_runs([str(write_sweep([1, 2, 3], [0, 1]))]).runs


def test_the_best_runs_are_chosen_or_those_that_are_named(runs, monkeypatch):
    assert choose_detailed_runs(runs) == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(content, "MOST_DETAILED_RUNS", 3)
    assert choose_detailed_runs(runs) == [3, 4, 5], "0.521 and those of T 3"
    assert choose_detailed_runs(runs, "*seed_1") == [1, 3, 5]
    assert choose_detailed_runs(runs, "*") == [0, 1, 2]
    with pytest.raises(FlagError, match="--details=nope: no run is called so; expected names as T1/"):
        choose_detailed_runs(runs, "nope")


def test_a_run_without_test_accuracy_comes_last(runs, monkeypatch):
    unknown = runs[5]._replace(columns={"round": np.array([1.0])})
    monkeypatch.setattr(content, "MOST_DETAILED_RUNS", 5)
    assert choose_detailed_runs([*runs[:5], unknown]) == [0, 1, 2, 3, 4]


def test_plots_fill_the_room_run_by_run(runs, monkeypatch):
    size = (runs[0].path / "plots" / "by_round.png").stat().st_size
    monkeypatch.setattr(content, "MOST_PICTURE_BYTES", 2 * size)
    found = read_details(runs, [0, 2, 4])
    assert [list(each.pictures) for each in found.values()] == [["by_round.png"], ["by_round.png"], []]


def test_only_the_first_events_are_shown(runs, monkeypatch):
    path = runs[0].path / "events.csv"
    path.write_text(path.read_text() + "2,1,client_1,train,1\n")
    monkeypatch.setattr(content, "MOST_EVENTS", 1)
    events = read_details(runs, [0])[0].events
    assert (len(events["rows"]), events["total"]) == (1, 2)
    (runs[1].path / "events.csv").unlink()
    assert read_details(runs, [1])[1].events is None


def test_clients_fill_the_room_run_by_run(runs, monkeypatch):
    monkeypatch.setattr(content, "MOST_CLIENT_CELLS", 2 * 16 + 15)  # a run has 4 columns of 4 clients
    assert choose_client_tables(runs) == [True, True, False, False, False, False]


def test_no_picture_of_the_users_own_goes_into_the_page_by_a_link(runs, tmp_path):
    (tmp_path / "private.png").write_bytes(b"mine")
    (runs[0].path / "plots" / "z.png").symlink_to(tmp_path / "private.png")
    assert list(read_details(runs, [0])[0].pictures) == ["by_round.png"]
