"""Runs are sent once or until they end, without doubled rounds, whatever fails meanwhile; the tracker is a stand-in.

`make test-track` sends to the trackers themselves.
"""

import ast
import collections
import os
import pathlib
import shutil
import sys

import pytest

from launch.runs import columns, run_folder
from launch.runs.trackers import sender

PROGRAM = pathlib.Path(sender.__file__)


class StandIn:
    """A tracker that remembers runs, {id: rounds}, and fails while it is down."""

    runs, ends, is_down = collections.defaultdict(list), [], False
    destination, where = "here", "http://there"

    def __init__(self, run, places, rounds):
        self._answer()
        self.run_id = places["here"]["run_id"] if places else f"run_{len(self.runs)}"
        self.last_round = max(self.runs[self.run_id], default=0)

    def _answer(self):
        if StandIn.is_down:
            raise ConnectionError("refused\nby http://me:secret@there")

    def send_rounds(self, rounds):
        self._answer()
        self.runs[self.run_id] += [each.number for each in rounds]

    def close(self, state, last, summary, files):
        self._answer()
        self.ends.append((state, last.number, summary, files))

    def abandon(self):
        pass


@pytest.fixture
def tracker(monkeypatch):
    monkeypatch.setattr(StandIn, "runs", collections.defaultdict(list))
    monkeypatch.setattr(StandIn, "ends", [])
    monkeypatch.setattr(StandIn, "is_down", False)
    monkeypatch.setitem(sender.TRACKERS, "stand_in", StandIn)
    return StandIn


def build_order(*runs, follow=False, models=True):
    entries = []
    for run in runs:
        (run.run_dir / "tracking").mkdir(exist_ok=True)
        entries.append({"path": str(run.run_dir), "name": run.run_dir.name})
    return {"tracker": "stand_in", "follow": follow, "models": models, "runs": entries}


@pytest.fixture
def send(tracker, monkeypatch):
    """A function (run, *steps) that sends a run, with a step after each look at it, and returns what was said."""

    def call(run, *steps):
        left, said = list(steps), []
        monkeypatch.setattr(sender.time, "sleep", lambda seconds: seconds and left.pop(0)())
        sender.send_all(build_order(run, follow=bool(steps)), said.append)
        assert not left
        return said

    return call


def test_a_finished_run_is_sent_whole_and_again_nothing_is_sent_twice(start_run, tracker, send):
    run = start_run()
    run.add_rounds(2)
    run.end(is_finished=False)
    send(run)
    run.add_rounds(3)
    run.end()
    assert send(run)[-1] == "sent     run: 5 rounds, finished; look: http://there"
    send(run)
    assert tracker.runs == {"run_0": [1, 2, 3, 4, 5]}
    assert [end[:2] for end in tracker.ends] == [("stopped", 2), ("finished", 5), ("finished", 5)]
    assert tracker.ends[1][2] == {"summary/best.round": 5, "summary/best.test_accuracy": 0.5}
    assert {"config.json", "clients.csv", "plots/by_round.png", "models/global/model.keras"} <= tracker.ends[1][
        3
    ].keys()


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_that_goes_on_is_sent_as_it_is_and_one_that_is_followed_until_it_ends(
    is_finished, start_run, tracker, send
):
    run = start_run()
    run.add_rounds(1)
    assert "going on; --follow would send the rest" in send(run)[-1]
    send(run, lambda: run.add_rounds(1), lambda: run.add_rounds(2), lambda: run.end(is_finished))
    assert tracker.runs == {"run_0": [1, 2, 3, 4]}
    assert [end[:2] for end in tracker.ends] == [("going on", 1), ("finished" if is_finished else "stopped", 4)]
    assert tracker.ends[0][2] == {}


def test_a_round_that_is_half_written_is_sent_when_it_is_whole(start_run, tracker, send):
    """Also where its end comes so soon that the file's time stays the same."""
    run = start_run()
    run.add_rounds(2)
    metrics = run.run_dir / columns.METRICS_FILE
    whole, written = metrics.read_bytes(), metrics.stat()

    def write(content):
        metrics.write_bytes(content)
        os.utime(metrics, ns=(written.st_atime_ns, written.st_mtime_ns))

    def end():
        assert tracker.runs == {"run_0": [1]}
        write(whole)
        run.end()

    write(whole[:-3])
    send(run, lambda: None, end)
    assert tracker.runs == {"run_0": [1, 2]} and tracker.ends[0][:2] == ("finished", 2)


