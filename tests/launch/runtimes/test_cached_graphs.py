"""Graphs that lie in the cache folder: what is read again, what is not, and that a run's bytes do not depend on it."""

import hashlib
import json
import os
import zlib

import numpy as np
import pytest
from small_formats import make_spec

from launch.runtimes import cached_graphs
from launch.runtimes.cached_graphs import CachedRound, GraphFolder, clean_graph_dir, default_graph_dir
from launch.runtimes.graph_sessions import GraphPart, RoundGraphs
from launch.runtimes.in_process import run_in_process

DIGEST, OTHER = "a" * 64, "b" * 64
NAMES = ("prepare", "work", "zero", "accumulate", "merge", "report", "update")


def make_round(size=10):
    """A form whose graphs are `size` bytes that cannot be compressed."""
    graphs = {name: np.random.default_rng(place).bytes(size) for place, name in enumerate(NAMES)}
    parts = {name: GraphPart(graph, (f"{name}:0",), ("out:0", "out:1"), "init") for name, graph in graphs.items()}
    return CachedRound(RoundGraphs(**parts, returns_client_values=False), {"dtype": "float32", "shape": [2, None]})


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "graphs"


def test_what_was_kept_is_found_under_its_digest_alone(folder):
    graphs, cached = GraphFolder(str(folder)), make_round()
    assert graphs.find(DIGEST) is None
    graphs.store(DIGEST, cached)
    assert GraphFolder(str(folder)).find(DIGEST) == cached and graphs.find(OTHER) is None
    assert folder.stat().st_mode & 0o777 == 0o700 and [path.stat().st_mode & 0o77 for path in folder.iterdir()] == [0]


def test_damaged_and_foreign_files_count_as_none(folder):
    graphs = GraphFolder(str(folder))
    graphs.store(DIGEST, make_round())
    (path,) = folder.iterdir()
    content = path.read_bytes()
    places = [*range(0, len(content), 37), len(content) - 1]
    damaged = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]
    for wrong in (*damaged, content[:-1], content[:50], b"", b"\n\n{}", content.replace(b"graphs 1", b"graphs 0", 1)):
        path.write_bytes(wrong)
        assert graphs.find(DIGEST) is None
    path.write_bytes(content)
    path.rename(folder / f"{OTHER}.graphs")
    assert graphs.find(OTHER) is None


def put_rest(head, packed=b""):
    """A function that writes a file as a writer of this format, so that the sum is right."""
    rest = (head if isinstance(head, bytes) else json.dumps(head).encode()) + b"\n" + packed
    whole = cached_graphs.FORMAT + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest
    return lambda path: path.write_bytes(whole)


def put_parts(part, packed):
    head = {"digest": DIGEST, "type": 0, "parts": dict.fromkeys(NAMES, part), "lists": False}
    return put_rest(head, zlib.compress(packed))


def put_holes(path):
    with path.open("wb") as file:
        file.truncate(10**12)


HOSTILE = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "holes": put_holes,
    "deep": put_rest(b"[" * 100_000),
    "many digits": put_rest(b'{"digest": ' + b"9" * 5000 + b"}"),
    "a list": put_rest([]),
    "no sizes": put_rest({"digest": DIGEST, "parts": {"work": []}}),
    "a bomb": put_parts([0, [], [], None], bytes(10**7)),
    "petabytes": put_parts([10**15, [], [], None], b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_lies_in_the_place_of_graphs_counts_as_none(folder, name):
    folder.mkdir(mode=0o700)
    path = folder / f"{DIGEST}.graphs"
    HOSTILE[name](path)
    graphs, cached = GraphFolder(str(folder)), make_round()
    assert graphs.find(DIGEST) is None
    graphs.store(DIGEST, cached)
    assert graphs.find(DIGEST) == (None if name == "a folder" else cached) and len(list(folder.iterdir())) == 1


def test_a_folder_that_others_can_write_is_not_used_and_one_that_cannot_be_made_stops_nothing(folder):
    graphs = GraphFolder(str(folder))
    folder.write_text("a file")
    graphs.store(DIGEST, make_round())
    assert graphs.find(DIGEST) is None and folder.read_text() == "a file"
    folder.unlink()
    graphs.store(DIGEST, make_round())
    folder.chmod(0o770)
    graphs.store(OTHER, make_round())
    assert graphs.find(DIGEST) is None and len(list(folder.iterdir())) == 1
    folder.chmod(0o700)
    assert graphs.find(DIGEST) is not None
    moved = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(moved)
    assert graphs.find(DIGEST) is None


def test_what_was_used_longest_ago_goes_first(folder, monkeypatch):
    monkeypatch.setattr(cached_graphs, "MAX_BYTES", 40_000)
    graphs, digests = GraphFolder(str(folder)), [f"{number:064x}" for number in range(5)]
    for age, digest in enumerate(digests):
        graphs.store(digest, make_round(1500))
        if (folder / f"{digest}.graphs").exists():
            os.utime(folder / f"{digest}.graphs", (1000 + age, 1000 + age))
        if age == 2:
            assert graphs.find(digests[0])
    assert [digest for digest in digests if graphs.find(digest)] == [digests[0], digests[3], digests[4]]


def test_cleaning_removes_graphs_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_graph_dir() == "" and clean_graph_dir() == 0  # no test keeps graphs unasked
    monkeypatch.delenv("FL_KEEP_GRAPHS")
    folder = tmp_path / "federated_suite" / "graphs"
    assert default_graph_dir() == str(folder)
    GraphFolder(str(folder)).store(DIGEST, make_round())
    (folder / f".1234.0a1b2c3d.{OTHER}.graphs").write_text("left by a process that was killed")
    (folder / "mine.txt").write_text("mine")
    assert clean_graph_dir() > 100 and [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_a_second_run_traces_nothing_and_has_the_same_bytes(make_federation, folder, tmp_path, monkeypatch):
    """Of one algorithm, which has a round of values of clients besides a sum."""
    import tree

    from tff_algos.local_only.process import LocalOnlyConfig, build_local_only_process

    data = make_federation([8, 5, 3])
    spec = make_spec("logistic_regression", data.format.input_shape)

    def train(graph_dir):
        """The arrays of the state after two rounds of a new process."""
        with run_in_process(str(tmp_path / "log"), num_threads=2, graph_dir=graph_dir):
            process = build_local_only_process(spec, data, LocalOnlyConfig(), 1)
            state = process.initialize()
            for _ in range(2):
                state, _ = process.next(state)
        return [np.asarray(array).tobytes() for array in tree.flatten(state)]

    without, first = train(""), train(str(folder))
    [path] = folder.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr("tff_algos.late_computation.LateComputation.made", property(lambda late: pytest.fail("traced")))
        assert without == first == train(str(folder))
    assert json.loads(path.read_bytes().split(b"\n")[2])["lists"]
    path.write_bytes(path.read_bytes()[:-1])
    assert train(str(folder)) == first
