"""The command that replays the published scripts: it completes its file, and refuses in one line."""

import csv
import sys
import types

import pytest

from launch.papers.fedsikd.replay import __main__ as replay
from launch.papers.fedsikd.replay.__main__ import COLUMNS, main


class Result:
    accuracy, loss = 0.5, 1.25


@pytest.fixture
def computed(monkeypatch):
    """What is asked of the procedure, which trains nothing here; the second request is stopped once."""
    asked = []

    def run(bench, alpha, split, rounds):
        asked.append((alpha, split))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return [Result()] * rounds

    procedure = types.SimpleNamespace(run_client_0=run)
    monkeypatch.setitem(sys.modules, "launch.papers.fedsikd.replay.procedure", procedure)
    monkeypatch.setattr("launch.papers.fedsikd.replay.procedure", procedure, raising=False)
    monkeypatch.setattr(replay, "_load_bench", lambda dataset, data_dir: object())
    return asked


def test_a_stopped_command_goes_on(computed, tmp_path):
    path = tmp_path / "replay.csv"
    arguments = [f"--csv={path}", "--dataset=mnist", "--alpha=0.5", "--arm=client_0", "--splits=2"]
    assert main(arguments) == 130 and main(arguments) == 0
    assert computed == [(0.5, 0), (0.5, 1), (0.5, 1)]
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS and len(rows) == 10
    assert rows[0][:-1] == ["mnist", "0.5", "client_0", "0", "1", "0.500000", "1.250000"]


@pytest.mark.parametrize("arguments", [[], ["--csv=text"], ["--csv=x", "--dataset=cifar10"], ["--csv=x", "stray"]])
def test_a_wrong_request_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("a,b\n1,2\n")
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