def test_a_tracker_that_fails_for_a_while_gets_each_round_once(start_run, tracker, send):
    run = start_run()

    def fail():
        tracker.is_down = True
        run.add_rounds(2)

    def answer():
        tracker.is_down = False
        run.end()

    said = send(run, lambda: run.add_rounds(1), fail, lambda: None, answer)
    assert tracker.runs == {"run_0": [1, 2, 3]} and tracker.ends[0][0] == "finished"
    warning = "warning  stand_in: ConnectionError: refused by http://there; trying again"
    assert [line for line in said if line.startswith("warning")] == [warning]


def test_a_tracker_that_fails_when_the_run_has_ended_is_given_up(start_run, tracker, send):
    run = start_run()
    tracker.is_down = True
    with pytest.raises(ConnectionError):
        send(run)
    with pytest.raises(ConnectionError):
        send(run, run.end)


def test_two_processes_send_a_run_one_after_the_other(start_run, tracker, send):
    run = start_run()
    run.add_rounds(2)
    order = build_order(run, follow=True)
    other = sender.Sending(order["runs"][0], order)
    assert not other.advance(print)
    said = send(run, other._places.close, run.end)
    assert "another process sends" in said[0]
    assert tracker.runs == {"run_0": [1, 2]}


def test_a_run_that_replaces_the_followed_one_is_another(start_run, tracker, send):
    run = start_run()

    def replace():
        shutil.rmtree(run.run_dir / "tracking")
        (run.run_dir / "tracking").mkdir()

    assert "it is not sent any more" in send(run, lambda: run.add_rounds(1), replace)[-1]
    run.end()
    send(run)
    assert tracker.runs == {"run_0": [1], "run_1": [1]}


def test_a_run_goes_on_as_long_as_it_holds_its_folder(start_run):
    run = start_run()
    run.add_rounds(2)
    assert sender.find_state(run.run_dir) == "going on"
    run.end()
    assert sender.find_state(run.run_dir) == "finished"
    (run.run_dir / ".lock").unlink()  # copied from elsewhere
    assert sender.find_state(run.run_dir) == "finished"
    run.add_rounds(1)  # resumed and stopped
    assert sender.find_state(run.run_dir) == "stopped"


def test_rounds_have_the_numbers_and_times_of_both_tables(start_run):
    run = start_run()
    assert sender.read_rounds(run.run_dir) == []
    run.add_rounds(3)
    os.utime(run.run_dir / "metrics.csv", (1000.0, 1000.0))
    rounds = sender.read_rounds(run.run_dir)
    # The last round ended when the table was written, each of the others 2 s before the next.
    assert [(each.number, each.time_ms) for each in rounds] == [(1, 996000), (2, 998000), (3, 1000000)]
    timing = {"timing/round_s": 1.5, "timing/evaluation_s": 0.5, "timing/host_memory_bytes": 1000.0}
    assert rounds[0].values == {"virtual_time_s": 60.0, "test_accuracy": 0.01, **timing}
    assert rounds[1].values["test_loss"] == 0.5
    (run.run_dir / "metrics.csv").write_text("round,test_loss\n1,many\n")
    with pytest.raises(ValueError, match=r"metrics\.csv: damaged"):
        sender.read_rounds(run.run_dir)


def test_files(start_run):
    run = start_run()
    run.add_rounds(1)
    run.end()
    for name in ("worker.log", "checkpoints/round_1.csv", "tensorboard/events.out", "report.html", ".7.metrics.csv"):
        (run.run_dir / name).parent.mkdir(exist_ok=True)
        (run.run_dir / name).touch()
    light = {"config.json", "summary.json", "metrics.csv", "timing.csv", "clients.csv", "report.html"}
    light |= {"plots/by_round.png"}
    assert sender.list_files(run.run_dir, False).keys() == light
    assert sender.list_files(run.run_dir, True).keys() == light | {
        "models/global/model.keras", "export/global.int8.tflite"
    }  # fmt: skip


def test_it_needs_nothing_of_the_project_knows_its_files_and_hides_passwords():
    nodes = [node for node in ast.walk(ast.parse(PROGRAM.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes}
    assert imported - sys.stdlib_module_names == {"mlflow", "wandb"}
    names = (sender.LOCK, sender.METRICS, sender.TIMING, sender.SUMMARY, sender.TRACKING)
    expected = (columns.METRICS_FILE, columns.TIMING_FILE, columns.SUMMARY_FILE, columns.TRACKING)
    assert names == (run_folder.LOCK_FILE, *expected)
    for call, given, told in (
        (sender.name_metric, "timing/round_s", "system/round_s"),
        (sender.name_metric, "archetype_0 (ä=1)", "archetype_0 ___1_"),
        (sender.hide_password, "https://me:secret@host:5000/a@b", "https://host:5000/a@b"),
        (sender.hide_password, "sqlite:////tmp/mlflow.db", "sqlite:////tmp/mlflow.db"),
    ):
        assert call(given) == told
