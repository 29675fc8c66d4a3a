"""Table 1, the claims and the figure of FedCD, from made-up runs with numbers that are easy by hand.

Each claim on FedCD by results that are easy by hand: some in which it holds, and a change that speaks against it.
"""

import math

import pytest

from launch.report import main
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.judge import decide
from reproductions.engine.tables import select
from reproductions.fedcd.claims import CLAIMS, FURTHER
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
    assert list(tables) == ["authors_run", *of_cpu, "claims", "experiments", "settings", "legend"]
    assert tables["cpu_table_1"].rows[2][:6] == ["hierarchical", "ours", "", "not run", "not run", ""]
    assert {row["seeds"] for row in tables["cpu_results"].records} == {"not run"}
    assert {row["archetype 5"] for row in tables["cpu_archetypes"].records} == {"not run"}


def test_trailing_means_are_over_five_rounds_or_as_many_as_there_are():
    assert compute_trailing_means([5, 1, 3, 3, 3, 10]) == [5, 3, 3, 3, 3, 4]


@pytest.mark.parametrize(
    ("accuracies", "changes", "convergence"),
    [
        # Calm from round 11 on: the last change of 20 is in round 10, and leaves the five-round mean after round 14:
        # (20 + 4 * 1) / 5 = 4.8 there, and 8.6 in round 13.
        ([50.0] * 30, [0.0] + [20.0] * 9 + [1.0] * 20, 14),
        # The level: 40 up to round 12, 50 from there on; five-round means 48 in round 16 and 46 in round 15.
        ([40.0] * 12 + [50.0] * 18, [0.0] * 30, 16),
        ([40.0] * 12 + [50.0] * 12, [0.0] * 24, math.inf),  # 16 to 24 are fewer than ten rounds
        ([40.0] * 12 + [50.0] * 13, [0.0] * 25, 16),
        ([50.0] * 30, [0.0] + [6.0] * 29, math.inf),
        ([50.0] * 30, [99.0] + [0.0] * 29, 1),  # there is no change in the first round
    ],
)
def test_convergence_by_hand(accuracies, changes, convergence):
    assert find_convergence(accuracies, changes) == convergence


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
        "fedcd_experiments.csv",
        "fedcd_further.csv",
        "fedcd_majority.csv",
        "fedcd_authors_run.csv",
        "fedcd_settings.csv",
        "fedcd_legend.csv",
        *(f"fedcd_cpu_{name}.csv" for name in ("table_1", "results", "archetypes")),  # sizes without runs have none
    }  # fmt: skip


