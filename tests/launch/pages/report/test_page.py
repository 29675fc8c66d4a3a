"""The page of a run answers first, says what the answer is worth, shows what it says, and needs no script."""

import itertools
import json
import re

import pytest
from read_pages import Page

import launch.compare
from launch.pages.comparison.compared_run import read_compared_run
from launch.pages.report.answer import find_answer
from launch.pages.report.page import assemble_page, write_run_page
from launch.pages.report.parts import (
    list_commands,
    list_costs,
    list_spread,
    say_how_sure,
    tabulate_clients,
    tabulate_flags,
    tabulate_rounds,
)
from launch.pages.report.pictures import list_pictures
from launch.pages.report.words import NBSP, count, show_gain, show_share
from launch.pages.templates import compute_digest
from launch.runs.run_records import read_json
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns

CELL = "fedavg_har_alpha1.0"
HOSTILE = "</style><script>alert(1)</script>"


@pytest.fixture
def change_run(write_run, tmp_path):
    """(rounds, summary's further entries, data section, clients' columns) -> a finished run on HAR."""

    def write(rounds=3, summary=None, data=None, clients=None):
        run_dir = write_run(tmp_path, CELL, 0, rounds, accuracy=0.8)
        write_json(run_dir / "summary.json", {**read_json(run_dir / "summary.json"), **(summary or {})})
        write_json(run_dir / "config.json", read_json(run_dir / "config.json") | {"data": data or {}})
        if clients:
            rows = [list(map(str, row)) for row in zip(*clients.values(), strict=True)]
            write_table(run_dir / "clients.csv", list(clients), rows)
        return run_dir

    return write


FIVE = {
    "client": ["a", "b", "c", "a\u202eb", HOSTILE],
    "num_train": [9, 9, 9, 9, 9],
    "num_test": [5, 8, 20, 20, 20],
    "model": ["global"] * 5,
    "accuracy": [0.6, 0.75, 0.9, 1, 1],
}


def answer_of(run_dir):
    run = read_compared_run(run_dir, "x")
    return find_answer(run, read_json(run_dir / "summary.json"), read_json(run_dir / "config.json")["data"])


def test_the_page_answers_first_and_runs_no_script(change_run):
    """0.8 + 0.03 after three rounds, the majority 0.25: 58 points."""
    run_dir = change_run(summary={"overall_majority_test_accuracy": 0.25}, data={"num_test": 100}, clients=FIVE)
    text = assemble_page(run_dir)
    page = Page(text)
    order = [
        "Result",
        "83.0 %",
        "test accuracy after 3 rounds",
        "Always the most frequent class: 25.0 %",
        "+58.0 points",
    ]
    places = [page.text.index(words) for words in [*order, "Clients", "Devices", "Training", "Settings and data"]]
    assert places == sorted(places)
    assert 'lang="en"' in text and "script-src 'none'" in text and "alert(1)" in text
    assert "script" not in {tag for tag, _ in page.found}
    assert "a\\u202eb" in page.text and "\u202e" not in text, "what turns a name around is written out"
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    assert compute_digest(style) in text
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_one_plot_has_choices_of_which_the_first_is_shown(change_run):
    page = Page(assemble_page(change_run(summary={"overall_majority_test_accuracy": 0.25})))
    figures = [attributes for tag, attributes in page.found if tag == "figure" and "data-axis" in attributes]
    shown = [(each["data-result"], each["data-axis"]) for each in figures]
    assert shown == [(result, axis) for result in ("metric", "loss") for axis in ("round", "virtual_time", "bytes")]
    choices = [attributes for tag, attributes in page.found if attributes.get("type") == "radio"]
    assert [each["value"] for each in choices if "checked" in each] == ["metric", "round"]
    first = next(attributes["alt"] for tag, attributes in page.found if tag == "img").replace(NBSP, " ")
    assert first == (
        "Accuracy against rounds. Global test set: 81.0 % in round 1, 83.0 % in round 3. "
        "Always the most frequent class: 25.0 %."
    )
    assert all(attributes["alt"] for tag, attributes in page.found if tag == "img")


