"""`export/page.html` of a text model: a person types, and sees what comes next.

The page is that of other models (`web_page`) with a template and scripts of its own. What tokens mean is known
from the run's class names, one text a token. Four spellings mean no text: "<pad>" padding, "<oov>" what is in no
vocabulary, "<bos>" and "<eos>" the beginning and the end of a text. Without names, the page takes token ids.

Imports no TensorFlow.
"""

from typing import Any

import numpy as np

from datasets.federated_data import FederatedData
from datasets.label_format import NEXT_TOKEN
from launch.runs.shown_text import escape_hidden

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
    return data.format.takes_tokens and data.format.labels.task == NEXT_TOKEN


def name_tokens(data: FederatedData) -> list[str]:
    """What the page calls each token."""
    example_format = data.format
    names = list(example_format.class_names) or list(map(str, range(example_format.num_outputs)))
    shown = {**VISIBLE, **SPECIAL} if example_format.class_names else {}
    return [escape_hidden(shown.get(name, name)) for name in names]


def describe_text(data: FederatedData, sample: np.ndarray) -> dict[str, Any]:
    """What the page's scripts need to know of the tokens."""
    example_format = data.format
    return {
        "positions": example_format.input_shape[0],
        "size": example_format.num_outputs,
        "padding": example_format.labels.padding,
        "oov": example_format.labels.oov,
        "vocabulary": list(example_format.class_names) or None,
        "labels": name_tokens(data),
        "sample": {"indices": sample.tolist(), "labels": data.test_y[sample].tolist()},
    }
