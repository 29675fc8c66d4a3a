"""The page of an export, with a stand-in for LiteRT.js."""

import base64
import gzip
import hashlib
import html.parser
import json
import re
import types

import numpy as np
import pytest
from made_litert import LIBRARY, make_litert
from small_formats import AS_THEY_ARE, format_of, make_format

from datasets.example_format import CLASS_LABELS, CategoryGroup, LabelFormat, TextFormat
from launch.runs.tables import write_json
from launch.settings.flags import FlagError
from launch.tflite import web_page
from launch.tflite.embedded_card import embed_card
from launch.tflite.export_report import ExportReport, FileRow
from launch.tflite.features import choose_sample

HOSTILE = "</script><script>alert(1)</script><!--"


@pytest.fixture
def runtime_dir(tmp_path, monkeypatch):
    """A folder with the files of the package, in the version of the lock, which is taken for that of `make web`."""
    folder = make_litert(tmp_path / "core")
    monkeypatch.setattr(web_page, "RUNTIME", folder)
    return folder


def make_data(
    test_x, test_y, names=("a", "b"), dataset="own", preprocessing=AS_THEY_ARE, labels=CLASS_LABELS, **fields
):
    """What the page reads of a FederatedData."""
    return types.SimpleNamespace(
        dataset=dataset, test_x=test_x, test_y=np.array(test_y, labels.dtype),
        format=format_of(test_x, names, preprocessing, labels=labels, **fields),
    )  # fmt: skip


def make_row(model, export_format):
    values = dict.fromkeys(FileRow._fields, 0) | {"model": model, "format": export_format, "size_bytes": 7}
    shares = {"test": 0.75, "client_test": 0.5, "num_clients": 1, "agreement": 1.0}
    return FileRow(**values | shares | {"file": f"{model}.{export_format}.tflite", "parameters": 1234})


def make_file(name, **facts):
    """A made-up file for on-device training, for which a card needs no measurements, with its card."""
    model = b"\x1c\x00\x00\x00TFL3" + name.encode()
    identity = {"file": name, "model": name.split(".")[0], "format": "training", "model_bytes": len(model)}
    card = {
        "title": f"FedAvg on {HOSTILE}", "task": f"Tells {HOSTILE} from b.", "classes": ["a", "b"],
        "data_set": {"name": "own", "source": ""}, "may_be_sold": "Unknown", "must_not_be_used_for": ["Anything."],
        "training": {"rounds": 3, "clients": 2, "examples": 10, "how": "simulated"},
        "files": [identity | {"model_sha256": hashlib.sha256(model).hexdigest()}], **facts,
    }  # fmt: skip
    return embed_card(model, json.dumps(card).encode())


@pytest.fixture
def write_page(tmp_path, runtime_dir):
    """(models and formats, data, page formats, ...) -> the text of the page of such an export, of made-up files."""

    def write(files, data, formats=(), predictions=None, **facts):
        rows = [make_row(*file) for file in files]
        for row in rows:
            (tmp_path / row.file).write_bytes(make_file(row.file, **facts))
        report = ExportReport(f"FedAvg on {HOSTILE}", 3, len(data.test_y), 5, 2, rows, [], [], [])
        predictions = predictions or {row.file: data.test_y for row in rows}
        web_page.write_web_page(tmp_path, report, data, predictions, formats, {})
        return (tmp_path / "page.html").read_text()

    return write


