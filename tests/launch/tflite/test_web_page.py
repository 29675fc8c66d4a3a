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
from small_formats import AS_THEY_ARE, format_of, make_format

from datasets.example_format import CLASS_LABELS, CategoryGroup, LabelFormat, Preprocessing
from launch.runs.tables import write_json
from launch.settings.flags import FlagError
from launch.tflite import web_page
from launch.tflite.embedded_card import embed_card
from launch.tflite.export_report import ExportReport, FileRow
from launch.tflite.features import choose_sample

HOSTILE = "</script><script>alert(1)</script><!--"
LIBRARY = """import { createWasmLib } from "@litertjs/wasm-utils";
function setGlobalLiteRt() {}
var mark = "</script><!--";
export {
  LiteRt,
  Tensor
};
//# sourceMappingURL=index.js.map
"""


@pytest.fixture
def runtime_dir(tmp_path, monkeypatch):
    """A folder with the files of the package, in the version of the lock, which is taken for that of `make web`."""
    folder = tmp_path / "core"
    (folder / "wasm").mkdir(parents=True)
    (folder / "dist").mkdir()
    (folder / "dist" / "index.js").write_text(LIBRARY)
    for stem in web_page.BUILDS.values():
        (folder / "wasm" / f"{stem}.js").write_text(f"var ModuleFactory = '{stem}';")
        (folder / "wasm" / f"{stem}.wasm").write_bytes(f"binary of {stem}".encode())
    wanted = json.loads((web_page.SOURCES / "package.json").read_text())["dependencies"]["@litertjs/core"]
    write_json(folder / "package.json", {"version": wanted})
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
    """A made-up file of a training form, for which a card needs no measurements, with its card."""
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


def read_content(page):
    [text] = [text for attributes, text in Elements(page).get("script") if attributes.get("id") == "page-data"]
    return json.loads(text)


def read_asset(page, name):
    [text] = [text for attributes, text in Elements(page).get("script") if attributes.get("id") == name]
    return gzip.decompress(base64.b64decode(text))


def test_page_holds_the_files_the_runtime_and_the_examples(write_page, two_models):
    page = write_page(*two_models)
    content = read_content(page)
    assert [model["name"] for model in content["models"]] == ["global", "client_1"]
    first, second = content["models"][0]["files"]
    assert (first["format"], second["format"], first["size"]) == ("float32", "int8", 7)
    assert first["predictions"] == [0, 1, 0, 1]
    assert read_asset(page, second["asset"]) == make_file("global.int8.tflite")
    examples = np.frombuffer(read_asset(page, "examples"), np.float32)
    np.testing.assert_array_equal(examples, np.arange(24))
    assert content["sample"] == {"indices": [0, 1, 2, 3], "labels": [0, 1, 0, 1]}
    assert (content["shape"], content["dtype"], content["image"]) == ([6], "float32", None)
    assert content["form"] == "table"
    last = {"name": "feature 6", "unit": "", "lowest": 5.0, "highest": 23.0, "is_whole": True}
    assert len(content["features"]) == 6 and content["features"][5] == last
    assert read_asset(page, "runtime-compat-wasm") == b"binary of litert_wasm_compat_internal"
    assert read_asset(page, "runtime-default-script") == b"var ModuleFactory = 'litert_wasm_internal';"


def test_what_data_say_can_neither_end_a_script_nor_become_one(write_page):
    data = make_data(np.zeros((4, 6), np.float32), [0, 1, 0, 1], names=(HOSTILE, "<b>&amp;"))
    page = write_page([("global", "float32")], data)
    elements = Elements(page)
    assert read_content(page)["labels"] == [HOSTILE, "<b>&amp;"]
    assert "alert(1)" not in " ".join(text for _, text in elements.get("script") if "page-data" not in _.get("id", ""))
    assert not elements.get("b")
    [(_, title)] = elements.get("title")
    assert title.strip() == f"FedAvg on {HOSTILE}, round 3"
    assert page.count("<script>alert") == 0


