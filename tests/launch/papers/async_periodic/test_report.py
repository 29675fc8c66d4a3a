"""The table, the claims and the figure of asynchronous FL, from made-up runs with numbers that are easy by hand."""

import statistics

import numpy as np
import pytest

from launch.papers.async_periodic.claims import (
    ASYNC_FURTHER,
    AT_BYTES,
    AT_TIME,
    AT_UPLOADS,
    CYCLE_MEAN,
    FEDAVG,
    FEDAVG_PROXIMAL,
    FINAL,
    FLUCTUATION,
    LAST_MEAN,
    MODEL_BYTES,
    NEVER_WAITING,
    OLDER,
    RANDOM_ESPECIALLY,
    TUNED_KINDS,
    make_cell,
)
from launch.papers.async_periodic.figure import compute_accuracy_curve, draw_async_figure, draw_async_figures
from launch.papers.async_periodic.measures import (
    CITY,
    compute_fluctuation,
    find_last_within,
    find_place,
    list_places,
    make_place,
    name_experiment,
)
from launch.papers.async_periodic.report import COLUMNS, compute_results
from launch.papers.engine.collection import summarize_results
from launch.papers.engine.judge import decide
from launch.papers.registry import PAPERS
from launch.report import collect_runs, main
from launch.runs.run_records import EXPERIMENTS, find_flagfile, resolve_flagfile
from launch.runs.tables import write_json, write_table
from launch.settings.run_config import flag_values

POLICIES = ("random", "significance", "frequency")


def write_run(runs_dir, experiment, accuracies, seed=0, period=0.25, updates=30):
    """A run whose round r ends at `period` * r and has `updates` updates."""
    config = resolve_flagfile(find_flagfile(experiment), [f"--seed={seed}"])
    run_dir = runs_dir / experiment / f"seed_{seed}"
    write_json(run_dir / "config.json", {"flags": flag_values(config)})
    rows = [
        [str(index), f"{period * index:.6g}", str(updates), f"{accuracy:.6g}"]
        for index, accuracy in enumerate(accuracies, start=1)
    ]
    write_table(run_dir / "metrics.csv", ["round", "virtual_time_s", "num_clients", "test_accuracy"], rows)
    return run_dir


def climb(last, swing=0.0):
    """40 accuracies in a straight line to `last`, every other one lower by `swing`."""
    return [last * index / 40 - swing * (index % 2) for index in range(1, 41)]


@pytest.fixture
def runs(tmp_path):
    """IID runs: random 0.8, and 0.9 with fresh weights; significance 0.7, swinging; frequency 0.6; FedAvg 0.75."""
    accuracies = {"random": 0.8, "significance": 0.7, "frequency": 0.6}
    for policy, accuracy in accuracies.items():
        swing = 0.02 if policy == "significance" else 0.0
        for kind in ("equal", "fresh", "old"):
            last = 0.9 if (policy, kind) == ("random", "fresh") else accuracy
            write_run(tmp_path, f"async_periodic_mnist_iid_{policy}_{kind}", climb(last, swing))
        write_run(tmp_path, f"async_periodic_mnist_iid_{policy}_synchronous_plain", climb(0.75), period=0.99)
    write_run(tmp_path, "async_periodic_mnist_iid_random_equal", climb(0.84), seed=1)
    return collect_runs(tmp_path)[0]


def rows_of(report, table):
    columns, rows = report.tables[table]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_experiments_have_their_places():
    assert find_place("async_periodic_mnist_shards_frequency_old") == make_place("shards", "frequency", "old")
    assert find_place("async_periodic_mnist_persistent_random_fresh") == make_place("persistent", "random", "fresh")
    assert find_place("fed_async_mnist_iid") == make_place("iid", "", "fed_async")
    assert find_place("async_periodic_mnist_shards_random_synchronous") == make_place(
        "shards", "random", FEDAVG_PROXIMAL
    )
    assert find_place("async_periodic_mnist_persistent_random_old1.25") == make_place("persistent", "random", "old1.25")
    assert find_place("fedavg_mnist_alpha0.1") is None and find_place(CITY) is None


