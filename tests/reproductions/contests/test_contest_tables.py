"""The league's tables, page and figure, from runs with made-up numbers."""

import pytest

from launch.runs.run_records import RunRecord
from launch.runs.tables import write_json
from reproductions.contests import tables
from reproductions.contests.experiments import COLUMNS
from reproductions.contests.tables import (
    PAPER,
    compose_contests,
    count_predictions,
    list_contests,
    sum_up,
    sum_up_shortly,
    tabulate_answers,
    tabulate_changes,
    tabulate_predictions,
    tabulate_standings,
)

NOISE = (0.002, -0.001, 0.001, -0.002, 0.0)
BUILDING = {"local_only": 0.70, "fedavg": 0.75, "fedavg_fine_tuned": 0.80, "amfl_p": 0.8001}
ROTATED = {"fedavg": 0.5, "fedcd": 0.9, "oracle": 0.95, "ifca": 0.7}
TITLES = {
    "local_only": "Local training",
    "fedavg": "FedAvg",
    "fedavg_fine_tuned": "FedAvg + fine-tuning",
    "amfl_p": "AMFL-P",
    "fedcd": "FedCD",
    "oracle": "oracle",
    "ifca": "IFCA",
}

TOO_DEAR = 2 * [
    {**dict.fromkeys(COLUMNS, ""), "experiment": "fedsikd_bytes_rotated", "title": "FedSiKD", "why out": "too dear"}
]


@pytest.fixture
def write(tmp_path):
    """(method, equal, problem, seed, accuracy) -> the record of a run of three rounds."""

    def write(method, equal, problem, seed, accuracy, rounds=300, limits=None):
        path = tmp_path / f"{method}_{equal}_{problem}" / f"seed_{seed}"
        found = {"accuracy_mean": accuracy, "accuracy_worst_tenth": accuracy - 0.2, "majority_accuracy": 0.2}
        summary = {"rounds": 3, "clients": found, "new_clients": found, method: {"fine_tuning_virtual_s": 1.5}}
        write_json(path / "summary.json", summary)
        row = {"bytes_down": 1e6, "bytes_up": 5e5, "test_accuracy": accuracy - 0.1}
        records = {n: {**row, "round": n, "virtual_time_s": 20.0 * n} for n in (1, 2, 3)}
        flags = {
            "seed": seed,
            "rounds": rounds,
            "dataset": "digits",
            **(limits or {"most_virtual_s": 0.0, "most_bytes": 0.0}),
        }
        return RunRecord(path, flags, f"{method}_{equal}_{problem}", records, "digits", "0123456789")

    return write


@pytest.fixture
def contests(write):
    runs = []
    for shift, (method, mean) in enumerate(BUILDING.items()):
        limits = {"most_virtual_s": 61.0} if method == "amfl_p" else None
        rounds = 3 if method == "fedavg" else 300
        for seed in range(5):
            reached = mean + NOISE[(seed + shift) % 5]
            runs.append(write(method, "seconds", "building_new", seed, reached, rounds, limits))
    for shift, (method, mean) in enumerate(ROTATED.items()):
        runs += [write(method, "bytes", "rotated", seed, mean + NOISE[(seed + shift) % 5]) for seed in range(5)]
    row = dict.fromkeys(COLUMNS, "")
    trials = [
        {**row, "experiment": f"{method}_{equal}_{problem}", "chosen": "yes", "title": TITLES[method],
         "settings": "--learning_rate=0.3 --inner_rate=0.1", "searched": "learning_rate=log(0.003,0.3)"}
        for equal, problem, methods in (("seconds", "building_new", BUILDING), ("bytes", "rotated", ROTATED))
        for method in methods
    ]  # fmt: skip
    trials += [
        {**row, "experiment": "amfl_p_seconds_building_new", "title": TITLES["amfl_p"], "trial": n} for n in "12"
    ]
    return list_contests(runs, [*trials, *TOO_DEAR])


