"""A disk that is full, and a folder that becomes read-only in mid-run: one line, and a run that can go on.

Both need a mount namespace, as root or as a user who may make one.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from lives import Life, assert_same_run

ROOT = pathlib.Path(__file__).parents[3]
UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
PAGE_BYTES = 4096
ARGUMENTS = ["--algo=fedavg", "--num_clients=3", "--rounds=12", "--seed=1"]

# $1: where the small disk is mounted; $2: its free bytes; $3: where the run goes in the end.
FILL = """
mount -t tmpfs -o size=16m tmpfs "$1" || exit 77
free=$(($(stat -f -c '%a * %S' "$1")))
head -c $((free - $2)) /dev/zero > "$1/filler"
python -m launch.train $arguments --run_dir="$1/run" > "$3/out.txt" 2> "$3/err.txt"
echo $? > "$3/code.txt"
rm "$1/filler"
begin=--resume
[ -e "$1/run/config.json" ] || begin="$arguments"
python -m launch.train $begin --run_dir="$1/run" >> "$3/out.txt" 2> "$3/err_again.txt"
echo $? > "$3/code_again.txt"
cp -r "$1/run" "$3/run"
"""
# $1: the folder; $2: the round after which it can no longer be written; $3: where the run goes in the end.
LOCK = """
mkdir "$1/run"
python -m launch.train $arguments --run_dir="$1/run" > "$3/out.txt" 2> "$3/err.txt" &
train=$!
until grep -q "^$2," "$1/run/metrics.csv" 2> "$3/grep.txt"; do kill -0 $train || exit 1; done
{ mount --bind "$1/run" "$1/run" && mount -o remount,bind,ro "$1/run"; } || { kill $train; exit 77; }
wait $train
echo $? > "$3/code.txt"
umount "$1/run"
python -m launch.train --resume --run_dir="$1/run" >> "$3/out.txt" 2> "$3/err_again.txt"
echo $? > "$3/code_again.txt"
cp -r "$1/run" "$3/run"
"""

pytestmark = pytest.mark.slow


def run_in_namespace(script, folder, number, shards):
    """Runs a script in a mount namespace of its own; returns the folder with what it kept."""
    place, kept = folder / "disk", folder / "kept"
    place.mkdir()
    kept.mkdir()
    environment = {
        **os.environ,
        "arguments": " ".join([*ARGUMENTS, f"--client_dir={shards}"]),
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = [*UNSHARE, "sh", "-c", script, "sh", str(place), str(number), str(kept)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return kept


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The folder, with run and shards, of the run that is left alone."""
    folder = tmp_path_factory.mktemp("straight")
    Life(folder, ARGUMENTS).end()
    return folder


def measure_bytes(folder):
    """What the files of a folder take on a disk of whole pages."""
    pages = sum(-(-path.stat().st_size // PAGE_BYTES) for path in folder.rglob("*") if path.is_file())
    return PAGE_BYTES * pages


def assert_it_went_on(kept, straight, code="1"):
    """The first process ended in one line that names a file and how to go on, the second with the same bytes."""
    assert (kept / "code.txt").read_text().strip() == code, (kept / "err.txt").read_text()
    assert (kept / "err_again.txt").read_text() == ""
    assert (kept / "code_again.txt").read_text().strip() == "0"
    assert_same_run(kept, straight)
    assert not [path for path in (kept / "run").rglob(".*") if path.name != ".lock"]
    return (kept / "err.txt").read_text()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("share", [0.01, 0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_full_disk_is_one_line_and_the_run_can_go_on(tmp_path, straight, share):
    """The disk holds a share of what the whole run takes."""
    kept = run_in_namespace(FILL, tmp_path, int(share * measure_bytes(straight / "run")), straight / "shards")
    error = assert_it_went_on(kept, straight)
    print(error)
    assert error.count("\n") == 1 and "No space left on device" in error
    assert f"{tmp_path / 'disk' / 'run'}/" in error
    assert "go on with: python -m launch.train --resume --run_dir=" in error or "nothing was trained yet" in error


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_folder_that_becomes_read_only_is_one_line_and_the_run_can_go_on(tmp_path, straight):
    kept = run_in_namespace(LOCK, tmp_path, 3, straight / "shards")
    error = assert_it_went_on(kept, straight)
    print(error)
    assert error.count("\n") == 1 and "Read-only file system" in error
    assert (
        f"{tmp_path / 'disk' / 'run'}/" in error and "go on with: python -m launch.train --resume --run_dir=" in error
    )
