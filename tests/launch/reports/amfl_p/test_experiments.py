"""The factorial, few-shot runs, ablations and defaults, from made-up runs whose differences are known by hand."""

import re

import pytest

from launch.report import collect_runs
from launch.reports.amfl_p.experiments import EXPERIMENTS, NEW_SENSORS
from launch.reports.amfl_p.few_shot_figure import draw_few_shot_figure
from launch.reports.amfl_p.report import find_place
from launch.reports.registry import PAPERS
from launch.runs.columns import FINE_TUNING_COLUMNS
from launch.runs.run_records import find_flagfile, list_flagfiles, resolve_flagfile
from launch.runs.tables import write_json, write_table
from launch.settings.run_config import flag_values

PAPER = PAPERS["amfl_p"]
ACCURACY = "client_test_accuracy"


def write_run(runs_dir, experiment, seed, accuracy, majority=0.4, curve=(), clients=(), rounds=None, **summary):
    """A run of ten devices that ends with this accuracy, evaluated after its last round alone."""
    flags = flag_values(resolve_flagfile(find_flagfile(experiment), [f"--seed={seed}"]))
    run_dir = runs_dir / experiment / f"seed_{seed}"
    write_json(run_dir / "config.json", {"flags": flags})
    last = rounds or flags["rounds"]
    rows = [[str(i), "10", f"{accuracy}" if i == last else ""] for i in range(1, last + 1)]
    write_table(run_dir / "metrics.csv", ["round", "num_clients", ACCURACY], rows)
    write_json(run_dir / "summary.json", {"rounds": last, "clients": {"majority_accuracy": majority}, **summary})
    if curve:
        write_table(run_dir / "fine_tuning.csv", FINE_TUNING_COLUMNS, [[str(cell) for cell in row] for row in curve])
    if clients:
        write_table(run_dir / "clients.csv", ["client", "accuracy"], [["x", str(each)] for each in clients])


def build(runs_dir):
    return PAPER.build_report(collect_runs(runs_dir)[0])


def rows_of(report, table):
    columns, rows = report.tables[table]
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture
def factorial(tmp_path):
    """At medium, MAML gains 2 points on FedAvg give or take 0.1, and the rule costs 0.5; at high, they are the same.

    FedAvg gains 10 points on random weights. In `structured`, MAML gains 20.
    """
    for seed, moved in enumerate((-0.001, 0.0, 0.001)):
        building = 0.7 + 0.05 * seed
        for degree, gain in (("medium", 0.02), ("high", 0.0), ("structured", 0.20)):
            write_run(tmp_path, f"start_fedavg_same_building_{degree}", seed, building)
            write_run(tmp_path, f"start_maml_same_building_{degree}", seed, building + gain + moved)
        write_run(tmp_path, "start_random_same_building_medium", seed, building - 0.10)
        write_run(tmp_path, "start_maml_resources_building_medium", seed, building + 0.015)
        write_run(tmp_path, "local_training_building_medium", seed, building - 0.02)
    write_run(tmp_path, "start_fedavg_resources_building_medium", 0, 0.9, rounds=20)
    return tmp_path


def find(rows, **wanted):
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    return row


def test_the_gain_of_a_start_is_apart_from_the_loss_by_the_rule(factorial):
    report = build(factorial)
    gains = rows_of(report, "factorial_starts")
    same = {"finish": "the same for all", "starts": "MAML minus FedAvg"}
    # The deviation is 0.1 points, the error 0.0577, t(2) 4.303 at 95 %, 2.920 at 90 %.
    assert find(gains, heterogeneity="medium", **same)["difference"] == "+2.00 [+1.75, +2.25]"
    assert find(gains, heterogeneity="medium", **same)["verdict"] == "win"
    assert find(gains, heterogeneity="high", **same)["verdict"] == "tie"
    assert find(gains, heterogeneity="structured", **same)["verdict"] == "not judged (win)"
    assert find(gains, heterogeneity="low", **same)["difference"] == "not run"
    random = find(gains, heterogeneity="medium", finish="the same for all", starts="FedAvg minus random")
    assert (random["difference"], random["verdict"]) == ("+10.00", "win")
    losses = rows_of(report, "factorial_rules")
    rule = find(losses, heterogeneity="medium", start="MAML")
    assert rule["by resources minus the same for all"] == "-0.50 [-0.75, -0.25]"
    assert rule["verdict"] == "loss, tie"


def test_local_training_and_the_majority_class_stand_beside_the_factorial(factorial):
    rows = rows_of(build(factorial), "factorial")
    assert find(rows, heterogeneity="medium", start="local training")["the same for all"] == "73.00 ± 5.00"
    assert find(rows, heterogeneity="medium", start="majority class")["the same for all"] == "40.00 ± 0.00"
    assert find(rows, heterogeneity="medium", start="FedAvg")["by resources"] == "not run"  # it ended early
    assert "What a start gains" in build(factorial).markdown


