"""A model card for a person: as rows of a title and a text, and as a Markdown page. Imports no TensorFlow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from launch.runs.shown_text import escape_hidden, escape_markdown
from launch.tflite.markdown_table import format_table, join_table

Card = Mapping[str, Any]
FileFacts = Mapping[str, Any]
MOST_CLASSES = 12  # in a table; of more classes the worst are named
UNMEASURED = "not measured in this form"
EXPLANATION = (
    "Test accuracy: on the global test set. Clients: each on its own test split, which may be small; the worst tenth: "
    "their mean. Quantization: points against the Keras model that the file was made from. Bytes: without the "
    "card that is in the file. Latency: median on one thread of the machine that made this ({machine})."
)


def card_rows(card: Card) -> list[tuple[str, str]]:
    """(title, text) for everything that a card says: first what holds for all its files, then each file.

    Args:
      card: as in a file (`embedded_card.read_card`) or in an export's `card.json`.
    """
    rows = list(_list_answers(card))
    for file in card["files"]:
        rows.append(("File", f"{file['file']}: {file['format']} of the model {file['model']}"))
        rows += _list_file_rows(file, card["classes"], is_alone=len(card["files"]) == 1)
    return [(title, escape_hidden(text)) for title, text in rows]


def _list_answers(card: Card) -> Iterator[tuple[str, str]]:
    """What a reader asks first; where the files differ, from the worst to the best."""
    training, data_set = card["training"], card["data_set"]
    yield "What is it?", card["task"]
    yield from _list_results(card)
    yield "May it be sold?", card["may_be_sold"]
    yield "Must not be used for", " ".join(card["must_not_be_used_for"])
    yield "Classes", ", ".join(card["classes"])
    clients = f"{training['rounds']:,} rounds, {training['clients']:,} clients, {training['examples']:,} train examples"
    yield "Trained", f"{card['title']}; {clients}; {training['how']}."
    yield "Data", f"{data_set['name']}. Source: {data_set['source'] or 'unknown'}."


def _list_results(card: Card) -> Iterator[tuple[str, str]]:
    measured = list_measured(card)
    if not measured:
        yield "How good is it?", UNMEASURED
        return
    results = [file["accuracy"] for file in measured]
    right = _span(result["global"] for result in results)
    yield "How good is it?", f"{right} right of {results[0]['test_examples']:,} examples of the global test set"
    counts = {result["clients"] for result in results}
    if counts == {0}:
        yield "For the worst clients?", "nobody knows: no client uses it, or none has a test split of its own"
    else:
        worst, mean = (_span(result[f"{name}_of_clients"] for result in results) for name in ("worst_tenth", "mean"))
        number = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
        yield "For the worst clients?", f"worst tenth {worst}, mean {mean} of {number} clients on their own test splits"
    worst_classes = [min(zip(file["accuracy_by_class"], card["classes"], strict=True), key=_rank) for file in measured]
    name = " or ".join(dict.fromkeys(name for _, name in worst_classes))
    yield "For the worst class?", f"class {name}: {_span(each['accuracy'] for each, _ in worst_classes)}"


def list_measured(card: Card) -> list[FileFacts]:
    """The files of a card that were measured: all but those for on-device training."""
    return [file for file in card["files"] if "accuracy" in file]


def _list_file_rows(file: FileFacts, classes: Sequence[str], is_alone: bool) -> Iterator[tuple[str, str]]:
    if "accuracy" not in file:
        yield "Accuracy", UNMEASURED
    else:
        if not is_alone:
            yield "Accuracy", _percent(file["accuracy"]["global"])
        yield "Worst clients", _name_worst_clients(file)
        yield "By class", _describe_classes(file, classes)
        quantization, latency = file["quantization"], file["latency_ms"]
        yield (
            "Quantization",
            (
                f"{100 * quantization['difference']:+.2f} points against the Keras model; the same class for "
                f"{_percent(quantization['agreement'])} of the test set"
            ),
        )
        if quantization.get("warning"):  # files of earlier versions have none
            yield "Warning", f"It {quantization['warning']}."
        times = f"median {latency['median']:.3f} ms, p95 {latency['p95']:.3f} ms on {latency['threads']} thread"
        yield "Latency", f"{times} of the machine that made it, not of a phone"
    yield "Size", f"{file['model_bytes']:,} bytes, and this card"


def _name_worst_clients(file: FileFacts) -> str:
    worst = file["accuracy"]["worst_clients"]
    texts = (f"{each['client']} {_percent(each['accuracy'])} of {each['test_examples']:,}" for each in worst)
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


def _span(shares: Iterable[float | None]) -> str:
    known = [share for share in shares if share is not None]
    texts = dict.fromkeys(map(_percent, (min(known), max(known)))) if known else [_percent(None)]
    return " to ".join(texts)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f}\u00a0%"  # no line may break there


def format_card_page(card: Card) -> str:
    """The card as Markdown: the questions first, then a table of the files, then what differs between them."""
    measured = list_measured(card)
    parts = [
        f"# Model card: {escape_markdown(card['title'])}",
        join_table(
            [
                ("question", "answer"),
                *((f"**{title}**", escape_markdown(text)) for title, text in _list_answers(card)),
            ]
        ),
        "## Files",
        EXPLANATION.format(machine=escape_markdown(card["measured_on"])),
        format_table(_tabulate_files(card["files"])),
    ]
    warnings = {file["file"]: file["quantization"].get("warning") for file in measured}
    if any(warnings.values()):
        parts += ["## Warnings", _format_grouped({file: f"{text}." for file, text in warnings.items() if text})]
    if measured:
        worst = {file["file"]: _name_worst_clients(file) for file in measured}
        parts += ["## The worst clients", _format_grouped(worst)]
        parts += ["## Accuracy by class", _format_classes(measured, card["classes"])]
    return "\n\n".join(parts) + "\n"


def _tabulate_files(files: Sequence[FileFacts]) -> list[tuple[str, ...]]:
    heads = (
        *("file", "test accuracy", "mean of clients", "worst tenth of clients", "clients", "quantization (points)"),
        *("same class as Keras", "bytes", "latency (ms)"),
    )
    return [heads, *map(_tabulate_file, files)]


def _tabulate_file(file: FileFacts) -> tuple[str, ...]:
    size = f"{file['model_bytes']:,}"
    if "accuracy" not in file:
        return (file["file"], UNMEASURED, *[""] * 5, size, "")
    accuracy, quantization = file["accuracy"], file["quantization"]
    return (
        file["file"],
        _percent(accuracy["global"]),
        _percent(accuracy["mean_of_clients"]),
        _percent(accuracy["worst_tenth_of_clients"]),
        str(accuracy["clients"]),
        f"{100 * quantization['difference']:+.2f}",
        _percent(quantization["agreement"]),
        size,
        f"{file['latency_ms']['median']:.3f}",
    )


def _format_grouped(texts: Mapping[str, str]) -> str:
    """A list in which files with the same text share a line."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return "\n".join(f"- {escape_markdown(', '.join(group))}: {escape_markdown(text)}" for text, group in names.items())


def _format_classes(files: Sequence[FileFacts], classes: Sequence[str]) -> str:
    if len(classes) > MOST_CLASSES:
        return _format_grouped({file["file"]: _describe_classes(file, classes) for file in files})
    numbers = [str(each["test_examples"]) for each in files[0]["accuracy_by_class"]]
    rows = [(file["file"], *(_percent(each["accuracy"]) for each in file["accuracy_by_class"])) for file in files]
    return format_table([("file", *classes), ("test examples", *numbers), *rows])
