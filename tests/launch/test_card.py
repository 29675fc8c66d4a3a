"""The command that prints a file's card, and its one-line errors."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from launch import card
from launch.tflite.embedded_card import embed_card

ROOT = pathlib.Path(__file__).parents[2]
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


def test_a_card_is_printed_where_there_is_no_terminal_or_one_in_ascii(path):
    def run(redirection="", **variables):
        command = f'"{sys.executable}" -m launch.card "{path}" {redirection}'
        environment = {**os.environ, **variables}
        return subprocess.run(["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, timeout=60)

    ascii_card = {**CARD, "may_be_sold": "97.0\u00a0% \u00fc \u65e5"}
    path.write_bytes(embed_card(MODEL, json.dumps(ascii_card).encode()))
    for variables in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        ended = run(**variables)
        assert (ended.returncode, ended.stderr) == (0, b"") and rb"97.0\xa0% \xfc \u65e5" in ended.stdout
    closed = run(">&-")
    assert (closed.returncode, closed.stderr) == (0, b"")
    ended = run(">/dev/full")
    assert ended.returncode == 1 and ended.stderr.startswith(b"error: ") and ended.stderr.count(b"\n") == 1


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