def test_a_single_round_is_one_round(change_run):
    text = Page(assemble_page(change_run(rounds=1))).text
    assert "after 1 round" in text and "1 rounds" not in text
    assert (count(1, "client"), count(1200, "round")) == (f"1{NBSP}client", f"1,200{NBSP}rounds")


def test_clients_are_told_with_how_little_is_known_of_each(change_run):
    """The worst tenth of five is one client; one of its 5 test examples is 20 points."""
    statistics = {"accuracy_mean": 0.85, "accuracy_std": 0.15, "accuracy_p10": 0.66, "accuracy_worst_tenth": 0.6}
    run = read_compared_run(change_run(clients=FIVE), "x")
    spread = [
        (name.replace(NBSP, " "), text.replace(NBSP, " ")) for name, text in list_spread(run, {"clients": statistics})
    ]
    assert spread == [
        ("Mean of 5 clients", "85.0 %"),
        ("Worst tenth, 1 client", "60.0 %"),
        ("Standard deviation between clients", "15.0 points"),
    ]
    sure = say_how_sure(run).replace(NBSP, " ")
    assert sure == "Each is tested on 5 to 20 examples of its own (median 20). One wrong answer of 5 costs 20 points."
    table = tabulate_clients(run)
    assert table.columns[:3] == ["Client", "Accuracy", "Test examples"]
    assert [row[:3] for row in table.rows][:2] == [["a", f"60.0{NBSP}%", "5"], ["b", f"75.0{NBSP}%", "8"]]


def test_of_a_client_alone_there_is_no_spread(change_run):
    run = read_compared_run(change_run(clients={name: values[1:2] for name, values in FIVE.items()}), "x")
    assert list_spread(run, {}) == [("b, the only one", f"75.0{NBSP}%")]
    assert say_how_sure(run).startswith("It is tested on 8")


def test_models_of_their_own_are_asked_about_the_clients_own_data(change_run):
    clients = {"accuracy_mean": 0.85, "majority_accuracy": 0.9, "overall_majority_accuracy": 0.3}
    answer = answer_of(change_run(summary={"is_personal": True, "clients": clients}, data={"num_clients": 5}))
    assert (answer.number, answer.column) == (f"85.0{NBSP}%", "client_test_accuracy")
    own, overall = answer.trivial
    assert (own.label, own.is_beaten) == ("always each client's own most frequent class", False)
    assert (overall.shown, overall.is_beaten) == (f"30.0{NBSP}%", True)
    assert ("On the global test set", f"83.0{NBSP}%") in answer.further


def test_a_run_that_ended_early_says_why(change_run):
    run_dir = change_run(summary={"reached_limits": {"most_bytes": 4e7, "most_virtual_s": 0}})
    asked = read_json(run_dir / "config.json")["flags"]["rounds"]
    (line,) = answer_of(run_dir).ends
    assert (
        line.replace(NBSP, " ") == f"It ended after 3 of {asked} rounds, since the next would pass --most_bytes=4e+07."
    )


def test_an_error_is_compared_with_that_of_the_mean(change_run):
    """R2 = 0.75 = 1 - (RMSE / RMSE of the mean)^2, so an RMSE of 2 is half of the mean's, which is 4."""
    run_dir = change_run(data={"task": {"kind": "regression", "num_outputs": 0}})
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "test_loss", "test_rmse", "test_mae", "test_r2"]
    write_table(run_dir / "metrics.csv", columns, [["1", "60", "5", "5", "4", "2", "1.5", "0.75"]])
    answer = answer_of(run_dir)
    (mean,) = answer.trivial
    assert (answer.number, mean.value, mean.is_beaten, mean.gain) == ("2.0000", 4.0, True, "2.0000 lower (50%)")
    assert "the lower the better" in answer.what


def test_tables_of_tokens_are_the_trivial_rows_of_text(change_run):
    data, tables = {"task": {"kind": "next_token"}}, {"unigram_accuracy": 0.2, "bigram_accuracy": 0.5}
    run_dir = change_run(summary={"token_baselines": tables}, data=data)
    columns = ["round", "virtual_time_s", "bytes_down", "bytes_up", "test_loss", "test_token_accuracy"]
    write_table(run_dir / "metrics.csv", columns, [["1", "60", "5", "5", "4", "0.4"]])
    assert [(row.shown, row.is_beaten) for row in answer_of(run_dir).trivial] == [
        (f"20.0{NBSP}%", True), (f"50.0{NBSP}%", False)
    ]  # fmt: skip


