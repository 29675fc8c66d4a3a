"""What the page's scripts read: flags that differ, packed columns, the constants of the intervals.

Plots, events and clients go into the page within bounds.
"""

import pathlib

import numpy as np
import pytest
from scipy import stats

from launch.pages.comparison import content as contents
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.content import (
    build_content,
    choose_client_tables,
    choose_detailed_runs,
    choose_rounds,
    read_details,
    to_plain,
)
from launch.pages.comparison.groups import find_differing_flags
from launch.pages.comparison.seed_statistics import compute_t_quantile
from launch.settings.errors import FlagError


def make_run(flags=None, **columns):
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    return ComparedRun("run", pathlib.Path("run"), flags or {}, "FedAvg", arrays, {})


def test_quantiles_are_those_of_scipy():
    degrees = range(1, 201)
    assert [*map(compute_t_quantile, degrees)] == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-12)


def test_flags_differ_if_runs_that_have_them_have_several_values():
    first = make_run({"algo": "fedavg", "seed": 0, "smoke": False})
    other = make_run({"algo": "fedsikd", "seed": 0, "temperature": 3.0, "smoke": 0})
    assert (find_differing_flags([first, other]), find_differing_flags([first])) == (["algo", "smoke"], [])


def test_numbers_are_plain_json():
    assert to_plain(np.array([1.0, 0.25, np.nan, np.inf, 1e300])) == [1, 0.25, None, None, int(1e300)]
    assert to_plain(["a", "b"]) == ["a", "b"]


def test_the_content_holds_runs_links_and_what_is_inlined(write_sweep, tmp_path):
    collected = collect_runs([str(write_sweep([1, 2], [0]))])
    content = build_content(collected, read_details(collected.runs, [1]), tmp_path / "compare.html")
    first, second = content["runs"]
    expected = {"differing": ["temperature"], "grouping": ["temperature"], "unset": []}
    expected |= {"algorithms": {"fedsikd": "FedSiKD"}, "main": ["test_accuracy", "test_loss", "train_loss"]}
    expected |= {"axes": ["round", "virtual_time_s", "total_bytes", "seconds"], "quantiles": [compute_t_quantile(1)]}
    assert {name: content[name] for name in expected} == expected
    assert (content["bounds"]["test_accuracy"], content["bounds"]["test_loss"]) == ((0, 1), (0, None))
    titles = {"num_clients": "Clients that took part", "num_train": "Train examples"}
    titles |= {"total_drift": "Drift of the updates"}
    assert {name: content["titles"][name] for name in titles} == titles
    assert content["metrics"][:3] == expected["main"]
    columns = {"round": [1, 2, 3], "num_clients": 40, "test_loss": [1, 0.5, pytest.approx(1 / 3)]}
    assert {name: first["columns"][name] for name in columns} == columns
    assert first["clients"]["accuracy"] == [0.5, 0.6, 0.7, None]
    place = "runs/T1/fedsikd_mnist_alpha0.1/seed_0"
    links = {f"{name}.csv": f"{place}/{name}.csv" for name in ("metrics", "clients", "events")}
    plots, inlined = (
        {"by_round.png": f"{place}/plots/by_round.png"},
        ("links", "plots", "pictures", "events", "detailed"),
    )
    assert [first[name] for name in inlined] == [links, plots, [], None, False]
    assert (second["pictures"], second["detailed"]) == (["by_round.png"], True)
    assert second["events"]["rows"] == [["1", "0.5", "client_0", "train", "1"]]


@pytest.mark.parametrize(
    ("most_cells", "rounds"),
    [
        (contents.MOST_CELLS, list(range(1, 13))),
        (12, [4, 8, 12]),  # a constant column takes no room: 2 runs, 2 columns, 3 rounds
        (1, [12]),  # the last round stays
    ],
)
def test_long_runs_keep_the_same_evaluated_rounds(most_cells, rounds, monkeypatch):
    evaluated = [0.1 * number if number % 2 == 0 else np.nan for number in range(1, 13)]
    runs = [make_run(round=range(1, 13), test_accuracy=evaluated, num_clients=[6] * 12) for _ in range(2)]
    monkeypatch.setattr(contents, "MOST_CELLS", most_cells)
    kept = zip(runs, choose_rounds(runs), strict=True)
    assert [run.columns["round"][indices].tolist() for run, indices in kept] == [rounds] * 2


@pytest.fixture
def runs(write_sweep):
    return collect_runs([str(write_sweep([1, 2, 3], [0, 1]))]).runs


def test_the_best_runs_are_chosen_or_those_that_are_named(runs, monkeypatch):
    assert choose_detailed_runs(runs) == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(contents, "MOST_DETAILED_RUNS", 3)
    assert choose_detailed_runs(runs) == [3, 4, 5], "0.521 and those of T 3"
    assert choose_detailed_runs(runs, "*seed_1") == [1, 3, 5]
    assert choose_detailed_runs(runs, "*") == [0, 1, 2]
    with pytest.raises(FlagError, match="--details=nope: no run is called so; expected names as T1/"):
        choose_detailed_runs(runs, "nope")


def test_a_run_without_test_accuracy_comes_last(runs, monkeypatch):
    unknown = runs[5]._replace(columns={"round": np.array([1.0])})
    monkeypatch.setattr(contents, "MOST_DETAILED_RUNS", 5)
    assert choose_detailed_runs([*runs[:5], unknown]) == [0, 1, 2, 3, 4]


def test_plots_fill_the_room_run_by_run(runs, monkeypatch):
    size = (runs[0].path / "plots" / "by_round.png").stat().st_size
    monkeypatch.setattr(contents, "MOST_PICTURE_BYTES", 2 * size)
    found = read_details(runs, [0, 2, 4])
    assert [list(each.pictures) for each in found.values()] == [["by_round.png"], ["by_round.png"], []]


def test_only_the_first_events_are_shown(runs, monkeypatch):
    path = runs[0].path / "events.csv"
    path.write_text(path.read_text() + "2,1,client_1,train,1\n")
    monkeypatch.setattr(contents, "MOST_EVENTS", 1)
    events = read_details(runs, [0])[0].events
    assert (len(events["rows"]), events["total"]) == (1, 2)
    (runs[1].path / "events.csv").unlink()
    assert read_details(runs, [1])[1].events is None


def test_clients_fill_the_room_run_by_run(runs, monkeypatch):
    monkeypatch.setattr(contents, "MOST_CLIENT_CELLS", 2 * 16 + 15)  # a run has 4 columns of 4 clients
    assert choose_client_tables(runs) == [True, True, False, False, False, False]


def test_no_picture_of_the_users_own_goes_into_the_page_by_a_link(runs, tmp_path):
    (tmp_path / "private.png").write_bytes(b"mine")
    (runs[0].path / "plots" / "z.png").symlink_to(tmp_path / "private.png")
    assert list(read_details(runs, [0])[0].pictures) == ["by_round.png"]
