"""Table 1, the claims and the figure of FedCD, from made-up runs with numbers that are easy by hand."""

import math

import pytest

from launch.report import main
from reproductions.engine.collection import Cell
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.figures import compute_curve_by_round
from reproductions.engine.tables import select
from reproductions.fedcd.figure import draw_fedcd_figure
from reproductions.fedcd.measures import (
    SIZES,
    choose_runs,
    compute_trailing_means,
    find_convergence,
    make_runs,
)
from reproductions.fedcd.tables import list_findings, measure_runs
from reproductions.registry import PAPERS

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


def test_convergence_within_a_number_of_rounds(write_seeds, build_report, find_claim):
    """FedCD jumps in round 10 and has converged in round 14; FedAvg swings for 300 rounds."""
    write_seeds(FEDCD_CPU, [0.3] * 9 + [0.6] * 36, **MODELS)
    runs_dir = write_seeds(f"{FEDAVG_CPU}_300rounds", [0.4] * 300, swing=0.1)
    report = build_report(runs_dir)
    early = find_claim(report, "(by round 35)")
    assert (early["printed_tables"], early["cpu"]) == ("contradict it", "reproduced")
    assert early["cpu_numbers"] == ("all 2 comparisons, the closest: rounds to convergence 14: the same in all 3 seeds")
    for length in (150, 300):
        row = find_claim(report, "FedAvg", f"{length} ", "converge", "hierarchical")
        assert row["cpu"] == "reproduced"
        assert row["cpu_numbers"] == f"rounds to convergence, of the first {length}, never: the same in all 3 seeds"
    assert find_claim(report, "capped at 300", "hierarchical")["printed_tables"] == "agree"


def test_a_run_that_does_not_converge_never_does(write_seeds, build_report, find_claim):
    """Seed 0 converges in round 1, the others swing to the end: one of three, where all three would have to."""
    write_seeds(FEDCD_CPU, [0.6] * 45, swing=lambda seed: 0.1 if seed else 0.0, **MODELS)
    runs_dir = write_seeds(FEDAVG_CPU, [0.4] * 45)
    report = build_report(runs_dir)
    assert list(report.tables["cpu_table_1"].records[2].values())[3:5] == ["1, > 45, > 45", "1, 1, 1"]
    row = find_claim(report, "FedCD 45", "hierarchical")
    assert (row["cpu"], row["cpu_numbers"]) == (
        "undecided",
        # 1, 46 and 46 rounds: a mean of 31, deviation 25.98, times 4.303 / sqrt(3) either side of 30 more than FedAvg.
        "2 of 2 comparisons open: rounds to convergence never: 1 of 3 seeds on the claimed side; rounds to convergence "
        "or past the last: FedCD 31, FedAvg 1: +30.00 [-34.54, +94.54], n = 3",
    )
    write_seeds(FEDCD_CPU, [0.6] * 45, swing=0.1, **MODELS)
    report = build_report(runs_dir)
    assert find_claim(report, "FedCD 45", "hierarchical")["cpu"] == "not reproduced"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((0.4, 0.6, 0.8), "reproduced"),  # 0.6 +- 4.303 * 0.2 / sqrt(3) = 0.6 +- 0.50
        ((-1, 0.5, 2), "undecided"),  # 0.5 +- 3.73
        ((5, 6, 7), "not reproduced"),  # 6 +- 2.48, and 6 +- 3.58 at the level 1 - 0.05 / 2
        ((4, 5.5, 7), "undecided"),  # 5.5 +- 3.73; with two comparisons the other side is asked for at +- 5.37
    ],
)
def test_bits_do_not_matter_if_the_interval_lies_within_the_margin(
    gaps, verdict, write_seeds, build_report, find_claim
):
    """The accuracies by seed are far apart, the differences within a seed are not."""

    def run(gap):
        return lambda seed: [0.4 + 0.1 * seed + gap(seed) / 100] * 45

    write_seeds(FEDCD_CPU, run(lambda seed: 0), **MODELS)
    write_seeds(f"{FEDCD_CPU}_4bits", run(lambda seed: 0.1 * seed), **MODELS)
    runs_dir = write_seeds(f"{FEDCD_CPU}_8bits", run(lambda seed: gaps[seed]), **MODELS)
    assert find_claim(build_report(runs_dir), "effect on model performance")["cpu"] == verdict


