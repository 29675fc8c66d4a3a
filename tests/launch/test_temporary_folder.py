"""Each command's own temporary folder: where it is, that it goes, and which folders of others go with the next one."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from launch import temporary_folder
from launch.command_line import run_main
from launch.temporary_folder import GRACE_S, OWNER_FILE, PREFIX, own_temporary_folder, sweep

WAIT = (
    "import sys, tempfile, time\n"
    "from launch.temporary_folder import own_temporary_folder\n"
    "with own_temporary_folder():\n"
    "    open(tempfile.mkstemp(suffix='.py')[1], 'w').write('left')\n"
    "    print(tempfile.gettempdir(), flush=True)\n"
    "    time.sleep(60)\n"
)


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """The temporary folder that commands share."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def start_command():
    """() -> (process, its folder) of a command that waits."""
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", WAIT],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )
        started.append(process)
        return process, pathlib.Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def make_left(shared, name="left", mode=0o700, has_owner=True):
    folder = shared / f"{PREFIX}{name}"
    folder.mkdir(mode=mode)
    (folder / "inner").mkdir()
    (folder / "inner" / "__autograph_generated_file1.py").touch()
    if has_owner:
        (folder / OWNER_FILE).touch()
    return folder


def test_temporary_files_go_to_a_folder_of_the_commands_own_and_away(shared):
    with own_temporary_folder():
        folder = pathlib.Path(tempfile.gettempdir())
        assert folder.parent == shared and os.environ["TMPDIR"] == str(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        descriptor, name = tempfile.mkstemp()
        os.close(descriptor)
        assert pathlib.Path(name).parent == folder
    assert (tempfile.gettempdir(), os.environ["TMPDIR"], list(shared.iterdir())) == (str(shared), str(shared), [])


def test_a_command_that_another_starts_has_its_folder_beside_that_ones(shared):
    with own_temporary_folder():
        outer = pathlib.Path(tempfile.gettempdir())
        tempfile.tempdir = None  # as in the process that is started
        with own_temporary_folder():
            inner = pathlib.Path(tempfile.gettempdir())
            assert inner.parent == shared and inner != outer
        assert outer.is_dir() and not inner.exists()


def test_all_commands_have_one_but_not_help(shared):
    assert (
        run_main(lambda arguments: int(pathlib.Path(tempfile.gettempdir()).parent != shared), lambda: "help", []) == 0
    )
    left = make_left(shared)
    assert run_main(lambda arguments: 1, lambda: "help", ["--help"]) == 0
    assert left.exists()
    assert run_main(lambda arguments: 0, lambda: "help", []) == 0
    assert list(shared.iterdir()) == []


def test_what_a_killed_command_left_goes_and_a_living_ones_stays(shared, start_command):
    (killed, left), (_, living) = start_command(), start_command()
    assert sweep(shared) == 0 and len(list(left.iterdir())) == 2
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert sweep(shared) == 1
    assert not left.exists() and len(list(living.iterdir())) == 2


def test_a_folder_whose_owner_may_be_starting_stays_for_a_while(shared):
    young, old = make_left(shared, "young", has_owner=False), make_left(shared, "old", has_owner=False)
    then = time.time() - GRACE_S - 1
    os.utime(old, (then, then))
    assert sweep(shared) == 1 and young.exists() and not old.exists()


def test_no_link_is_followed_and_no_folder_of_others_is_touched(shared, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    target = make_left(outside)
    (shared / f"{PREFIX}link").symlink_to(target)
    open_to_all = make_left(shared, "open", mode=0o755)
    linked = make_left(shared, "linked", has_owner=False)
    (linked / OWNER_FILE).symlink_to(target / OWNER_FILE)
    with_link = make_left(shared, "with_link")
    (with_link / "away").symlink_to(target)
    (shared / f"{PREFIX}file").touch()
    (shared / "other").mkdir()
    assert sweep(shared) == 1 and not with_link.exists()
    assert open_to_all.exists() and linked.exists() and (target / "inner").is_dir() and (shared / "other").is_dir()
    mine = make_left(shared, "mine")
    monkeypatch.setattr(temporary_folder.os, "getuid", lambda: os.geteuid() + 1)  # another user looks
    assert sweep(shared) == 0 and mine.exists()


def test_without_a_place_for_it_a_command_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with own_temporary_folder():
        assert tempfile.tempdir == str(tmp_path / "nowhere")


def test_paths_of_sockets_fit(shared, monkeypatch):
    """A usual temporary folder leaves room for the sockets of workers, 107 letters, and of Ray, 40 for its folder."""
    assert len(f"/tmp/{PREFIX}12345678/federated_worker_12345678/worker.sock") <= 107
    assert len(f"/tmp/{PREFIX}12345678/fed_ray_12345678/r") <= 40
