"""`export/page.html`: the exported files, their runtime and some test examples in one page that needs no network.

The sources of the page are in `web/`. LiteRT.js, which runs the files, is put into `.web/` by `make web`; both of its
builds without threads are packed in, since the page cannot know its phone: the default one, and `compat` for browsers
without relaxed SIMD. Only the one that is needed is unpacked.

The page of a model that takes the words of a text (`--text_column`) has a box for a text, and answers while a person
types. On the page of one that says what comes next, a person types, and sees that. What its tokens mean is known from
the run's class names, one text a token. Four spellings mean no text: "<pad>" padding, "<oov>" what is in no vocabulary,
"<bos>" and "<eos>" the beginning and the end of a text. Without names, the page takes token ids.

Imports no TensorFlow.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.drawn_images import describe_image
from datasets.example_format import GROUPS, NEXT_TOKEN, REGRESSION, ExampleFormat
from datasets.federated_data import FederatedData
from files.writing import write_text
from launch.console.shown_text import escape_hidden
from launch.pages.templates import compute_digest, embed_packed, format_policy, join_scripts, protect_script, render
from launch.runs.columns import WEB_PAGE
from launch.settings.flags import FlagError
from launch.tflite.card_page import card_rows
from launch.tflite.export_report import ExportReport
from launch.tflite.features import choose_sample, describe_features, list_groups, name_layout
from launch.tflite.model_card import join_cards
from models.litert_js import (
    BUILDS,
    LIBRARY,
    RUNTIME,
    USED_NAMES,
    is_there,
    read_version,
    read_wanted_version,
    strip_library,
)

SOURCES = pathlib.Path(__file__).with_name("web")
# Each may use those before it.
SCRIPTS = (
    *("maths.js", "strokes.js", "examples.js", "runtime.js", "groups.js", "signal.js"),
    *("board.js", "answer.js", "sliders.js", "steps.js", "check.js", "wiring.js", "main.js"),
)
TEXT_SCRIPTS = (
    *("maths.js", "examples.js", "runtime.js", "answer.js"),
    *("text.js", "token_file.js", "wiring.js", "text_main.js"),
)
WORDS_SCRIPTS = (
    *("maths.js", "examples.js", "runtime.js", "answer.js", "check.js"),
    *("text.js", "token_file.js", "words.js", "wiring.js", "words_main.js"),
)
# By the beginning of the template's name.
SCRIPTS_OF = {"": SCRIPTS, "text_": TEXT_SCRIPTS, "words_": WORDS_SCRIPTS}
# Blanks, which a reader would not see.
VISIBLE = {" ": "␣ (space)", "\\n": "↵ (new line)", "\\r": "carriage return", "\\t": "⇥ (tab)"}
VISIBLE |= {"\n": "↵ (new line)", "\r": "carriage return", "\t": "⇥ (tab)"}
SPECIAL = {
    "<pad>": "padding",
    "<oov>": "what is not in the vocabulary",
    "<bos>": "the beginning",
    "<eos>": "the end",
}
PAGE_FORMATS = ("float32", "int8", "qat_int8")


def check_format(example_format: ExampleFormat) -> None:
    """Raises FlagError if a run's models take tokens that are no words of a text and do not say which come next."""
    if example_format.takes_tokens and not example_format.text and example_format.labels.task != NEXT_TOKEN:
        raise FlagError(
            "--web_page: the page gives tokens to models that say which come next, or that take the words of a text "
            "(--text_column); leave it out"
        )


def check_request(io: str) -> None:
    """Whether a page can be made, before any work starts.

    Raises:
      FlagError: LiteRT.js is not there, or not in the version of the lock, or the files would have integer inputs.
    """
    if io == "int8":
        raise FlagError(
            "--web_page with --io=int8: LiteRT.js takes float inputs only; leave --io=int8 out, int8 computes in "
            "integers all the same"
        )
    if not is_there(RUNTIME):
        wanted = read_wanted_version()
        raise FlagError(f"--web_page: LiteRT.js {wanted}, which runs the files in a page, is missing; type: make web")


def wrap_library(module: str) -> str:
    """An ES module as a plain script that defines `LiteRT` with the names that the page uses."""
    return f"const LiteRT = (() => {{\n{strip_library(module)}\nreturn {{ {', '.join(USED_NAMES)} }};\n}})();"


def write_web_page(
    folder: pathlib.Path,
    report: ExportReport,
    data: FederatedData,
    predictions: Mapping[str, np.ndarray],
    formats: Sequence[str],
    section: Mapping[str, Any],
) -> None:
    """Writes the page beside the files that are in it.

    Args:
      folder: of the export, with a .tflite for each file of the report, its card in it.
      report: what was measured.
      data: the test set and how its examples look.
      predictions: by the file's name, what it says of the test set: classes, (examples,), tokens that follow, or
        numbers, (examples, ...).
      formats: those that go into the page; empty for those of PAGE_FORMATS. All that were exported if none of them was.
      section: the data section of the run's `config.json`.
    """
    sample, example_format = choose_sample(data.test_y), data.format
    # The scripts of a text page read 32-bit numbers, whatever the tokens are stored as.
    examples = data.test_x[sample].astype(np.int32) if example_format.takes_tokens else data.test_x[sample]
    assets = {"examples": np.ascontiguousarray(examples).tobytes()}
    for name, stem in BUILDS.items():
        assets[f"runtime-{name}-script"] = (RUNTIME / "wasm" / f"{stem}.js").read_bytes()
        assets[f"runtime-{name}-wasm"] = (RUNTIME / "wasm" / f"{stem}.wasm").read_bytes()
    rows = [row for row in report.files if row.format in (formats or PAGE_FORMATS)] or list(report.files)
    models = []
    for name in dict.fromkeys(row.model for row in rows):
        own, files = [row for row in rows if row.model == name], []
        for row in own:
            asset, predicted = f"file-{len(assets)}", predictions[row.file][sample].tolist()
            assets[asset] = (folder / row.file).read_bytes()
            files.append({"format": row.format, "size": row.size_bytes, "asset": asset, "predictions": predicted})
        about = card_rows(join_cards(folder, [row.file for row in own]))
        models.append({"name": escape_hidden(name), "files": files, "about": about})
    if example_format.text:
        kind, described = "words_", describe_words(data, sample)
    elif example_format.takes_tokens:
        kind, described = "text_", describe_text(data, sample)
    else:
        kind, described = "", describe_data(data, sample, section)
    title = f"{report.title}, round {report.rounds}"
    write_text(folder / WEB_PAGE, assemble_page(title, described | {"models": models}, assets, kind))


