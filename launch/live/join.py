"""Takes part in live rounds: `python join.py "http://127.0.0.1:8700/#<token>" --data=mine.csv`.

One file, whose only packages are ai-edge-litert, NumPy and aiohttp; it needs nothing else of the suite. Examples stay
on this machine: what leaves it are their number, and what training has changed of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import datetime
import difflib
import gzip
import hashlib
import importlib.util
import io
import itertools
import json
import math
import os
import pathlib
import platform
import re
import secrets
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

if os.name == "nt":
    import msvcrt
else:
    import fcntl
with contextlib.suppress(ImportError):  # `main` says what is missing
    import numpy as np
with contextlib.suppress(ImportError):
    import aiohttp

VERSION = 2  # of the protocol (docs/live.md)
DTYPES = ("<f4", "<i4", "<u2", "<u4", "|u1")
MOST_HEADER_BYTES, MOST_BYTES = 2**20, 2**29  # of a header, and of a message or a file


class JoinError(ValueError):
    """Why this machine cannot take part, in one line for the person at it."""


class Message(NamedTuple):
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] = {}) -> bytes:
    """The bytes of a message."""
    whole = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(arrays[name].shape)] for name, array in whole.items()]
    text = json.dumps({**header, "arrays": listed}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    contents = [array.tobytes() for array in whole.values()]
    return b"".join([struct.pack("<I", len(text)), text, *(each + bytes(-len(each) % 4) for each in contents)])


def unpack(content: bytes) -> Message:
    """The message in these bytes. Raises JoinError."""
    arrays: dict[str, np.ndarray] = {}
    try:
        (size,) = struct.unpack_from("<I", content)
        place = 4 + size
        if size > min(MOST_HEADER_BYTES, len(content) - 4):
            raise ValueError
        header = json.loads(content[4:place])
        for name, dtype, shape in header.pop("arrays"):
            count = math.prod(shape)
            is_shape = len(shape) <= 8 and all(type(each) is int and 0 <= each < 2**31 for each in shape)
            if not (is_shape and dtype in DTYPES and isinstance(name, str)) or name in arrays:
                raise ValueError
            arrays[name] = np.frombuffer(content, dtype, count, place).reshape(shape)
            place += arrays[name].nbytes + -arrays[name].nbytes % 4
        if place != len(content) or not isinstance(header["type"], str):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, struct.error):
        raise JoinError("the server sent what is no message of live rounds; is the address right?") from None
    return Message(header, arrays)


def say(text: str, file: Any = None) -> None:
    """Prints a line; what a server sent moves no cursor."""
    print("".join(each if each.isprintable() else "?" for each in text[:1000]), file=file, flush=True)


TRUTHS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
LARGEST = (2 - 2**-23) * 2.0**127  # that float32 holds
SEPARATORS = ",;\t|"
MOST_SHOWN = 60  # characters of a value
_ANY_COMMA = re.compile(r"-?\d+,\d+")
# Numbers whose mark can be no other than the decimal one: 1,230 and 1.230 are not.
_COMMA_NUMBER, _POINT_NUMBER = (
    re.compile(rf"-?(?:\d+{mark}(?:\d{{1,2}}|\d{{4,}})|(?:0\d*|\d{{4,}}){mark}\d+)") for mark in (",", r"\.")
)


def load_examples(path: str, description: Mapping[str, Any], key: str = "") -> tuple[np.ndarray, ...]:
    """(train_x, train_y, test_x, test_y) of a file: x float32 (examples, *input_shape), preprocessed; y int32.

    A fifth is held out for tests, drawn by the key of the client. Raises JoinError: the run cannot train on them.
    """
    try:
        arrays = (read_arrays if path.endswith(".npz") else read_table)(path, description)
    except (LookupError, TypeError, AttributeError):
        raise JoinError("the server describes the examples of its run in a way that cannot be used here") from None
    return arrays if len(arrays) == 4 else hold_out(*arrays, key)


def read_arrays(path: str, description: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """x and y of an .npz, and test_x and test_y if it has them, as `load_examples` gives them. Raises JoinError."""
    if description["kind"] != "arrays":
        raise JoinError(f"{path}: arrays, but the run trains on a table; give a .csv with its columns")
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in ("x", "y", "test_x", "test_y") if name in file}
    except Exception as error:  # of what is no archive NumPy raises anything
        raise JoinError(f"{path}: cannot be read as .npz ({type(error).__name__})") from None
    if list(arrays) not in (["x", "y"], ["x", "y", "test_x", "test_y"]):
        raise JoinError(f"{path}: has {', '.join(arrays) or 'neither'}; expected x and y, or test_x and test_y, too")
    shape, dtype, classes = description["input_shape"], np.dtype(description["input_dtype"]), description["classes"]
    parts, places = [], {each: place for place, each in enumerate(classes)}
    for x, y in zip(*[iter(arrays.values())] * 2, strict=True):
        if x.dtype.kind not in "fiub" or y.ndim != 1 or x.shape != (*y.shape, *shape) or not len(y):
            found = f"{x.dtype} of shape {x.shape} and labels of shape {y.shape}"
            raise JoinError(f"{path}: {found}; expected numbers of shape (examples, *{shape}) and a label each")
        with np.errstate(all="ignore"):
            stored = x.astype(dtype)
        if not np.isfinite(stored).all() or (dtype.kind in "iu" and (stored != x).any()):
            raise JoinError(f"{path}: has numbers that {dtype} does not hold, as the run's are; repair them")
        labels = np.array([places.get(str(each), -1) for each in y]) if y.dtype.kind in "US" else y
        if labels.dtype.kind not in "iu" or not 0 <= labels.min() <= labels.max() < len(classes):
            expected = f"0 to {len(classes) - 1}, or {_list_names(classes)}"
            raise JoinError(f"{path}: has labels that are no class; expected {expected}")
        scaled = stored.astype(np.float32) * np.float32(description["scale"]) + np.float32(description["offset"])
        parts += [scaled, labels.astype(np.int32)]
    return tuple(parts)


def hold_out(x: np.ndarray, y: np.ndarray, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The examples, a fifth of them, rounded down, as the last two arrays. Each part keeps its order."""
    if len(y) < 5:
        say(f"{_count_rows(len(y))}: too few to hold some out for tests; all are trained on")
    is_test = np.zeros(len(y), bool)
    order = np.random.default_rng(list(hashlib.sha256(key.encode()).digest())).permutation(len(y))
    is_test[order[: len(y) // 5]] = True
    return x[~is_test], y[~is_test], x[is_test], y[is_test]


def digest_description(description: Mapping[str, Any]) -> str:
    """What names a description, 64 hex digits."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_table(path: str, description: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a table of text as the organiser's reader has them: x float32 (rows, features, 1), y int32 (rows,).

    Says what is left out. Raises JoinError: a column is missing, or a value is of no use; it names the line.
    """
    if description["kind"] != "table":
        shape = " x ".join(map(str, description["input_shape"]))
        raise JoinError(f"{path}: a table, but the run trains on arrays of {shape} numbers; give an .npz with x and y")
    names, rows, separator = _read_rows(path)
    features, label = description["columns"], description["label"]
    columns = [*features, label]
    places = [_find_column(path, names, column["name"]) for column in columns]
    used = {*(names[place] for place in places), *description["left_out"]}
    if others := [name for name in names if name not in used]:
        say(f"{path}: left out, since the run does not use them: {', '.join(others)}")
    words = frozenset(description["missing_words"])
    numbers = {number for word in words if not math.isnan(number := _read_number(word))}
    are_numbers = [column.get("kind") == "number" or bool(column.get("numbers")) for column in columns]
    found = {fields[at] for _, fields in rows for at in itertools.compress(places, are_numbers)}
    has_comma = _has_decimal_comma(description["decimal_mark"], separator, found)

    def is_missing(text: str) -> bool:
        lowered = text.lower()
        return not text or lowered in words or (lowered not in TRUTHS and _read_number(text, has_comma) in numbers)

    if description["missing"] == "drop":
        kept = [row for row in rows if not any(is_missing(row[1][at]) for at in places)]
        if len(kept) < len(rows):
            left_out = f"{len(rows) - len(kept):,} are left out, since a value is missing"
            say(f"{path}: of {_count_rows(len(rows))}, {left_out}")
        rows = kept
    if not rows:
        raise JoinError(f"{path}: no row is left to train on, expected at least one")
    lines, encoded = [line for line, _ in rows], []
    for at, column in zip(places, columns, strict=True):
        texts = [fields[at] for _, fields in rows]
        missing = np.array([is_missing(text) for text in texts])
        if missing.any() and (column is label or description["missing"] != "median"):
            raise JoinError(
                f"{path}, line {lines[int(missing.argmax())]}: column {column['name']!r} has no value "
                f"({_count_rows(missing.sum())} in all), and the run fills none in; fill it in, or take such rows out"
            )
        encode = _find_classes if column is label else _encode_categories if "values" in column else _encode_numbers
        encoded.append(encode(Cells(path, lines, texts, missing, has_comma), column))
    x = np.concatenate(encoded[:-1], axis=1)[..., np.newaxis]
    return x * np.float32(description["scale"]) + np.float32(description["offset"]), encoded[-1]


class Cells(NamedTuple):
    """A column of a file: the line of each row, its text and whether it is missing, and whether 1,5 is a number."""

    path: str
    lines: list[int]
    texts: list[str]
    missing: np.ndarray
    has_comma: bool

    def locate(self, row: int, column: Mapping[str, Any]) -> str:
        """Where a value is, and the value."""
        role = "column" if "kind" in column else "label column"
        return f"{self.path}, line {self.lines[row]}: {role} {column['name']!r} has {self.texts[row][:MOST_SHOWN]!r}"


def _encode_numbers(cells: Cells, column: Mapping[str, Any]) -> np.ndarray:
    values = np.array([_read_number(text, cells.has_comma) for text in cells.texts])
    values[cells.missing] = 0
    wrong = ~(np.abs(values) <= LARGEST)  # also of NaN
    if wrong.any():
        row = int(wrong.argmax())
        kind = "a date, and no number" if re.match(r"\d+[-./:]\d+[-./:]\d+", cells.texts[row]) else "no number"
        kind = kind if math.isnan(values[row]) else "beyond the numbers of 32 bits"
        mark = "comma" if cells.has_comma else "point"
        mark = f", all with a decimal {mark}" * bool(re.search("[0-9]", cells.texts[row]))
        raise JoinError(f"{cells.locate(row, column)}, {kind}; write numbers alone{mark}")
    encoded = values.astype(np.float32)
    encoded[cells.missing] = column["fill"]
    return encoded[:, np.newaxis]


def _encode_categories(cells: Cells, column: Mapping[str, Any]) -> np.ndarray:
    values, usual = column["values"], column["most_frequent"]
    places = {value.strip(): place for place, value in enumerate(values)}
    places |= {text.strip(): places[value.strip()] for text, value in column["joined"].items()}
    if unknown := [row for row in np.flatnonzero(~cells.missing) if cells.texts[row] not in places]:
        say(
            f"{cells.locate(unknown[0], column)}, which the run does not know; such values, in "
            f"{_count_rows(len(unknown))}, are taken as {values[usual]!r}, its most frequent one"
        )
    places = {text: places.get(text, usual) for text in set(cells.texts)}
    found = np.where(cells.missing, usual, [places[text] for text in cells.texts])
    encoded = found[:, np.newaxis] if column["kind"] == "index" else found[:, np.newaxis] == np.arange(len(values))
    return encoded.astype(np.float32)


def _find_classes(cells: Cells, label: Mapping[str, Any]) -> np.ndarray:
    numbers = {number: place for place, number in enumerate(label["numbers"])}
    places = {text.strip(): place for text, place in label["spellings"].items()}
    found = [numbers.get(_read_number(text, cells.has_comma)) if numbers else places.get(text) for text in cells.texts]
    if None in found:
        row, classes = found.index(None), label["classes"]
        expected = f"expected one of {_list_names(classes)}{_suggest(cells.texts[row], classes)}"
        raise JoinError(f"{cells.locate(row, label)}, which is no class; {expected}")
    return np.array(found, np.int32)


def _find_column(path: str, names: list[str], name: str) -> int:
    if names.count(name) != 1:
        found = f"{names.count(name)} columns are called {name!r}, expected one"
        found = found if name in names else f"no column {name!r}, which the run needs; it has {_list_names(names)}"
        raise JoinError(f"{path}: {found}{_suggest(name, names) if name not in names else ''}")
    return names.index(name)


def _suggest(text: str, names: Sequence[str]) -> str:
    lowered = {each.lower(): each for each in names}
    near = difflib.get_close_matches(text.lower(), lowered, 1)
    return f"; did you mean {lowered[near[0]]}?" if near else ""


def _count_rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")


def _read_number(text: str, has_comma: bool = False) -> float:
    """Of a text without blanks around it, yes and true as 1, no and false as 0; NaN for what is no plain number."""
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    if has_comma:
        text = "" if "." in text else text.replace(",", ".")
    # Python reads 1_000, nan and digits of other scripts as numbers, too.
    if not text.startswith(tuple("0123456789.+-iI")) or "_" in text or not text.isascii():
        return math.nan
    with contextlib.suppress(ValueError):
        return float(text)
    return math.nan


def _has_decimal_comma(mark: str, separator: str, cells: Collection[str]) -> bool:
    """Whether 1,5 is a number: as the run says, or else as the cells of numbers tell."""
    if mark != "auto" or separator == ",":
        return mark == "comma"
    # Semicolons separate since commas are taken; so 1,230 is 1.23 there. Beside tabs it is left open.
    comma = _ANY_COMMA if separator == ";" else _COMMA_NUMBER
    return any(map(comma.fullmatch, cells)) and not any(map(_POINT_NUMBER.fullmatch, cells))


def _read_rows(path: str) -> tuple[list[str], list[tuple[int, list[str]]], str]:
    """(columns, (line in which it begins, fields) of each row, separator) of a file of text, packed by gzip or not."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (OSError, EOFError, zlib.error) as error:
        raise JoinError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if b"\0" in content:
        raise JoinError(f"{path}: no table of text; save it as CSV in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    marked = re.match("sep=([,;\t|])(\r\n|\r|\n)", text, re.IGNORECASE)  # which Excel writes above the names
    text, line = (text[marked.end() :], 2) if marked else (text, 1)
    sample = re.split("\r\n|\r|\n", text)[:200]
    separator = marked[1] if marked else max(SEPARATORS, key=lambda each: _score(sample, each))
    rows, first = [], line
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for fields in reader:
            if fields and rows and len(fields) != len(rows[0][1]):
                raise csv.Error(f"{len(fields)} fields, expected {len(rows[0][1])} as in the first line")
            rows += [(line, [field.strip() for field in fields])] * bool(fields)
            line = first + reader.line_num
    except csv.Error as error:
        raise JoinError(f"{path}, line {line}: no row of the table: {error}") from None
    if len(rows) < 2:
        raise JoinError(f"{path}: no rows below the names of the columns, expected at least one")
    return rows[0][1], rows[1:], separator


def _score(lines: list[str], separator: str) -> tuple[float, int]:
    """How well a separator parts lines: the share with as many fields as the first, and how many these are."""
    widths: list[int] = []
    with contextlib.suppress(csv.Error):  # said when the rows are read
        widths.extend(len(row) for row in csv.reader([f"{line}\n" for line in lines], delimiter=separator) if row)
    share = round(widths.count(widths[0]) / len(widths), 1) if widths else 0.0
    return (share, widths[0]) if widths and widths[0] > 1 else (0.0, 0)


class Examples(NamedTuple):
    """As `load_examples` gives them."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def fit(self, shape: tuple[int, ...], num_classes: int) -> Examples:
        """As the run's file takes them: an axis of size 1 more or less is no other shape."""
        for x, y in (self[:2], self[2:]):
            found = x.dtype, y.dtype, x.shape[:1], math.prod(x.shape[1:])
            is_fine = found == (np.float32, np.int32, y.shape, math.prod(shape))
            if not is_fine or (len(y) and not 0 <= y.min() <= y.max() < num_classes):
                raise JoinError(f"examples of shape {x.shape[1:]} or their labels do not fit the run's, {shape}")
        x, test_x = (each.reshape(len(each), *shape) for each in (self.train_x, self.test_x))
        return self._replace(train_x=x, test_x=test_x)

    def limit(self, most: int, key: str) -> Examples:
        """At most so many to train on, drawn by the key; 0: all."""
        seed = list(hashlib.sha256(f"most {key}".encode()).digest())
        chosen = np.random.default_rng(seed).permutation(len(self.train_y))[: most or None]
        return self._replace(train_x=self.train_x[chosen], train_y=self.train_y[chosen])


class Stopped(Exception):
    """A task is not wanted any more."""


class Trainer:
    """The functions of a training file, by ai-edge-litert's interpreter or TensorFlow's. JoinError: it is none."""

    def __init__(self, content: bytes, interpreter_class: Callable[..., Any]):
        try:
            interpreter = interpreter_class(model_content=content, num_threads=1)
            names = ("train", "infer", "get_weights", "set_weights")
            self._run = {name: interpreter.get_signature_runner(name) for name in names}
        except (ValueError, RuntimeError) as error:
            raise JoinError(f"the training file cannot be used here: {error}") from None
        self._interpreter = interpreter  # which the runners need
        inputs = self._run["set_weights"].get_input_details()
        self.shapes = {each: tuple(details["shape"].tolist()) for each, details in inputs.items()}
        self.batch_size, *shape = self._run["train"].get_input_details()["x"]["shape"].tolist()
        self.input_shape = tuple(shape)

    def check(self, task: Message, num_examples: int) -> None:
        """Raises JoinError unless the weights and orders of a task are such as the file takes."""
        found = {name: array.shape for name, array in task.arrays.items() if name != "order"}
        is_fine = found == self.shapes and all(task.arrays[name].dtype == np.float32 for name in found)
        if task.header["type"] != "evaluate" and is_fine:
            order, steps, rate = task.arrays.get("order"), task.header["steps"], task.header["learning_rate"]
            is_fine = order is not None and order.ndim == 2 and order.shape[1] == num_examples > 0
            is_fine = is_fine and order.dtype.kind == "u" and (not order.size or order.max() < num_examples)
            is_fine = is_fine and type(steps) is int and 0 <= steps <= len(order) * -(-num_examples // self.batch_size)
            is_fine = is_fine and task.header["batch_size"] == self.batch_size and isinstance(rate, int | float)
        if not is_fine:
            raise JoinError("the server sent a task that does not fit its training file or these examples")

    def train(self, task: Message, examples: Examples, stop: threading.Event) -> Message:
        """Trains from the task's weights by its orders. Raises Stopped after the step in which `stop` is set.

        Returns num_trained, examples with each epoch counted, loss_sum and seconds; and {weight: trained - start}.
        """
        begun, size = time.perf_counter(), self.batch_size
        x, y, rate = examples.train_x, examples.train_y, np.float32(task.header["learning_rate"])
        start = {name: task.arrays[name] for name in self.shapes}
        self._run["set_weights"](**start)
        num_trained, loss_sum, per_epoch = 0, 0.0, -(-len(y) // size)
        for step in range(task.header["steps"]):
            order, first = task.arrays["order"][step // per_epoch], step % per_epoch * size
            # What fills a batch does not count, but BatchNorm sees it: other examples of the same client.
            rows = order[np.arange(first, first + size) % len(order)].astype(np.int64)
            num_there = min(size, len(order) - first)
            labels = np.where(np.arange(size) < num_there, y[rows], -1).astype(np.int32)
            loss = self._run["train"](x=x[rows], y=labels, learning_rate=rate)["loss"]
            num_trained, loss_sum = num_trained + num_there, loss_sum + float(loss) * num_there
            if stop.is_set():
                raise Stopped
        trained = self._run["get_weights"](unused=np.int32(0))
        deltas = {name: trained[name] - start[name] for name in start}
        seconds = time.perf_counter() - begun
        return Message({"num_trained": num_trained, "loss_sum": loss_sum, "seconds": seconds}, deltas)

    def measure(
        self, weights: Mapping[str, np.ndarray], x: np.ndarray, y: np.ndarray, stop: threading.Event
    ) -> dict[str, Any]:
        """num, correct and the sum of the cross-entropies of these weights on examples, in float64."""
        self._run["set_weights"](**weights)
        correct, loss_sum = 0, 0.0
        for example, label in zip(x, y, strict=True):
            logits = self._run["infer"](x=example[np.newaxis])["logits"][0].astype(np.float64)
            largest = logits.max()
            loss_sum += float(largest + np.log(np.exp(logits - largest).sum()) - logits[label])
            correct += int(logits.argmax() == label)
            if stop.is_set():
                raise Stopped
        return {"num": len(y), "correct": correct, "loss_sum": loss_sum}


def digest_weights(arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> str:
    """What names weights, 64 hex digits: the SHA-256 of their bytes in this order."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(arrays[name], "<f4") for name in names)).hexdigest()


def digest_task(task: Message, examples: Examples) -> str:
    """What names all that a task asks for, whatever its id: file, weights, orders, rate, steps, and the examples."""
    header = {name: task.header.get(name) for name in ("type", "file", "learning_rate", "steps", "batch_size")}
    return hashlib.sha256(pack(header, {**task.arrays, "x": examples.train_x, "y": examples.train_y})).hexdigest()


class Home:
    """The folder of one client: its key, training files, its last answer, its personal weights.

    Of clients that run at once, the later ones get numbered folders in it. JoinError: nothing can be written there.
    """

    def __init__(self, folder: pathlib.Path, key: str = ""):
        self._answer: Message | None = None
        try:
            places = (folder / str(number) if number > 1 else folder for number in range(1, 1000))
            self.folder, self._lock = next(((each, lock) for each in places if (lock := _lock(each))), (folder, None))
            if self.folder != folder:
                say(f"another client runs with --home={folder}; this one is another, in {self.folder}")
            text = self.read("key").decode("ascii", "replace").strip()
            self.key = key or (text if re.fullmatch("[0-9a-f]{32,}", text) else secrets.token_hex(32))
            if not key:
                self.write("key", self.key.encode())
        except OSError as error:
            raise JoinError(f"{folder}: cannot be written ({error.strerror}); give --home=<another folder>") from None

    def read(self, name: str) -> bytes:
        """Empty of a file that there is not."""
        path = self.folder / name
        return path.read_bytes() if path.exists() else b""

    def write(self, name: str, content: bytes) -> None:
        """Whole, or not at all; for this user alone."""
        unfinished = self.folder / f"{name}.unfinished"
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(unfinished, self.folder / name)

    def find_file(self, sha256: str) -> bytes:
        """A training file that was kept, if it still is what it was; else empty."""
        content = self.read(f"{sha256}.tflite")
        return content if hashlib.sha256(content).hexdigest() == sha256 else b""

    def find_answer(self, digest: str) -> Message | None:
        """The last answer, if it is to this task; also of a client that was killed since."""
        if self._answer is None:
            with contextlib.suppress(JoinError):
                self._answer = unpack(self.read("answer"))
        return self._answer if self._answer and self._answer.header["type"] == digest else None

    def keep_answer(self, digest: str, answer: Message) -> None:
        self._answer = Message({**answer.header, "type": digest}, answer.arrays)
        self.write("answer", pack(*self._answer))


def _lock(folder: pathlib.Path) -> Any:
    """A lock of the folder that ends with this process, however it ends; None if another client has it."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    lock = open(folder / "lock", "ab")  # noqa: SIM115
    try:
        if os.name == "nt":
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return lock.close()
    return lock


class Hours(NamedTuple):
    """Times of the day between which a client trains, minutes after midnight; over midnight where `end` is smaller."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Hours:
        """Of 22-6 or 8:30-17:15. Raises ValueError."""
        found = re.fullmatch(r"(\d\d?)(?::(\d\d))?-(\d\d?)(?::(\d\d))?", text)
        start, end = (int(found[i]) * 60 + int(found[i + 1] or 0) for i in (1, 3)) if found else (0, 0)
        if (start - end) % (24 * 60) == 0 or max(start, end) > 24 * 60:
            raise ValueError("expected two times of the day, such as 22-6 or 8:30-17:15")
        return cls(start % (24 * 60), end % (24 * 60))

    def plan(self, now: datetime.datetime) -> tuple[bool, float]:
        """Whether it is time to train, and the seconds until that changes."""
        seconds = (now.hour * 60 + now.minute) * 60 + now.second
        until_start, until_end = ((minutes * 60 - seconds) % 86400 or 86400 for minutes in self)
        return until_end < until_start, min(until_end, until_start)


class Work(NamedTuple):
    """What is being done: the id of the task, what names all that it asks for, and how to end it early."""

    task: str
    is_train: bool
    digest: str
    stop: threading.Event


class Client:
    """Takes part in a run: connects, does what it is asked, and comes back when a connection is lost."""

    def __init__(self, options: argparse.Namespace, home: Home, interpreter_class: Callable[..., Any]):
        self._options, self._home, self._interpreter_class = options, home, interpreter_class
        self._caller = {"key": home.key, "token": options.token or None}
        self._welcome: dict[str, Any] = {}
        self._examples: Examples | None = None
        self._whose: tuple[str, int] = ("", 0)  # the run and seat that a part was dealt by
        self._columns: str | None = None  # the digest of the description by which own data were read
        self._trainers: dict[str, Trainer] = {}  # by the SHA-256 of their file
        self._fetched: set[str] = set()  # what was asked for in this connection
        self._weights: tuple[str, dict[str, np.ndarray]] = ("", {})  # the last ones that the server sent, by digest
        # The newest to train and the newest other one, which do not end each other, until all is there that they take.
        self._tasks: dict[bool, Message] = {}
        self._works: dict[asyncio.Task, Work] = {}
        self._busy = asyncio.Lock()  # one work at a time
        self._failure: JoinError | None = None

    async def run(self) -> int:
        """Until the run is over: 0. Raises JoinError if it cannot go on."""
        hours, place, most = self._options.hours, self._options.address, self._options.give_up_after_s
        wait, heard, is_said = 0.2, time.monotonic(), False
        limits = {"max_msg_size": MOST_BYTES, "heartbeat": 20, "timeout": aiohttp.ClientWSTimeout(ws_close=2.0)}
        async with aiohttp.ClientSession() as session:
            while True:
                is_time, seconds = hours.plan(datetime.datetime.now()) if hours else (True, 0.0)
                if not is_time:
                    say(f"outside its hours; it comes back in {seconds / 3600:.1f} hours")
                    await asyncio.sleep(seconds)
                    heard = time.monotonic()
                    continue
                self._welcome, reason = {}, "the connection was lost"
                try:
                    async with session.ws_connect(self._options.url, ssl=self._options.tls, **limits) as ws:
                        if await self._converse(ws, seconds):
                            return 0
                    heard = time.monotonic()
                except (asyncio.TimeoutError, aiohttp.ClientError, OSError) as error:  # noqa: UP041
                    reason, is_final = await self._explain(error, session)
                    if is_final:
                        raise JoinError(f"{place}: {reason}") from None
                if self._welcome:
                    wait, heard, is_said = 0.2, time.monotonic(), False
                if hours and not hours.plan(datetime.datetime.now())[0]:
                    continue
                if time.monotonic() - heard >= most:
                    raise JoinError(f"{place}: {reason}; tried for {most:g} s, start the server or give its address")
                if not is_said:
                    say(f"{place}: {reason}; trying again for {most:g} s")
                    is_said = True
                await asyncio.sleep(wait)
                wait = min(2 * wait, 5.0)

    async def _explain(self, error: Exception, session: Any) -> tuple[str, bool]:
        """Why a connection fails, and whether it always will."""
        if isinstance(error, aiohttp.WSServerHandshakeError):
            return f"no live run is there (HTTP {error.status}); give the link that it prints", error.status < 500
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "").rstrip(".") or error.certificate_error
            return f"its certificate is not trusted here ({why}); --certificate=<PEM file> names one that is", True
        if re.search("WRONG_VERSION|RECORD_LAYER|HTTP_REQ", str(error)):
            return "the server speaks no https; give its link, which begins with http:", True
        if self._options.url.startswith("ws:") and not isinstance(error, aiohttp.ClientConnectorError):
            with contextlib.suppress(asyncio.TimeoutError, aiohttp.ClientError, OSError):
                async with session.get(f"https{self._options.url[2:]}", ssl=False):  # nothing is said but this
                    return "the server speaks https; give its link, which begins with https:", True
        return "no live run answers there", False

    async def _converse(self, ws: Any, seconds: float) -> bool:
        """All that is said in one connection, of at most so many seconds; whether the run is over."""
        self._fetched, self._tasks = set(), {}
        closing = asyncio.create_task(self._leave(ws, "outside its hours", seconds)) if seconds else None
        try:
            if self._options.data and self._columns is None:  # who joins says how many examples it has
                await ws.send_bytes(pack({"type": "fetch", "what": "description", **self._caller}))
            else:
                await self._join(ws)
            async for each in ws:
                if each.type == aiohttp.WSMsgType.TEXT:
                    raise JoinError("the server sent text, and no message of live rounds; is the address right?")
                if each.type == aiohttp.WSMsgType.BINARY and await self._take(ws, unpack(each.data)):
                    return True
            if self._failure is not None:
                raise self._failure
            if ws.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                raise JoinError(f"the server sent more than {MOST_BYTES >> 20} MB at once, and no more is taken")
            return False
        except (asyncio.CancelledError, JoinError):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._leave(ws, "stopped"), 2)
            raise
        finally:
            if closing:
                closing.cancel()

    async def _leave(self, ws: Any, reason: str, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        self._end_works(lambda work: True)
        await ws.send_bytes(pack({"type": "leave", "reason": reason}))
        await ws.close()

    async def _join(self, ws: Any) -> None:
        counts = [len(self._examples.train_y), len(self._examples.test_y)] if self._columns else [0, 0]
        header = {"protocol": VERSION, "name": self._options.name, "kind": "python", "columns": self._columns}
        header |= {"num_train": counts[0], "num_test": counts[1], "round_most_examples": None, **self._caller}
        await ws.send_bytes(pack({"type": "join", **header}))
        text = "connected; the organiser's run begins when enough are there"
        asyncio.get_running_loop().call_later(1.0, lambda: self._welcome or ws.closed or say(text))

    async def _take(self, ws: Any, message: Message) -> bool:
        """Does what a message asks for; whether the run is over."""
        header, arrays = message
        try:
            if header["type"] == "refused":
                if header["is_final"]:
                    raise JoinError(header["reason"])
                say(header["reason"])
                await ws.close()
            elif header["type"] == "done":
                say(header["text"])
                return True
            elif header["type"] == "welcome":
                self._check_welcome(header)
                if header["deals"] and self._whose != (header["run"], header["client"]):
                    self._examples, self._whose = None, (header["run"], header["client"])
                if self._examples is None:
                    await ws.send_bytes(pack({"type": "fetch", "what": "part"}))
            elif header["type"] == "description":
                given = self._options.data, header["description"], self._home.key
                loaded = Examples(*await asyncio.to_thread(load_examples, *given))
                self._examples = loaded.limit(self._options.most_examples, self._home.key)
                self._columns = digest_description(header["description"])
                await self._join(ws)
            elif header["type"] == "file":
                self._use_file(arrays["content"].tobytes())
            elif header["type"] == "part":
                self._examples = Examples(*(arrays[name] for name in Examples._fields))
            elif header["type"] in ("train", "evaluate", "fine_tune"):
                self._tasks[header["type"] == "train"] = message
            elif header["type"] == "withdrawn":
                self._end_works(lambda work: work.task == header["task"])
                kept = [each for each in self._tasks.values() if each.header["task"] != header["task"]]
                self._tasks = {each.header["type"] == "train": each for each in kept}
            if self._welcome:
                await self._start_works(ws)
        except JoinError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise JoinError(f"the server sent a message {header['type']!r} that is not whole") from None
        return False

    def _check_welcome(self, header: dict[str, Any]) -> None:
        if header["deals"] and (self._options.data or self._options.most_examples):
            raise JoinError("this run deals the examples itself; leave --data and --most_examples out")
        if not header["deals"] and not self._options.data:
            raise JoinError("this run deals no examples; bring yours by --data=<file>")
        if not 0 < header["file_bytes"] <= MOST_BYTES:
            raise JoinError(f"a training file of {header['file_bytes']} bytes, at most {MOST_BYTES} are taken")
        rounds = f"; round {header['round']} of {header['rounds']}" if header["round"] else ""
        if not self._welcome:  # else it is another file for a last task
            say(f"joined {header['name']} as client {header['client']}{rounds}")
        self._welcome = header

    def _use_file(self, content: bytes) -> None:
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self._fetched:
            raise JoinError("the server sent a training file that is not the one it told of")
        trainer = Trainer(content, self._interpreter_class)
        told = {name: tuple(shape) for name, shape in self._welcome["weights"]}
        if trainer.shapes != told or trainer.input_shape != tuple(self._welcome["input_shape"]):
            raise JoinError("the server sent a training file of other weights or inputs than it told of")
        self._trainers[sha256] = trainer
        for path in self._home.folder.glob(f"{'[0-9a-f]' * 64}.tflite"):  # of earlier runs
            if path.stem not in self._trainers:
                path.unlink()
        self._home.write(f"{sha256}.tflite", content)

    async def _start_works(self, ws: Any) -> None:
        """Begins each task for which all is there; fetches what is not, the training file before the first one."""
        for file in [self._welcome["file"], *(task.header["file"] for task in self._tasks.values())]:
            if file not in self._trainers and file not in self._fetched:
                self._fetched.add(file)
                if content := self._home.find_file(file):
                    self._use_file(content)
                else:
                    await ws.send_bytes(pack({"type": "fetch", "what": "file", "file": file}))
        for is_train, task in list(self._tasks.items()):
            trainer = self._trainers.get(task.header["file"])
            if trainer is None or self._examples is None:
                continue
            if sent := {name: array for name, array in task.arrays.items() if name != "order"}:
                names = [name for name, _ in self._welcome["weights"] if name in sent]
                self._weights = digest_weights(sent, names), sent
            elif task.header["digest"] != self._weights[0]:
                await ws.send_bytes(pack({"type": "fetch", "what": "weights", "task": task.header["task"]}))
                del self._tasks[is_train]  # it comes again
                continue
            del self._tasks[is_train]
            self._examples = self._examples.fit(trainer.input_shape, self._welcome["num_classes"])
            whole = Message(task.header, {**task.arrays, **self._weights[1]})
            trainer.check(whole, len(self._examples.train_y))
            work = Work(task.header["task"], is_train, digest_task(whole, self._examples), threading.Event())
            # One on the same is not ended: it comes again after a connection was lost.
            self._end_works(lambda other: other.is_train == work.is_train and other.digest != work.digest)
            doing = asyncio.create_task(self._work(ws, whole, work, self._examples))
            self._works[doing] = work
            doing.add_done_callback(self._works.pop)

    def _end_works(self, is_meant: Callable[[Work], bool]) -> None:
        for work in filter(is_meant, self._works.values()):
            work.stop.set()

    async def _work(self, ws: Any, task: Message, work: Work, examples: Examples) -> None:
        begun = time.perf_counter()
        try:
            async with self._busy:
                what, header, arrays = await asyncio.to_thread(self._do, task, work, examples)
            names = task.header.keys() & {"run", "number", "client", "file", "task"}
            content = pack({**header, **{name: task.header[name] for name in names}}, arrays)
            await ws.send_bytes(content)
            rounds = f"round {task.header.get('round', self._welcome['round'])} of {self._welcome['rounds']}"
            say(f"{rounds}: {what} in {time.perf_counter() - begun:.1f} s, sent {math.ceil(len(content) / 1e3):,} kB")
        except (Stopped, aiohttp.ClientError, ConnectionError):
            return  # of no use any more, or kept until the client is back
        except Exception as error:
            line = error if isinstance(error, JoinError) else f"the task cannot be done here: {error}"
            self._failure = JoinError(str(line).replace("\n", " "))
            await ws.close()

    def _do(self, task: Message, work: Work, examples: Examples) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
        """(what was done, header and arrays of the answer). In a thread. Raises Stopped."""
        if work.stop.is_set():
            raise Stopped
        trainer = self._trainers[task.header["file"]]
        weights = {name: task.arrays[name] for name in trainer.shapes}
        test = examples.test_x, examples.test_y, work.stop
        if task.header["type"] == "evaluate":
            sums = trainer.measure(weights, *test)
            return f"tested {sums['num']:,} examples", {"type": "measured", **sums}, {}
        if task.header["type"] == "fine_tune":
            before = trainer.measure(weights, *test)
            trained = trainer.train(task, examples, work.stop)
            personal = {name: weights[name] + delta for name, delta in trained.arrays.items()}
            after = trainer.measure(personal, *test)
            if task.header["is_last"]:
                np.savez(stream := io.BytesIO(), **personal)
                self._home.write("personal.npz", stream.getvalue())
            what = f"fine-tuned: {before['correct']} of {before['num']} tests right, then {after['correct']}"
            return what, {"type": "tuned", "before": before, "after": after}, {}
        answer, what = self._home.find_answer(work.digest), "gave its last answer again"
        if answer is None:
            answer = trainer.train(task, examples, work.stop)
            self._home.keep_answer(work.digest, answer)
            what = f"trained {answer.header['num_trained']:,} examples"
        return what, {**answer.header, "type": "answer"}, answer.arrays


def check_packages() -> None:
    """Raises JoinError with what to install."""
    modules = ("numpy", "aiohttp", "ai_edge_litert")
    missing = [name.replace("_", "-") for name in modules if importlib.util.find_spec(name) is None]
    machine = platform.system(), platform.machine().lower()
    if missing and (sys.maxsize < 2**32 or machine in (("Darwin", "x86_64"), ("Windows", "arm64"))):
        raise JoinError("ai-edge-litert has no wheel for this machine (Intel Mac, ARM Windows, 32 bits); take another")
    if missing:
        raise JoinError(f"{', '.join(missing)} missing here: pip install ai-edge-litert numpy aiohttp")


_FLAGS = (
    ("data", "", "your examples, .csv or .npz, where the run deals none"),
    ("name", "", "shown to the organiser"),
    ("most_examples", 0, "most examples of yours in a round; 0: all"),
    ("hours", "", "times of the day at which it trains, such as 22-6"),
    ("home", "", "folder of its key, training file and personal weights; empty: one of its own in your home folder"),
    ("give_up_after_s", 600.0, "seconds that it tries on without a server [600]"),
    ("certificate", "", "PEM file of the server's certificate, where this machine does not trust it by itself"),
    ("seat_key", "", argparse.SUPPRESS),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise JoinError(f"{message}; see --help")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with `url`, that of the socket, and `token`, that of the link, which `address` has no more."""
    parser = _Parser(prog="join.py", description="Takes part in live rounds.", allow_abbrev=False)
    parser.add_argument("address", help="your link, such as http://127.0.0.1:8700/#<token>")
    for name, default, text in _FLAGS:
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    options = parser.parse_args(argv)
    options.address, _, options.token = options.address.strip("'\" ").partition("#")
    found = re.fullmatch(r"(?:(http|ws)(s?)://)?((?:[^/\s?#@:]+|\[[\da-f:.]+])(?::(\d{1,9}))?)/?", options.address)
    is_place = found and (found[1] or found[4]) and int(found[4] or 1) < 2**16 and len(options.token) <= 200
    for is_wrong, text in (
        (not is_place, f"{options.address}: expected a link that the server prints, as http://127.0.0.1:8700/#<token>"),
        (options.most_examples < 0, "--most_examples: expected 1 or more, or 0 for all"),
        (options.most_examples and not options.data, "--most_examples: expected --data beside it"),
        (options.data and not os.path.isfile(options.data), f"--data={options.data}: no such file (.csv or .npz)"),
        (not re.fullmatch("([0-9a-f]{32,128})?", options.seat_key), "--seat_key: expected at least 32 hex digits"),
    ):
        if is_wrong:
            raise JoinError(text)
    options.url = f"ws{found[2] or ''}://{found[3]}/ws"
    try:
        options.hours = Hours.parse(options.hours) if options.hours else None
        options.tls = ssl.create_default_context(cafile=options.certificate or None)
    except ValueError as error:
        raise JoinError(f"--hours={options.hours}: {error}") from None
    except OSError:
        raise JoinError(f"--certificate={options.certificate}: expected a PEM file of a certificate") from None
    if not options.home:  # with other data it is another client, at another address of the server it is the same
        whose = "\n".join([options.token or options.url, options.data and os.path.abspath(options.data)])
        options.home = os.path.expanduser(f"~/.federated_suite/{hashlib.sha256(whose.encode()).hexdigest()[:16]}")
    options.name = options.name[:60] or f"python on {platform.system() or 'a machine'}"
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Takes part until the run is over; returns the exit code."""
    try:
        options = parse(argv)
        check_packages()
        from ai_edge_litert.interpreter import Interpreter

        home = Home(pathlib.Path(options.home), options.seat_key)
        return asyncio.run(Client(options, home, Interpreter).run())
    except JoinError as error:
        say(f"error: {error}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        say("left")
        return 130


if __name__ == "__main__":
    sys.exit(main())