def test_the_standings_say_all_of_a_method_and_give_one_verdict(contests):
    rows = tabulate_standings(contests).records
    building = [row for row in rows if row["problem"] == "building, new sensors"]
    assert [row["method"] for row in building] == [
        *("AMFL-P", "FedAvg + fine-tuning", "FedAvg", "Local training", "without a model")
    ]
    best, tuned, fedavg, alone, floor = building
    assert best["verdict"] == "best" and best["own accuracy (%)"] == "80.01 ± 0.16" and best["MB"] == "4.5"
    assert (best["ended by"], fedavg["ended by"], best["device seconds"]) == ("seconds", "rounds", "61.5")
    assert best["settings"] == "learning_rate=0.3 (upper end), inner_rate=0.1" and best["common test set (%)"]
    assert (tuned["verdict"], alone["verdict"], alone["behind it in"]) == ("not told from it", "behind", "5 of 5")
    assert alone["beside the best (points)"].startswith("-10.01 [-10.") and alone["median"] == "-10.11"
    assert floor["own accuracy (%)"] == "20.00 ± 0.00"
    oracle = next(row for row in rows if row["method"] == "oracle")
    assert (oracle["verdict"], oracle["behind it in"]) == ("knows the groups", "0 of 5")
    assert (rows[-1]["method"], rows[-1]["seeds"], rows[-1]["verdict"]) == ("FedSiKD", "0", "no result: too dear")


def test_the_answers_name_the_data_and_who_wins(contests):
    building, rotated = tabulate_answers(contests).records
    assert building["sentence"] == (
        "On building, new sensors, use AMFL-P; the seeds do not tell it from: FedAvg + fine-tuning."
    )
    assert (building["trials"], rotated["trials"]) == ("3", "2")
    assert building["best of the four systems"] == "AMFL-P" and building["beside the best (points)"] == ""
    assert rotated["sentence"] == "On MNIST, rotated, use FedCD." and rotated["not told from it"] == ""
    assert rotated["above FedAvg (points)"].startswith("+40.00 [")
    assert sum_up(contests) == (
        "At equal device seconds, none of the four systems is ahead of all rivals, of 1 contest (FedSiKD in 0, FedCD "
        "in 0, asynchronous FL in 0, AMFL-P in 1); best or not told from it: AMFL-P on building, new sensors. At equal "
        "bytes, FedCD on MNIST, rotated is ahead of all rivals, of 1 contest (FedSiKD in 0 and with too few seeds or "
        "none in 1 more, FedCD in 1, asynchronous FL in 0, AMFL-P in 0)."
    )


def test_in_short_who_wins(contests):
    building, _ = contests
    none = "None of the four systems is ahead of all rivals in any of 1 contest on 1 problem in which one has results."
    assert sum_up_shortly([building]) == none
    assert "any of 2 contests on 1 problem in" in sum_up_shortly([building, building])
    assert sum_up_shortly(contests) == (
        "Of 2 contests on 2 problems in which one of the four systems has results, one is ahead of all rivals in 1: "
        "FedCD on MNIST, rotated at equal bytes."
    )


def test_a_contest_in_which_none_of_the_four_has_results_does_not_count(contests, write):
    means = {"fedavg": 0.8, "ifca": 0.9}
    runs = [write(each, "bytes", "har", seed, mean + NOISE[seed]) for each, mean in means.items() for seed in range(5)]
    row = dict.fromkeys(COLUMNS, "")
    trials = [{**row, "experiment": f"{each}_bytes_har", "chosen": "yes", "title": TITLES[each]} for each in means]
    (har,) = list_contests(runs, trials)
    assert har.judged.best == "ifca" and "1 contest on 1 problem" in sum_up_shortly([har, contests[0]])


@pytest.mark.parametrize(("most_bytes", "ended_by"), [(5e6, "bytes"), (7e6, "seconds"), (0.0, "rounds")])
def test_at_equal_bytes_device_seconds_may_end_a_run(write, most_bytes, ended_by):
    """Three rounds of 1.5 MB are within all of these; a fourth would be within the second."""
    limits = {"most_bytes": most_bytes, "most_virtual_s": 61.0}
    runs = [write(method, "bytes", "rotated", 0, 0.5, limits=limits) for method in ("fedavg", "ifca")]
    assert {row["ended by"] for row in tabulate_standings(list_contests(runs, [])).records[:2]} == {ended_by}


def test_an_answer_says_that_the_four_systems_have_no_result(write):
    runs = [write(method, "bytes", "rotated", seed, 0.5) for method in ("fedavg", "ifca") for seed in range(5)]
    (row,) = tabulate_answers(list_contests(runs, TOO_DEAR)).records
    assert (row["best of the four systems"], row["beside the best (points)"]) == ("no result", "")