def describe_words(data: FederatedData, sample: np.ndarray) -> dict[str, Any]:
    """What the page's scripts need to know of the words of a text."""
    return {
        "positions": data.format.input_shape[0],
        "vocabulary": list(data.format.text.vocabulary),
        "labels": list(map(escape_hidden, data.format.class_names)),
        "sample": {"indices": sample.tolist(), "labels": data.test_y[sample].tolist()},
        **describe_task(data, sample),
    }


def describe_text(data: FederatedData, sample: np.ndarray) -> dict[str, Any]:
    """What the page's scripts need to know of the tokens."""
    example_format = data.format
    names = list(example_format.class_names) or list(map(str, range(example_format.num_outputs)))
    # Without names a token is its number, which needs no other spelling.
    shown = {**VISIBLE, **SPECIAL} if example_format.class_names else {}
    return {
        "positions": example_format.input_shape[0],
        "size": example_format.num_outputs,
        "padding": example_format.labels.padding,
        "oov": example_format.labels.oov,
        "vocabulary": list(example_format.class_names) or None,
        "labels": [escape_hidden(shown.get(name, name)) for name in names],
        "sample": {"indices": sample.tolist(), "labels": data.test_y[sample].tolist()},
    }


def describe_task(data: FederatedData, sample: np.ndarray) -> dict[str, Any]:
    """How the page's scripts read the outputs: as classes, or as numbers that they show as they are.

    Numbers have names, and the truth of each example in words; those of a regression are in the labels' unit.
    """
    example_format, labels = data.format, data.format.labels
    if labels.is_by_class:
        return {"answers": "two_classes" if example_format.num_outputs == 1 else "classes"}
    names = list(example_format.class_names) or [f"output {i + 1}" for i in range(example_format.num_outputs)]
    rows = data.test_y[sample].reshape(len(sample), -1)
    if labels.task == REGRESSION:
        truths = [", ".join(f"{value:.6g}" for value in row) for row in rows]
    else:
        truths = [", ".join(name for name, has in zip(names, row, strict=True) if has) or "none" for row in rows]
    # A format without scale and offset has the labels as they are.
    ones = (1.0,) * example_format.num_outputs
    return {
        "answers": "numbers",
        "labels": list(map(escape_hidden, names)),
        "truths": list(map(escape_hidden, truths)),
        "outputScale": list(labels.scale or ones),
        "outputOffset": list(labels.offset or (0.0,) * example_format.num_outputs),
    }


def describe_data(data: FederatedData, sample: np.ndarray, section: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's scripts need to know of the examples."""
    example_format = data.format
    texts = ("name", "unit")
    features = [
        {key: escape_hidden(value) if key in texts else value for key, value in fact.items()}
        for fact in describe_features(data, section)
    ]
    groups = [
        {**group, "name": escape_hidden(group["name"]), "values": list(map(escape_hidden, group["values"]))}
        for group in list_groups(example_format)
    ]
    return {
        "shape": list(example_format.input_shape),
        "dtype": example_format.input_dtype,
        "scale": example_format.preprocessing.scale,
        "offset": example_format.preprocessing.offset,
        "labels": list(map(escape_hidden, example_format.class_names)),
        "image": describe_image(data),
        "form": name_layout(example_format),
        "features": features,
        GROUPS: groups,
        "sample": {"indices": sample.tolist(), "labels": data.test_y[sample].tolist()},
        **describe_task(data, sample),
    }


def assemble_page(title: str, content: Mapping[str, Any], assets: Mapping[str, bytes], kind: str) -> str:
    """The page's HTML.

    Its policy lets a browser run the scripts in it, known by their digests, and nothing else: neither a script that a
    class name would smuggle in, nor a request to anywhere.

    Args:
      title: heading of the page.
      content: what its scripts read; JSON.
      assets: by name, what they unpack.
      kind: of the page, one of `SCRIPTS_OF`.
    """
    # The digest is of all between the tags, the line break behind the first one as well.
    style = f"\n{(SOURCES / 'page.css').read_text(encoding='utf-8')}"
    joined = join_scripts(SOURCES, SCRIPTS_OF[kind])
    wrapped = wrap_library((RUNTIME / LIBRARY).read_text(encoding="utf-8"))
    library, script = (f"\n{protect_script(text)}\n" for text in (wrapped, joined))
    run = [library, script, *(assets[f"runtime-{name}-script"].decode() for name in BUILDS)]
    return render(
        f"tflite/web/{kind}page.html.j2",
        title=escape_hidden(title),
        policy=format_policy(run, compute_digest(style), "'wasm-unsafe-eval'"),
        style=style,
        version=read_version(RUNTIME),
        licence=(SOURCES / "apache-2.0.txt").read_text(encoding="utf-8"),
        assets=[embed_packed(name, binary) for name, binary in assets.items()],
        content=content,
        library=library,
        script=script,
    )
