"""The modules of the participant's page under Node: they do what join.py does, message by message."""

import base64
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import pytest

from launch.live.client_page import FOLDERS
from launch.live.join import JoinError, digest_weights
from launch.live.join import unpack as unpack_as_client
from launch.live.messages import VERSION, pack, unpack

MODULES = pathlib.Path(__file__).with_name("page_modules.mjs")
PART = {
    "train_x": np.array([[1], [2]], np.float32),
    "train_y": np.array([0, 1], np.int32),
    "test_x": np.array([[3]], np.float32),
    "test_y": np.array([1], np.int32),
}
FILE = b"the training file"
SHA256 = hashlib.sha256(FILE).hexdigest()
WEIGHTS = np.array([0.5, -1], np.float32)


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Does what page_modules.mjs knows to do."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    folder = tmp_path_factory.mktemp("page")
    (folder / "package.json").write_text('{"type": "module"}')
    for source in (path for each in FOLDERS[::-1] for path in each.glob("*.js")):
        shutil.copy(source, folder)
    process = subprocess.Popen(
        ["node", str(MODULES), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(what, **given):
        process.stdin.write(json.dumps({"do": what, **given}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    assert process.wait() == 0


def encode(content):
    return base64.b64encode(content).decode()


def test_the_page_speaks_the_version_of_the_server(ask):
    assert ask("version") == VERSION


def test_sha256_is_that_of_the_standard(ask):
    draw = np.random.default_rng(0)
    for size in (*range(140), 1000, 100_000):
        content = draw.bytes(size)
        cut = int(draw.integers(0, size + 1))
        parts = [encode(content[:cut]), encode(content[cut:])]
        assert ask("sha256", parts=parts) == hashlib.sha256(content).hexdigest()


def test_messages_come_back(ask):
    arrays = {
        "weight_0": np.arange(6, dtype=np.float32).reshape(2, 3),
        "order": np.arange(5, dtype=np.uint16).reshape(1, 5),
        "long": np.array([70_000], np.uint32),
        "content": np.frombuffer(b"abc", np.uint8),
        "rate": np.array(7, np.int32),
        "none": np.zeros((0, 3), np.float32),
    }
    content = pack({"type": "train", "name": "Zoë ☃"}, arrays)
    found = unpack(base64.b64decode(ask("repack", content=encode(content))))
    assert found.header == {"type": "train", "name": "Zoë ☃"} and list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype and found.arrays[name].shape == array.shape


def test_what_is_no_message_is_refused_as_by_join_py(ask):
    def make(listed, content=b"", header_size=None):
        text = json.dumps({"type": "train", "arrays": listed}).encode()
        text += b" " * (-len(text) % 4)
        return struct.pack("<I", len(text) if header_size is None else header_size) + text + content

    wrong = [
        *(b"", b"\1\0", bytes(4), b"\xff\xff\xff\xff", make([], b"more"), make([], header_size=2**20 + 1)),
        *(make([["w", "<f4", [2]]], bytes(4)), make([["w", "<f8", [1]]], bytes(8)), make([["w", "<f4", [-1]]])),
        *(make([["w", "<f4", [1]]] * 2, bytes(8)), make([["w", "<f4", [2**31]]]), make([[1, "<f4", []]], bytes(4))),
        *(make([["w", "<f4", [0] * 9]]), make([["w", "<f4", [1.5]]]), make("w"), make([["w", "<f4", [2**30] * 4]])),
        pack({"type": "train"}, {"w": WEIGHTS})[:-1],
    ]
    for content in wrong:
        with pytest.raises(JoinError) as refused:
            unpack_as_client(content)
        assert ask("repack", content=encode(content)) == f"refused: {refused.value}"


def test_a_batch_is_filled_with_other_examples_of_the_order(ask):
    found = ask("batches", order=[2, 0, 4, 1, 3, 3, 1, 0, 2, 4], numExamples=5, labels=[5, 6, 7, 8, 9], size=3, steps=4)
    assert found == [
        {"count": 3, "rows": [2, 0, 4], "labels": [7, 5, 9]},
        {"count": 2, "rows": [1, 3, 2], "labels": [6, 8, -1]},
        {"count": 3, "rows": [3, 1, 0], "labels": [8, 6, 5]},
        {"count": 2, "rows": [2, 4, 3], "labels": [7, 9, -1]},
    ]
    assert ask("batches", order=[1, 0], numExamples=2, labels=[3, 4], size=5, steps=1) == [
        {"count": 2, "rows": [1, 0, 1, 0, 1], "labels": [4, 3, -1, -1, -1]}
    ]


def test_where_others_can_read_along_is_known(ask):
    private = ["https://a.example/", "http://127.0.0.1:8700/", "http://localhost:8700/", "http://[::1]:8700/"]
    public = ["http://192.168.0.7:8700/", "http://a.example/", "http://127.0.0.1.a.example/"]
    assert ask("isOpenNetwork", addresses=private + public) == [False] * 4 + [True] * 3


# --- A client, connection by connection ---


def welcome(**changed):
    header = {"type": "welcome", "run": "r", "client": 3, "name": "n", "file": SHA256, "file_bytes": len(FILE)}
    header |= {"batch_size": 2, "input_shape": [1], "num_classes": 2, "class_names": [], "weights": [["weight_0", [2]]]}
    header |= {"deals": True, "round": 1, "rounds": 9}
    return encode(pack({**header, **changed}))


def make_task(kind, number, arrays=None, **header):
    given = {"weight_0": WEIGHTS} if arrays is None else arrays
    given = given | ({"order": np.array([[0, 1]], np.uint16)} if kind != "evaluate" else {})
    work = {"learning_rate": 0.1, "steps": 1, "batch_size": 2} if kind != "evaluate" else {}
    named = {
        "type": kind,
        "run": "r",
        "number": number,
        "client": 3,
        "file": SHA256,
        "task": f"task {number}",
        "round": 1,
    }
    return encode(pack({**named, **work, **header}, given))


PART_MESSAGE = encode(pack({"type": "part"}, PART))
FILE_MESSAGE = encode(pack({"type": "file", "sha256": SHA256}, {"content": np.frombuffer(FILE, np.uint8)}))
DONE = encode(pack({"type": "done", "text": "over"}))


def play(ask, *script, **options):
    """(what the client sent in each connection, what it told, how it ended)."""
    found = ask("client", script=script, **options)
    sent = {}
    for connection, content in found["sent"]:
        sent.setdefault(connection, []).append(unpack(base64.b64decode(content)))
    return list(sent.values()), found["told"], found["ending"]


def test_a_client_joins_fetches_trains_and_is_thanked(ask):
    (sent,), told, ending = play(ask, [welcome(), PART_MESSAGE, FILE_MESSAGE, make_task("train", 7), DONE])
    join = sent[0].header
    assert (join["type"], join["protocol"], join["kind"], join["token"]) == ("join", VERSION, "browser", "token")
    assert len(join["key"]) == 64 and join["columns"] is None and join["num_train"] == 0
    assert [each.type for each in sent] == ["join", "fetch", "fetch", "answer"]
    assert sent[1].header["what"] == "part" and sent[2].header["file"] == SHA256
    answer = sent[3]
    named = {"run": "r", "number": 7, "client": 3, "file": SHA256, "task": "task 7"}
    assert named.items() <= answer.header.items() and answer.header["num_trained"] == 2
    np.testing.assert_array_equal(answer.arrays["weight_0"], [1, 1])
    assert ending == "done" and told[-1] == "done"


def test_when_the_run_is_over_nothing_is_kept_but_the_model_in_memory(ask):
    messages = [welcome(), PART_MESSAGE, FILE_MESSAGE, make_task("train", 7)]
    found = ask("client", script=[[*messages, DONE]])
    assert (found["ending"], found["kept"], found["canTry"]) == ("done", [], True)
    stopped = ask("client", script=[messages])
    assert sorted(stopped["kept"]) == ["answer", f"file/{SHA256}", "key"]


def test_who_knocks_is_known_or_refused(ask):
    known, refused = (
        encode(pack(each)) for each in ({"type": "known"}, {"type": "refused", "reason": "unknown", "is_final": True})
    )
    (first, second), _, ending = play(ask, [known], [welcome(), DONE], knocks=True)
    assert (first[0].type, first[0].header["token"], ending) == ("knock", "token", "done")
    assert first[0].header["key"] == second[0].header["key"]
    (sent,), _, ending = play(ask, [refused], knocks=True)
    assert [each.type for each in sent] == ["knock"] and ending == "unknown, for good"


def test_what_is_said_before_joining_is_what_holds(ask):
    about = {"rounds": 3, "deals": True, "runtimeBytes": 9, "fileBytes": 9, "modelBytes": 9, "examples": [1, 2]}
    about |= {"deadlineS": 60, "private": False}
    told = "\n".join(ask("consent", about=about, isLit=True))
    assert "The screen stays on" in told and "noise" not in told and "network address" in told and "“Firefox”" in told
    told = "\n".join(ask("consent", about=about | {"private": True}, isLit=False))
    assert "The screen goes dark" in told and "sees each update by itself" in told and "adds noise to the sum" in told


def test_a_task_that_comes_again_gets_the_last_answer_again(ask):
    again = make_task("train", 8)
    connections = [[welcome(), PART_MESSAGE, FILE_MESSAGE, make_task("train", 7)], None, [welcome(), again, DONE]]
    sent, told, ending = play(ask, *connections)
    first, second = sent[0][-1], sent[1][-1]
    assert sent[0][0].header["key"] == sent[1][0].header["key"]
    assert [each.type for each in sent[1]] == ["join", "answer"]  # it has its file and its part
    assert second.header["task"] == "task 8" and first.header["seconds"] == second.header["seconds"]
    assert told.count("lost") == 2 and ending == "done"


def test_what_is_withdrawn_is_not_begun(ask):
    withdrawn = encode(pack({"type": "withdrawn", "task": "task 7"}))
    (sent,), _, _ = play(ask, [welcome(), make_task("train", 7), withdrawn, PART_MESSAGE, FILE_MESSAGE, DONE])
    assert "answer" not in [each.type for each in sent]


def test_weights_that_it_has_are_named_by_their_digest(ask):
    digest = digest_weights({"weight_0": WEIGHTS}, ["weight_0"])
    known, unknown = (make_task("evaluate", number, {}, digest=each) for number, each in ((8, digest), (9, "0" * 64)))
    beginning = [welcome(), PART_MESSAGE, FILE_MESSAGE, make_task("train", 7)]
    (sent,), _, _ = play(ask, [*beginning, known, unknown, DONE])
    measured = next(each.header for each in sent if each.type == "measured")
    assert {"task": "task 8", "num": 1, "correct": 1, "loss_sum": 0.5}.items() <= measured.items()
    assert {"type": "fetch", "what": "weights", "task": "task 9"}.items() <= sent[-1].header.items()


def test_tuned_weights_stay(ask):
    task = make_task("fine_tune", 7, is_last=True)
    (sent,), _, _ = play(ask, [welcome(), PART_MESSAGE, FILE_MESSAGE, task, DONE])
    assert sent[-1].type == "tuned" and not sent[-1].arrays and sent[-1].header["before"]["num"] == 1


@pytest.mark.parametrize(
    "messages, line",
    [
        ([encode(pack({"type": "refused", "reason": "this link is taken", "is_final": True}))], "this link is taken"),
        ([encode(b"nonsense")], "no message of live rounds"),
        ([welcome(deals=False)], "deals no examples"),
        ([welcome(file_bytes=2**30)], "at most"),
        ([welcome(weights=[["weight_0", [3]]]), PART_MESSAGE, FILE_MESSAGE], "other weights or inputs"),
        ([welcome(file="0" * 64), FILE_MESSAGE], "not the one it told of"),
        ([welcome(num_classes=1), PART_MESSAGE, FILE_MESSAGE, make_task("train", 7)], "do not fit the run's"),
        ([welcome(), encode(pack({"type": "part"}, {"train_x": WEIGHTS}))], "examples that are none"),
    ],
)
def test_what_cannot_be_meant_ends_it_in_a_line(ask, messages, line):
    _, _, ending = play(ask, messages, [DONE])
    assert line in ending and "\n" not in ending
