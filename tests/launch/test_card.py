"""The command that prints a file's card, and its one-line errors."""

import hashlib
import json

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


def test_a_card_of_another_version_is_printed_as_json_alone(path, capsys):
    card_of_another = {**CARD, "training": "by hand"}
    path.write_bytes(embed_card(MODEL, json.dumps(card_of_another).encode()))
    assert card.main([str(path)]) == 2
    error = capsys.readouterr().err
    assert "another version" in error and error.count("\n") == 1
    assert card.main([str(path), "--json"]) == 0


@pytest.mark.parametrize(
    ("change", "exit_code", "message"),
    [
        (lambda path: path.unlink(), 2, "no such file"),
        (lambda path: path.write_bytes(b""), 2, "a.tflite: no TFLite file"),
        (lambda path: path.write_bytes(MODEL), 2, "a.tflite: there is no card in it"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), 2, "a.tflite: damaged"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"weights", b"Weights")), 2, "a.tflite: damaged"),
    ],
)
def test_what_is_wrong_is_one_line(path, change, exit_code, message, capsys):
    change(path)
    assert card.main([str(path)]) == exit_code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one file"),
        (["a", "b"], "expected one file that launch.export has written, got a b"),
        (["a", "--jsno"], "--json"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, message, capsys):
    assert card.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_help(capsys):
    assert card.main(["--help"]) == 0
    assert "launch.card <file.tflite>" in capsys.readouterr().out
