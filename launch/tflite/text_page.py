"""`export/page.html` of a text model: a person types, and sees what comes next.

The page is made as that of other models (`web_page`), of a template and scripts of its own. What tokens mean is known
from the run's class names, one text a token. Four spellings mean no text: "<pad>" padding, "<oov>" what is in no
vocabulary, "<bos>" and "<eos>" the beginning and the end of a text. Without names, the page takes token ids.

Imports no TensorFlow.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.federated_data import FederatedData
from datasets.label_format import NEXT_TOKEN
from launch.runs.columns import WEB_PAGE
from launch.runs.shown_text import escape_hidden
from launch.runs.tables import write_text
from launch.tflite.export_report import ExportReport
from launch.tflite.features import choose_sample
from launch.tflite.web_page import assemble_page, choose_rows, list_models, pack_runtime, read_runtime

# Each may use those before it.
TEXT_SCRIPTS = (
    *("maths.js", "examples.js", "runtime.js", "answer.js"),
    *("text.js", "token_file.js", "text_main.js"),
)
TEXT_TEMPLATE = "text_page.html"
# Blanks, which a reader would not see.
VISIBLE = {" ": "␣ (space)", "\\n": "↵ (new line)", "\\r": "carriage return", "\\t": "⇥ (tab)"}
VISIBLE |= {"\n": "↵ (new line)", "\r": "carriage return", "\t": "⇥ (tab)"}
SPECIAL = {
    "<pad>": "padding",
    "<oov>": "what is not in the vocabulary",
    "<bos>": "the beginning",
    "<eos>": "the end",
}


def has_text_page(data: FederatedData) -> bool:
    """Whether a model of these data reads tokens and says which come next."""
    return data.takes_tokens and data.labels.task == NEXT_TOKEN


def name_tokens(data: FederatedData) -> list[str]:
    """What the page calls each token."""
    names = list(data.class_names) or list(map(str, range(data.num_outputs)))
    shown = {**VISIBLE, **SPECIAL} if data.class_names else {}
    return [escape_hidden(shown.get(name, name)) for name in names]


def write_text_page(
    folder: pathlib.Path,
    report: ExportReport,
    data: FederatedData,
    predictions: Mapping[str, np.ndarray],
    formats: Sequence[str] = (),
    runtime_dir: pathlib.Path | None = None,
) -> None:
    """Writes the page beside the files that are in it.

    Args:
      folder: of the export, with a .tflite for each file of the report, its card in it.
      report: what was measured.
      data: the test set and the names of the tokens.
      predictions: by the file's name, the token that it says follows at each position, int32 (examples, positions).
      formats: those that go into the page; empty for those of PAGE_FORMATS that were exported.
      runtime_dir: where the package LiteRT.js is; None for where `make web` puts it.
    """
    runtime = read_runtime(runtime_dir)
    sample = choose_sample(data.test_y)
    assets = {"examples": np.ascontiguousarray(data.test_x[sample].astype(np.int32)).tobytes(), **pack_runtime(runtime)}
    models = list_models(folder, choose_rows(report, formats), assets, lambda file: predictions[file][sample].tolist())
    content = describe_text(data, sample) | {"models": models}
    title = f"{report.title}, round {report.rounds}"
    page = assemble_page(title, content, assets, runtime, TEXT_SCRIPTS, TEXT_TEMPLATE)
    write_text(folder / WEB_PAGE, page)


def describe_text(data: FederatedData, sample: np.ndarray) -> dict[str, Any]:
    """What the page's scripts need to know of the tokens."""
    return {
        "positions": data.input_shape[0],
        "size": data.num_outputs,
        "padding": data.labels.padding,
        "oov": data.labels.oov,
        "vocabulary": list(data.class_names) or None,
        "labels": name_tokens(data),
        "sample": {"indices": sample.tolist(), "labels": data.test_y[sample].tolist()},
    }
