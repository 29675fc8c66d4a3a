"""The page of a text model: the vocabulary in it, what its scripts find in its HTML, and when there is one."""

import base64
import gzip
import hashlib
import json
import re
import types

import numpy as np
import pytest
from small_formats import format_of, make_format

from datasets.label_format import CLASS_LABELS, LabelFormat
from launch.runs.tables import write_json
from launch.tflite import web_page
from launch.tflite.embedded_card import embed_card
from launch.tflite.export_report import ExportReport, FileRow

HOSTILE = "</script><script>alert(1)</script>"
NAMES = ("<pad>", "a", " ", "\\n", HOSTILE, "<eos>")


def make_data(names=NAMES, oov=None):
    """What the page reads of a FederatedData with two examples of three tokens."""
    x = np.array([[1, 2, 3], [4, 1, 0]], np.uint8)
    return types.SimpleNamespace(
        dataset="own", test_x=x, test_y=np.array([[2, 3, 5], [1, 5, 0]], np.int32),
        format=format_of(x, names, labels=LabelFormat("next_token", (3,), 6, padding=0, oov=oov), takes_tokens=True),
    )  # fmt: skip


@pytest.fixture
def write_page(tmp_path, monkeypatch):
    """Data -> what the page's scripts read, and its text."""
    folder = tmp_path / "core"
    (folder / "wasm").mkdir(parents=True)
    (folder / "dist").mkdir()
    (folder / "dist" / "index.js").write_text("export {\n  LiteRt\n};\n")
    for stem in web_page.BUILDS.values():
        (folder / "wasm" / f"{stem}.js").write_text("var ModuleFactory = 1;")
        (folder / "wasm" / f"{stem}.wasm").write_bytes(b"binary")
    write_json(folder / "package.json", {"version": "1.0.0"})
    monkeypatch.setattr(web_page, "RUNTIME", folder)

    def write(data):
        model = b"\x1c\x00\x00\x00TFL3"
        file = {"file": "global.int8.tflite", "model": "global", "format": "training", "model_bytes": len(model)}
        card = {
            "title": "FedAvg", "task": "Tells what comes next.", "kind": "next_token", "classes": [],
            "vocabulary": list(data.format.class_names), "data_set": {"name": "own", "source": ""},
            "may_be_sold": "Unknown", "must_not_be_used_for": [],
            "files": [file | {"model_sha256": hashlib.sha256(model).hexdigest()}],
            "training": {"rounds": 3, "clients": 2, "examples": 10, "how": "simulated"},
        }  # fmt: skip
        (tmp_path / "global.int8.tflite").write_bytes(embed_card(model, json.dumps(card).encode()))
        values = dict.fromkeys(FileRow._fields, 0) | {"file": "global.int8.tflite", "model": "global", "format": "int8"}
        report = ExportReport("FedAvg on text", 3, 2, 5, 2, [FileRow(**values)], [], [], [])
        predictions = {"global.int8.tflite": np.array([[2, 3, 4], [1, 1, 1]], np.int32)}
        web_page.write_web_page(tmp_path, report, data, predictions, (), {})
        page = (tmp_path / "page.html").read_text()
        return json.loads(re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL)[1]), page

    return write


def test_the_page_has_the_vocabulary_the_examples_and_what_the_files_say(write_page):
    content, page = write_page(make_data())
    assert content["vocabulary"] == list(NAMES)
    assert content["labels"][:4] == ["padding", "a", "␣ (space)", "↵ (new line)"] and content["labels"][5] == "the end"
    assert (content["positions"], content["size"], content["padding"], content["oov"]) == (3, 6, 0, None)
    assert content["sample"] == {"indices": [0, 1], "labels": [[2, 3, 5], [1, 5, 0]]}
    [model] = content["models"]
    assert model["files"][0]["predictions"] == [[2, 3, 4], [1, 1, 1]]
    assert dict(model["about"])["Vocabulary"].startswith("6 tokens: <pad> a ␣ \\n ")
    assert page.count("<script>alert") == 0


def test_without_a_vocabulary_tokens_are_called_by_their_numbers(write_page):
    content, _ = write_page(make_data(names=()))
    assert content["vocabulary"] is None and content["labels"] == ["0", "1", "2", "3", "4", "5"]


def test_examples_travel_as_integers_whatever_they_are_stored_as(write_page):
    _, page = write_page(make_data())
    packed = re.search(r'id="examples">([^<]*)<', page)[1]
    tokens = np.frombuffer(gzip.decompress(base64.b64decode(packed)), np.int32)
    np.testing.assert_array_equal(tokens, [1, 2, 3, 4, 1, 0])


def test_every_element_that_the_scripts_name_is_in_the_html(write_page):
    ids = set(re.findall(r'\bid="([\w-]+)"', write_page(make_data())[1]))
    script = (web_page.SOURCES / "text_main.js").read_text() + (web_page.SOURCES / "answer.js").read_text()
    named = {*re.findall(r"\bpage\.(\w+)", script), *re.findall(r'\bpage\["([\w-]+)"\]', script)}
    assert named <= ids, named - ids


@pytest.mark.parametrize(
    ("takes_tokens", "labels", "expected"),
    [
        (True, LabelFormat("next_token", (3,), 6), True),
        (True, CLASS_LABELS, False),
        (False, LabelFormat("next_token", (3,), 6), False),
    ],
)
def test_a_text_page_is_for_tokens_whose_next_ones_are_said(takes_tokens, labels, expected):
    example_format = make_format((3,), "uint8", 6, takes_tokens=takes_tokens, labels=labels)
    assert web_page.has_text_page(types.SimpleNamespace(format=example_format)) is expected