def test_claims_that_the_algorithm_makes_true_are_not_counted(write_seeds, build_report, find_claim):
    """Three models on a device, as ties of their scores could leave, do not change that; the numbers show them."""
    report = build_report(write_seeds(FEDCD_CPU, [0.5] * 45, **MODELS | {"max_active_models": 3}))
    rows = [row for row in report.tables["claims"].records if "by construction" in (row["cpu"], row["paper"])]
    words = ("at most 2^l global models", "the number of active models", "at most two active models")
    assert [row["claim"] for row in rows] == [find_claim(report, each)["claim"] for each in words]
    assert {row[size] for row in rows for size in ("cpu", "paper")} == {"by construction"}
    # Where models go that score below the mean, more than two may stay on a device.
    other = {size: [row[size] for row in rows] for size in SIZES.keys() - {"cpu", "paper"}}
    assert list(other.values()) == [["by construction", "not run", "not run"]] * 3
    assert "exactly equal" in rows[2]["cpu_numbers"] and rows[2]["cpu_numbers"].endswith(
        "most on a device 3.00: the same in all 3 seeds"
    )


def test_only_the_sizes_that_delete_below_the_best_leave_two_models_by_construction():
    follows = {claim.text: claim.follows_in for claim in PAPERS["fedcd"].claims if claim.by_construction}
    (everywhere,) = [text for text, follows_in in follows.items() if follows_in("another size")]
    assert "at most 2^l global models" in everywhere


def test_further_comparisons_are_apart_and_corrected(write_seeds, build_report):
    """Leads of 18, 19 and 20 points at round 45; of 15.2 and so on before, so 15.48, 16.48, 17.48 of the last ten."""
    write_seeds(FEDCD_CPU, lambda seed: [0.552 + 0.01 * seed] * 44 + [0.58 + 0.01 * seed], **MODELS)
    write_seeds(f"{FEDCD_CPU}_8bits", lambda seed: [0.5] * 44 + [0.58 + 0.011 * seed], **MODELS)
    rows = build_report(write_seeds(FEDAVG_CPU, [0.4] * 45)).tables["further"].records
    assert [row["verdict"] for row in rows] == ["yes", "undecided", "yes"]
    assert {row["runs"] for row in rows} == {"small (2 cores)"}
    # t = (19 - 15) / (1 / sqrt(3)) = 6.93 and (16.48 - 15) sqrt(3) = 2.56, with two degrees of freedom.
    assert rows[0]["numbers"] == "FedCD 59.00, FedAvg 40.00: +19.00 [+16.52, +21.48], n = 3"
    assert rows[1]["numbers"] == "FedCD 56.48, FedAvg 40.00: +16.48 [+14.00, +18.96], n = 3"
    # Holm: the gaps of 8 bits, 0, 0.1 and 0.2, have the smallest p-value; those of the leads are 0.0202 and 0.1244.
    assert [row["p (Holm)"] for row in rows] == ["0.0404", "0.1244", "0.0028"]


def test_claims_are_decided_by_seed(write_seeds, build_report, find_claim):
    """FedCD 0.6 and 0.01 more a seed and archetype, FedAvg 0.4 and swinging."""
    write_seeds(FEDCD_CPU, lambda seed: [0.6 + 0.01 * seed] * 45, mixed=MIXED, tilt=0.01, **MODELS)
    report = build_report(write_seeds(FEDAVG_CPU, [0.4] * 45, swing=0.1))
    verdicts = {row["claim"]: row["cpu"] for row in report.tables["claims"].records}
    # In round 45 the archetypes 5 to 9 of FedAvg are at 0.5 or 0.3, which the mean over ten rounds evens out.
    better = find_claim(report, "more accurate", "all archetypes")
    assert better["cpu"] == "reproduced"
    assert better["cpu_numbers"].endswith(
        "archetype 0: FedCD 61.00 against FedAvg 40.00: +21.00 [+18.52, +23.48], n = 3"
    )
    assert find_claim(report, "in FedCD stop")["cpu"] == "reproduced"
    assert find_claim(report, "continues to oscillate")["cpu_numbers"] == "points 20.00: the same in all 3 seeds"
    assert find_claim(report, "round-to-round", "hierarchical")["cpu"] == "reproduced"
    assert find_claim(report, "performs worse")["cpu"] == "reproduced"
    assert find_claim(report, "10 out of 16")["cpu"] == "reproduced"
    assert find_claim(report, "segregate")["cpu_numbers"] == "per cent of the rounds 95.00: the same in all 3 seeds"
    assert {verdict for claim, verdict in verdicts.items() if "hypergeometric" in claim or "bias" in claim} == {
        "not run",
        "not comparable",
    }
    assert {row["paper"] for row in report.tables["claims"].records} == {"not run", "by construction"}