def test_every_place_has_its_flagfile_and_every_flagfile_its_place():
    flagfiles = [path.stem for path in (EXPERIMENTS / "async_periodic").glob("*.flags")]
    places = list_places()
    assert sorted(find_place(stem) for stem in flagfiles if stem != CITY) == sorted(places)
    assert sorted(map(name_experiment, places)) == sorted({*flagfiles} - {CITY})
    assert len([place for place in places if not place.algo.endswith("_tuned")]) == 2 * (3 * 5 + 2) + 5


def test_tuned_runs_have_places_of_their_own():
    for policy, kind in TUNED_KINDS:
        place = make_place("shards", policy, kind)
        assert find_place(name_experiment(place)) == place
    assert name_experiment(make_place("shards", "", "fed_async_tuned")) == "fed_async_mnist_shards_tuned"


def test_costs_are_met_as_by_a_step_function():
    assert find_last_within(1.0, [0.4, 0.8, 1.2], [1, 2, 3]) == 2
    assert find_last_within(1.2, [0.4, 0.8, 1.2], [1, 2, 3]) == 3
    assert find_last_within(0.3, [0.4, 0.8, 1.2], [1, 2, 3]) is None


def test_fluctuation_is_of_the_last_ten_changes_and_blind_to_a_steady_climb():
    assert compute_fluctuation([9.0, 0.0, *(float(i) for i in range(11))]) == pytest.approx(0)
    changes = [1.0, -1.0] * 5
    assert compute_fluctuation([5.0, *np.cumsum(changes)[:9], 7.0, 5.0][:2]) is None
    values = np.concatenate([[100.0, 3.0], 3.0 + np.cumsum(changes)])
    assert compute_fluctuation(list(values)) == pytest.approx(statistics.stdev(changes))


def test_results_by_hand(runs):
    """FedAvg, 0.99 T_max a round: ten rounds fit in 10 T_max, 38 in 1,150 updates."""
    results = summarize_results(compute_results(runs))["printed"]
    fedavg = {
        metric: results[make_cell("iid", "random", FEDAVG, metric)].mean for metric in (FINAL, AT_TIME, AT_UPLOADS)
    }
    assert fedavg == pytest.approx({FINAL: 75, AT_TIME: 75 * 10 / 40, AT_UPLOADS: 75 * 38 / 40})
    equal = results[make_cell("iid", "random", "equal")]
    assert (equal.mean, equal.count) == (pytest.approx(82), 2)
    assert equal.deviation == pytest.approx(4 / 2**0.5)
    assert results[make_cell("iid", "random", "equal", AT_TIME)].mean == pytest.approx(82)
    assert results[make_cell("iid", "random", "fresh", FLUCTUATION)].mean == pytest.approx(0, abs=1e-3)
    changes = [2.0 * (1 if index % 2 == 0 else -1) for index in range(31, 41)]
    assert results[make_cell("iid", "significance", "old", FLUCTUATION)].mean == pytest.approx(
        statistics.stdev(changes), abs=1e-3
    )


def test_the_table_has_a_row_a_combination(runs):
    rows = {
        (row["data"], row["scheduling"], row["weights"]): row
        for row in rows_of(PAPERS["async"].build_report(runs), "results")
    }
    equal = rows["IID", "random", "equal weights"]
    spreads = ["82.00 ± 2.83", "72.78 ± 2.51", "82.00 ± 2.83", "77.90 ± 2.69", "not run", "0.00 ± 0.00"]
    assert [equal[name] for name in COLUMNS[3:]] == ["2", *spreads, "10.0", "1200"]
    fedavg = rows["IID", "random", "FedAvg"]
    assert (fedavg["at equal time"], fedavg["T_max"]) == ("18.75", "39.6")
    assert rows["IID", "none", "FedAsync"]["final"] == "not run"