def test_amfl_p_as_a_whole_is_compared_with_fine_tuning_and_local_training(factorial):
    """MAML by resources has 1.5 points more than FedAvg with the same finish, and 3.5 more than local training."""
    rows = rows_of(build(factorial), "factorial_methods")
    whole = find(rows, heterogeneity="medium", methods="AMFL-P minus Fine-Tuning")
    assert (whole["difference"], whole["seeds"], whole["verdict"]) == ("+1.50", "3", "win")
    local = find(rows, heterogeneity="medium", methods="AMFL-P minus local training")
    assert (local["difference"], local["verdict"]) == ("+3.50", "win")
    assert find(rows, heterogeneity="low", methods="AMFL-P minus Fine-Tuning")["difference"] == "not run"


def test_costs_are_steps_times_batch(tmp_path):
    """FedAvg's ten devices train 50 rounds; random weights cost nothing before the finish."""
    finish = {"energy_of_fine_tuning_examples": 48_000.0}
    amfl_p = {**finish, "energy_of_training_examples": 9_000.0}
    write_run(tmp_path, "start_maml_resources_building_low", 0, 0.7, amfl_p=amfl_p)
    write_run(tmp_path, "start_maml_resources_building_low", 1, 0.7, rounds=20, amfl_p=amfl_p)  # it ended early
    write_run(tmp_path, "start_fedavg_same_building_low", 0, 0.7, fine_tuning=finish)
    write_run(tmp_path, "start_random_same_building_low", 0, 0.7, fine_tuning=finish)
    write_run(tmp_path, "local_training_building_low", 0, 0.7)
    rows = rows_of(build(tmp_path), "factorial_costs")

    def show(**wanted):
        row = find(rows, heterogeneity="low", **wanted)
        return [row[name] for name in ("seeds", "before the finish", "in the finish", "both")]

    assert show(start="MAML", finish="by resources") == ["1", "9", "48", "57"]
    flags = flag_values(resolve_flagfile(find_flagfile("start_fedavg_same_building_low")))
    trained = 50 * 10 * flags["fine_tuning_steps"] * flags["batch_size"] // 1000
    assert show(start="FedAvg", finish="the same for all") == ["1", f"{trained}", "48", f"{trained + 48}"]
    assert show(start="random", finish="the same for all") == ["1", "0", "48", "48"]
    flags = flag_values(resolve_flagfile(find_flagfile("local_training_building_low")))
    trained = 50 * 10 * flags["local_only_steps"] * flags["batch_size"] // 1000
    assert show(start="local training") == ["1", f"{trained}", "0", f"{trained}"]
    assert show(start="MAML", finish="the same for all") == ["", "not run", "not run", "not run"]


def curve(trained, random, new=0.05):
    """0 and 5 steps: the random start gains 10 points, the trained one nothing; new sensors have less by `new`."""
    return [
        (group, steps, trained - less, 0.1, random + gain - less, 0.1)
        for group, less in (("members", 0.0), ("new", new))
        for steps, gain in ((0, 0.0), (5, 0.1))
    ]


@pytest.fixture
def few_shot(tmp_path):
    for seed in range(3):
        base = 0.5 + 0.01 * seed
        new = {"majority_accuracy": 0.3}
        write_run(tmp_path, "few_shot_fedavg_building_16", seed, 0.6, curve=curve(base, base - 0.2), new_clients=new)
        write_run(tmp_path, "few_shot_maml5_building_16", seed, 0.6, curve=curve(base + 0.03, 0.0))
        clients = [0.5] * 80 + [0.25] * NEW_SENSORS
        write_run(tmp_path, "few_shot_local_building_16", seed, 0.45, clients=clients)
    return tmp_path


def test_few_readings_by_steps_for_members_and_new_sensors(few_shot):
    rows = rows_of(build(few_shot), "few_shot")
    here = {"readings": "16", "sensors": "members"}
    assert find(rows, **here, start="MAML, K = 5")["5 steps"] == "54.00 ± 1.00"
    assert find(rows, **here, start="random")["0 steps"] == "31.00 ± 1.00"  # of FedAvg's runs
    assert find(rows, **here, start="local training")["5 steps"] == "50.00 ± 0.00"
    assert find(rows, **here, start="majority class")["5 steps"] == "40.00 ± 0.00"
    new = {"readings": "16", "sensors": "new sensors"}
    assert find(rows, **new, start="FedAvg")["0 steps"] == "46.00 ± 1.00"
    assert find(rows, **new, start="local training")["5 steps"] == "25.00 ± 0.00"
    assert find(rows, **new, start="majority class")["5 steps"] == "30.00 ± 0.00"
    gains = rows_of(build(few_shot), "few_shot_gains")
    assert find(gains, **here, starts="MAML, K = 5 minus random")["0 steps"] == "+23.00 win"
    assert find(gains, **here, starts="FedAvg minus random")["5 steps"] == "+10.00 win"
    assert find(gains, **new, starts="MAML, K = 5 minus FedAvg")["5 steps"] == "+3.00 win"
    assert find(gains, **here, starts="MAML, K = 1 minus random")["0 steps"] == "not run"
    assert find(gains, **here, starts="MAML, K = 1 minus FedAvg")["0 steps"] == "not run"