def test_policy_allows_the_scripts_of_the_page_and_nothing_else(write_page, two_models):
    page = write_page(*two_models)
    elements = Elements(page)
    [policy] = [attributes["content"] for attributes, _ in elements.get("meta") if "http-equiv" in attributes]
    run = [text for attributes, text in elements.get("script") if attributes.get("type", "module") == "module"]
    run += [read_asset(page, f"runtime-{name}-script").decode() for name in web_page.BUILDS]
    [(_, style)] = elements.get("style")
    for text in (*run, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.count("sha256-") == len(run) + 1 == 5
    assert policy.startswith("default-src 'none';")
    assert "unsafe-inline" not in policy and "http" not in policy


def test_page_names_no_address_that_a_browser_would_load(write_page, two_models):
    page = write_page(*two_models)
    for name, attributes, _ in Elements(page).found:
        for key in ("src", "href", "action", "srcset", "data", "poster"):
            assert attributes.get(key, "data:,") == "data:,", f"{name} {key}"
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


def test_a_page_has_the_card_of_each_model(write_page, two_models):
    first, second = (dict(model["about"]) for model in read_content(write_page(*two_models))["models"])
    assert first["May it be sold?"] == second["May it be sold?"] == "Unknown"
    assert first["What is it?"] == f"Tells {HOSTILE} from b."
    assert first["File"].startswith("global.int8.tflite") and second["File"].startswith("client_1.float32.tflite")


def test_pictures_say_how_they_are_drawn():
    digits = make_data(np.zeros((2, 8, 8, 1), np.uint8), [0, 1], "ab", "digits", Preprocessing(1 / 16, 0.0, (0.0, 1.0)))
    described = web_page.describe_image(digits)
    assert (described["framing"], described["paper"], described["ink"], described["high"]) == ("digits", 0, [16], 16)
    assert described["isWhole"]
    white = np.full((2, 5, 4, 1), 200, np.float32)
    white[:, 2, 2] = 20
    described = web_page.describe_image(make_data(white, [0, 1]))
    assert (described["framing"], described["paper"], described["ink"]) == ("plain", 200, [20])
    assert (described["height"], described["width"], described["isWhole"]) == (5, 4, False)
    color = web_page.describe_image(make_data(np.full((2, 4, 4, 3), 9, np.uint8), [0, 1], "ab", "cifar10"))
    assert color["channels"] == 3
    assert web_page.describe_image(make_data(np.zeros((2, 128, 9), np.float32), [0, 1])) is None
    assert web_page.describe_image(make_data(np.zeros((2, 4, 4, 2), np.float32), [0, 1])) is None


def test_missing_or_other_runtime_is_one_line(runtime_dir):
    web_page.check_request("float32")
    (runtime_dir / "wasm" / "litert_wasm_compat_internal.wasm").unlink()
    with pytest.raises(FlagError, match=r"^--web_page: LiteRT\.js [\d.]+, which .* is missing; type: make web$"):
        web_page.check_request("float32")
    write_json(runtime_dir / "package.json", {"version": "1.0.0"})
    with pytest.raises(FlagError, match="type: make web"):
        web_page.check_request("float32")
    (runtime_dir / "package.json").unlink()
    with pytest.raises(FlagError, match="type: make web"):
        web_page.check_request("float32")


def test_integer_inputs_are_refused_in_one_line(runtime_dir):
    with pytest.raises(FlagError, match=r"--web_page with --io=int8: LiteRT\.js takes float inputs only"):
        web_page.check_request("int8")


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


def test_outputs_without_classes_are_shown_as_numbers_in_the_unit_of_the_labels():
    labels = LabelFormat("regression", (), 1, (100.0,), (50.0,))
    data = make_data(np.zeros((3, 4), np.float32), [120.5, 80.0, 99.0], (), labels=labels)
    sample = choose_sample(data.test_y)
    described = web_page.describe_data(data, sample, {})
    assert described["answers"] == "numbers" and described["labels"] == ["output 1"]
    assert described["truths"] == ["120.5", "80", "99"]
    assert (described["outputScale"], described["outputOffset"]) == ([50.0], [100.0])


def test_the_labels_that_an_example_has_are_its_truth():
    labels = LabelFormat("multi_label", (2,), 2)
    data = make_data(np.zeros((2, 4), np.float32), [[1, 1], [0, 0]], labels=labels)
    assert web_page.describe_data(data, choose_sample(data.test_y), {})["truths"] == ["a, b", "none"]


def test_one_logit_is_read_as_two_classes():
    data = make_data(np.zeros((2, 4), np.float32), [0, 1], labels=LabelFormat("binary"))
    assert web_page.describe_data(data, np.arange(2), {})["answers"] == "two_classes"


def test_a_feature_has_its_name_unit_and_scaling():
    names = {"feature_names": ("tempera\u202eture", "people"), "feature_units": ("°C", "")}
    data = make_data(np.array([[0.5, 3], [2.5, 3]], np.float32), [0, 1], **names)
    section = {"feature_means": [1.5, 3], "feature_deviations": [1.0, 1]}
    first, second = web_page.describe_data(data, np.arange(2), section)["features"]
    assert first == {
        "name": "tempera\\u202eture",
        "unit": "°C",
        "lowest": 0.5,
        "highest": 2.5,
        "is_whole": False,
        "mean": 1.5,
        "deviation": 1.0,
    }
    assert (second["lowest"], second["highest"], second["is_whole"]) == (3, 3, True)


def test_a_category_of_the_page_has_its_places_and_hides_nothing():
    group = CategoryGroup("col\u202eour", (0, 1), ("red", "bl\u202eue"), has_none=True)
    data = make_data(np.array([[1, 0], [0, 0]], np.float32), [0, 1], groups=(group,))
    [told] = web_page.describe_data(data, np.arange(2), {})["groups"]
    assert (told["name"], told["values"]) == ("col\\u202eour", ["red", "bl\\u202eue"])
    assert (told["features"], told["has_none"], told["is_index"]) == ([0, 1], True, False)


def test_a_model_that_classifies_tokens_has_no_page(runtime_dir):
    with pytest.raises(FlagError, match="tokens to models that say which come next"):
        web_page.check_request("float32", classifies_tokens=True)


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
    assert content["vocabulary"] == list(NAMES)
    assert content["labels"][:4] == ["padding", "a", "␣ (space)", "↵ (new line)"] and content["labels"][5] == "the end"
    assert (content["positions"], content["size"], content["padding"], content["oov"]) == (3, 6, 0, None)
    assert content["sample"] == {"indices": [0, 1], "labels": [[2, 3, 5], [1, 5, 0]]}
    [model] = content["models"]
    assert model["files"][0]["predictions"] == [[2, 3, 4], [1, 1, 1]]
    assert dict(model["about"])["Vocabulary"].startswith("6 tokens: <pad> a ␣ \\n ")
    assert page.count("<script>alert") == 0
    tokens = np.frombuffer(read_asset(page, "examples"), np.int32)  # whatever they are stored as
    np.testing.assert_array_equal(tokens, [1, 2, 3, 4, 1, 0])


def test_without_a_vocabulary_tokens_are_called_by_their_numbers(write_text_page):
    content = read_content(write_text_page(()))
    assert content["vocabulary"] is None and content["labels"] == ["0", "1", "2", "3", "4", "5"]


def test_every_element_that_the_scripts_name_is_in_the_html(write_text_page):
    ids = set(re.findall(r'\bid="([\w-]+)"', write_text_page()))
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