def test_costs_and_rounds(change_run):
    """3 MB each way a round of 40 clients, 60 s a round."""
    run = read_compared_run(change_run(), "x")
    costs = {name: text.replace(NBSP, " ") for name, text in list_costs(run, {"joules": {"total": 12.5}})}
    assert costs["Time of the devices, virtual"] == "3 min; 60 s a round"
    assert costs["Sent to clients"] == "9 MB; 75 kB a client and round"
    assert costs["Energy of training"] == "12.5 J"
    assert [row[0] for row in tabulate_rounds(run).rows] == ["1", "2", "3"]
    run.flags.update(learning_rate=0.25, compile="off")  # what --compile=auto came to, which nobody chose
    chosen, others = (dict(table.rows) for table in tabulate_flags(run))
    assert chosen["learning_rate"] == "0.25" and others["compile"] == "off"


def test_a_plot_of_further_columns_is_told_by_these_alone(change_run):
    """Bytes and seconds of a whole run, which comparisons add to its columns, are not in that plot."""
    run_dir = change_run()
    columns = [
        "round",
        "virtual_time_s",
        "bytes_down",
        "bytes_up",
        "test_loss",
        "test_accuracy",
        "joules_total",
        "gain",
    ]
    write_table(run_dir / "metrics.csv", columns, [["1", "6", "5", "5", "4", "0.2", "7", "8"], [*"26554398"]])
    (picture,) = list_pictures(read_compared_run(run_dir, "x"), {"own_columns.png": b""})
    assert picture.alt == "What the algorithm tells of itself, by round. Gain: 8."


def test_numbers_never_say_all_or_nothing_of_what_is_only_near():
    shown = [show_share(share).replace(NBSP, " ") for share in (0, 0.0001, 0.891, 0.99999, 1)]
    assert shown == ["0.0 %", "<0.1 %", "89.1 %", ">99.9 %", "100.0 %"]
    assert show_gain(0.1, 0.25, find_task_columns("classification")) == f"\N{MINUS SIGN}15.0{NBSP}points"


def test_the_page_is_in_the_run_folder_and_the_same_each_time(change_run, capsys):
    run_dir = change_run(clients=FIVE)
    write_run_page(run_dir)
    first = (run_dir / "report.html").read_bytes()
    output = run_dir / "report.html"
    assert launch.compare.main([f"--runs={run_dir}", f"--output={output}"]) == 0, capsys.readouterr()
    assert output.read_bytes() == first, "launch.compare writes it anew"
    assert b"metrics.csv</a>" in first and json.dumps(HOSTILE)[1:-1].encode() not in first


@pytest.mark.parametrize(
    ("summary", "flags", "given"),
    [
        ({}, {}, " --rounds=6"),
        ({"stopped_early": {"patience": 4}}, {"patience": 4}, " --patience=8"),
        ({"reached_limits": {"most_bytes": 1.5e6, "most_virtual_s": 0}}, {}, " --most_bytes=3e+06"),
        ({"reached_limits": {"x; reboot": 1, "most_bytes": "many"}}, {}, " '--x; reboot=2'"),
        ({"budget_spent": True}, {}, None),
        ({}, {"rounds": None}, None),
    ],
)
def test_the_command_that_goes_on_doubles_what_ended_the_run(change_run, summary, flags, given):
    run_dir = change_run(summary=summary)
    config = read_json(run_dir / "config.json")
    write_json(run_dir / "config.json", {"flags": {**config["flags"], "rounds": 3, **flags}, "data": {}, "live": {}})
    run = read_compared_run(run_dir, "x")
    commands = dict(list_commands(run._replace(asked={**run.asked, "rounds": 3, **flags}), summary, run_dir))
    expected = given and f"python -m launch.serve --resume --run_dir={run_dir.name}{given}"
    assert commands.get("Train on") == expected
