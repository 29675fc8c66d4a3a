"""Table 1, the aims, the claims and the figure of FedCD, from made-up runs with numbers that are easy by hand."""

import pytest

from launch.report import collect_runs, main
from launch.reports.collection import Place
from launch.reports.curves import compute_curve_by_round
from launch.reports.fedcd.claims import FEDCD_CLAIMS, make_cell
from launch.reports.fedcd.figure import draw_fedcd_figure
from launch.reports.fedcd.measures import (
    MILESTONES,
    compute_trailing_means,
    find_convergence,
    find_place,
    group_whole_runs,
    measure,
)
from launch.reports.fedcd.report import compute_findings
from launch.reports.registry import PAPERS
from launch.runs.run_records import EXPERIMENTS, resolve_flagfile
from launch.settings.run_config import flag_values

FEDCD_CPU = "fedcd_cifar10_hierarchical_cpu"
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


def rows_of(report, table):
    columns, rows = report.tables[table]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def find_claim(report, *words):
    (row,) = [row for row in rows_of(report, "cpu_claims") if all(word in row["claim"] for word in words)]
    return row


def test_experiments_have_their_places():
    assert find_place(FEDCD_CPU) == Place("cpu", "hierarchical", "", "fedcd")
    assert find_place("fedavg_cifar10_hypergeometric_paper_150rounds") == Place("paper", "hypergeometric", "", "fedavg")
    assert find_place(f"{FEDCD_CPU}_bias0.35") == Place("cpu", "hierarchical", "bias0.35", "fedcd")
    assert find_place("fedcd_cifar10_hierarchical_paper_8bits").setting == "8bits"
    assert find_place("fedavg_mnist_alpha0.1") is None and find_place(f"{FEDCD_CPU}_bias0x35") is None


def test_every_flagfile_has_its_place():
    places = [find_place(path.stem) for path in EXPERIMENTS.glob("*_cifar10_*.flags")]
    assert None not in places
    assert len(places) == 30 and len(set(places)) == 22, "15 a size, of which two pairs only differ in their rounds"


def test_flagfiles_clone_at_the_milestones_that_texts_and_measures_have():
    for path in EXPERIMENTS.glob("fedcd_*.flags"):
        stored = flag_values(resolve_flagfile(path))["fedcd_milestones"]
        assert stored == ",".join(map(str, MILESTONES)), path.name


def test_trailing_means_are_over_five_rounds_or_as_many_as_there_are():
    assert compute_trailing_means([5, 1, 3, 3, 3, 10]) == [5, 3, 3, 3, 3, 4]


def test_convergence_by_hand():
    """Calm from round 11 on: the last change of 20 is in round 10, and leaves the five-round mean after round 14."""
    changes = [0.0] + [20.0] * 9 + [1.0] * 20
    assert find_convergence([50.0] * 30, changes) == 14, "(20 + 4 * 1) / 5 = 4.8 in round 14, 8.6 in round 13"
    # The level: 40 up to round 12, 50 from there on; five-round means 48 in round 16 and 46 in round 15.
    assert find_convergence([40.0] * 12 + [50.0] * 18, [0.0] * 30) == 16
    assert find_convergence([40.0] * 12 + [50.0] * 12, [0.0] * 24) is None, "16 to 24 are fewer than ten rounds"
    assert find_convergence([40.0] * 12 + [50.0] * 13, [0.0] * 25) == 16
    assert find_convergence([50.0] * 30, [0.0] + [6.0] * 29) is None
    assert find_convergence([50.0] * 30, [99.0] + [0.0] * 29) == 1, "there is no change in the first round"


def test_the_longest_run_of_a_seed_counts_and_short_ones_do_not(runs_dir, tmp_path, write_archetype_run):
    write_archetype_run(runs_dir, "fedcd_cifar10_hypergeometric_cpu", [0.5] * 79, **STEADY)
    by_place = group_whole_runs(collect_runs(runs_dir)[0])
    (fedavg,) = by_place[Place("cpu", "hierarchical", "", "fedavg")]
    assert len(fedavg.rounds) == 300
    assert [run.flags["seed"] for run in by_place[Place("cpu", "hierarchical", "", "fedcd")]] == [0, 1]
    assert not any(place.dataset == "hypergeometric" for place in by_place)


