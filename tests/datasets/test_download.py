"""Downloads from a small server on this machine that resumes, refuses to, breaks off or lies."""

import hashlib
import http.server
import os
import re
import threading

import pytest

from datasets.download import DownloadError, RemoteFile, fetch_file

CONTENT = bytes(range(256)) * 400
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.ranges.append(self.headers.get("Range"))
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(match[1]) if match and server.resumes else 0
        if server.status is not None:
            self.send_error(server.status)
            return
        if start and start >= len(server.content):
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.breaks_after_bytes.pop(0)] if server.breaks_after_bytes else body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.resumes, server.status = CONTENT, True, None
    server.breaks_after_bytes, server.ranges = [], []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def make_remote(server, sha256=SHA256):
    return RemoteFile("data.bin", (f"http://127.0.0.1:{server.server_port}/data.bin",), sha256)


def fetch(server, folder, **fields):
    path = fetch_file(make_remote(server, **fields), str(folder), timeout_s=5)
    assert os.listdir(folder) == ["data.bin"]
    with open(path, "rb") as file:
        return file.read()


def test_a_whole_file_is_fetched_once(server, tmp_path):
    assert fetch(server, tmp_path / "new") == CONTENT
    assert fetch(server, tmp_path / "new") == CONTENT
    assert server.ranges == [None]


@pytest.mark.parametrize(
    ("part", "resumes", "breaks_after_bytes", "ranges"),
    [
        (CONTENT[:1000], True, [], ["bytes=1000-"]),
        (b"x" * 1000, False, [], ["bytes=1000-"]),  # a server that cannot resume is read from the start
        (b"", True, [3000, 50_000], [None, "bytes=3000-", "bytes=53000-"]),
        (CONTENT, True, [], [f"bytes={len(CONTENT)}-"]),  # a complete part needs no more bytes
        # A part of another file is thrown away.
        (b"x" * 1000, True, [], ["bytes=1000-", None]),
        (b"x" * (len(CONTENT) + 5), True, [], [f"bytes={len(CONTENT) + 5}-", None]),
    ],
)
def test_a_part_is_resumed(server, tmp_path, part, resumes, breaks_after_bytes, ranges):
    server.resumes, server.breaks_after_bytes = resumes, breaks_after_bytes
    (tmp_path / "data.bin.part").write_bytes(part)
    assert fetch(server, tmp_path) == CONTENT and server.ranges == ranges


def refuse(message, remote, folder):
    with pytest.raises(DownloadError, match=message) as caught:
        fetch_file(remote, str(folder), timeout_s=5)
    assert "\n" not in str(caught.value)


def test_a_wrong_digest_never_gets_the_final_name(server, tmp_path):
    server.content = b"something else"
    refuse(rf"data\.bin \(wrong digest.*put it into {tmp_path}", make_remote(server), tmp_path)
    assert not (tmp_path / "data.bin").exists()


@pytest.mark.parametrize(
    ("status", "breaks_after_bytes", "message", "length"),
    [
        (403, [], "the server answered 403", 1000),
        (None, [10, 10, 10], r"the connection broke: 10 of \d+ bytes came", 1030),
    ],
)
def test_what_went_wrong_is_said_and_the_part_stays(server, tmp_path, status, breaks_after_bytes, message, length):
    server.status, server.breaks_after_bytes = status, breaks_after_bytes
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    refuse(message, make_remote(server), tmp_path)
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:length]


def test_no_network_names_the_file_and_the_folder_and_the_next_address_is_tried(server, tmp_path):
    dead = "http://127.0.0.1:9/data.bin"
    message = rf"data\.bin.*no connection.*put it into {tmp_path}"
    refuse(message, RemoteFile("data.bin", (dead,), SHA256), tmp_path)
    both = RemoteFile("data.bin", (dead, *make_remote(server).addresses), SHA256)
    assert os.path.getsize(fetch_file(both, str(tmp_path))) == len(CONTENT)


def test_two_at_once_fetch_it_once(server, tmp_path):
    threads = [threading.Thread(target=fetch_file, args=(make_remote(server), str(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.listdir(tmp_path) == ["data.bin"] and server.ranges == [None]


def test_a_folder_that_cannot_be_written_is_one_line(server, tmp_path):
    (tmp_path / "file").touch()
    refuse(r"cannot write .*; choose another --data_dir", make_remote(server), tmp_path / "file")


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: os.symlink("elsewhere", path)], ids=["pipe", "link"])
@pytest.mark.parametrize("name", ["data.bin", "data.bin.part"])
def test_what_is_no_file_is_neither_waited_at_nor_followed(server, tmp_path, put, name):
    put(tmp_path / name)
    message = r"data\.bin: (no file, expected one|No such device|Too many levels)"
    refuse(message, make_remote(server), tmp_path)
    assert os.listdir(tmp_path) == [name] and not server.ranges