@pytest.fixture
def three_seeds(tmp_path):
    """The runs of `runs` in three seeds; a seed moves all of its runs up or down alike."""
    for seed, moved in enumerate((-0.04, 0.0, 0.04)):
        for policy, accuracy in (("random", 0.8), ("significance", 0.7), ("frequency", 0.6)):
            swing = 0.02 + 0.001 * seed if policy == "significance" else 0.0
            for kind in ("equal", "fresh", "old"):
                last = 0.9 if (policy, kind) == ("random", "fresh") else accuracy
                write_run(tmp_path, f"async_periodic_mnist_iid_{policy}_{kind}", climb(last + moved, swing), seed)
            fedavg = f"async_periodic_mnist_iid_{policy}_synchronous_plain"
            write_run(tmp_path, fedavg, climb(0.75 + 1.1 * moved), seed, period=0.99)
        for algo, level in (("fed_async", 0.8), ("buffered", 0.95)):
            write_run(tmp_path, f"{algo}_mnist_iid", [level + 1.1 * moved] * 70, seed, period=0.15)
    return collect_runs(tmp_path)[0]


def test_claims_are_decided_by_pairs_of_the_same_seed(three_seeds):
    """The seeds lie eight points apart, each combination by the same distance from FedAvg."""
    report = PAPERS["async"].build_report(three_seeds)
    claims = {row["claim"]: row for row in rows_of(report, "claims")}
    verdicts = [row["printed"] for text, row in claims.items() if text.endswith(", IID")]
    # Of the weightings only the random policy's differ, so that "age-aware" is a tie with the others.
    assert verdicts == ["reproduced"] * 5 + ["undecided"]
    beats_fedavg = claims['"the asynchronous FL scheme generally outperforms FedAvg", IID']["printed_numbers"]
    assert "frequency: equal, fresh, old 60.00, 60.00, 60.00 against FedAvg 18.75" in beats_fedavg
    rest = {row["printed"] for text, row in claims.items() if "non-IID" in text or "older updates" in text}
    assert rest == {"not run"}


def test_the_cost_in_aggregations_follows_from_the_period_and_is_not_counted(three_seeds):
    report = PAPERS["async"].build_report(three_seeds)
    (row,) = [row for row in rows_of(report, "claims") if "more frequent" in row["claim"]]
    assert row["printed"] == "by construction"
    assert "IID: FedAvg 39.60 T_max, asynchronous 10.00 T_max" in row["printed_numbers"]
    assert "| ours | 5 | 0 | 1 | 1 | 10 |" in report.markdown


def test_what_the_paper_does_not_compare_stands_apart(three_seeds):
    further = {row["comparison"]: row for row in rows_of(PAPERS["async"].build_report(three_seeds), "further")}
    verdicts = {text: row["verdict"] for text, row in further.items()}
    periodic = "is ahead of periodic aggregation (random, fresher favoured)"
    assert verdicts == {
        "IID, at aggregation 40: asynchronous FL is ahead of FedAvg": "no",  # 71.1 against 75
        "IID, after 1,150 updates: asynchronous FL is ahead of FedAvg": "no",
        f"IID, at 10 T_max: FedAsync {periodic}": "no",
        f"IID, at 10 T_max: FedBuff {periodic}": "yes",
        f"IID, after 1,150 updates: FedAsync {periodic}": "no",
        f"IID, after 1,150 updates: FedBuff {periodic}": "yes",
    }
    lead = further["IID, at aggregation 40: asynchronous FL is ahead of FedAvg"]["numbers"]
    assert lead.startswith("mean of the nine combinations against FedAvg's three: -3.89 [")


@pytest.mark.parametrize(("lead", "verdict"), [(1.0, "reproduced"), (-1.0, "not reproduced")])
def test_fresher_favoured_has_to_be_above_equal_weights(lead, verdict):
    (claim,) = [each for each in PAPERS["async"].claims if "age-aware" in each.text and each.text.endswith(", IID")]
    levels = {"fresh": 80.0 + lead, "equal": 80.0}
    values = {cell: {seed: levels[cell.algo] + seed for seed in range(3)} for cell in claim.cells}
    assert decide(claim, values).verdict == verdict


