"""What the organiser of a live run sees, of happenings made up by hand."""

import json

import numpy as np
import pytest

from launch.live.status import (
    AWAY,
    EVERY_TICKS,
    HERE,
    MOST_NOTICES,
    MOST_ROUNDS,
    MOST_SEATS_AT_ONCE,
    TRAINING,
    Round,
    Seat,
    Status,
    describe_round,
    draw_code,
    read_rounds,
)
from launch.live.traffic import Traffic
from launch.runs.errors import RunFolderError

ANN, BOB = (Seat(name, "python", HERE, 10) for name in ("Ann", "Bob"))
TRAFFIC = Traffic(2000, 1000, 30, 400, 2, 3, 2, 1, 0, 1, 0)


class Watched:
    """A status, what was shown of it, what was said, and its clock."""

    def __init__(self, num_seats=2, **options):
        self.shown, self.said, self.now_s, self.link = [], [], 1000.0, "http://127.0.0.1:8700/#token"
        self.status = Status(
            *(self.shown.append, self.said.append, "FedAvg on digits", "runs/a", 60),
            find_link=lambda: self.link,
            clock=lambda: self.now_s,
            **options,
        )
        for seat in range(num_seats):
            self.status.see(seat, Seat())

    def look(self):
        return json.loads(self.status.format())


@pytest.fixture
def watched():
    return Watched()


def make_round(number, accuracy=0.5, **counts):
    return Round(number, accuracy, 1.5, *(counts.get(name, 0) for name in Round._fields[3:]))


def test_it_says_who_is_here_and_what_is_free(watched):
    watched.status.see(1, BOB)
    seen = watched.look()
    assert (seen["state"], seen["here"], seen["round"], seen["rounds"]) == ("waiting", 1, 0, 60)
    assert [each["state"] for each in seen["seats"]] == ["free", "here"]
    assert (seen["seats"][1]["seat"], seen["seats"][1]["name"], seen["seats"][1]["examples"]) == (1, "Bob", 10)
    assert seen["invite"]["link"] == watched.link and seen["invite"]["free"] == 1
    watched.status.see(1, Seat())  # its client has gone before the run began
    assert (watched.look()["here"], watched.look()["invite"]["free"]) == (0, 2)


def test_a_seat_has_the_time_at_which_it_was_asked_until_it_answers(watched):
    watched.status.see(0, ANN._replace(state=TRAINING, task="a"))
    watched.now_s += 5
    watched.status.see(0, ANN._replace(state=AWAY, task="a"))  # lost for a moment
    watched.status.see(0, ANN._replace(state=TRAINING, task="a"))
    assert watched.look()["seats"][0]["asked"] == 1000.0
    watched.status.see(0, ANN._replace(state=TRAINING, task="b"))
    assert watched.look()["seats"][0]["asked"] == 1005.0
    watched.status.see(0, ANN._replace(answers=1))
    [ann, _] = watched.look()["seats"]
    assert (ann["asked"], ann["state"], ann["answers"]) == (None, HERE, 1) and "task" not in ann


def test_it_counts_who_was_asked_and_is_busy(watched):
    def count():
        return [watched.look()[name] for name in ("asked", "answered")]

    for seat in (0, 1):
        watched.status.see(seat, ANN._replace(state=TRAINING, task=f"a{seat}"))
    watched.status.see(1, ANN)
    assert count() == [2, 1]
    watched.status.see(0, ANN)
    assert count() == [2, 2]
    watched.status.see(1, ANN._replace(state=TRAINING, task="b"))
    assert count() == [1, 0]


def test_it_is_shown_at_most_twice_a_second_and_only_if_something_changed(watched):
    show = watched.status.show_if_due
    assert show(7) is None and len(watched.shown) == 1
    assert show(8) is None and len(watched.shown) == 1
    watched.status.see(0, ANN)
    assert show(9) == 7 + EVERY_TICKS and len(watched.shown) == 1
    watched.status.see(1, BOB)
    assert show(7 + EVERY_TICKS) is None
    assert len(watched.shown) == 2 and json.loads(watched.shown[-1])["here"] == 2
    watched.status.see(1, BOB)  # nothing new
    assert show(9 * EVERY_TICKS) is None and len(watched.shown) == 2


def test_rounds_add_up_and_their_history_stays_short(watched):
    for number in range(1, 4 * MOST_ROUNDS + 4):
        watched.status.add_round(make_round(number, number / 1e4, bytes_down=10, late=1))
    seen = watched.look()
    numbers = [row["round"] for row in seen["history"]]
    assert len(numbers) <= MOST_ROUNDS and numbers[-1] == 4 * MOST_ROUNDS + 3 == seen["round"]
    assert len(set(np.diff(numbers[:-1]))) == 1, "they are as far from each other"
    assert seen["history"][-1]["accuracy"] == numbers[-1] / 1e4
    assert seen["totals"]["bytes_down"] == 10 * numbers[-1] and seen["totals"]["late"] == numbers[-1]


def test_rounds_of_a_server_before_are_told_from_its_own(watched):
    assert watched.look()["resumed"] == 0
    watched.status.add_past([make_round(1), make_round(2)])
    watched.status.add_round(make_round(3))
    assert (watched.look()["resumed"], watched.look()["round"]) == (2, 3)


