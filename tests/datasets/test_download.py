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
    server.content, server.resumes, server.status, server.breaks_after_bytes, server.ranges = (
        CONTENT,
        True,
        None,
        [],
        [],
    )
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


def test_a_part_is_resumed(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_server_that_does_not_resume_is_read_from_the_start(server, tmp_path):
    server.resumes = False
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_broken_connection_is_resumed(server, tmp_path):
    server.breaks_after_bytes = [3000, 50_000]
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == [None, "bytes=3000-", "bytes=53000-"]


def test_a_complete_part_needs_no_more_bytes(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    assert fetch(server, tmp_path) == CONTENT


@pytest.mark.parametrize("part", [b"x" * 1000, b"x" * (len(CONTENT) + 5)])
def test_a_part_of_another_file_is_thrown_away(server, tmp_path, part):
    (tmp_path / "data.bin.part").write_bytes(part)
    assert fetch(server, tmp_path) == CONTENT
    assert server.ranges == [f"bytes={len(part)}-", None]


def test_a_wrong_digest_never_gets_the_final_name(server, tmp_path):
    server.content = b"something else"
    with pytest.raises(DownloadError, match=r"data\.bin \(wrong digest") as caught:
        fetch_file(make_remote(server), str(tmp_path))
    assert f"put it into {tmp_path}" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "data.bin").exists()


def test_what_the_server_answers_is_told_and_the_part_is_kept(server, tmp_path):
    server.status = 403
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    with pytest.raises(DownloadError, match="the server answered 403"):
        fetch_file(make_remote(server), str(tmp_path))
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:1000]


def test_a_connection_that_keeps_breaking_is_told_and_the_part_is_kept(server, tmp_path):
    server.breaks_after_bytes = [10, 10, 10]
    with pytest.raises(DownloadError, match=r"the connection broke: 10 of \d+ bytes came"):
        fetch_file(make_remote(server), str(tmp_path))
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:30]


def test_no_network_names_the_file_and_the_folder_and_the_next_address_is_tried(server, tmp_path):
    port = server.server_port
    dead = "http://127.0.0.1:9/data.bin"
    with pytest.raises(DownloadError, match="no connection") as caught:
        fetch_file(RemoteFile("data.bin", (dead,), SHA256), str(tmp_path))
    assert "data.bin" in str(caught.value) and f"put it into {tmp_path}" in str(caught.value)
    both = RemoteFile("data.bin", (dead, f"http://127.0.0.1:{port}/data.bin"), SHA256)
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
    with pytest.raises(DownloadError, match=r"cannot write .*; choose another --data_dir"):
        fetch_file(make_remote(server), str(tmp_path / "file"))


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: os.symlink("elsewhere", path)], ids=["pipe", "link"])
@pytest.mark.parametrize("name", ["data.bin", "data.bin.part"])
def test_what_is_no_file_is_neither_waited_at_nor_followed(server, tmp_path, put, name):
    put(tmp_path / name)
    with pytest.raises(DownloadError, match=r"data\.bin: (no file, expected one|No such device|Too many levels)"):
        fetch_file(make_remote(server), str(tmp_path), timeout_s=5)
    assert os.listdir(tmp_path) == [name] and not server.ranges
