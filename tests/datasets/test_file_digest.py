"""The identity of files: their bytes and how they are read, and of giants a part."""

import os

import pytest

from datasets import file_digest
from datasets.file_digest import compute_source_digest


def write(tmp_path, **contents):
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return [str(tmp_path / name) for name in contents]


def test_bytes_and_reading_make_the_digest_and_names_do_not(tmp_path):
    first, same, other = write(tmp_path, first=b"1,2", same=b"1,2", other=b"1,3")
    digest = compute_source_digest([first], {"label": "y"})
    assert len(digest) == 64
    assert compute_source_digest([same], {"label": "y"}) == digest
    assert compute_source_digest([other], {"label": "y"}) != digest
    assert compute_source_digest([first], {"label": "z"}) != digest


def test_the_order_of_files_and_where_one_ends_count(tmp_path):
    a, b, ab, nothing = write(tmp_path, a=b"a", b=b"b", ab=b"ab", nothing=b"")
    digests = {compute_source_digest(paths) for paths in ([a, b], [b, a], [ab], [ab, nothing], [nothing, ab], [])}
    assert len(digests) == 6


def test_a_giant_is_known_by_size_time_and_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(file_digest, "WHOLE_BYTES", 100)
    monkeypatch.setattr(file_digest, "_BLOCK_BYTES", 4)
    monkeypatch.setattr(file_digest, "_NUM_BLOCKS", 8)
    (path,) = write(tmp_path, giant=bytes(1000))
    os.utime(path, (1, 1))
    digest = compute_source_digest([path])

    def change(place, time=1):
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(b"\x01")
        os.utime(path, (time, time))
        return compute_source_digest([path])

    assert change(500) == digest  # between two blocks, of a time that was set back
    assert change(999) != digest  # the last byte is in the last block
    write(tmp_path, giant=bytes(1000))
    os.utime(path, (2, 2))
    assert compute_source_digest([path]) != digest


def test_small_files_beside_giants_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(file_digest, "WHOLE_BYTES", 100)
    paths = write(tmp_path, one=bytes(90), two=bytes(90))
    digest = compute_source_digest(paths)
    os.utime(paths[0], (1, 1))
    assert compute_source_digest(paths) == digest
    write(tmp_path, one=bytes(89) + b"\x01")
    assert compute_source_digest(paths) != digest


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        compute_source_digest([str(tmp_path / "none")])