def test_a_larger_lead_on_non_iid_data_is_taken_within_a_seed():
    """Random leads by 2 points on IID data and by 5 on non-IID data, in seeds that lie far apart."""
    leads = {("iid", "random"): 2, ("shards", "random"): 5}
    values = {
        make_cell(case, policy, kind, LAST_MEAN): {
            seed: 10 * seed + leads.get((case, policy), 0) + 0.1 * seed * (case == "shards" and policy == "random")
            for seed in range(3)
        }
        for case in ("iid", "shards")
        for policy in POLICIES
        for kind in ("equal", "fresh", "old")
    }
    outcome = decide(RANDOM_ESPECIALLY, values)
    assert outcome.verdict == "reproduced" and "+3.10 [" in outcome.numbers


def test_older_updates_can_win_where_slow_devices_have_data_of_their_own(tmp_path):
    for kind, last in (("equal", 0.6), ("fresh", 0.5), ("old", 0.7)):
        for seed in range(3):
            write_run(tmp_path, f"async_periodic_mnist_persistent_random_{kind}", climb(last + 0.01 * seed), seed)
    rows = rows_of(PAPERS["async"].build_report(collect_runs(tmp_path)[0]), "claims")
    (row,) = [row for row in rows if "older updates" in row["claim"] and row["claim"].endswith("gamma 2")]
    assert row["printed"] == "reproduced"
    assert "older favoured 63.01 against random, equal weights 54.14" in row["printed_numbers"]


def test_a_run_that_ended_early_does_not_count(tmp_path):
    write_run(tmp_path, "async_periodic_mnist_iid_random_equal", climb(0.8)[:39])
    report = PAPERS["async"].build_report(collect_runs(tmp_path)[0])
    assert {row["final"] for row in rows_of(report, "results")} == {"not run"}


def test_a_curve_is_the_mean_and_deviation_over_the_seeds(runs):
    pair = [run for run in runs if run.experiment == "async_periodic_mnist_iid_random_equal"]
    curve = compute_accuracy_curve(pair, is_by_time=True)
    assert (curve.places[0], curve.places[-1]) == (0.25, 10.0)
    assert (curve.mean[-1], curve.deviation[-1]) == (pytest.approx(82), pytest.approx(4 / 2**0.5))
    assert compute_accuracy_curve(pair[:1], is_by_time=False).places[-1] == 40


def test_the_command_writes_tables_and_figure(runs, tmp_path, capsys):
    assert draw_async_figure({}, tmp_path / "empty").stat().st_size > 10_000  # without any run the panels say so
    arguments = [f"--runs_dir={tmp_path}", f"--output={tmp_path / 'report'}", "--figure"]
    assert main(["--tables=async", *arguments]) == 0
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "async.md",
        "async_results.csv",
        "async_levels.csv",
        "async_shares.csv",
        "async_further.csv",
        "async_claims.csv",
        "async.png",
    }
    assert "at equal uploads" in capsys.readouterr().out


def test_tuned_methods_have_a_figure_where_they_were_run(tmp_path):
    for name in ("buffered_mnist_shards", "buffered_mnist_shards_tuned"):
        write_run(tmp_path, name, [index / 100 for index in range(1, 71)])
    for drop, expected in (("", {"async.png", "async_tuned.png"}), ("_tuned", {"async.png"})):
        found = [run for run in collect_runs(tmp_path)[0] if not drop or not run.experiment.endswith(drop)]
        folder = tmp_path / f"figures{drop}"
        folder.mkdir()
        assert draw_async_figures(found, folder).name == "async.png"
        assert {path.name for path in folder.iterdir()} == expected
        assert ("](async_tuned.png)" in PAPERS["async"].build_report(found).markdown) == ("async_tuned.png" in expected)


