"""The command that replays the published scripts: it completes its file, and refuses in one line."""

import csv
import sys
import types

import pytest

from reproductions.fedsikd.replay import __main__ as replay
from reproductions.fedsikd.replay.__main__ import COLUMNS, main


class Result:
    metric, mean_loss = 0.5, 1.25


@pytest.fixture
def computed(monkeypatch):
    """What is asked of the procedure, which trains nothing here; the second request is stopped once."""
    asked = []

    def run(arm, bench, alpha, split, rounds):
        asked.append((bench, arm, alpha, split))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return [Result()] * rounds

    procedure = types.SimpleNamespace(replay=run)
    monkeypatch.setitem(sys.modules, "reproductions.fedsikd.replay.procedure", procedure)
    monkeypatch.setattr(replay, "_load_bench", lambda dataset, data_dir: dataset)
    return asked


def test_a_stopped_command_goes_on(computed, tmp_path):
    path = tmp_path / "replay.csv"
    assert main([f"--csv={path}"]) == 130 and main([f"--csv={path}"]) == 0
    first, *others = computed
    assert first == ("mnist", "client_0", 0.1, 0) and others[:2] == [("mnist", "client_0", 0.1, 1)] * 2
    assert len(set(computed)) == len(others) == 2 * 4 * 33 and first not in others
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS and len(rows) == 5 * 2 * 4 * 33
    assert rows[0][:-1] == ["mnist", "0.1", "client_0", "0", "1", "0.500000", "1.250000"]


@pytest.mark.parametrize("arguments", [[], ["--csv=text"], ["--csv=x", "--alpha=0.1"], ["--csv=x", "stray"]])
def test_a_wrong_request_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("a,b\n1,2\n")
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
