"""The links of a run: where they stand, who may read them, and what a server that is started again knows of them."""

import secrets

import pytest

from launch.live.links import Links
from launch.live.messages import VERSION
from launch.live.roster import Refusal, Roster, read_join
from launch.runs.errors import RunFolderError

DEALT = [(5, 1)] * 5
BASE = "http://127.0.0.1:8700"


@pytest.fixture
def make(tmp_path):
    def make(is_kept=False, base=BASE, dealt=DEALT, **options):
        roster = Roster(tmp_path / "roster.json", dealt, **options)
        if is_kept:
            roster.read()
        links = Links(roster, tmp_path / "links.txt")
        links.open(base)
        return roster, links

    return make


def join(roster, link):
    header = {"protocol": VERSION, "key": secrets.token_hex(16), "token": link.partition("#")[2]}
    header |= {"name": "", "kind": "python", "num_train": 0, "num_test": 0}
    roster.admit(read_join(header))


def test_the_file_is_for_this_user_and_its_links_work_once(make, tmp_path):
    roster, links = make()
    path = tmp_path / "links.txt"
    assert path.stat().st_mode & 0o077 == 0
    lines = path.read_text().splitlines()
    assert lines[0] == f"organiser   {BASE}/organiser#{links.watch_token}"
    assert [line.split()[:2] for line in lines[1:]] == [["seat", str(client)] for client in range(5)]
    found = links.find_free()
    assert [line.split()[-1] for line in lines[1:]] == found and len({*found, links.organiser}) == 6
    join(roster, found[2])
    assert links.find_free() == [*found[:2], *found[3:]] and roster.seats[2] is not None
    links.remove()
    links.remove()
    assert not path.exists()


def test_a_server_that_is_started_again_has_the_same_links_at_its_new_address(make):
    roster, links = make()
    join(roster, links.find_free()[0])
    roster.fix()
    roster.keep()
    _, again = make(is_kept=True, base="http://127.0.0.1:1")
    assert again.find_free() == [link.replace(":8700", ":1") for link in links.find_free()]
    assert again.watch_token == links.watch_token and again.has_moved and not links.has_moved
    assert not make(is_kept=True, base="http://127.0.0.1:1")[1].has_moved
    again.remove()
    _, last = make(is_kept=True)
    assert len(last.find_free()) == 4 and not {*last.find_free()} & {*links.find_free()}
    _, third = make(is_kept=True)  # the new ones stay, too
    assert third.find_free() == last.find_free()


def test_a_seat_that_is_freed_has_a_new_link_and_the_old_one_is_of_no_use(make):
    roster, links = make()
    old = links.find_free()
    for link in old[:2]:
        join(roster, link)
    roster.fix()
    roster.keep()
    again, _ = make(is_kept=True)
    again.free(1)
    found = Links(again, roster.path.with_name("links.txt"))
    found.open(BASE)
    [new] = {*found.find_free()} - {*old}
    assert found.find_free() == [new, *old[2:]]
    with pytest.raises(Refusal, match="not one of this run's"):
        join(again, old[1])
    third, _ = make(is_kept=True)  # the roster is kept so
    assert third.seats[1] is None and third.seats[0] is not None
    join(third, new)
    assert third.seats[1] is not None


def test_a_seat_of_a_shared_link_is_freed_for_the_next_who_has_it(make):
    roster, links = make(is_shared=True, dealt=DEALT[:2])
    [link] = links.find_free()
    for _ in range(2):
        join(roster, link)
    roster.fix()
    roster.keep()
    again, found = make(is_kept=True, is_shared=True, dealt=DEALT[:2])
    again.free(0)
    assert found.find_free() == [link]
    join(again, link)
    assert again.seats[0] is not None


def test_another_run_takes_no_links_of_the_one_whose_folder_it_gets(make):
    first, second = make()[1], make()[1]
    assert first.watch_token != second.watch_token and not {*first.find_free()} & {*second.find_free()}


def test_a_shared_link_is_one_and_stays_while_a_seat_is_free(make, tmp_path, capsys):
    roster, links = make(is_shared=True, dealt=DEALT[:1])
    [link] = links.find_free()
    assert (tmp_path / "links.txt").read_text().splitlines()[1:] == [f"everybody   {link}"]
    assert links.show() == link and capsys.readouterr().out == f"link     {link}\n"
    join(roster, link)
    assert links.find_free() == [] and links.show() is None
    assert capsys.readouterr().out == "link     none: all 1 seats are taken; clients come back by themselves\n"


def test_of_many_links_the_first_free_ones_are_shown(make, capsys, tmp_path):
    roster, links = make()
    found = links.find_free()
    join(roster, found[0])
    assert links.show() == found[1]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[:3]] == found[1:4] and lines[0].startswith("link     http")
    assert lines[3:] == [f"         1 more in {tmp_path / 'links.txt'}; each is for one client"]


def test_a_file_that_cannot_be_written_is_a_line(make, tmp_path):
    (tmp_path / "links.txt").mkdir()
    with pytest.raises(RunFolderError, match=r"links.txt: cannot be written \([^\n]+\)$"):
        make()
