"""The files of the participant's page: all that it loads is served, and nothing of it may do more than it needs."""

import gzip
import json
import re
import types

import numpy as np
import pytest
from made_litert import make_litert

from datasets.example_format import ExampleFormat, Preprocessing
from launch.live import client_page
from launch.live.client_page import describe_run, find_modules, pack_page
from launch.live.served import POLICY
from models.litert_js import BUILDS, read_wanted_version

ABOUT = {"name": "FedAvg on digits", "rounds": 3}


@pytest.fixture
def runtime_dir(tmp_path, monkeypatch):
    folder = make_litert(tmp_path / "core")
    monkeypatch.setattr(client_page, "RUNTIME", folder)
    return folder


def test_without_litert_js_a_page_of_a_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(client_page, "RUNTIME", tmp_path)
    files = pack_page(ABOUT)
    assert list(files) == ["/"] and not client_page.has_page()
    assert b"make web" in files["/"].content and b"join.py" in files["/"].content
    assert files["/"].headers[POLICY] == "default-src 'none'"
    assert "make web" in client_page.say_missing() and read_wanted_version() in client_page.say_missing()


def test_all_that_the_page_loads_is_served_and_nothing_of_the_organisers(runtime_dir):
    files = pack_page(ABOUT)
    texts = {path: file.content.decode() for path, file in files.items() if "Content-Encoding" not in file.headers}
    loaded = {f"/page/{name}" for text in texts.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    loaded |= set(re.findall(r'(?:href|src)="(/page/[\w.-]+)"', texts["/"])) | {"/page/worker.js", "/page/about.json"}
    loaded |= {f"/page/litert_{build}{suffix}" for build in BUILDS for suffix in (".js", ".wasm")}
    assert loaded | {"/"} == set(files)
    assert not [name for name in find_modules() if name.startswith("organiser")]


def test_the_page_may_run_and_reach_nothing_but_its_own(runtime_dir):
    files = pack_page(ABOUT)
    for path, file in files.items():
        rules = dict(rule.split(" ", 1) for rule in file.headers[POLICY].split("; "))
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'", path
        assert rules.pop("script-src") == "'self' 'wasm-unsafe-eval'"
        assert set(rules.values()) == {"'none'", "'self'"} and rules["connect-src"] == "'self'"
    page = files["/"].content.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|javascript:|https?://", page)


def test_litert_js_is_a_module_and_its_builds_are_packed_once(runtime_dir):
    files = pack_page(ABOUT)
    library = files["/page/litert.js"].content.decode()
    assert "import" not in library and "sourceMappingURL" not in library
    assert re.search(r"export \{[^}]*setGlobalLiteRt", library)
    script = gzip.decompress(files["/page/litert_compat.js"].content).decode()
    assert script == "var ModuleFactory = 'litert_wasm_compat_internal';\nexport default ModuleFactory;\n"
    binary = files["/page/litert_default.wasm"]
    assert gzip.decompress(binary.content) == b"binary of litert_wasm_internal"
    assert binary.content_type == "application/wasm" and "immutable" in binary.headers["Cache-Control"]
    packed = runtime_dir / "wasm" / "litert_wasm_internal.wasm.gz"
    packed.write_bytes(gzip.compress(b"kept"))
    assert gzip.decompress(pack_page(ABOUT)["/page/litert_default.wasm"].content) == b"kept"
    sizes = [len(files[f"/page/litert_{build}.wasm"].content) for build in BUILDS]
    about = json.loads(files["/page/about.json"].content)
    assert about == {**ABOUT, "runtime": read_wanted_version(), "runtimeBytes": max(sizes)}


def test_what_the_page_says_of_a_run():
    x = np.array([[[[0.0], [16.0]]]], np.float32)
    form = ExampleFormat((1, 2, 1), "float32", ("a", "b"), Preprocessing(1 / 16, 0.0, (0.0, 1.0)))
    clients = [types.SimpleNamespace(num_train=count) for count in (7, 3, 5)]
    data = types.SimpleNamespace(clients=clients, format=form, test_x=x, dataset="own")
    file = types.SimpleNamespace(content=b"1234", shapes=((2, 3), (4,), ()))
    offer = types.SimpleNamespace(name="FedAvg on own", rounds=9, file=file)
    about = describe_run(offer, data, None, 60.0)
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    expected = {"name": "FedAvg on own", "rounds": 9, "deals": True, "columns": None, "examples": [3, 7]}
    expected |= {"fileBytes": 4, "modelBytes": 4 * (6 + 4 + 1), "deadlineS": 60.0, "scale": 1 / 16, "offset": 0.0}
    assert expected.items() <= about.items() and about["image"]["high"] == 16
    own = describe_run(offer, data, "digest", 60.0, True)
    assert (own["deals"], own["columns"]) == (False, "digest")
    assert (about["private"], own["private"]) == (False, True)