def test_seven_models_and_mixed_groups_speak_against_the_claims(write_seeds, build_report, find_claim):
    models = MODELS | {"live_models": 7, "preferred_models": 7, "score_deviation": 0.06}
    write_seeds(FEDCD_CPU, [0.5] * 45, mixed=1, **models)
    report = build_report(write_seeds(f"{FEDCD_CPU}_bias0.2", [0.5] * 45, **models))
    for words in ("10 out of 16", "6 models were preferred", "segregate", "deviation over model scores"):
        assert find_claim(report, words)["cpu"] == "not reproduced", words


def test_fewer_than_three_seeds_decide_nothing(runs_dir, build_report, find_claim):
    report = build_report(runs_dir)
    decided = [row["claim"] for row in report.tables["claims"].records if "reproduced" in row["cpu"]]
    assert decided == []
    assert find_claim(report, "10 out of 16")["cpu_numbers"] == "models left 6.00: 2 seeds"


def test_hypergeometric_archetypes(tmp_path, write_archetype_run, build_report, find_claim):
    write_archetype_run(tmp_path, "fedcd_cifar10_hypergeometric_cpu", [0.5] * 80, tilt=0.02, **STEADY)
    report = PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0])
    # Archetypes 50, 52, ..., 60 %: outer 50 and 60, central 54 and 56, equal means.
    numbers = find_claim(report, "more skewed")["cpu_numbers"]
    assert numbers == "outer 55.00 against central 55.00: 1 seed"
    results = list_findings(measure_runs(choose_runs(make_runs(collect_runs(tmp_path)[0]))))["cpu"]
    assert results[Cell("hypergeometric", "", "fedcd", 0, "archetype_5")] == {0: pytest.approx(60)}
    assert Cell("hypergeometric", "", "fedcd", 0, "separation") not in results


def test_every_metric_of_a_claim_is_measured(tmp_path, write_archetype_run, write_preferences):
    """A claim on a metric that no run has would be "not run" for ever."""
    for partition in ("hierarchical", "hypergeometric"):
        write_preferences(
            write_archetype_run(tmp_path, f"fedcd_cifar10_{partition}_cpu", [0.5] * 80, **STEADY), [[0] * 30] * 80
        )
        write_archetype_run(tmp_path, f"fedavg_cifar10_{partition}_cpu_300rounds", [0.4] * 300)
    for variant in ("8bits", "4bits", "bias0.2", "bias0.35", "bias0.5", "bias0.65", "bias0.8"):
        write_preferences(
            write_archetype_run(tmp_path, f"{FEDCD_CPU}_{variant}", [0.5] * 45, **STEADY), [[0] * 30] * 45
        )
    small = "cifar10_hierarchical_authors_small"
    for stem in (
        "fedavg",
        "fedavg_8bits",
        "fedavg_4bits",
        "fedcd",
        "fedcd_1milestone",
        "fedcd_scores1",
        "fedcd_scores5",
    ):
        algo, _, variant = stem.partition("_")
        models = STEADY if algo == "fedcd" else {}
        write_archetype_run(tmp_path, "_".join(filter(None, (algo, small, variant))), [0.5] * 45, **models)
    for experiment, models in (
        ("fedavg_{}_authors", {}),
        ("fedcd_{}_authors", STEADY),
        ("fedcd_{}_authors_shared", STEADY),
    ):
        experiment = experiment.format("cifar10_hierarchical")
        write_archetype_run(tmp_path, experiment, [0.5] * 60, dataset="cifar10", **models)
    report = PAPERS["fedcd"].build_report(collect_runs(tmp_path)[0])
    rows = report.tables["claims"].records
    assert len(rows) == len(PAPERS["fedcd"].claims)
    assert [row["claim"] for row in rows if {row["cpu"], row["authors_small"]} == {"not run"}] == []
    by_runs = {size: [] for size in SIZES.values()}
    for row in report.tables["further"].records:
        by_runs[row["runs"]].append(row["comparison"])
    further = [claim.text for claim in PAPERS["fedcd"].further]
    bits, shared, biases = slice(2, 3), slice(4, 7), slice(7, 8)  # each of a size of its own
    assert by_runs[SIZES["cpu"]] == further[: shared.start] + further[biases]
    assert by_runs[SIZES["authors"]] == further[: bits.start] + further[bits.stop : shared.stop]


def test_a_curve_is_the_mean_over_the_seeds_as_far_as_all_go(runs_dir):
    runs = select(choose_runs(make_runs(collect_runs(runs_dir)[0])), setting="", algo="fedcd").run
    rounds, mean, deviation = compute_curve_by_round(runs, "client_test_accuracy", 40, of_all=True)
    assert (rounds[-1], mean[-1], deviation[-1]) == (40, pytest.approx(0.61), pytest.approx(0.02 / 2**0.5))
    assert compute_curve_by_round(runs, "client_accuracy_change", 150, of_all=True).places.tolist() == list(
        range(2, 46)
    )


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