class Elements(html.parser.HTMLParser):
    """The elements of a page: (name, attributes, text), the text of scripts and styles as browsers have it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.is_open = [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.found[-1][2] += data

    def get(self, tag):
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


@pytest.fixture
def two_models():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    return [("global", "float32"), ("global", "int8"), ("client_1", "float32")], make_data(x, [0, 1, 0, 1])


def read_script(page, name):
    [text] = [text for attributes, text in Elements(page).get("script") if attributes.get("id") == name]
    return text


def read_content(page):
    return json.loads(read_script(page, "page-data"))


def read_asset(page, name):
    return gzip.decompress(base64.b64decode(read_script(page, name)))


def describe(data, section=None):
    return web_page.describe_data(data, choose_sample(data.test_y), section or {})


def test_page_holds_the_files_the_runtime_and_the_examples(write_page, two_models):
    page = write_page(*two_models)
    content = read_content(page)
    first, second = content["models"]
    assert (first["name"], second["name"]) == ("global", "client_1")
    assert [[file[key] for key in ("format", "size", "predictions")] for file in first["files"]] == [
        ["float32", 7, [0, 1, 0, 1]],
        ["int8", 7, [0, 1, 0, 1]],
    ]
    assert read_asset(page, first["files"][1]["asset"]) == make_file("global.int8.tflite")
    about = [dict(model["about"]) for model in (first, second)]
    assert about[0]["What is it?"] == f"Tells {HOSTILE} from b." and about[1]["May it be sold?"] == "Unknown"
    assert about[0]["File"].startswith("global.int8.tflite") and about[1]["File"].startswith("client_1.float32.tflite")
    np.testing.assert_array_equal(np.frombuffer(read_asset(page, "examples"), np.float32), np.arange(24))
    assert content["sample"] == {"indices": [0, 1, 2, 3], "labels": [0, 1, 0, 1]}
    expected = {"shape": [6], "dtype": "float32", "image": None, "form": "table"}
    assert {key: content[key] for key in expected} == expected and len(content["features"]) == 6
    last = {"name": "feature 6", "unit": "", "lowest": 5.0, "highest": 23.0, "is_whole": True}
    assert content["features"][5] == last
    assert read_asset(page, "runtime-compat-wasm") == b"binary of litert_wasm_compat_internal"
    assert read_asset(page, "runtime-default-script") == b"var ModuleFactory = 'litert_wasm_internal';"


def test_what_data_say_can_neither_end_a_script_nor_become_one(write_page):
    data = make_data(np.zeros((4, 6), np.float32), [0, 1, 0, 1], names=(HOSTILE, "<b>&amp;"))
    page = write_page([("global", "float32")], data)
    elements = Elements(page)
    assert read_content(page)["labels"] == [HOSTILE, "<b>&amp;"]
    run = [text for attributes, text in elements.get("script") if attributes.get("id") != "page-data"]
    assert "alert(1)" not in " ".join(run) and not elements.get("b") and page.count("<script>alert") == 0
    [(_, title)] = elements.get("title")
    assert title.strip() == f"FedAvg on {HOSTILE}, round 3"


def test_policy_allows_the_scripts_of_the_page_and_nothing_else(write_page, two_models):
    """And the page names no address that a browser would load."""
    page = write_page(*two_models)
    elements = Elements(page)
    [policy] = [attributes["content"] for attributes, _ in elements.get("meta") if "http-equiv" in attributes]
    run = [text for attributes, text in elements.get("script") if attributes.get("type", "module") == "module"]
    run += [read_asset(page, f"runtime-{name}-script").decode() for name in web_page.BUILDS]
    [(_, style)] = elements.get("style")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*run, style)]
    assert sorted(re.findall(r"'sha256-([^']*)'", policy)) == sorted(digests) and len(run) == 4
    assert policy.startswith("default-src 'none';") and "unsafe-inline" not in policy and "http" not in policy
    loading = ("src", "href", "action", "srcset", "data", "poster")
    named = [attributes.get(key, "data:,") for _, attributes, _ in elements.found for key in loading]
    assert set(named) == {"data:,"}
    own = web_page.join_scripts(web_page.SOURCES, web_page.SCRIPTS) + (web_page.SOURCES / "page.css").read_text()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|fetch\(|XMLHttpRequest|WebSocket", own)
    assert "sourceMappingURL" not in page


def test_formats_of_the_page(write_page, two_models):
    _, data = two_models
    formats = ("float32", "float16", "dynamic", "int8", "qat_int8")
    every = [("global", name) for name in formats]

    def list_formats(page):
        return [file["format"] for file in read_content(page)["models"][0]["files"]]

    assert list_formats(write_page(every, data)) == ["float32", "int8", "qat_int8"]
    assert list_formats(write_page(every, data, formats)) == list(formats)
    assert list_formats(write_page(every[1:2], data, ("float16",))) == ["float16"]


def test_what_has_no_page_is_one_line(runtime_dir):
    web_page.check_request("float32")
    with pytest.raises(FlagError, match="tokens to models that say which come next"):
        web_page.check_format(make_format((3,), "uint8", 6, takes_tokens=True))
    web_page.check_format(make_format((3,), "uint8", 6, takes_tokens=True, labels=LabelFormat("next_token", (3,), 6)))
    with pytest.raises(FlagError, match=r"--web_page with --io=int8: LiteRT\.js takes float inputs only"):
        web_page.check_request("int8")
    package = runtime_dir / "package.json"
    spoil = (
        (runtime_dir / "wasm" / "litert_wasm_compat_internal.wasm").unlink,
        lambda: write_json(package, {"version": "1.0.0"}),
        package.unlink,
    )
    for change in spoil:
        change()
        with pytest.raises(FlagError, match=r"^--web_page: LiteRT\.js [\d.]+, which .* is missing; type: make web$"):
            web_page.check_request("float32")


def test_library_becomes_a_plain_script():
    script = web_page.wrap_library(LIBRARY)
    assert script.startswith("const LiteRT = (() => {")
    assert "import " not in script and "export " not in script and "sourceMappingURL" not in script
    assert "setGlobalLiteRt, supportsFeature };" in script


def test_locks_name_no_registry():
    """npm finds the packages by name and version where it is set up to look, and checks them by their digests."""
    lock = json.loads((web_page.SOURCES / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())
    wanted = json.loads((web_page.SOURCES / "package.json").read_text())["dependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("y", "labels", "names", "expected"),
    [
        (
            [120.5, 80.0], LabelFormat("regression", (), 1, (100.0,), (50.0,)), (),
            {"answers": "numbers", "labels": ["output 1"], "truths": ["120.5", "80"],
             "outputScale": [50.0], "outputOffset": [100.0]},
        ),
        ([[1, 1], [0, 0]], LabelFormat("multi_label", (2,), 2), ("a", "b"), {"truths": ["a, b", "none"]}),
        ([0, 1], LabelFormat("binary"), ("a", "b"), {"answers": "two_classes"}),
        ([0, 1], CLASS_LABELS, ("a", "b"), {"answers": "classes"}),
    ],
)  # fmt: skip
def test_outputs_are_read_by_the_task(y, labels, names, expected):
    described = describe(make_data(np.zeros((2, 4), np.float32), y, names, labels=labels))
    assert expected.items() <= described.items()


def test_features_and_categories_have_their_names_and_hide_nothing():
    group = CategoryGroup("col\u202eour", (0, 1), ("red", "bl\u202eue"), has_none=True)
    names = {"feature_names": ("tempera\u202eture", "people"), "feature_units": ("°C", ""), "groups": (group,)}
    data = make_data(np.array([[0.5, 3], [2.5, 3]], np.float32), [0, 1], **names)
    described = describe(data, {"feature_means": [1.5, 3], "feature_deviations": [1.0, 1]})
    assert described["features"][0] == {
        "name": "tempera\\u202eture", "unit": "°C", "lowest": 0.5, "highest": 2.5, "is_whole": False, "mean": 1.5,
        "deviation": 1.0,
    }  # fmt: skip
    assert described["groups"] == [
        {
            "name": "col\\u202eour", "values": ["red", "bl\\u202eue"], "features": [0, 1], "has_none": True,
            "is_index": False,
        }
    ]  # fmt: skip


NAMES = ("<pad>", "a", " ", "\\n", HOSTILE, "<eos>")  # of tokens


@pytest.fixture
def write_text_page(write_page):
    """Names of the tokens -> the text of the page of a text model with two examples of three tokens."""

    def write(names=NAMES):
        labels, x = LabelFormat("next_token", (3,), 6, padding=0), np.array([[1, 2, 3], [4, 1, 0]], np.uint8)
        data = make_data(x, [[2, 3, 5], [1, 5, 0]], names, labels=labels, takes_tokens=True)
        facts = {"kind": "next_token", "classes": [], "vocabulary": list(names)}
        predictions = {"global.int8.tflite": np.array([[2, 3, 4], [1, 1, 1]], np.int32)}
        return write_page([("global", "int8")], data, (), predictions, **facts)

    return write


def test_a_text_page_has_the_vocabulary_the_examples_and_what_the_files_say(write_text_page):
    page = write_text_page()
    content = read_content(page)
    [model] = content.pop("models")
    assert content == {
        "vocabulary": list(NAMES),
        "labels": ["padding", "a", "␣ (space)", "↵ (new line)", HOSTILE, "the end"],
        "positions": 3,
        "size": 6,
        "padding": 0,
        "oov": None,
        "sample": {"indices": [0, 1], "labels": [[2, 3, 5], [1, 5, 0]]},
    }
    assert model["files"][0]["predictions"] == [[2, 3, 4], [1, 1, 1]]
    assert dict(model["about"])["Vocabulary"].startswith("6 tokens: <pad> a ␣ \\n ")
    assert page.count("<script>alert") == 0
    tokens = np.frombuffer(read_asset(page, "examples"), np.int32)  # whatever they are stored as
    np.testing.assert_array_equal(tokens, [1, 2, 3, 4, 1, 0])
    nameless = read_content(write_text_page(()))
    assert nameless["vocabulary"] is None and nameless["labels"] == ["0", "1", "2", "3", "4", "5"]


def test_every_element_that_the_scripts_name_is_in_the_html(write_text_page):
    ids = set(re.findall(r'\bid="([\w-]+)"', write_text_page()))
    script = "".join((web_page.SOURCES / name).read_text() for name in ("text_main.js", "wiring.js", "answer.js"))
    named = {*re.findall(r"\bpage\.(\w+)", script), *re.findall(r'\bpage\["([\w-]+)"\]', script)}
    assert named <= ids, named - ids


def test_a_page_of_texts_has_the_vocabulary_and_the_examples(write_page):
    """Its scripts and its HTML fit: every element that they name is there."""
    text = TextFormat("review", ("<pad>", "<oov>", "good", "bad"))
    x = np.array([[2, 1, 0], [3, 0, 0]], np.int32)
    data = make_data(x, [1, 0], ("no", HOSTILE), labels=LabelFormat("binary"), takes_tokens=True, text=text)
    predictions = {"global.int8.tflite": np.array([1, 0], np.int32)}
    page = write_page([("global", "int8")], data, (), predictions, vocabulary=list(text.vocabulary))
    content = read_content(page)
    assert content.pop("models")[0]["files"][0]["predictions"] == [1, 0]
    assert content == {
        "positions": 3, "vocabulary": ["<pad>", "<oov>", "good", "bad"], "labels": ["no", HOSTILE],
        "answers": "two_classes", "sample": {"indices": [0, 1], "labels": [1, 0]},
    }  # fmt: skip
    np.testing.assert_array_equal(np.frombuffer(read_asset(page, "examples"), np.int32), x.ravel())
    scripts = [(web_page.SOURCES / name).read_text() for name in ("words_main.js", "wiring.js", "answer.js")]
    named = {*re.findall(r"\bpage\.(\w+)", "".join(scripts)), *re.findall(r'\bpage\["([\w-]+)"\]', "".join(scripts))}
    assert named <= set(re.findall(r'\bid="([\w-]+)"', page))