def test_nobody_trains_when_the_run_is_over(watched):
    watched.status.see(0, ANN._replace(state=TRAINING, task="a"))
    watched.status.see(1, BOB._replace(state=AWAY, task="b"))
    watched.status.end(None)
    seats = json.loads(watched.shown[-1])["seats"]
    assert [(each["state"], each["asked"]) for each in seats] == [(HERE, None), (AWAY, None)]


def test_a_round_that_was_not_tested_or_is_no_number_has_no_accuracy():
    assert describe_round(3, (None, None), TRAFFIC, 1.25)[:3] == (3, None, None)
    row = describe_round(3, (float("nan"), 0.5), TRAFFIC, 1.25)
    assert row == Round(3, None, 0.5, 3, 2, 1, 1, 0, 2000, 1000, 1.25)


def test_notices_that_repeat_are_one_and_only_the_last_are_kept(watched):
    for number in range(MOST_NOTICES + 5):
        watched.status.note(f"client {number} is refused")
    for _ in range(3):
        watched.status.note("<script>alert(1)</script>")
    notices = watched.look()["notices"]
    assert len(notices) == MOST_NOTICES and notices[-1] == "<script>alert(1)</script> (x3)"
    assert notices[-2] == f"client {MOST_NOTICES + 4} is refused"


def test_who_comes_and_leaves_in_a_run_is_said_in_a_line(watched):
    show = watched.status.show_if_due
    watched.status.see(0, ANN)
    show(0)
    assert not watched.said, "who waits for clients is told by others"
    watched.status.go_on(1)
    show(EVERY_TICKS)
    watched.status.see(0, ANN._replace(state=AWAY))
    watched.status.see(1, BOB)
    show(2 * EVERY_TICKS)
    watched.status.see(1, BOB._replace(state=AWAY))
    watched.status.see(1, BOB._replace(state=TRAINING, task="a"))  # back before anybody looked
    show(3 * EVERY_TICKS)
    assert watched.said == ["here     Bob (seat 1) came, Ann (seat 0) left; 1 of 2 clients here"]


def test_of_many_clients_a_line_a_round_says_how_many_came():
    watched = Watched(MOST_SEATS_AT_ONCE + 1)
    watched.status.go_on(1)
    for seat in range(MOST_SEATS_AT_ONCE):
        watched.status.see(seat, ANN)
        watched.status.show_if_due(seat * EVERY_TICKS)
    assert not watched.said
    watched.status.add_round(make_round(1))
    watched.status.add_round(make_round(2))
    assert watched.said == [f"here     {MOST_SEATS_AT_ONCE} came; 20 of {MOST_SEATS_AT_ONCE + 1} clients here"]


def test_seats_get_other_numbers_when_those_left_free_fall_away(watched):
    watched.status.see(1, BOB)
    watched.status.forget_seats()
    watched.status.see(0, BOB)
    watched.link = None
    seen = watched.look()
    assert [each["name"] for each in seen["seats"]] == ["Bob"] and seen["here"] == 1
    assert seen["invite"] == {"link": None, "qr": None, "free": 0, "shared": False}


def test_the_end_is_shown_at_once(watched):
    watched.status.show_if_due(0)
    watched.status.end("runs/a/report.html", ["python -m launch.compare --runs=runs/a"])
    seen = json.loads(watched.shown[-1])
    assert seen["state"] == "over" and seen["report"] == "runs/a/report.html"
    assert seen["commands"] == ["python -m launch.compare --runs=runs/a"]


def test_a_code_has_the_modules_of_the_link():
    import segno

    code = draw_code("http://127.0.0.1:8700/#token")
    drawn = np.zeros((code["size"],) * 2, int)
    for part in code["path"].split("M")[1:]:
        corner, width = part.split("h")[:2]
        x, y = map(int, corner.split())
        drawn[y, x : x + int(width.removesuffix("v1"))] = 1
    expected = segno.make("http://127.0.0.1:8700/#token", micro=False, error="m").matrix_iter(border=4)
    assert drawn.tolist() == [list(row) for row in expected]


def write_tables(folder, rounds):
    traffic = ",".join(["round", *Traffic._fields])
    (folder / "metrics.csv").write_text(
        "round,num_clients,test_loss,test_accuracy\n"
        + "".join(f"{i},2,1.5,{'' if i % 2 else i / 10}\n" for i in rounds)
    )
    (folder / "traffic.csv").write_text(
        traffic + "\n" + "".join(f"{i},{','.join(map(str, TRAFFIC))}\n" for i in rounds)
    )
    (folder / "timing.csv").write_text("round,round_s,evaluation_s\n" + "".join(f"{i},1.25,0.5\n" for i in rounds))


def test_a_run_that_goes_on_has_the_history_of_its_tables(tmp_path):
    write_tables(tmp_path, (1, 2, 3))
    first, second = read_rounds(tmp_path, 2)
    assert first.accuracy is None and second == describe_round(2, (0.2, 1.5), TRAFFIC, 1.75)
    with pytest.raises(RunFolderError, match="damaged"):
        read_rounds(tmp_path, 4)
