"""What "learned nothing" means where the next token is predicted: two tables that a model should beat."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData
from datasets.label_format import NEXT_TOKEN
from datasets.token_baselines import compute_token_baselines
from launch.progress import say
from launch.runs.columns import TOKEN_BASELINES
from launch.runs.task_columns import read_task_columns

UNIGRAM, BIGRAM = "unigram_accuracy", "bigram_accuracy"  # as `compute_token_baselines` calls them


def measure_text_baselines(data: FederatedData, clients: Sequence[ClientFiles]) -> dict[str, float]:
    """Accuracies on the global test set of tables that are counted from these clients' train splits; {} of no text.

    The clients should be a sample that is quick to read: a table of two tokens needs few of them.
    """
    if data.labels.task != NEXT_TOKEN:
        return {}
    train = (data.read_split(client, "train") for client in clients)
    return compute_token_baselines(train, (data.test_x, data.test_y), data.labels)


def say_text_baselines(summary: Mapping[str, Any]) -> None:
    """Says what the tables reach, and so if the model does not beat them; nothing of a run that is not of text."""
    baselines = summary.get(TOKEN_BASELINES)
    if not baselines:
        return
    unigram, bigram = baselines[UNIGRAM], baselines[BIGRAM]
    say(f"text     without a model: always the most frequent token {unigram:.4f}, the most frequent one after the last "
        f"token {bigram:.4f}")  # fmt: skip
    task = read_task_columns(summary)
    reached = summary["final"][task.test]
    if reached is None or np.isnan(reached) or reached <= unigram:
        say("note     the model has learned nothing: it does not beat the most frequent token; lower the rate, or give "
            "more --rounds")  # fmt: skip
    elif reached <= bigram:
        say("note     the model has not learned more than which token follows which: give more --rounds")
