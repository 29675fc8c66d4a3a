"""The page of an advice says first what to do, loads nothing, and its commands work as they stand."""

import itertools
import json
import re
import shlex

import pytest
from made_contests import make_measured, make_outcome
from read_pages import Page

import launch.compare
import launch.export
import launch.serve
from launch.advice.commands import list_commands, spell_live
from launch.advice.details import tabulate_lengths, tabulate_methods, tabulate_models
from launch.advice.facts import collect_facts, write_facts
from launch.advice.page import assemble_page, write_page
from launch.advice.picture import LEFT, RIGHT, draw_methods
from launch.advice.sentences import say_advice
from launch.advice.trivial import ALL, OWN, Row
from launch.advice.verdict import assemble, build_chooser, judge
from launch.contests.problem import Limits
from launch.pages.report.words import NBSP
from launch.pages.templates import compute_digest
from launch.settings.flags import parse_config


@pytest.fixture
def advice(write_contest):
    return judge(*write_contest())


def test_the_page_answers_first_and_runs_no_script(advice):
    text = assemble_page(advice)
    page = Page(text)
    order = ["Should wards be federated?", "Federate", *(each.replace(NBSP, " ") for each in say_advice(advice))]
    order += ["The methods beside each other", "What to run next", "Details"]
    places = [page.text.index(words) for words in order]
    assert places == sorted(places)
    assert 'lang="en"' in text and "script-src 'none'" in text and "http" not in re.sub("http-equiv", "", text)
    assert "script" not in {tag for tag, _ in page.found}
    assert not [attributes for _, attributes in page.found if {"style", "src", "onclick"} & attributes.keys()]
    assert compute_digest(re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]) in text
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in itertools.pairwise(levels))
    before = page.text[: page.text.index("Details")]
    assert "Holm" not in before and "p-value" not in before, "statistics stand in the details alone"
    assert "Holm" in page.text and "FedCD: its runs would take 12 minutes, which are not there" in page.text


def test_names_of_clients_and_data_are_text(write_contest):
    hostile = "</style><script>alert(1)</script>"
    outcome, rows = write_contest({"fedavg": 0.7})
    problem = outcome.problem._replace(name=hostile)
    text = assemble_page(judge(outcome._replace(problem=problem), rows))
    assert "alert(1)" in text and "<script" not in text


def test_the_picture(advice):
    """Dots stand where results do; what lies apart from the line of alone is beyond doubt."""
    picture = draw_methods(advice)
    ifca, fedavg, local = picture.bars
    assert (ifca.title, ifca.shown.replace(NBSP, " "), ifca.is_advised) == ("IFCA", "91.0 %", True)
    assert LEFT < picture.alone == local.at < fedavg.at < ifca.at < RIGHT and local.ends is None
    assert picture.alone < ifca.ends[0] < ifca.at < ifca.ends[1]
    assert picture.trivial is None and picture.row == "", "far off, where nothing is drawn"
    assert [text.replace(NBSP, " ") for _, text in picture.ticks][:2] == ["85 %", "90 %"]
    assert picture.described.startswith("Accuracy of each method: IFCA")


def test_a_row_near_the_methods_is_a_line_among_them(write_contest):
    outcome, rows = write_contest()
    near = Row({f"client_{i}": 0.75 for i in range(6)}, {}, 0.75)
    picture = draw_methods(judge(outcome, {seed: {OWN: near, ALL: near} for seed in rows}))
    assert LEFT < picture.trivial < picture.alone and picture.row.replace(NBSP, " ").endswith("model: 75.0 %")


def test_ranges_end_at_what_is_possible_or_in_an_arrow():
    """Of 0.9 beside 0.8, ranges reach from below 0.5 to beyond 1: to the right only to 100 %, to the left an arrow."""
    means = {"local_only": (0.8, 0.8, 0.8), "fedavg": (0.98, 0.98, 0.74)}
    offsets = (0.0, 0.005, -0.005, 0.01, -0.01, 0.0)
    methods = [make_measured(name, each, offsets) for name, each in means.items()]
    rows = [make_measured(OWN, (0.79, 0.79, 0.79), offsets)]
    advice = assemble(make_outcome(means), methods, rows)
    low, high = (0.8 + end for end in advice.beside_alone["fedavg"].ends)
    assert low < 0.5 and high > 1
    picture = draw_methods(advice)
    fedavg, local = picture.bars
    assert fedavg.leaves == (True, False) and local.leaves == (False, False)
    assert fedavg.ends[0] == LEFT and fedavg.at < fedavg.ends[1] < RIGHT
    assert picture.has_arrows and picture.has_ranges
    assert {text.replace(NBSP, " ") for _, text in picture.ticks} >= {"80 %", "100 %"}
    text = assemble_page(advice)
    assert text.count('class="arrow"') == 1 and "goes on beyond the picture" in text


