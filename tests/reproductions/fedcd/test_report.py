"""Table 1, the claims and the figure of FedCD, from made-up runs with numbers that are easy by hand."""

import math

import pytest

from launch.report import main
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.tables import select
from reproductions.fedcd.figure import draw_fedcd_figure
from reproductions.fedcd.measures import (
    choose_runs,
    compute_trailing_means,
    find_convergence,
    make_runs,
)
from reproductions.fedcd.tables import measure_runs

FEDCD_CPU, FEDAVG_CPU = "fedcd_cifar10_hierarchical_cpu", "fedavg_cifar10_hierarchical_cpu"
MODELS = {"live_models": 6, "active_models": [30] * 10 + [80] * 25 + [40] * 10, "max_active_models": 2}
MODELS |= {"preferred_models": [1] * 5 + [2] * 40, "score_deviation": [0.2] * 40 + [0.02] * 5}
STEADY = {name: value[-1] if isinstance(value, list) else value for name, value in MODELS.items()}
MIXED = [1] * 7 + [0] * 38  # rounds 6 and 7 of the 40 after the first milestone: apart in 95 %


@pytest.fixture
def runs_dir(tmp_path, write_archetype_run):
    """FedCD 0.6, of seeds 0 and 1, FedAvg 0.4 and swinging for 300 rounds, of seed 0; 8 bits 0.59, 4 bits 0.5."""
    for seed in (0, 1):
        write_archetype_run(
            tmp_path, FEDCD_CPU, [0.3] * 9 + [0.6 + 0.02 * seed] * 36, seed, mixed=MIXED, round_s=2, tilt=0.01, **MODELS
        )
    for bits, accuracy in ((8, 0.59), (4, 0.5)):
        write_archetype_run(tmp_path, f"{FEDCD_CPU}_{bits}bits", [accuracy] * 45, mixed=MIXED, **MODELS)
    write_archetype_run(tmp_path, "fedavg_cifar10_hierarchical_cpu", [0.4] * 45, swing=0.1, mixed=1)
    write_archetype_run(tmp_path, "fedavg_cifar10_hierarchical_cpu_300rounds", [0.4] * 300, swing=0.1, mixed=1)
    return tmp_path


def test_without_runs_the_smallest_size_says_so(tmp_path, build_report):
    tables = build_report(tmp_path).tables
    of_cpu = [f"cpu_{name}" for name in ("table_1", "results", "archetypes")]
    assert list(tables) == ["authors_run", *of_cpu, "claims", "settings", "legend"]
    assert tables["cpu_table_1"].rows[2][:6] == ["hierarchical", "ours", "", "not run", "not run", ""]
    assert {row["seeds"] for row in tables["cpu_results"].records} == {"not run"}
    assert {row["archetype 5"] for row in tables["cpu_archetypes"].records} == {"not run"}


def test_trailing_means_are_over_five_rounds_or_as_many_as_there_are():
    assert compute_trailing_means([5, 1, 3, 3, 3, 10]) == [5, 3, 3, 3, 3, 4]


def test_convergence_by_hand():
    """Calm from round 11 on: the last change of 20 is in round 10, and leaves the five-round mean after round 14."""
    changes = [0.0] + [20.0] * 9 + [1.0] * 20
    assert find_convergence([50.0] * 30, changes) == 14, "(20 + 4 * 1) / 5 = 4.8 in round 14, 8.6 in round 13"
    # The level: 40 up to round 12, 50 from there on; five-round means 48 in round 16 and 46 in round 15.
    assert find_convergence([40.0] * 12 + [50.0] * 18, [0.0] * 30) == 16
    assert find_convergence([40.0] * 12 + [50.0] * 12, [0.0] * 24) == math.inf, "16 to 24 are fewer than ten rounds"
    assert find_convergence([40.0] * 12 + [50.0] * 13, [0.0] * 25) == 16
    assert find_convergence([50.0] * 30, [0.0] + [6.0] * 29) == math.inf
    assert find_convergence([50.0] * 30, [99.0] + [0.0] * 29) == 1, "there is no change in the first round"


def test_the_longest_run_of_a_seed_counts_and_short_ones_do_not(runs_dir, tmp_path, write_archetype_run):
    write_archetype_run(runs_dir, "fedcd_cifar10_hypergeometric_cpu", [0.5] * 79, **STEADY)
    chosen = choose_runs(make_runs(collect_runs(runs_dir)[0]))
    whole = chosen[chosen.whole]
    assert select(whole, setting="", algo="fedavg").rounds.tolist() == [300]
    assert select(whole, setting="", algo="fedcd").seed.tolist() == [0, 1]
    assert set(whole.dataset) == {"hierarchical"} and set(chosen.dataset) == {"hierarchical", "hypergeometric"}


