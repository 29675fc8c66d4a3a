"""The command that prints a file's card, and its one-line errors."""

import hashlib
import io
import json
import sys

import pytest

from launch import card
from launch.tflite.embedded_card import embed_card

MODEL = b"\x1c\x00\x00\x00TFL3weights"
CARD = {
    "card_version": 1,
    "title": "FedAvg on digits",
    "task": "Tells which digit was written.",
    "classes": ["0", "1"],
    "data_set": {"name": "digits", "source": ""},
    "may_be_sold": "Unknown",
    "must_not_be_used_for": ["Anything."],
    "training": {"algorithm": "FedAvg", "rounds": 3, "clients": 2, "examples": 10, "how": "simulated"},
    "measured_on": "x86_64",
    "files": [
        {
            "file": "a.tflite",
            "model": "a",
            "format": "training",
            "model_bytes": len(MODEL),
            "model_sha256": hashlib.sha256(MODEL).hexdigest(),
        }
    ],
}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.tflite").write_bytes(embed_card(MODEL, json.dumps(CARD).encode()))
    return tmp_path / "a.tflite"


def test_the_card_is_printed_for_a_person(path, capsys):
    assert card.main([str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "What is it?" and lines[0].endswith("Tells which digit was written.")
    assert all(len(line) <= 120 for line in lines)


def test_the_cards_own_bytes_are_printed(path, capfdbinary):
    assert card.main(["--json", str(path)]) == 0
    assert capfdbinary.readouterr().out == json.dumps(CARD).encode()


def test_nothing_in_a_card_steers_the_terminal(path, capfdbinary):
    hostile = {
        **CARD,
        "task": "\x1b]52;c;x\x07Tells\u202e digits.\x9b2K\nClasses  others",
        "classes": ["\x1b[8m", "\x7f"],
    }
    path.write_bytes(embed_card(MODEL, json.dumps(hostile, ensure_ascii=False).encode()))
    assert card.main([str(path)]) == 0
    shown = capfdbinary.readouterr().out.decode()
    assert shown.replace("\n", "").isprintable() and "\\u001b]52;c;x\\u0007Tells\\u202e digits." in shown
    assert [line.split("  ")[0] for line in shown.splitlines()].count("Classes") == 1
    assert card.main([str(path), "--json"]) == 0
    printed = capfdbinary.readouterr().out
    assert json.loads(printed) == hostile and printed.decode().replace("\n", "").isprintable()


def test_a_card_is_printed_on_a_terminal_in_ascii(path, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, encoding="ascii"))
    path.write_bytes(embed_card(MODEL, json.dumps({**CARD, "may_be_sold": "97.0\u00a0% \u00fc \u65e5"}).encode()))
    assert card.main([str(path)]) == 0
    sys.stdout.flush()
    assert rb"97.0\xa0% \xfc \u65e5" in printed.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MODEL, "a.tflite: there is no card in it"),
        (embed_card(MODEL, json.dumps(CARD).encode())[:-9], "a.tflite: damaged"),
        (embed_card(MODEL, json.dumps({**CARD, "training": "by hand"}).encode()), "a.tflite: its card is of another"),
    ],
)
def test_what_is_wrong_is_one_line(path, content, message, capsys):
    path.write_bytes(content)
    assert card.main([str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert card.main([str(path), "--json"]) == (0 if "another" in message else 2), "a card of another version as JSON"