def test_the_legend_is_of_what_is_drawn(advice, write_contest):
    text = Page(assemble_page(advice)).text
    assert "range of the difference from alone" in text
    assert "goes on beyond" not in text and "without a model:" not in text
    outcome, rows = write_contest()
    two = tuple(each._replace(runs={s: p for s, p in each.runs.items() if s < 2}) for each in outcome.entered)
    short = judge(outcome._replace(entered=two), rows)
    text = Page(assemble_page(short)).text
    assert "range of the difference" not in text and text.count("Too little time") == 2


def test_the_table_begins_with_what_matters(advice):
    table = tabulate_methods(advice)
    assert table.columns == [
        *("Method", "Better than alone by, points", "Accuracy", "On validation examples", "Worst tenth"),
        *("New clients", "Traffic a client", "Device time"),
    ]
    ifca = [cell.replace(NBSP, " ") for cell in table.rows[0]]
    assert ifca[0] == "IFCA (advised)" and " to " in ifca[1] and ifca[2:4] == ["91.0 %", "90.0 %"]
    assert "FedAvg and training alone are compared whatever" in table.note
    assert tabulate_lengths(advice).rows[0] == ["IFCA", "1", "rounds", "0, 1, 2"]
    assert "3 methods tried and compared on fresh seeds in" in Page(assemble_page(advice)).text


def test_methods_that_were_tried_are_counted_beside_those_compared(write_contest):
    outcome, rows = write_contest()
    entered = tuple(each._replace(runs={}) if each.method.name == "ifca" else each for each in outcome.entered)
    text = Page(assemble_page(judge(outcome._replace(entered=entered), rows))).text
    assert "3 methods tried, 2 of them compared on fresh seeds in" in text


def test_commands_are_understood(advice, tmp_path, monkeypatch, capsys):
    """From the folder where the contest ran: each is parsed by its command, and the comparison is made."""
    monkeypatch.chdir(tmp_path)
    commands = {shlex.split(command)[2]: shlex.split(command)[3:] for _, command in list_commands(advice)}
    assert list(commands) == ["launch.train", "launch.export", "launch.compare"], "IFCA cannot be live"
    config = parse_config(commands["launch.train"])
    assert commands["launch.train"][-3:] == ["--rounds=40", "--fairness", "--run_dir=advice/trained/ifca"]
    assert (config.algo, config.rounds, config.num_clients, config.algorithm.training.learning_rate) == (
        *("ifca", 40, 6, 0.05),
    )
    assert launch.export.parse_request(commands["launch.export"]).run_dir == "advice/seeds/ifca/seed_0"
    assert commands["launch.compare"] == ["--runs=advice/seeds"]
    assert launch.compare.main([*commands["launch.compare"], "--output=all.html"]) == 0, capsys.readouterr()


def test_training_is_that_of_the_first_run(write_contest):
    """Its limits ended it after 40 rounds: these are given, and no limits; another seed than 0 is named."""
    outcome, rows = write_contest()
    outcome = outcome._replace(limits=dict.fromkeys(outcome.limits, Limits(200, 5e6, 3.5)))
    (train,) = (command for _, command in list_commands(judge(outcome, rows)) if "launch.train" in command)
    assert "--rounds=40" in train and "most_" not in train and "limit" not in train and "--seed" not in train
    advice = judge(outcome, rows)
    cut = advice._replace(methods=tuple(each._replace(runs={1: each.runs[1]}) for each in advice.methods))
    assert "--seed=1 --rounds=40" in next(command for _, command in list_commands(cut))


def test_of_several_models_it_is_said_who_uses_which(advice, write_contest):
    """In IFCA's first run clients 0, 2 and 4 have one, and 1, 3 and 5 the other."""
    assert tabulate_models(advice).rows == [
        ["model_0", "3", "client_0, client_2, client_4"],
        ["model_1", "3", "client_1, client_3, client_5"],
    ]
    text = Page(assemble_page(advice)).text
    assert "Which clients use which model" in text
    assert "onto phones, a file a model; each client uses the one that fits its data:" in text
    shared = judge(*write_contest({"fedavg": 0.95}))
    assert tabulate_models(shared) is None and "a file a" not in Page(assemble_page(shared)).text


def test_what_can_be_live_has_a_command_for_it(write_contest):
    outcome, rows = write_contest({"fedavg": 0.95})
    commands = dict(list_commands(judge(outcome, rows)))
    (served,) = (command for command in commands.values() if "launch.serve" in command)
    request = launch.serve.parse_request(shlex.split(served)[3:])
    assert (request.config.algo, request.config.rounds, request.config.new_clients) == ("fedavg", 40, 0)