def test_equal_bytes_are_counted_both_ways_in_models(tmp_path):
    """65 models a round, 35 down and 30 up: 2,600 are 40 rounds, so that the 41st does not count."""
    run_dir = write_run(tmp_path, "buffered_mnist_iid", [index / 100 for index in range(1, 71)])
    lines = (run_dir / "metrics.csv").read_text().splitlines()
    cells = [
        f"{lines[0]},bytes_down,bytes_up",
        *(f"{line},{35 * MODEL_BYTES},{30 * MODEL_BYTES}" for line in lines[1:]),
    ]
    (run_dir / "metrics.csv").write_text("\n".join(cells) + "\n")
    results = summarize_results(compute_results(collect_runs(tmp_path)[0]))["printed"]
    assert results[make_cell("iid", "", "buffered", AT_BYTES)].mean == pytest.approx(40)


def test_the_mean_over_a_cycle_is_of_the_last_twelve_aggregations(tmp_path):
    """50 % at the last ten, 38 at the two before: 576 / 12 = 48."""
    write_run(tmp_path, "async_periodic_mnist_persistent_random_old", [0.9] * 28 + [0.38] * 2 + [0.5] * 10)
    results = compute_results(collect_runs(tmp_path)[0])["printed"]
    means = [results[make_cell("persistent", "random", "old", metric)][0] for metric in (LAST_MEAN, CYCLE_MEAN)]
    assert means == pytest.approx([50, 48])


@pytest.mark.parametrize("kind", OLDER)
@pytest.mark.parametrize(
    ("equal", "fresh", "verdict"),
    [(1.0, 2.0, "reproduced"), (-1.0, 2.0, "not reproduced"), (1.0, -1.0, "not reproduced"), (0.01, 2.0, "undecided")],
)
def test_favouring_older_updates_has_to_be_above_equal_and_above_fresher(kind, equal, fresh, verdict):
    """Its leads over the other two, which differ from seed to seed by 0.1 or so."""
    (claim,) = [each for each in PAPERS["async"].claims if each.text.endswith(f"gamma {OLDER[kind]:g}")]
    levels = {kind: 60.0, "equal": 60.0 - equal, "fresh": 60.0 - fresh}
    assert {cell.algo for cell in claim.cells} == levels.keys()
    values = {cell: {seed: levels[cell.algo] + 0.1 * seed * (cell.algo == kind) for seed in (-1, 0, 1)}
              for cell in claim.cells}  # fmt: skip
    assert decide(claim, values).verdict == verdict


def test_tuned_methods_are_compared_where_they_were_tuned():
    """At equal bytes only those are that have by then done as much of the run that they were tuned for."""
    tuned = [each for each in ASYNC_FURTHER if {cell.algo for cell in each.cells} & {kind for _, kind in TUNED_KINDS}]
    compared = {}
    for claim in tuned:
        (metric,) = {cell.metric for cell in claim.cells}
        compared.setdefault(metric, []).append({cell.algo for cell in claim.cells})
    assert compared.keys() == {AT_TIME, AT_BYTES}
    assert set.union(*compared[AT_TIME]) == {kind for _, kind in TUNED_KINDS}
    assert compared[AT_BYTES] == [{f"{algo}_tuned" for algo in NEVER_WAITING}]
    runs = [flag_values(resolve_flagfile(find_flagfile(f"{algo}_mnist_shards"))) for algo in NEVER_WAITING]
    assert len({(run["rounds"], run["batch_size"]) for run in runs}) == 1, "which both send alike"


def test_fedavg_is_the_papers_without_the_proximal_term_and_the_other_is_compared_further():
    claims = [each for each in PAPERS["async"].claims if "outperforms FedAvg" in each.text]
    kinds = {cell.algo for claim in claims for cell in claim.cells}
    assert len(claims) == 2 and FEDAVG in kinds and FEDAVG_PROXIMAL not in kinds
    assert any(FEDAVG_PROXIMAL in {cell.algo for cell in claim.cells} for claim in ASYNC_FURTHER)
    for case in ("iid", "shards"):
        plain, proximal = (
            flag_values(resolve_flagfile(find_flagfile(f"async_periodic_mnist_{case}_random_{kind}")))
            for kind in (FEDAVG, FEDAVG_PROXIMAL)
        )
        assert plain == proximal | {"async_periodic_proximal_weight": 0.0}