def test_measures_by_hand(runs_dir):
    frame = measure_runs(choose_runs(make_runs(collect_runs(runs_dir)[0])))
    fedcd, _ = select(frame, setting="", algo="fedcd").to_dict("records")
    expected = {"final": 60, "mean_of_last": 60, "change": 0, "archetype_3": 63, "swing": 0, "live_models": 6}
    # 30 points up in round 10: the five-round mean is 54 in round 13 and 60 in round 14.
    expected |= {
        "convergence": 14,
        "level": 14,
        "calmest": 0,
        "separation": 95,
        "peak_active_models": 80,
        "active_models": 40,
        "most_live_models": 6,
        "meta_0": 62,  # 60 and a mean tilt of 2 points; the archetypes 5 to 9 have one of 7
        "meta_1": 67,
    }
    expected |= {"late_active_models": (5 * 80 + 10 * 40) / 15, "score_deviation": 0.02, "max_active_models": 2}
    assert {name: fedcd[name] for name in expected} == pytest.approx(expected)
    (fedavg,) = select(frame, setting="", algo="fedavg").to_dict("records")
    expected = {"final": 40, "change": 20, "swing": 20, "late_swing": 20, "calmest": 20, "level": 1}
    expected |= dict.fromkeys(("convergence", "convergence_150", "convergence_300"), math.inf)
    assert {name: fedavg[name] for name in expected} == pytest.approx(expected)
    assert math.isnan(fedavg["live_models"])


def test_table_1_has_rounds_by_seed_and_time_ratios(runs_dir, build_report):
    rows = build_report(runs_dir).tables["cpu_table_1"].records
    assert [row["source"] for row in rows[:3]] == [
        "printed, edition of 8 figures",
        "printed, edition of 9 figures",
        "ours",
    ]
    assert list(rows[1].values())[3:6] == ["45", "> 300", "0.675"]
    # FedCD: 14 rounds of 2 s; FedAvg: 300 rounds of 1 s. Virtual time and bytes: 14 / 300 rounds, of 5 MB each.
    costs = ["28, 28", "> 300", "70, 70", "> 1500"]
    assert list(rows[2].values())[2:] == ["0, 1", "14, 14", "> 300", "0.09", "0.05", "0.05", *costs]
    assert list(rows[5].values())[2:] == ["", "not run", "not run", *[""] * 7]


def test_legends_cover_no_panel(runs_dir, tmp_path, figures):
    draw_fedcd_figure(collect_runs(runs_dir)[0], tmp_path)
    figure = figures["fedcd.png"]
    figure.draw_without_rendering()
    panels = [ax.get_window_extent() for ax in figure.axes]
    legends = [ax.get_legend().get_window_extent() for ax in figure.axes if ax.get_legend()]
    assert len(legends) >= 5
    assert not [legend for legend in legends for panel in panels if legend.overlaps(panel)]
    assert all(figure.bbox.x0 <= legend.x0 and legend.x1 <= figure.bbox.x1 for legend in legends)


def test_the_command_writes_tables_figure_and_an_archive_that_gives_the_same(runs_dir, tmp_path, capsys):
    assert draw_fedcd_figure([], tmp_path / "empty").stat().st_size > 10_000  # without any run the panels say so
    events = next(run.path for run in collect_runs(runs_dir)[0] if run.experiment == FEDCD_CPU) / "events.csv"
    rows = [f"1,{client},prefers,{client % 2}" for client in range(30)]
    events.write_text("\n".join(["round,client,what,model", *rows, ""]))
    printed = []
    for folder in (runs_dir, tmp_path / "archive"):
        arguments = [f"--runs_dir={folder}", f"--output={tmp_path / 'report'}", f"--archive={tmp_path / 'archive'}"]
        assert main(["--tables=fedcd", *arguments, *(["--figure"] if folder == runs_dir else [])]) == 0
        printed.append(capsys.readouterr().out)
        if folder == runs_dir:
            for run in collect_runs(runs_dir)[0]:
                if "archive" not in str(run.path):
                    (run.path / "config.json").unlink()
    assert printed[0] == printed[1]
    assert [path.read_text() for path in (tmp_path / "archive").rglob("events.csv")] == [events.read_text()]
    assert 'ours,"0, 1","14, 14",> 300,0.09,0.05,0.05' in (tmp_path / "report/fedcd_cpu_table_1.csv").read_text()
    assert "cifar10 subset (20,000 + 5,000 images)" in printed[0]
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "fedcd.md",
        "fedcd.png",
        "fedcd_claims.csv",
        "fedcd_further.csv",
        "fedcd_majority.csv",
        "fedcd_authors_run.csv",
        "fedcd_settings.csv",
        "fedcd_legend.csv",
        *(f"fedcd_cpu_{name}.csv" for name in ("table_1", "results", "archetypes")),  # sizes without runs have none
    }  # fmt: skip