def test_the_few_shot_figure_is_drawn(few_shot, tmp_path):
    assert draw_few_shot_figure(collect_runs(few_shot)[0], tmp_path).stat().st_size > 10_000
    assert draw_few_shot_figure([], tmp_path) is None
    assert "![Few readings" in build(few_shot).markdown


def test_an_ablation_is_compared_with_amfl_p_seed_by_seed(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "start_maml_resources_building_medium", seed, 0.7 + 0.1 * seed)
        write_run(tmp_path, "ablation_weighting_equal_building_medium", seed, 0.7 + 0.1 * seed + 0.005)
    rows = rows_of(build(tmp_path), "ablations")
    equal = find(rows, **{"AMFL-P with": "weighted equally"})
    assert (equal["minus AMFL-P, points"], equal["verdict"]) == ("+0.50", "win, tie")
    assert find(rows, **{"AMFL-P with": "dynamic resources"})["accuracy (%)"] == "not run"
    assert find(rows, **{"AMFL-P with": "majority class"})["accuracy (%)"] == "40.00 ± 0.00"


def test_defaults_are_compared_with_local_training(tmp_path):
    for seed in range(3):
        start = {"gain_over_random_start": 0.02, "relative_change": 0.3 - 0.1 * seed}
        write_run(tmp_path, "defaults_amfl_p_har_subjects", seed, 0.9 + 0.01 * seed, fine_tuning_start=start)
        write_run(tmp_path, "defaults_local_only_har_subjects", seed, 0.8 + 0.01 * seed)
    rows = rows_of(build(tmp_path), "defaults")
    row = find(rows, data="HAR by subject")
    assert (row["AMFL-P"], row["local training"]) == ("91.00 ± 1.00", "81.00 ± 1.00")
    assert (row["AMFL-P minus local training, points"], row["verdict"]) == ("+10.00", "win")
    assert row["AMFL-P's start minus random weights, points"] == "+2.00 win"
    assert row["it moved by at least"] == "10.0%"
    assert find(rows, data="digits by archetype")["it moved by at least"] == "not run"
    assert row["chosen on it"] == "yes" and find(rows, data="digits by archetype")["chosen on it"] == "no"


def test_without_such_runs_there_are_no_such_tables(tmp_path):
    write_run(tmp_path, "fedavg_building_medium", 0, 0.5)
    assert not {"factorial", "few_shot", "ablations", "defaults"} & build(tmp_path).tables.keys()


def test_none_of_them_decides_a_claim_of_the_paper():
    ours = [path.stem for path in list_flagfiles() if path.parent.name == "amfl_p" and find_place(path.stem) is None]
    assert len(ours) == 85
    assert all(re.fullmatch(EXPERIMENTS, stem) for stem in ours)


@pytest.mark.parametrize("degree", ["low", "medium", "high", "structured"])
def test_cells_of_the_factorial_share_their_data_and_the_finish_its_rule(degree):
    for finish in ("same", "resources"):
        for start, algo in (("fedavg", "fine_tuning"), ("maml", "amfl_p"), ("random", "fine_tuning")):
            flags = flag_values(resolve_flagfile(find_flagfile(f"start_{start}_{finish}_building_{degree}")))
            assert (flags["algo"], flags["building_heterogeneity"]) == (algo, degree)
            assert (flags["building_num_sensors"], flags["validation_fraction"]) == (100, 0.2)
            assert flags[f"{algo}_fine_tuning_rule"] == finish
            assert flags[f"{algo}_fine_tuning_steps"] == 100
            assert flags[f"{algo}_fine_tuning_start"] == ("initial" if start == "random" else "trained")


@pytest.mark.parametrize("readings", ["16", "32", "64", "all"])
def test_few_shot_runs_differ_in_the_start_alone(readings):
    finishes = set()
    for start in ("fedavg", "maml1", "maml5", "maml10"):
        flags = flag_values(resolve_flagfile(find_flagfile(f"few_shot_{start}_building_{readings}")))
        prefix = f"{flags['algo']}_fine_tuning_"
        finish = {name: flags[prefix + name] for name in ("steps", "learning_rate", "rule", "start", "curve")}
        shared = ("batch_size", "rounds", "building_heterogeneity", "new_clients", "most_train_examples")
        assert flags["validation_fraction"] == 0  # AMFL-P's weights would see labels that the other starts do not
        finishes.add(str([finish, *(flags[name] for name in shared)]))
        assert flags["new_clients"] == NEW_SENSORS
        assert flags["most_train_examples"] == (0 if readings == "all" else int(readings))
        if start != "fedavg":
            assert flags["amfl_p_inner_steps"] == int(start.removeprefix("maml"))
            batches = flags["amfl_p_support_size"], flags["amfl_p_query_size"]
            assert batches == ((32, 32) if readings == "all" else (int(readings) // 2,) * 2)
    assert len(finishes) == 1
