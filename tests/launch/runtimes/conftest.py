"""What tests of runtimes share: which ports a program listens at, and programs that an ordinary user runs."""

import os
import pathlib
import shutil
import tempfile

import psutil
import pytest

ORDINARY_USER = 12345
LISTEN = "0A"  # the state's number in /proc/net/tcp


@pytest.fixture
def find_listening():
    """A function (pid) -> [(pid, port)] of the process and its descendants that listen in this machine's network."""

    def find(pid):
        ports = {}
        for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    ports[f"socket:[{fields[9]}]"] = int(fields[1].rpartition(":")[2], 16)
        root = psutil.Process(pid)
        return [
            (process.pid, ports[target])
            for process in (root, *root.children(recursive=True))
            for target in _read_links(pathlib.Path(f"/proc/{process.pid}/fd"))
            if target in ports
        ]

    return find


def _read_links(folder):
    targets = []
    for link in folder.iterdir():
        try:
            targets.append(os.readlink(link))
        except FileNotFoundError:  # closed meanwhile
            continue
    return targets


@pytest.fixture(params=[pytest.param("our user", marks=pytest.mark.slow), "an ordinary user"])
def as_user(request):
    """What stands before a command, so that our user runs it, or one without any right but to read all files.

    That right is needed where Python lies in root's home. It does not help to make namespaces.
    """
    if request.param == "our user" or os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv of util-linux to become somebody else")
    user = [f"--reuid={ORDINARY_USER}", f"--regid={ORDINARY_USER}", "--clear-groups"]
    rights = [
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    ]
    return ["setpriv", *user, *rights]


@pytest.fixture
def open_folder():
    """A folder that everybody may enter and write to; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        yield folder