def test_measures_by_hand(runs_dir):
    by_place = group_whole_runs(collect_runs(runs_dir)[0])
    fedcd = measure(by_place[Place("cpu", "hierarchical", "", "fedcd")][0])
    expected = {"final": 60, "mean_of_last": 60, "change": 0, "archetype_3": 63, "swing": 0, "live_models": 6}
    # 30 points up in round 10: the five-round mean is 54 in round 13 and 60 in round 14.
    expected |= {
        "convergence": 14,
        "level": 14,
        "calmest": 0,
        "separation": 95,
        "peak_active_models": 80,
        "active_models": 40,
    }
    expected |= {"late_active_models": (5 * 80 + 10 * 40) / 15, "score_deviation": 0.02, "max_active_models": 2}
    assert {name: fedcd[name] for name in expected} == pytest.approx(expected)
    fedavg = measure(by_place[Place("cpu", "hierarchical", "", "fedavg")][0])
    expected = {"final": 40, "change": 20, "swing": 20, "late_swing": 20, "convergence": 301, "convergence_150": 151}
    expected |= {"calmest": 20, "level": 1}
    assert {name: fedavg[name] for name in expected} == pytest.approx(expected)
    assert "live_models" not in fedavg


def test_table_1_has_rounds_by_seed_and_time_ratios(runs_dir):
    rows = rows_of(PAPERS["fedcd"].build_report(collect_runs(runs_dir)[0]), "cpu_table_1")
    assert [row["source"] for row in rows[:3]] == [
        "printed, edition of 8 figures",
        "printed, edition of 9 figures",
        "ours",
    ]
    assert list(rows[1].values())[3:6] == ["45", "> 300", "0.675"]
    # FedCD: 14 rounds of 2 s; FedAvg: 300 rounds of 1 s. Virtual: 14 / 300 rounds.
    assert list(rows[2].values())[2:] == ["0, 1", "14, 14", "> 300", "0.09", "0.05"]
    assert list(rows[5].values())[2:] == ["", "not run", "not run", "", ""]


def test_without_300_rounds_of_fedavg_there_is_no_ratio(runs_dir):
    runs = [run for run in collect_runs(runs_dir)[0] if not run.experiment.endswith("rounds")]
    report = PAPERS["fedcd"].build_report(runs)
    assert list(rows_of(report, "cpu_table_1")[2].values())[3:] == ["14, 14", "> 45", "", ""]
    assert find_claim(report, "FedAvg does not converge within 150")["ours"] == "not run"


def test_aims_are_judged_over_the_seeds_that_have_all_runs(runs_dir):
    rows = rows_of(PAPERS["fedcd"].build_report(collect_runs(runs_dir)[0]), "cpu_aims")
    assert [row["verdict"] for row in rows] == ["reached"] * 8
    assert [row["by seed"] for row in rows] == [
        "+20.00 (seed 0)",
        "+20.00 (seed 0)",
        "-20.00 (seed 0)",
        "95.0 (seed 0), 95.0 (seed 1)",
        "2 (seed 0), 2 (seed 1)",
        *["-1.00 (seed 0)"] * 3,
    ]


def test_gaps_of_8_bits_that_cancel_out_are_seen(tmp_path, write_archetype_run):
    """Seed 0 is 4 points above at the end, seed 1 is 3 below; over the last ten rounds 0.4 above and 3 below."""
    for seed, at_end, before in ((0, 0.54, 0.5), (1, 0.47, 0.47)):
        write_archetype_run(tmp_path, FEDCD_CPU, [0.5] * 45, seed, **MODELS)
        write_archetype_run(tmp_path, f"{FEDCD_CPU}_8bits", [before] * 44 + [at_end], seed, **MODELS)
    rows = rows_of(PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0]), "cpu_aims")[-3:]
    assert [row["mean"] for row in rows] == ["+0.50", "+0.50", "-1.30"]
    assert [row["verdict"] for row in rows] == ["reached", "not reached", "reached"]


def test_aims_that_one_seed_misses_are_not_reached(tmp_path, write_archetype_run):
    for seed, most in ((0, 2), (1, 3)):
        models = MODELS | {"max_active_models": most}
        mixed = [1] * (13 + seed) + [0] * (32 - seed)  # apart in 32 and 31 of 40 rounds: 80 and 77.5 %
        write_archetype_run(tmp_path, FEDCD_CPU, [0.5] * 45, seed, mixed=mixed, **models)
        write_archetype_run(tmp_path, "fedavg_cifar10_hierarchical_cpu", [0.35 + 0.01 * seed] * 45, seed)
    rows = rows_of(PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0]), "cpu_aims")
    assert [row["mean"] for row in rows[:2]] == ["+14.50", "+14.50"]
    assert [row["by seed"] for row in rows[3:5]] == ["80.0 (seed 0), 77.5 (seed 1)", "2 (seed 0), 3 (seed 1)"]
    assert [row["verdict"] for row in rows] == ["not reached"] * 5 + ["not run"] * 3


