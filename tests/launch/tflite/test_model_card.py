"""What a model card says, against numbers by hand."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
from small_formats import change_format

from datasets.catalog import DATASETS
from datasets.example_format import CategoryGroup, ExampleWeights, LabelFormat, TextFormat
from datasets.standardized_clients import READING
from datasets.terms import COMMERCIAL_USE
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.tflite.card_page import card_rows, format_card_page
from launch.tflite.export_report import ClientRow, FileRow
from launch.tflite.model_card import SCALED_BY_FILE, SCALED_BY_PHONE, build_card, count_confusions, describe_file
from launch.training.finished_run import FinishedRun

TASK = find_task_columns("classification")
LABELS = np.array([0, 0, 0, 1, 1, 3])
PREDICTIONS = np.array([0, 0, 1, 1, 1, 0])
ROW = FileRow(
    file="global.int8.tflite", model="global", format="int8", input_dtype="float32", size_bytes=1000, card_bytes=0,
    share_of_float32=0.3, parameters=10, multiply_accumulates=20, test=4 / 6, client_test=0.8,
    num_clients=3, keras_test=5 / 6, agreement=0.9, largest_difference=0.5,
    median_ms_1_thread=0.25, lower_quartile_ms_1_thread=0.2, upper_quartile_ms_1_thread=0.5,
    median_ms_all_threads=0.2, lower_quartile_ms_all_threads=0.1, upper_quartile_ms_all_threads=0.3,
    representative_client="", operators="",
)  # fmt: skip
CLIENTS = [ClientRow(ROW.file, f"client_{i}", 10, accuracy) for i, accuracy in enumerate((0.9, 0.5, 1.0))]
IDENTITY = {"file": ROW.file, "model": "global", "format": "int8", "model_bytes": 1000}


def describe(row=ROW, clients=CLIENTS, confusions=None, num_test=6, task=TASK):
    confusions = count_confusions(LABELS, PREDICTIONS, 4) if confusions is None else confusions
    return IDENTITY | describe_file(row, clients, num_test, confusions, task)


@pytest.fixture
def make_card(make_federation):
    """(files, changes of the format, ...) -> the card of a run with these flags and this section on its data."""

    def make(files=(IDENTITY,), changes=None, section=None, test_x=None, devices="", **flags):
        config = build_run_config({"algo": "fedavg", **flags})
        run = FinishedRun(pathlib.Path("runs/x"), config, section or {}, {}, frozenset(), 3, devices=devices)
        data = change_format(make_federation([5, 3, 4]), **{"class_names": tuple("abcd")[:3], **(changes or {})})
        if test_x is not None:
            data = dataclasses.replace(data, test_x=test_x, test_y=data.test_y[: len(test_x)])
        return build_card(run, data, files)

    return make


def test_a_card_says_whether_people_took_part(make_card):
    simulated, live = make_card(), make_card(devices="live, own data")
    assert "simulated" in simulated["training"]["how"] and "simulated" not in live["training"]["how"]
    assert "alpha" in simulated["title"]
    # Nobody has dealt what clients brought.
    assert "(live, own data) on " in live["title"] and "alpha" not in live["title"]


def test_a_card_of_texts_has_the_vocabulary_and_the_rule_of_its_words(make_card):
    words = TextFormat("review", ("<pad>", "<oov>", "good"))
    changes = {"takes_tokens": True, "input_dtype": "int32", "input_shape": (4,), "text": words}
    card = make_card(changes=changes, data="reviews.csv")
    rows = dict(card_rows(card))
    assert rows["Vocabulary"] == "3 tokens: <pad> <oov> good" and rows["Classes"] == "a, b, c"
    assert rows["What is it?"] == "Tells which of 3 classes a text such as those in 'review' belongs to."
    assert "a word that is not there is 1. The first 4 words count, 0 fills up." in rows["What goes in"]


@pytest.fixture
def card(make_card):
    """That of a file with made-up results, of four classes."""
    return {**make_card([describe()]), "classes": ["a", "b", "c", "d"]}


def test_a_file_is_described_by_class_and_by_client():
    expected = [[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    np.testing.assert_array_equal(count_confusions(LABELS, PREDICTIONS, 4), expected)
    facts = describe()
    by_class = [(each["accuracy"], each["test_examples"]) for each in facts["accuracy_by_class"]]
    assert by_class == [(pytest.approx(2 / 3), 3), (1.0, 2), (None, 0), (0.0, 1)]
    assert facts["accuracy"]["test_examples"] == 6
    assert [each["client"] for each in facts["accuracy"]["worst_clients"]] == ["client_1", "client_0", "client_2"]
    assert facts["quantization"]["difference"] == pytest.approx(-1 / 6)


def begin(rows, expected):
    """The rows that `expected` names, as far as it says them."""
    return {title: rows.get(title, "")[: len(text)] for title, text in expected.items()}


def test_the_rows_answer_what_a_reader_asks(card):
    expected = {
        "How good is it?": "66.7\u00a0% right of 6 examples of the global test set",
        "For the worst clients?": "worst tenth 50.0\u00a0%, mean 80.0\u00a0% of 3 clients",
        "For the worst class?": "class d: 0.0\u00a0%",
        "By class": "a 66.7\u00a0%, b 100.0\u00a0%, c unknown, d 0.0\u00a0%",
        "Worst clients": "client_1 50.0\u00a0% of 10",
        "Quantization": "-16.67 points",
        "Latency": "median 0.250 ms, half of the runs 0.200 to 0.500 ms on 1 thread",
    }
    rows = dict(card_rows(card))
    assert begin(rows, expected) == expected and not {"Accuracy", "Filled in", "Examples weighted"} & rows.keys()
    said = dict(card_rows({**card, "filled": {"age": 7}}))["Filled in"]
    assert said.startswith("7 missing values") and said.endswith("by column: age 7.")


def test_several_files_are_summed_up_from_the_worst_to_the_best(card):
    [facts] = card["files"]
    better = {**facts, "accuracy": {**facts["accuracy"], "global": 0.75}, "file": "other.tflite"}
    card = {**card, "files": [facts, better]}
    rows = card_rows(card)
    assert dict(rows)["How good is it?"].startswith("66.7\u00a0% to 75.0\u00a0% right")
    assert [text for title, text in rows if title == "Accuracy"] == ["66.7\u00a0%", "75.0\u00a0%"]
    page = format_card_page(card)
    assert "- global.int8.tflite, other.tflite: client_1" in page
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    assert len(tables) == 3 and all(len({line.count("|") for line in lines}) == 1 for lines in tables)


def test_what_was_not_measured_and_a_model_without_clients_claim_nothing(make_card):
    card = make_card()
    assert dict(card_rows(card))["How good is it?"] == "not measured in this form"
    assert "The worst clients" not in format_card_page(card)
    row = ROW._replace(client_test=None, num_clients=0)
    card = {**make_card([describe(row, [])]), "classes": ["a", "b", "c", "d"]}
    expected = {"For the worst clients?": "nobody knows", "Worst clients": "none"}
    assert begin(dict(card_rows(card)), expected) == expected


def test_of_many_classes_the_worst_are_named(make_card):
    confusions = np.diag([20, *range(1, 20)]) + np.eye(20, k=1, dtype=int)
    facts = describe(confusions=confusions, num_test=229)
    card = {**make_card([facts]), "classes": [f"c{i}" for i in range(20)]}
    text = dict(card_rows(card))["By class"]
    assert text.startswith("the worst: c1 50.0\u00a0%, c2 66.7\u00a0%") and text.count(",") == 11
    assert text in format_card_page(card)


@pytest.mark.parametrize(
    ("flags", "sold"),
    [
        ({"dataset": "digits"}, "Yes, as far as the data's terms go. Licence: CC BY 4.0"),
        ({"dataset": "har"}, "No, by the data's terms"),
        ({"dataset": "mnist"}, "Unclear; ask"),
        (
            {"dataset": "npz", "npz": "my.npz"},
            "Unknown: nobody told this project the data's terms. Ask the owner of the data.",
        ),
        ({"dataset": "har", "smoke": True}, "Yes, as far as the data's terms go. Licence: none needed"),
    ],
)
def test_whether_it_may_be_sold_is_what_the_data_allow(make_card, flags, sold):
    card = make_card(**flags)
    assert dict(card_rows(card))["May it be sold?"].startswith(sold)
    assert ("classes an example of shape" in card["task"]) == (flags["dataset"] == "npz")
    assert any("random numbers" in text for text in card["must_not_be_used_for"]) == ("smoke" in flags)


@pytest.mark.parametrize("name", sorted(DATASETS.keys() - {"files", "npz"}))
def test_every_data_set_of_the_catalog_has_terms(name):
    terms = DATASETS[name].terms
    assert terms.commercial_use in COMMERCIAL_USE[:3]
    assert all([terms.task, terms.source, terms.licence, terms.conditions, terms.not_for])
    row = f"| `{name}` |"
    [line] = [line for line in pathlib.Path("docs/data_sets.md").read_text().splitlines() if line.startswith(row)]
    assert {"allowed": "commercial use allowed", "not allowed": "no commercial use", "unclear": "unclear"}[
        terms.commercial_use
    ] in line


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=alert(1)>",
        "![x](http://a.b/c)",
        "[x](javascript:y)",
        "a|b",
        "a\nb",
        "`a`",
        "\u202eabc",
        "&lt;",
    ],
)
def test_no_name_is_more_than_text_in_the_page(card, name):
    """Neither that of a class or a client nor any other text of a card, which may be that of a stranger's file."""
    worst = [{"client": name, "accuracy": 0.5, "test_examples": 2}]
    [facts] = card["files"]
    facts = {**facts, "accuracy": {**facts["accuracy"], "worst_clients": worst}, "file": name}
    named = {"classes": [name, "b", "c", "d"], "task": name, "title": name, "measured_on": name}
    card = {**card, **named, "files": [facts]}
    page = format_card_page(card)
    raw = re.sub(r"\\[\\`*\[\]|~_]", "", page)  # without what is escaped
    assert name not in page or name == "&lt;"
    assert not re.search(r"<|\]\(|`|\u202e|&(?!lt;|gt;|amp;)", raw)
    tables = [line for line in page.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert widths <= {3, 6, 10}  # of the questions, of four classes, of the files
    assert all("\n" not in text and "\u202e" not in text for _, text in card_rows(card))


def test_a_card_of_a_regression_speaks_of_its_error_and_how_to_read_outputs(make_card):
    """The worst of clients with errors 50, 90 and 60 are those with the largest."""
    clients = [ClientRow(ROW.file, f"client_{i}", 10, error) for i, error in enumerate((50.0, 90.0, 60.0))]
    row = ROW._replace(test=61.0, client_test=66.7, keras_test=60.0, agreement=None, largest_difference=2.5)
    task = find_task_columns("regression")
    labels = LabelFormat("regression", (), 1, (100.0,), (50.0,))
    card = make_card(
        [IDENTITY | describe_file(row, clients, 30, None, task)],
        {"labels": labels, "class_names": ()},
        {"task": {"kind": "regression"}},
        dataset="npz",
        npz="my.npz",
    )
    expected = {
        "What is it?": "Tells a number of an example of shape (4,).",
        "How good is it?": "RMSE 61.00 on 30 examples of the global test set, the lower the better",
        "For the worst clients?": "worst tenth 90.00, mean 66.70 of 3 clients",
        "How to read its outputs": "Standardised; the numbers are output * 50 + 100.",
        "Worst clients": "client_1 90.00 of 10, client_2 60.00",
        "Quantization": "+1 in RMSE against the Keras model; outputs at most 2.5 apart on the test set",
    }
    rows = dict(card_rows(card))
    assert begin(rows, expected) == expected and not {"Classes", "By class", "For the worst class?"} & rows.keys()
    page = format_card_page(card)
    assert "Accuracy" not in page and "accuracy" not in page and "class" not in page.replace("classes", "")


def test_features_have_their_names_units_ranges_and_scaling(make_card):
    """Of the four features of five test examples that count up from zero, and a standardisation inside the model."""
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    named = {"feature_names": ("a", "b", "<i>", "d"), "feature_units": ("°C", "", "%", "")}
    section = {"feature_means": [1, 2, 3, 4.5], "feature_deviations": [0.5, 1, 1, 2]}
    card = make_card(changes=named, section=section, test_x=x)
    last = {"name": "d", "unit": "", "lowest": 3.0, "highest": 19.0, "is_whole": True, "mean": 4.5, "deviation": 2}
    assert card["features"][3] == last and len(card["features"]) == 4
    text = dict(card_rows(make_card(changes=named, test_x=x)))["Features"]
    assert text == "a [°C] 0 to 16; b 1 to 17; <i> [%] 2 to 18; d 3 to 19."
    assert dict(card_rows(card))["Features"].endswith("d 3 to 19, mean 4.5, deviation 2.")
    assert "<i>" not in format_card_page(card)


def test_weights_of_train_examples_are_named(make_card):
    weighted = make_card(changes={"weights": ExampleWeights("dose", 1.25, 0.0, 3.0, 2, 12)})
    text = dict(card_rows(weighted))["Examples weighted"]
    assert text == "column dose: 0 to 3, 2 of 12 train examples weigh 0; divided by their mean, 1.25."


def test_a_category_is_one_choice_in_the_card(make_card):
    card = make_card(changes={"groups": (CategoryGroup("colour", (1, 2, 3), ("red", "green", "blue")),)})
    assert len(card["features"]) == 4 and [group["features"] for group in card["groups"]] == [[1, 2, 3]]
    assert "; colour: one of red, green, blue (features 1 to 3); " in dict(card_rows(card))["Features"]
    names, groups = ("<i>", "colour=red", "colour=blue", "d"), (CategoryGroup("colour", (1, 2), ("red", "blue")),)
    own = make_card(changes={"groups": groups, "feature_names": names}, dataset="npz", npz="my.npz")
    assert own["task"].endswith("classes a row of <i>, colour, d belongs to.") and "<i>" not in format_card_page(own)
    del card["groups"]  # as a card of an earlier version
    assert "colour" not in dict(card_rows(card))["Features"]


def test_of_many_features_the_first_are_listed(make_card):
    fact = {"name": "a", "unit": "", "lowest": 0.0, "highest": 1.0, "is_whole": False}
    text = dict(card_rows({**make_card(), "features": [fact] * 561}))["Features"]
    assert text.count("a 0 to 1") == 16 and text.endswith("; and 545 more.")


@pytest.mark.parametrize(
    ("section", "flags", "said"),
    [
        ({}, {"standardize": "federated"}, SCALED_BY_FILE),
        (
            {"feature_padding": {"value": -1.0, "is_anywhere": True}},
            {"standardize": "federated"},
            f"{SCALED_BY_FILE} Steps that hold nothing but -1 are padding, which it leaves so.",
        ),
        ({}, {"standardize": "client", "dataset": "building"}, SCALED_BY_PHONE),
        (
            {"reading": f"features; {READING}; but not city (category)"},
            {"standardize": "client", "partition": "natural"},
            f"{SCALED_BY_PHONE} Of the clients of the run: but not city (category).",
        ),
        ({}, {}, None),
    ],
)
def test_a_card_says_who_scales_the_features_and_what_is_not_scaled(make_card, section, flags, said):
    assert make_card(section=section, **flags).get("input") == said
