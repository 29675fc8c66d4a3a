"""Each command's own temporary folder: where it is, that it goes, and which folders of others go with the next one."""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from launch.command_line import run_main
from launch.console import temporary_folder
from launch.console.temporary_folder import PREFIX, own_temporary_folder, sweep

WAIT = (
    "import sys, tempfile, time\n"
    "from launch.console.temporary_folder import own_temporary_folder\n"
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


def make_left(shared, name="left", mode=0o700):
    folder = shared / f"{PREFIX}{name}"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(mode)
    return folder


def test_temporary_files_go_to_folders_of_the_commands_own_side_by_side_and_away(shared):
    with own_temporary_folder():
        outer = pathlib.Path(tempfile.gettempdir())
        assert outer.parent == shared and os.environ["TMPDIR"] == str(outer)
        assert outer.stat().st_mode & 0o777 == 0o700
        tempfile.tempdir = None  # as in the process of a command that this one starts
        with own_temporary_folder():
            inner = pathlib.Path(tempfile.mkstemp()[1]).parent
            assert inner.parent == shared and inner != outer
        assert outer.is_dir() and not inner.exists()
    assert (tempfile.gettempdir(), os.environ["TMPDIR"], list(shared.iterdir())) == (str(shared), str(shared), [])


def test_all_commands_have_one_but_not_help_and_go_on_where_there_is_none(shared, monkeypatch):
    left = make_left(shared)
    assert run_main(lambda arguments: 1, str, ["--help"]) == 0 and left.exists()
    assert run_main(lambda arguments: int(tempfile.gettempdir() == str(shared)), str, []) == 0
    assert list(shared.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(shared / "nowhere"))
    assert run_main(lambda arguments: int(tempfile.tempdir != str(shared / "nowhere")), str, []) == 0
    # Paths of sockets fit: of workers, 107 letters, and of Ray, 40 for its folder.
    assert len(f"/tmp/{PREFIX}12345678/federated_worker_12345678/worker.sock") <= 107
    assert len(f"/tmp/{PREFIX}12345678/fed_ray_12345678/r") <= 40


def test_what_a_killed_command_left_goes_and_a_living_ones_stays(shared):
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", WAIT]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as living,
    ):
        left, kept = (pathlib.Path(process.stdout.readline().strip()) for process in (killed, living))
        assert sweep(shared) == 0 and len(list(left.iterdir())) == 1
        killed.kill()
        killed.wait()
        assert sweep(shared) == 1 and not left.exists() and len(list(kept.iterdir())) == 1
        living.kill()


def test_no_link_is_followed_and_no_folder_of_others_is_touched(shared, tmp_path_factory, monkeypatch):
    target = make_left(tmp_path_factory.mktemp("outside"))
    (shared / f"{PREFIX}link").symlink_to(target)
    open_to_all, with_link = make_left(shared, "open", mode=0o755), make_left(shared, "with_link")
    (with_link / "away").symlink_to(target)
    (shared / f"{PREFIX}file").touch()
    (shared / "other").mkdir()
    assert sweep(shared) == 1 and not with_link.exists()
    assert open_to_all.exists() and (target / "inner").is_dir() and (shared / "other").is_dir()
    mine = make_left(shared, "mine")
    monkeypatch.setattr(temporary_folder.os, "getuid", lambda: os.geteuid() + 1)  # another user looks
    assert sweep(shared) == 0 and mine.exists()