def test_a_system_that_could_pay_on_one_seed_alone_is_not_counted_as_run(write):
    runs = [write(method, "bytes", "rotated", seed, 0.5) for method in ("fedavg", "ifca") for seed in range(5)]
    contests = list_contests([*runs, write("fedcd", "bytes", "rotated", 0, 0.4)], TOO_DEAR)
    (row,) = tabulate_answers(contests).records
    assert (row["best of the four systems"], row["beside the best (points)"]) == ("too few seeds", "")
    none = "in 0 and with too few seeds or none in 1 more"
    assert f"(FedSiKD {none}, FedCD {none}, asynchronous FL in 0, " in sum_up(contests)


def test_predictions_stand_beside_outcomes(contests):
    table = tabulate_predictions(contests)
    rows = {(row["equal"], row["problem"]): row for row in table.records}
    assert len(rows) == 25 and rows["seconds", "building, new sensors"]["outcome"] == "came true"
    rotated = rows["bytes", "MNIST, rotated"]
    assert rotated["outcome"] == "open" and rotated["since"] == "no result: fl_hc"
    assert rows["bytes", "HAR by subject"]["outcome"] == "not run"
    assert count_predictions(table) == "1 of 1 prediction came true, all written before the first run."


def test_what_has_changed_since_the_first_league(contests):
    rows = {row["problem"]: row for row in tabulate_changes(tabulate_answers(contests)).records}
    assert set(rows) == {"building, new sensors", "MNIST, rotated"}
    rotated = rows["MNIST, rotated"]
    assert rotated["first league"].startswith("Use FL+HC") and rotated["now, at equal device seconds"] == "not run"
    assert rotated["now, at equal bytes"] == "On MNIST, rotated, use FedCD." and "CFL" in rotated["why"]


def test_the_page_has_a_table_for_each_limit(contests):
    found = {"answers": tabulate_answers(contests), "standings": tabulate_standings(contests)}
    found |= {"predictions": tabulate_predictions(contests), "changes": tabulate_changes(found["answers"])}
    blocks = compose_contests(found)
    text = "\n\n".join(blocks).replace("\N{NO-BREAK SPACE}", " ")
    assert text.index("## At equal device seconds") < text.index("## At equal bytes") < text.index("## Predictions")
    assert "| MNIST, rotated | clients' own test data | 2 | **FedCD** | 90.00 ± 0.16 |  | +40.00" in text
    assert (
        "| building, new sensors | new clients' own test data | 3 | AMFL-P | 80.01 ± 0.16 | FedAvg + fine-tuning ("
        in text
    )
    assert "### MNIST, rotated\n\nMNIST in four groups of clients" in text
    assert "Judged by the clients' own test data." in text
    assert "**Not run:** at equal device seconds HAR, new people; " in text and "MNIST, few images" in text


def test_one_model_for_all_is_said_where_the_common_test_set_judges(write):
    runs = [
        write(name, "bytes", "tiny", seed, reached)
        for name, reached in (("fedavg", 0.7), ("fedsikd", 0.6))
        for seed in range(3)
    ]
    (row,) = tabulate_answers(list_contests(runs, [])).records
    assert row["judged by"] == "common test set"
    assert row["sentence"].startswith(
        "On MNIST, few images and a tiny student, for one model that all share, use fedavg"
    )


def test_a_seed_that_failed_does_not_move_the_median(write):
    """By seed -1, -1, -1, -1 and -40 points: the mean is -8.8, the median -1."""
    runs = [write("fedavg", "seconds", "har", seed, 0.8) for seed in range(5)]
    runs += [write("scaffold", "seconds", "har", seed, reached) for seed, reached in enumerate((*4 * (0.79,), 0.4))]
    _, row = (row for row in tabulate_standings(list_contests(runs, [])).records if row["method"] != "without a model")
    assert row["beside the best (points)"].startswith("-8.80 [") and row["median"] == "-1.00"
    assert (row["behind it in"], row["verdict"]) == ("5 of 5", "not told from it")


def test_the_report_and_its_figure(contests, write, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_read_kept_trials", tuple)
    runs = [write("fedavg", "seconds", "har", seed, 0.8) for seed in (0, 1)]
    report = PAPER.build(PAPER, runs)
    assert "use fedavg" in report.tables["answers"].rows[0][-1]
    assert report.markdown.startswith("# The league") and "## At equal bytes" not in report.markdown
    assert PAPER.draw(runs, tmp_path).stat().st_size > 5000 and PAPER.build(PAPER, []).tables["answers"].rows == []
