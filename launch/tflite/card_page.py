"""A model card for a person: as rows of a title and a text, and as a Markdown page. Imports no TensorFlow."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets.class_weights import describe_class_weights
from datasets.example_format import GROUPS, WEIGHTS
from launch.console.shown_text import describe_filled, escape_hidden
from launch.pages.templates import render
from launch.runs.columns import ACCURACY, CLASS_WEIGHTS, FILLED
from launch.runs.task_columns import KIND, PERCENT, TASK, TaskColumns, find_task_columns
from launch.tflite.features import describe_in_words

Card = Mapping[str, Any]
FileFacts = Mapping[str, Any]
FEATURES = "features"
LOCAL_TRAINING = "local_training"  # of a training file's JSON and of its card
VOCABULARY = "vocabulary"  # of a model of tokens: the text of each by its number
MOST_TOKENS = 100  # of which are named
MOST_CLASSES = 12  # in a table; of more classes the worst are named
UNMEASURED = "not measured in this form"


def card_rows(card: Card) -> list[tuple[str, str]]:
    """(title, text) for everything that a card says: first what holds for all its files, then each file.

    Args:
      card: as in a file (`embedded_card.read_card`) or in an export's `card.json`.
    """
    rows = list(_list_answers(card))
    task = read_task(card)
    for file in card["files"]:
        rows.append(("File", f"{file['file']}: {file['format']} of the model {file['model']}"))
        rows += _list_file_rows(file, card["classes"], task, is_alone=len(card["files"]) == 1)
    return [(title, escape_hidden(text)) for title, text in rows]


def read_task(card: Card) -> TaskColumns:
    """What the results in a card are called; a card that says nothing of it is of classification."""
    return find_task_columns(card.get(KIND))


def _list_answers(card: Card) -> Iterator[tuple[str, str]]:
    """What a reader asks first; where the files differ, from the worst to the best."""
    training, data_set = card["training"], card["data_set"]
    yield "What is it?", card[TASK]
    yield from _list_results(card)
    yield "May it be sold?", card["may_be_sold"]
    yield "Must not be used for", " ".join(card["must_not_be_used_for"])
    if card["classes"]:
        yield "Classes" if read_task(card).kind.is_labelled_by_class else "Labels", ", ".join(card["classes"])
    if VOCABULARY in card:
        names = card[VOCABULARY]
        more = f", and {len(names) - MOST_TOKENS:,} more" if len(names) > MOST_TOKENS else ""
        shown = " ".join("␣" if name == " " else name for name in names[:MOST_TOKENS])
        yield "Vocabulary", f"{len(names):,} tokens: {shown}{more}"
    clients = f"{training['rounds']:,} rounds, {training['clients']:,} clients, {training['examples']:,} train examples"
    if FEATURES in card:  # pictures and tokens have none
        yield "Features", f"{describe_in_words(card[FEATURES], card.get(GROUPS, ()))}."
    if FILLED in card:
        yield "Filled in", f"{describe_filled(card[FILLED])}."
    if "input" in card:
        yield "What goes in", card["input"]
    if "outputs" in card:
        yield "How to read its outputs", card["outputs"]
    yield "Trained", f"{card['title']}; {clients}; {training['how']}."
    if WEIGHTS in training:
        yield "Examples weighted", f"{training[WEIGHTS]}."
    if "loss" in training:
        yield "Loss in training", f"{training['loss']}, of whoever trained it."
    if weights := training.get(CLASS_WEIGHTS):
        yield (
            "Class weights",
            f"Losses in training were multiplied: {describe_class_weights(list(weights), list(weights.values()))}.",
        )
    yield "Data", f"{data_set['name']}. Source: {data_set['source'] or 'unknown'}."


def _list_results(card: Card) -> Iterator[tuple[str, str]]:
    measured, task = list_measured(card), read_task(card)
    if not measured:
        yield "How good is it?", UNMEASURED
        return
    results = [file[task.metric.name] for file in measured]
    reached = _span((result["global"] for result in results), task)
    number = f"{results[0]['test_examples']:,} examples of the global test set"
    direction = "" if task.metric.larger_is_better else ", the lower the better"
    right = f"{task.title} {reached} on {number}"
    if task.metric.name == ACCURACY:
        tokens = "of the tokens " if task.kind.weighs_examples else ""
        right = f"{reached} {tokens}right {'in' if tokens else 'of'} {number}"
    yield "How good is it?", right + direction
    counts = {result["clients"] for result in results}
    if counts == {0}:
        yield "For the worst clients?", "nobody knows: no client uses it, or none has a test split of its own"
    else:
        worst, mean = (
            _span((result[f"{name}_of_clients"] for result in results), task) for name in ("worst_tenth", "mean")
        )
        # Files of several models have clients of their own.
        number = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
        yield "For the worst clients?", f"worst tenth {worst}, mean {mean} of {number} clients on their own test splits"
    if not task.kind.is_labelled_by_class:
        return
    worst_classes = [min(zip(file["accuracy_by_class"], card["classes"], strict=True), key=_rank) for file in measured]
    name = " or ".join(dict.fromkeys(name for _, name in worst_classes))
    yield "For the worst class?", f"class {name}: {_span((each['accuracy'] for each, _ in worst_classes), task)}"


def list_measured(card: Card) -> list[FileFacts]:
    """The files of a card that were measured: all but those for on-device training."""
    return [file for file in card["files"] if read_task(card).metric.name in file]


def _list_file_rows(
    file: FileFacts, classes: Sequence[str], task: TaskColumns, is_alone: bool
) -> Iterator[tuple[str, str]]:
    name = task.metric.name
    if name not in file:
        yield task.heading, UNMEASURED
        if LOCAL_TRAINING in file:  # cards of older exports have none
            yield "A step of training", f"{describe_local_training(file[LOCAL_TRAINING])}."
    else:
        # Of a file alone, `How good is it?` has said so.
        if not is_alone:
            yield task.heading, _format(file[name]["global"], task)
        yield "Worst clients", _name_worst_clients(file, task)
        if task.kind.is_labelled_by_class:
            yield "By class", _describe_classes(file, classes)
        quantization, latency = file["quantization"], file["latency_ms"]
        difference = f"{quantization['difference']:+.4g} in {task.title}"
        if task.metric.unit == PERCENT:
            difference = f"{100 * quantization['difference']:+.2f} points"
        alike = f"the same class for {_percent(quantization.get('agreement'))} of the test set"
        if "agreement" not in quantization:
            alike = f"outputs at most {quantization['largest_output_difference']:.2g} apart on the test set"
        yield "Quantization", f"{difference} against the Keras model; {alike}"
        if quantization["warning"]:
            yield "Warning", f"It {quantization['warning']}."
        spread = f"half of the runs {latency['lower_quartile']:.3f} to {latency['upper_quartile']:.3f} ms"
        times = f"median {latency['median']:.3f} ms, {spread} on {latency['threads']} thread"
        yield "Latency", f"{times} of the machine that made it, not of a phone"
    yield "Size", f"{file['model_bytes']:,} bytes, and this card with its metadata"


def describe_local_training(facts: Mapping[str, Any]) -> str:
    """What is said of a step where a person reads it, from the fields of a `PhoneTraining`."""
    constants = [f"{name} {facts[name]:g}" for name in ("beta_1", "beta_2", "epsilon") if name in facts]
    parts = [facts["optimizer"] + (f" ({', '.join(constants)})" if constants else "")]
    parts += [f"momentum {facts['momentum']:g}"] if facts["momentum"] else []
    parts += [f"weight decay {facts['weight_decay']:g} of kernels"] if facts["weight_decay"] else []
    if facts["proximal_weight"]:
        parts.append(f"pull {facts['proximal_weight']:g} to the weights that were set")
    if facts["learning_rate"] is not None:
        parts.append(f"learning rate in the run {facts['learning_rate']:.6g}")
    left_out = f"; not in the file: {'; '.join(facts['not_in_file'])}" if facts["not_in_file"] else ""
    return ", ".join(parts) + left_out


def _name_worst_clients(file: FileFacts, task: TaskColumns) -> str:
    name = task.metric.name
    worst = file[name]["worst_clients"]
    texts = (f"{each['client']} {_format(each[name], task)} of {each['test_examples']:,}" for each in worst)
    return ", ".join(texts) or "none"


def _describe_classes(file: FileFacts, classes: Sequence[str]) -> str:
    named = list(zip(file["accuracy_by_class"], classes, strict=True))
    chosen = sorted(named, key=_rank)[:MOST_CLASSES] if len(named) > MOST_CLASSES else named
    start = "the worst: " if len(chosen) < len(named) else ""
    return start + ", ".join(f"{name} {_percent(each['accuracy'])}" for each, name in chosen)


def _rank(named: tuple[Mapping[str, Any], str]) -> float:
    """The accuracy of a class; those without test examples come last."""
    accuracy = named[0]["accuracy"]
    return 2 if accuracy is None else accuracy


def _span(values: Iterable[float | None], task: TaskColumns) -> str:
    """The worst and the best of some values of the main metric."""
    # A class without test examples has None, and so has a model without clients.
    known = sorted((value for value in values if value is not None), key=lambda value: task.sign * value)
    # The worst and the best may be the same, or look so.
    return " to ".join(dict.fromkeys(_format(value, task) for value in known[:1] + known[-1:])) or _percent(None)


def _format(value: float | None, task: TaskColumns) -> str:
    """A value of the main metric: shares in percent."""
    return _percent(value) if task.metric.unit == PERCENT else task.format(value)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f}\u00a0%"  # no line may break there


def format_card_page(card: Card) -> str:
    """The card as Markdown: the questions first, then a table of the files, then what differs between them."""
    measured, task = list_measured(card), read_task(card)
    warnings = {file["file"]: file["quantization"]["warning"] for file in measured}
    steps = {file["file"]: file[LOCAL_TRAINING] for file in card["files"] if LOCAL_TRAINING in file}
    by_class = measured if task.kind.is_labelled_by_class else []
    has_table = len(card["classes"]) <= MOST_CLASSES
    worst_classes = {file["file"]: _describe_classes(file, card["classes"]) for file in by_class}
    return render(
        "tflite/card.md.j2",
        card=card,
        task=task,
        is_share=task.metric.unit == PERCENT,
        answers=_list_answers(card),
        unmeasured=UNMEASURED,
        show=functools.partial(_format, task=task),
        percent=_percent,
        warnings=_group({name: f"{text}." for name, text in warnings.items() if text}),
        steps=_group({name: f"{describe_local_training(facts)}." for name, facts in steps.items()}),
        worst_clients=_group({file["file"]: _name_worst_clients(file, task) for file in measured}),
        tabulated=by_class if has_table else [],
        worst_classes=[] if has_table else _group(worst_classes),
    )


def _group(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """(names, text) of files, of which those with the same text are one."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return [(", ".join(group), text) for text, group in names.items()]