def test_claims_are_decided_with_numbers(runs_dir):
    report = PAPERS["fedcd"].build_report(collect_runs(runs_dir)[0])
    assert find_claim(report, "more accurate", "all archetypes")["ours"] == "reproduced"
    assert find_claim(report, "oscillations stop")["ours"] == "reproduced"
    assert find_claim(report, "continues to oscillate")["ours_numbers"] == "points 20.00"
    assert find_claim(report, "by round 35")["ours_numbers"] == "round 14.00"
    assert find_claim(report, "by round 45", "hierarchical")["printed_tables"] == "agree"
    assert find_claim(report, "within 300", "hierarchical")["ours"] == "reproduced"
    bits = find_claim(report, "quantization")
    assert (bits["ours"], bits["ours_numbers"]) == (
        "not reproduced",
        "1 of 2 comparisons fail: 4 bits minus 32 bits: -10.00",
    ), "of seed 0, which all three have"
    assert find_claim(report, "10 of 16")["ours"] == "reproduced"
    assert find_claim(report, "less time", "hierarchical")["ours_numbers"] == "ratio 0.0933"
    not_run = [
        row for row in rows_of(report, "cpu_claims") if "hypergeometric" in row["claim"] or "bias" in row["claim"]
    ]
    assert {row["ours"] for row in not_run} == {"not run"} and len(not_run) == 9
    assert {row["ours"] for row in rows_of(report, "paper_claims")} == {"not run"}


def test_seven_models_or_three_on_a_device_speak_against_the_claims(tmp_path, write_archetype_run):
    models = MODELS | {"live_models": 7, "max_active_models": 3, "preferred_models": 7, "score_deviation": 0.06}
    write_archetype_run(tmp_path, FEDCD_CPU, [0.5] * 45, mixed=1, **models)
    write_archetype_run(tmp_path, f"{FEDCD_CPU}_bias0.2", [0.5] * 45, **models)
    report = PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0])
    for words in ("10 of 16", "at most two active", "6 models are preferred", "segregate", "deviation of the scores"):
        assert find_claim(report, words)["ours"] == "not reproduced", words


def test_hypergeometric_archetypes(tmp_path, write_archetype_run):
    write_archetype_run(tmp_path, "fedcd_cifar10_hypergeometric_cpu", [0.5] * 80, tilt=0.02, **STEADY)
    report = PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0])
    # Archetypes 50, 52, ..., 60 %: outer 50 and 60, central 54 and 56, equal means.
    assert find_claim(report, "outer archetypes (0, 5)")["ours"] == "not reproduced"
    results = compute_findings(collect_runs(tmp_path)[0]).results["cpu"]
    assert results[make_cell("hypergeometric", "fedcd", "archetype_5")].mean == pytest.approx(60)
    assert make_cell("hypergeometric", "fedcd", "separation") not in results


def test_every_metric_of_a_claim_is_measured(tmp_path, write_archetype_run):
    """A claim on a metric that no run has would be "not run" for ever."""
    for partition in ("hierarchical", "hypergeometric"):
        write_archetype_run(tmp_path, f"fedcd_cifar10_{partition}_cpu", [0.5] * 80, **STEADY)
        write_archetype_run(tmp_path, f"fedavg_cifar10_{partition}_cpu_300rounds", [0.4] * 300)
    for variant in ("8bits", "4bits", "bias0.2", "bias0.35", "bias0.5", "bias0.65", "bias0.8"):
        write_archetype_run(tmp_path, f"{FEDCD_CPU}_{variant}", [0.5] * 45, **STEADY)
    report = PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0])
    rows = rows_of(report, "cpu_claims")
    assert len(rows) == len(FEDCD_CLAIMS)
    assert [row["claim"] for row in rows if row["ours"] == "not run"] == []


def test_a_curve_is_the_mean_over_the_seeds_as_far_as_all_go(runs_dir):
    runs = group_whole_runs(collect_runs(runs_dir)[0])[Place("cpu", "hierarchical", "", "fedcd")]
    rounds, mean, deviation = compute_curve_by_round(runs, "client_test_accuracy", 40, of_all=True)
    assert (rounds[-1], mean[-1], deviation[-1]) == (40, pytest.approx(0.61), pytest.approx(0.02 / 2**0.5))
    assert compute_curve_by_round(runs, "client_accuracy_change", 150, of_all=True).places.tolist() == list(
        range(2, 46)
    )


def test_the_command_writes_tables_figure_and_an_archive_that_gives_the_same(runs_dir, tmp_path, capsys):
    assert draw_fedcd_figure([], tmp_path / "empty").stat().st_size > 10_000  # without any run the panels say so
    events = next(run.path for run in collect_runs(runs_dir)[0] if run.experiment == FEDCD_CPU) / "events.csv"
    rows = [f"1,0,{client},prefers,{client % 2}" for client in range(30)]
    events.write_text("\n".join(["round,time_s,client,what,model", *rows]))
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
    assert "| ours | 0, 1 | 14, 14 | > 300 | 0.09 | 0.05 |" in printed[0]
    assert "cifar10 subset (20,000 + 5,000 images)" in printed[0]
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "fedcd.md",
        "fedcd.png",
        *(f"fedcd_{size}_{name}.csv" for size in ("cpu", "paper") for name in
          ("table_1", "results", "archetypes", "aims", "claims")),
    }  # fmt: skip
