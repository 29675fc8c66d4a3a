"""The pictures of asynchronous runs, from a small made-up log."""

from PIL import Image

from launch.plots.event_plots import Training, compute_ages, draw_events, find_trainings
from launch.runs.event_log import EventLog
from launch.runs.run_records import read_rows

EVENTS = [
    (0.0, 0, "start", 1),
    (0.0, 1, "start", 1),
    (0.5, 0, "ready", 1),
    (0.75, 1, "dropped", 1),
    (1.0, 0, "scheduled", 1),
    (1.0, 0, "received", 1),
    (1.0, 0, "start", 2),
    (1.25, 1, "back", 1),
    (2.0, 1, "start", 3),
    (2.5, 0, "ready", 2),
    (3.0, 0, "received", 2),
]


def write(path):
    EventLog(path).append(1, EVENTS)
    return read_rows(path)


def test_trainings_and_ages(tmp_path):
    events = write(tmp_path / "events.csv")
    assert find_trainings(events) == [
        Training(0, 0.0, 0.5, "ready"),
        Training(1, 0.0, 0.75, "dropped"),
        Training(0, 1.0, 2.5, "ready"),
    ]
    assert compute_ages(events).tolist() == [0, 1]


def test_age_counts_periods_with_nobody_ready(tmp_path):
    log = EventLog(tmp_path / "events.csv")
    log.append(1, EVENTS[:2])
    log.append(3, [(3.0, 0, "received", 1), (3.0, 0, "start", 4)])
    assert compute_ages(read_rows(tmp_path / "events.csv")).tolist() == [2]


def test_pictures_are_drawn(tmp_path):
    write(tmp_path / "events.csv")
    written = draw_events(tmp_path / "events.csv", "a run", tmp_path / "plots")
    assert [path.name for path in written] == ["timeline.png", "participation.png"]
    for path in written:
        with Image.open(path) as image:
            assert len(image.convert("L").getcolors(1 << 16)) > 10  # something is drawn


def test_nothing_to_draw(tmp_path):
    EventLog(tmp_path / "events.csv").append(1, EVENTS[:2])
    assert draw_events(tmp_path / "events.csv", "a run", tmp_path / "plots") == []
