"""What the page's scripts read: flags that differ, packed columns, the constants of the intervals."""

import pathlib

import numpy as np
import pytest
from scipy import stats

from launch.pages.comparison import content as contents
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.content import build_content, choose_rounds, read_details, to_plain
from launch.pages.comparison.groups import find_differing_flags
from launch.pages.comparison.seed_statistics import compute_t_quantile


def make_run(flags=None, **columns):
    arrays = {name: np.array(values, np.float64) for name, values in columns.items()}
    return ComparedRun("run", pathlib.Path("run"), flags or {}, "FedAvg", arrays, {})


def test_quantiles_are_those_of_scipy():
    degrees = range(1, 201)
    assert [*map(compute_t_quantile, degrees)] == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-12)


def test_flags_differ_if_runs_that_have_them_have_several_values():
    flags = [
        {"algo": "fedavg", "seed": 0, "smoke": False},
        {"algo": "fedsikd", "seed": 0, "temperature": 3.0, "smoke": 0},
    ]
    runs = [make_run(each) for each in flags]
    assert find_differing_flags(runs) == ["algo", "smoke"]
    assert find_differing_flags(runs[:1]) == []


def test_numbers_are_plain_json():
    assert to_plain(np.array([1.0, 0.25, np.nan, np.inf, 1e300])) == [1, 0.25, None, None, int(1e300)]
    assert to_plain(["a", "b"]) == ["a", "b"]


def test_the_content_holds_runs_links_and_what_is_inlined(write_sweep, tmp_path):
    collected = collect_runs([str(write_sweep([1, 2], [0]))])
    inlined = read_details(collected.runs, [1])
    content = build_content(collected, inlined, tmp_path / "compare.html")
    first, second = content["runs"]
    assert content["differing"] == ["temperature"]
    assert (content["grouping"], content["unset"]) == (["temperature"], [])
    assert content["algorithms"] == {"fedsikd": "FedSiKD"}
    assert content["bounds"]["test_accuracy"] == (0, 1) and content["bounds"]["test_loss"] == (0, None)
    assert content["main"] == ["test_accuracy", "test_loss", "train_loss"]
    assert content["titles"]["num_clients"] == "Clients that took part"
    assert (
        content["titles"]["num_train"] == "Train examples"
        and content["titles"]["total_drift"] == "Drift of the updates"
    )
    assert content["metrics"][:3] == ["test_accuracy", "test_loss", "train_loss"]
    assert content["axes"] == ["round", "virtual_time_s", "total_bytes", "seconds"]
    assert len(content["quantiles"]) == 1
    assert first["columns"]["round"] == [1, 2, 3] and first["columns"]["num_clients"] == 40
    assert first["columns"]["test_loss"] == [1, 0.5, pytest.approx(1 / 3)]
    assert first["clients"]["accuracy"] == [0.5, 0.6, 0.7, None]
    place = "runs/T1/fedsikd_mnist_alpha0.1/seed_0"
    assert first["links"] == {f"{name}.csv": f"{place}/{name}.csv" for name in ("metrics", "clients", "events")}
    assert first["plots"] == {"by_round.png": f"{place}/plots/by_round.png"}
    assert (first["pictures"], first["events"], first["detailed"]) == ([], None, False)
    assert (second["pictures"], second["detailed"]) == (["by_round.png"], True)
    assert second["events"]["rows"] == [["1", "0.5", "client_0", "train", "1"]]


def test_long_runs_keep_the_same_evaluated_rounds(monkeypatch):
    evaluated = [0.1 * number if number % 2 == 0 else np.nan for number in range(1, 13)]
    runs = [make_run(round=range(1, 13), test_accuracy=evaluated, num_clients=[6] * 12) for _ in range(2)]
    assert [rounds.tolist() for rounds in choose_rounds(runs)] == [list(range(12))] * 2
    monkeypatch.setattr(contents, "MOST_CELLS", 12)  # a constant column takes no room: 2 runs, 2 columns, 3 rounds
    assert [
        [int(run.columns["round"][i]) for i in kept] for run, kept in zip(runs, choose_rounds(runs), strict=True)
    ] == [
        [4, 8, 12],
        [4, 8, 12],
    ]
    monkeypatch.setattr(contents, "MOST_CELLS", 1)
    assert [kept.tolist() for kept in choose_rounds(runs)] == [[11], [11]], "the last round stays"