def test_fedavg_that_fine_tunes_is_live_as_fine_tuning():
    """Its rounds have the same settings under other names, and the clients' last task is the fine-tuning."""
    common = ["--dataset=digits", "--partition=dirichlet", "--batch_size=16"]
    own = ["--learning_rate=0.01", "--epochs=2", "--server_momentum=0.5"]
    given = ["--algo=fedavg", *common, *own, "--final_steps=50", "--final_learning_rate=0.1"]
    found = spell_live(given)
    assert found == [
        *("--algo=fine_tuning", *common, "--local_learning_rate=0.01", "--local_epochs=2", "--server_momentum=0.5"),
        *("--steps=50", "--learning_rate=0.1"),
    ]
    tuned, plain = (parse_config(flags) for flags in (found, given))
    assert tuned.algorithm.training == plain.algorithm.training and tuned.algorithm.server == plain.algorithm.server
    settings = tuned.algorithm.fine_tuning
    assert (settings.steps, settings.learning_rate, settings.batch_size) == (50, 0.1, 16)
    for flags in (["--algo=fedavg", "--final_steps=0"], ["--algo=ifca", "--final_steps=50"], ["--algo=fedavg"]):
        assert spell_live(flags) == flags


def test_what_is_noted_of_the_data_is_on_the_page(write_contest):
    outcome, rows = write_contest()
    advice = judge(outcome, rows, ("windows overlap", "2 clients have too few examples"))
    text = Page(assemble_page(advice)).text
    assert "windows overlap" in text and "2 clients have too few examples" in text
    assert collect_facts(advice)["notes"] == ["windows overlap", "2 clients have too few examples"]


def test_undecided_each_client_trains_alone(write_contest):
    outcome, rows = write_contest({"fedavg": 0.805, "ifca": 0.7})
    advice = judge(outcome, rows)
    assert advice.decision.verdict == "undecided"
    assert [shlex.split(command)[2] for _, command in list_commands(advice)] == ["launch.train", "launch.compare"]
    what, command = next(iter(list_commands(advice)))
    assert what == "Until you know, train each client alone"
    assert parse_config(shlex.split(command)[3:]).algo == "local_only"
    assert "Cannot tell yet" in assemble_page(advice)


def test_an_outcome_without_runs_has_a_page(write_contest):
    outcome, _ = write_contest()
    empty = outcome._replace(entered=tuple(each._replace(runs={}) for each in outcome.entered), is_cut=True)
    text = Page(assemble_page(judge(empty, {}))).text
    assert "Nothing can be advised yet" in text and "cut short by its end" in text


def test_facts_are_what_the_page_says(advice, tmp_path):
    write_facts(advice, tmp_path / "advice.json")
    write_page(advice, tmp_path / "advice.html")
    facts = json.loads((tmp_path / "advice.json").read_text())
    assert facts == json.loads(json.dumps(collect_facts(advice)))
    assert (facts["verdict"], facts["advised"], facts["alone"]) == ("federate", "ifca", "local_only")
    page = Page((tmp_path / "advice.html").read_text(encoding="utf-8")).text
    assert all(sentence in page for sentence in facts["sentences"]) and len(facts["sentences"]) == 5
    assert all(each["command"] in page for each in facts["commands"])
    assert facts["over_alone"]["gain"] == pytest.approx(0.1) and facts["over_alone"]["is_decided"]
    assert facts["methods"]["ifca"]["new_clients"] == pytest.approx(0.9)


def test_a_further_seed_is_asked_for_while_a_question_is_open(write_contest, monkeypatch):
    outcome, rows = write_contest()
    read = []

    def measure(asked, known):
        read.append(sorted(known))
        known |= rows
        return rows

    monkeypatch.setattr("launch.advice.verdict.measure_seeds", measure)
    known = {}
    choose_more = build_chooser(known)
    assert choose_more(outcome) == () and choose_more(outcome) == ()
    assert read == [[], [0, 1, 2]], "data of a seed are read once"
    assert known == rows, "and are there for the advice"
    wide, _ = write_contest({"fedavg": 0.81, "ifca": 0.7})
    assert choose_more(wide) == ("fedavg", "local_only")
    further = tuple(
        each._replace(runs={**each.runs, 3: each.runs[0], 4: each.runs[1]} if each.runs else {})
        for each in outcome.entered
    )
    monkeypatch.setattr("launch.advice.verdict.measure_outcome", lambda cut: seen.extend(cut.entered) or [])
    seen = []
    choose_more(outcome._replace(entered=further))
    assert [sorted(each.runs) for each in seen if each.runs] == [[0, 1, 2]] * 3, "further seeds are not looked at"
