"""The pictures of asynchronous runs, from a small made-up log."""

import numpy as np
import pytest
from PIL import Image

from launch.pages.plots.event_plots import (
    MOST_BARS,
    Training,
    compute_ages,
    count_received,
    draw_ages_and_participation,
    draw_events,
    find_trainings,
)
from launch.runs.round_table import EventLog
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
    assert count_received(events).tolist() == [2, 0]


def test_of_live_rounds_it_shows_who_did_not_answer_and_whose_answer_did_not_count():
    rows = [(0.0, 0, "start"), (0.0, 1, "start"), (0.0, 2, "start"), (0.5, 0, "ready"), (0.75, 1, "rejected")]
    rows += [(1.0, 2, "missing"), (1.0, 0, "received"), (1.0, 0, "rejected")]  # the last of what was ready before
    events = [{"client": str(client), "time_s": str(time_s), "what": what} for time_s, client, what in rows]
    assert find_trainings(events) == [
        Training(0, 0.0, 0.5, "ready"),
        Training(1, 0.0, 0.75, "rejected"),
        Training(2, 0.0, 1.0, "missing"),
    ]


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


@pytest.mark.parametrize("num_clients", [MOST_BARS, MOST_BARS + 1])
def test_a_bar_a_client_or_a_histogram_of_many(tmp_path, sketches, num_clients):
    """One client had three updates received, the others one each."""
    counts = np.ones(num_clients, np.int64)
    counts[7] = 3
    draw_ages_and_participation(np.array([0, 0, 1]), counts, "a run", tmp_path / "participation.png")
    ages, participation = sketches["participation.png"].axes
    assert [bar.get_height() for bar in ages.patches] == [2, 1]
    bars = [bar.get_height() for bar in participation.patches]
    assert bars == ([3] + [1] * (num_clients - 1) if num_clients <= MOST_BARS else [num_clients - 1, 0, 1])


def test_devices_that_are_not_on_the_timeline_take_part_in_the_other_plot(tmp_path, sketches):
    late = [(time_s, client + 500, what, version) for time_s, client, what, version in EVENTS]
    EventLog(tmp_path / "events.csv").append(1, sorted([*EVENTS, *late]))
    draw_events(tmp_path / "events.csv", "a run", tmp_path / "plots")
    assert sketches["timeline.png"].axes[0].get_ylim() == (1.5, -0.5)
    assert [bar.get_height() for bar in sketches["participation.png"].axes[1].patches] == [500, 0, 2]


def test_the_timeline_ends_with_the_run_and_names_its_clients(tmp_path, sketches):
    write(tmp_path / "events.csv")
    draw_events(tmp_path / "events.csv", "a run", tmp_path / "plots", ["Ada", "Bo"])
    ax = sketches["timeline.png"].axes[0]
    assert ax.get_xlim() == (0, pytest.approx(3.03)), "the last event is at 3 s"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Ada", "Bo"]