BY_ARCHETYPE = {f"{algo} archetype_{k}": level for k in range(10) for algo, level in (("fedcd", 60), ("fedavg", 40))}
LEAD = {"fedcd": 60, "fedavg": 40}
BITS = {"fedcd": 60, "fedcd 8bits": 61.5, "fedcd 4bits": 58.5, "fedavg": 40, "fedavg 8bits": 41.5, "fedavg 4bits": 38.5}
COSTS = {"fedcd s_per_round_ratio": 1.1, "fedcd mb_per_round_ratio": 1.1, "fedcd mean_active_models": 33}
SOON = {"fedcd convergence": 30, "fedcd convergence_or_end": 30, "fedavg convergence_or_end": 46}
CASES = [  # words of a claim, results by algorithm, metric if it has several, and setting; what speaks against it
    ("higher accuracy ... compared", LEAD, {"fedavg": 61}),
    ("faster convergence compared", {"fedcd": 30, "fedavg": 31}, {"fedcd": 32}),
    ("minimal computation", COSTS, {"fedcd s_per_round_ratio": 1.2}),
    ("memory overheads after", {"fedcd last_mb_per_round_ratio": 1.0, "fedcd last_active_models": 33},
     {"fedcd last_active_models": 34}),
    ("a normalized average", {"fedcd": 60, "fedcd scores1": 59, "fedcd scores5": 59}, {"fedcd scores5": 61}),
    ("robust to oscillation", {"fedcd": 3, "fedcd scores1": 4}, {"fedcd scores1": 2}),
    ("more accurate on all archetypes", BY_ARCHETYPE, {"fedcd archetype_9": 39}),
    ("stop by round 10", {"fedcd": 3, "fedavg": 12}, {"fedavg": 2}),  # both calm: that is what small steps do
    ("stop by round 10", {"fedcd": 5, "fedavg": 12}, {"fedcd": 6}),
    ("oscillate past round 40", {"fedavg": 6}, {"fedavg": 4}),
    ("round-to-round performance", {"fedcd": 3, "fedavg": 4}, {"fedavg": 2}),
    ("(by round 35)", SOON | {"fedcd convergence": 35}, {"fedcd convergence": 36}),
    ("(by round 45)", SOON, {"fedavg convergence_or_end": 29}),  # steps explain it
    ("FedCD 45", SOON | {"fedcd convergence": 45}, {"fedcd convergence": 46}),
    ("FedCD 50", SOON | {"fedcd convergence": 50}, {"fedcd convergence": 51}),
    ("within 150 training rounds", {"fedavg": float("inf")}, {"fedavg": 149}),
    ("capped at 300 rounds", {"fedavg": float("inf")}, {"fedavg": 299}),
    ("performs worse than meta-archetype 1", {"fedcd meta_0": 60, "fedcd meta_1": 65}, {"fedcd meta_1": 55}),
    ("most archetypes converge under FedCD", {"fedcd": 4, "fedavg": 2}, {"fedcd": 3}),
    ("most archetypes converge under FedCD", {"fedcd": 5, "fedavg": 2}, {"fedavg": 6}),
    ("more skewed probability", {"fedcd outer": 60, "fedcd central": 55}, {"fedcd central": 61}),
    ("performs better ... on the central", {"fedavg central": 60, "fedavg outer": 55}, {"fedavg outer": 61}),
    ("converges faster on the central", {"fedavg convergence_central": 1, "fedavg convergence_outer": 35},
     {"fedavg convergence_outer": 0}),
    ("effect on model performance", BITS, {"fedcd 4bits": 57}),
    ("slightly impacted the time", {"fedcd": 30, "fedcd 8bits": 34, "fedcd 4bits": 26}, {"fedcd 8bits": 36}),
    ("similarly insensitive", BITS, {"fedavg 8bits": 43}),
    ("10 out of 16 models", {"fedcd": 6}, {"fedcd": 7}),
    ("segregate by meta-archetype", {"fedcd": 80}, {"fedcd": 79}),
    ("Subsequent cloning rounds", {"fedcd": 60, "fedcd 1milestone": 59}, {"fedcd 1milestone": 57}),
    ("oscillates between models", {"fedcd": 6}, {"fedcd": 5}),
    ("6 models were preferred", {"fedcd": 6}, {"fedcd": 7}),
    ("as the bias decreases", {"fedcd bias0.2": 60, "fedcd bias0.8": 50}, {"fedcd bias0.2": 40}),
    ("As the bias ... increases", {"fedcd bias0.8": 90, "fedcd bias0.2": 80}, {"fedcd bias0.2": 95}),
    ("standard deviation over model scores", {f"fedcd bias{b}": 0.05 for b in (0.2, 0.35, 0.5, 0.65, 0.8)},
     {"fedcd bias0.5": 0.06}),
    ("wall-clock time", {"fedcd": 28, "fedavg": 300}, {"fedcd": 301}),
    ("reduced communication cost", {"fedcd": 70, "fedavg": 1500}, {"fedcd": 1501}),
    ("more than 15 points above FedAvg", {"fedcd": 56, "fedavg": 40}, {"fedcd": 54}),
    ("the same over the last 10 rounds",
     {"fedcd mean_of_last": 56, "fedavg mean_of_last": 40, "fedcd last_change shared": 3, "fedavg last_change": 4},
     {"fedcd mean_of_last": 54, "fedavg last_change": 2}),
    ("FedCD with 8 bits is within 2 points", BITS, {"fedcd 8bits": 63}),
    ("changes by at most 5 points a round under FedCD", {"fedcd": 4, "fedavg": 10}, {"fedavg": 3}),
    ("changes less under FedCD than", {"fedcd shared": 3, "fedavg": 4}, {"fedavg": 2}),
    ("converges in fewer of the first 45 rounds", {"fedcd shared": 30, "fedavg": 46}, {"fedavg": 29}),
    ("from the first milestone on", {"fedcd bias0.2": 60, "fedcd bias0.8": 50}, {"fedcd bias0.2": 40}),
]  # fmt: skip


def judge(claim, values):
    """The verdict where three seeds have these results, whichever data the claim is on."""
    found = {}
    for cell in {cell for condition in claim.conditions for cell in condition.cells}:
        metric = f"{cell.algo} {cell.metric}"
        names = (f"{metric} {cell.setting}".strip(), metric, f"{cell.algo} {cell.setting}".strip(), cell.algo)
        known = [name for name in names if name in values]
        found[cell] = dict.fromkeys(range(3), values[known[0]])
    return decide(claim, found).verdict


@pytest.mark.parametrize(("words", "values", "change"), CASES)
def test_a_claim_has_its_side(words, values, change):
    claims = [claim for claim in (*CLAIMS, *FURTHER) if words in claim.text]
    assert claims
    for claim in claims:
        assert judge(claim, values) == "reproduced", claim.text
        assert judge(claim, values | change) == "not reproduced", claim.text


def test_every_claim_that_runs_decide_is_among_them():
    open_ones = [claim.text for claim in (*CLAIMS, *FURTHER) if not claim.by_construction]
    assert [text for text in open_ones if not any(words in text for words, *_ in CASES)] == []


def test_only_the_sizes_that_delete_below_the_best_leave_two_models_by_construction():
    (everywhere,) = [claim.text for claim in CLAIMS if claim.by_construction and claim.follows_in("another size")]
    assert "at most 2^l global models" in everywhere


def test_where_neither_converges_times_are_ties():
    (claim,) = [claim for claim in CLAIMS if "wall-clock time" in claim.text and "hierarchical" in claim.text]
    assert judge(claim, {"fedcd": float("inf"), "fedavg": float("inf")}) == "undecided"
