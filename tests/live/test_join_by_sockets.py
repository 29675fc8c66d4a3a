"""`join.py` as people start it, with ai-edge-litert, beside a small server that says what a test has it say."""

import asyncio
import contextlib
import datetime
import functools
import os
import pathlib
import secrets
import signal
import socket

import numpy as np
import pytest
from certificates import make_certificate
from small_formats import make_spec

from launch.live import join
from launch.live.door import Door
from launch.live.messages import pack, unpack

aiohttp = pytest.importorskip("aiohttp")
web = pytest.importorskip("aiohttp.web")

ROOT = pathlib.Path(__file__).parents[2]
PYTHON = os.environ.get("LIVE_PYTHON", str(ROOT / ".venv-live" / "bin" / "python"))
pytestmark = pytest.mark.skipif(not os.path.exists(PYTHON), reason="make test-live installs ai-edge-litert")
SPEC = make_spec("logistic_regression", (4,))
NUM, SIZE, LIMIT_S = 21, 8, 60
ORDER = np.stack([np.random.default_rng(epoch).permutation(NUM) for epoch in range(2)]).astype(np.uint16)
STEPS = 2 * -(-NUM // SIZE)


@functools.cache
def make_file():
    from launch.live.training_file import make_training_file
    from tff_algos.settings.local_training import LocalTrainingConfig
    from tff_algos.weights import initialize_weights

    weights = initialize_weights(SPEC, seed=1)
    return make_training_file(SPEC, weights, LocalTrainingConfig(batch_size=SIZE)), weights


class Connection:
    """One of a client's, as the server has it."""

    def __init__(self, ws):
        self.ws, self.is_over = ws, asyncio.Event()

    async def hear(self, kind):
        """The next message, of this type."""
        while True:
            got = await asyncio.wait_for(self.ws.receive(), LIMIT_S)
            assert got.type == aiohttp.WSMsgType.BINARY, got
            message = unpack(got.data)
            assert message.type == kind, message.header
            return message

    async def say(self, kind, arrays=None, **header):
        await self.ws.send_bytes(pack({"type": kind, **header}, arrays or {}))

    async def part(self, client):
        """Hears what the client still says, until it ends: (exit code, lines)."""

        async def listen():
            while not self.ws.closed:
                await self.ws.receive()
            self.is_over.set()

        ended, _ = await asyncio.gather(end(client), listen())
        return ended

    async def dismiss(self, client):
        await self.say("done", text="over")
        code, lines = await self.part(client)
        assert code == 0 and lines[-1] == "over"
        return lines

    async def close(self):
        await self.ws.close()
        self.is_over.set()

    async def welcome(self, deals=True, **changes):
        file, _ = make_file()
        header = {"run": "r", "client": 0, "name": "FedAvg on digits", "file": file.sha256, "batch_size": SIZE}
        header |= {
            "file_bytes": len(file.content),
            "input_shape": [4],
            "num_classes": 3,
            "class_names": ["0", "1", "2"],
        }
        header |= {
            "weights": [[name, shape] for name, shape in zip(file.names, file.shapes, strict=True)],
        }
        await self.say("welcome", **{**header, "deals": deals, "round": 1, "rounds": 60, **changes})

    async def enrol(self):
        """Joining, the part and the file, of a client that has none yet; what it said when it joined."""
        joined = await self.hear("join")
        await self.welcome()
        for _ in range(2):
            await self.give(await self.hear("fetch"))
        return joined.header

    async def give(self, fetched, content=None):
        if fetched.header["what"] == "file":
            await self.say("file", {"content": np.frombuffer(content or make_file()[0].content, np.uint8)})
        else:
            await self.say("part", dict(zip(join.Examples._fields, EXAMPLES, strict=True)))

    async def ask(self, kind="train", **changes):
        file, weights = make_file()
        arrays = {name: weights[i] for name, i in zip(file.names, file.positions, strict=True)}
        header = {"run": "r", "number": 1, "client": 0, "file": file.sha256, "task": secrets.token_hex(4), "round": 3}
        header |= {"learning_rate": 0.05, "steps": STEPS, "batch_size": SIZE, "is_last": True, **changes}
        order = ORDER if header["steps"] == STEPS else np.tile(ORDER, (header["steps"] // STEPS, 1))
        await self.say(kind, {**arrays, "order": order}, **header)
        return header["task"]


def draw():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(NUM, 4)).astype(np.float32), rng.integers(0, 3, NUM, dtype=np.int32)
    return x, y, x[:5], y[:5]


EXAMPLES = draw()


class Server:
    """Listens on a port of 127.0.0.1; its connections come one after another."""

    def __init__(self, port=0, tls=None):
        self.port, self._tls, self._came = port, tls, asyncio.Queue()

    async def __aenter__(self):
        app = web.Application()
        app.router.add_get("/ws", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error):
        await self._runner.cleanup()

    async def _take(self, request):
        ws = web.WebSocketResponse(max_msg_size=0)
        await ws.prepare(request)
        connection = Connection(ws)
        await self._came.put(connection)
        await connection.is_over.wait()
        return ws

    async def meet(self):
        return await asyncio.wait_for(self._came.get(), LIMIT_S)


@contextlib.asynccontextmanager
async def start(port, home, *arguments, path="/#a_token-1", scheme="http"):
    """The client, which is ended when the test is."""
    command = [PYTHON, ROOT / "launch/live/join.py", f"{scheme}://127.0.0.1:{port}{path}", f"--home={home}", *arguments]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    client = await asyncio.create_subprocess_exec(*command, **pipes, env=environment)
    try:
        yield client
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()


async def end(client):
    """(exit code, lines, at the end what it says of an error)."""
    out, errors = await asyncio.wait_for(client.communicate(), LIMIT_S)
    assert b"Traceback" not in errors and b"never retrieved" not in errors, errors.decode()
    wrong = [line for line in errors.decode().splitlines() if line.startswith("error: ")]
    assert b"error: " not in out
    return client.returncode, [*out.decode().splitlines(), *wrong]


def live(scenario):
    """Runs an asynchronous test."""

    @functools.wraps(scenario)
    def run(tmp_path):
        make_file()
        asyncio.run(asyncio.wait_for(scenario(tmp_path), 2 * LIMIT_S))

    return run


def train_here():
    import tensorflow as tf

    file, weights = make_file()
    arrays = {name: weights[i] for name, i in zip(file.names, file.positions, strict=True)}
    header = {"steps": STEPS, "learning_rate": 0.05}
    trainer = join.Trainer(file.content, tf.lite.Interpreter)
    return trainer.train(join.Message(header, {**arrays, "order": ORDER}), join.Examples(*EXAMPLES), asyncio.Event())


@live
async def test_it_joins_trains_measures_tunes_and_is_done(tmp_path):
    async with Server() as server, start(server.port, tmp_path, "--name=Ada") as client:
        one = await server.meet()
        joined = await one.enrol()
        assert joined == {
            "type": "join",
            "protocol": 2,
            "key": (tmp_path / "key").read_text(),
            "token": "a_token-1",
            "name": "Ada",
            "kind": "python",
            "columns": None,
            "round_most_examples": None,
            "num_train": 0,
            "num_test": 0,
        }
        task = await one.ask()
        answer, expected = await one.hear("answer"), train_here()
        named = {"run": "r", "number": 1, "client": 0, "file": make_file()[0].sha256, "task": task}
        assert {name: answer.header[name] for name in named} == named
        assert answer.header["num_trained"] == expected.header["num_trained"] == 2 * NUM
        assert answer.header["loss_sum"] == pytest.approx(expected.header["loss_sum"], rel=1e-5)
        for name, delta in expected.arrays.items():
            np.testing.assert_allclose(answer.arrays[name], delta, rtol=0, atol=1e-5)
        await one.ask("evaluate")
        measured = await one.hear("measured")
        assert measured.header["num"] == 5 and 0 <= measured.header["correct"] <= 5
        names = list(answer.arrays)
        weights = {name: make_file()[1][i] for i, name in enumerate(names)}
        await one.say(
            "evaluate", run="r", client=0, file=named["file"], task="e", digest=join.digest_weights(weights, names)
        )
        again = await one.hear("measured")
        assert again.header["task"] == "e" and again.header["loss_sum"] == measured.header["loss_sum"]
        await one.say("evaluate", run="r", client=0, file=named["file"], task="f", digest="0" * 64)
        fetched = await one.hear("fetch")
        assert fetched.header == {"type": "fetch", "what": "weights", "task": "f"}
        await one.ask("fine_tune")
        tuned = await one.hear("tuned")
        assert tuned.header["before"]["loss_sum"] == measured.header["loss_sum"] != tuned.header["after"]["loss_sum"]
        assert (tmp_path / "personal.npz").exists()
        lines = await one.dismiss(client)
        assert lines[0] == "joined FedAvg on digits as client 0; round 1 of 60"
        assert lines[1].startswith("round 3 of 60: trained 42 examples in ") and lines[1].endswith(" kB")


@live
async def test_it_comes_back_with_its_key_and_its_file_when_the_server_does(tmp_path):
    async with Server() as server, start(server.port, tmp_path) as client:
        one = await server.meet()
        key = (await one.enrol())["key"]
        await one.close()
        two = await server.meet()
        assert (await two.hear("join")).header["key"] == key
        await two.welcome()  # nothing is fetched again
        await two.ask()
        await two.hear("answer")
        await two.close()
        three = await server.meet()
        await three.hear("join")
        await three.welcome(run="another")
        await three.ask()  # before its examples are there
        fetched = await three.hear("fetch")
        assert fetched.header["what"] == "part"
        await three.give(fetched)
        await three.hear("answer")
        await three.dismiss(client)


@live
async def test_a_killed_client_gives_its_answer_again_without_training(tmp_path):
    async with Server() as server:
        answers = []
        for number in range(2):
            async with start(server.port, tmp_path) as client:
                one = await server.meet()
                await one.hear("join")
                await one.welcome()
                await one.give(await one.hear("fetch"))
                if number == 0:
                    await one.give(await one.hear("fetch"))
                task = await one.ask()
                answers.append(await one.hear("answer"))
                assert answers[-1].header["task"] == task
                client.send_signal(signal.SIGKILL)
                assert (await end(client))[0] == -signal.SIGKILL
                await one.close()
        assert answers[0].header["seconds"] == answers[1].header["seconds"]
        assert all(np.array_equal(array, answers[1].arrays[name]) for name, array in answers[0].arrays.items())


@live
async def test_a_newer_task_or_a_withdrawal_ends_the_older_one(tmp_path):
    """100,000 steps would take longer than the test may."""
    async with Server() as server, start(server.port, tmp_path) as client:
        one = await server.meet()
        await one.enrol()
        await one.ask(steps=STEPS * 20_000)
        task = await one.ask()
        await one.ask("evaluate")  # which ends no training
        assert (await one.hear("answer")).header["task"] == task
        await one.hear("measured")
        task = await one.ask(steps=STEPS * 20_000)
        await one.say("withdrawn", task=task)
        task = await one.ask(learning_rate=0.1)
        assert (await one.hear("answer")).header["task"] == task
        await one.ask(steps=STEPS * 20_000)
        client.send_signal(signal.SIGINT)
        assert (await one.hear("leave")).header["reason"] == "stopped"
        code, lines = await one.part(client)
        assert code == 130 and lines[-1] == "left"


@live
async def test_heartbeats_are_answered_while_it_trains(tmp_path):
    async with Server() as server, start(server.port, tmp_path) as client:
        one = await server.meet()
        await one.enrol()
        task = await one.ask(steps=STEPS * 20_000)
        one.ws._autoping = False
        await one.ws.ping(b"there?")
        got = await asyncio.wait_for(one.ws.receive(), LIMIT_S)
        assert got.type == aiohttp.WSMsgType.PONG and got.data == b"there?"
        await one.say("withdrawn", task=task)
        await one.dismiss(client)


@live
async def test_two_clients_of_one_machine_have_seats_of_their_own(tmp_path):
    async with Server() as server, start(server.port, tmp_path) as first:
        one = await server.meet()
        async with start(server.port, tmp_path) as second:
            two = await server.meet()
            keys = {(await each.hear("join")).header["key"] for each in (one, two)}
            for each, client in ((one, first), (two, second)):
                await each.dismiss(client)
    assert len(keys) == 2


@live
async def test_own_examples_are_told_of_and_stay(tmp_path):
    x, y = EXAMPLES[:2]
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    description = {"kind": "arrays", "name": "d", "input_shape": [4], "input_dtype": "float32"}
    description |= {"classes": ["a", "b", "ü"], "scale": 1.0, "offset": 0.0}
    options = f"--data={tmp_path / 'mine.npz'}", "--most_examples=10"
    async with Server() as server, start(server.port, tmp_path / "home", *options) as client:
        one = await server.meet()
        assert (await one.hear("fetch")).header["what"] == "description"
        await one.say("description", description=description)
        joined = (await one.hear("join")).header
        assert (joined["num_train"], joined["num_test"]) == (10, 4)
        assert joined["columns"] == join.digest_description(description)
        await one.welcome(deals=False)
        await one.give(await one.hear("fetch"))
        file, weights = make_file()
        arrays = {name: weights[i] for name, i in zip(file.names, file.positions, strict=True)}
        order = np.arange(10, dtype=np.uint16)[np.newaxis]
        header = {"run": "r", "number": 1, "client": 0, "file": file.sha256, "task": "t", "round": 1}
        header |= {"learning_rate": 0.1, "steps": 2, "batch_size": SIZE}
        await one.say("train", {**arrays, "order": order}, **header)
        assert (await one.hear("answer")).header["num_trained"] == 10
        await one.dismiss(client)


async def _hear_wrong(tmp_path, speak, *options):
    """The last line of a client that was told something wrong, which ends it with 2."""
    async with Server() as server, start(server.port, tmp_path, *options) as client:
        one = await server.meet()
        await one.hear("join")
        await speak(one)
        code, lines = await one.part(client)
        assert code == 2
        return lines[-1]


@live
async def test_another_file_than_the_one_told_of_is_refused(tmp_path):
    async def speak(one):
        await one.welcome()
        while (fetched := await one.hear("fetch")).header["what"] != "file":
            pass
        await one.give(fetched, make_file()[0].content + b"\0")

    line = await _hear_wrong(tmp_path, speak)
    assert line == "error: the server sent a training file that is not the one it told of"
    assert not list(tmp_path.glob("*.tflite"))


@live
async def test_what_the_server_says_wrong_is_a_line(tmp_path):
    async def refuse(one):
        await one.say("refused", reason="protocol 1: expected 2; take the server's join.py", is_final=True)

    async def send_garbage(one):
        await one.ws.send_bytes(b"garbage")

    async def send_text(one):
        await one.ws.send_str("hello")

    async def boast(one):
        await one.welcome(file_bytes=2**40)

    async def bring(one):
        await one.welcome(deals=False)

    async def forget(one):
        await one.say("welcome", name="x")

    said = {refuse: "protocol 1: expected 2", send_garbage: "no message of live rounds", send_text: "sent text"}
    said |= {boast: "at most 536870912 are taken", bring: "bring yours by --data=<file>", forget: "not whole"}
    for number, (speak, line) in enumerate(said.items()):
        assert line in await _hear_wrong(tmp_path / str(number), speak)


@live
async def test_tasks_that_do_not_fit_are_a_line(tmp_path):
    async def speak(one):
        await one.welcome()
        for _ in range(2):
            await one.give(await one.hear("fetch"))
        await one.ask(batch_size=99)

    assert "does not fit its training file" in await _hear_wrong(tmp_path, speak)


@live
async def test_it_comes_only_within_its_hours(tmp_path):
    now = datetime.datetime.now()
    start_at, end_at = (now + datetime.timedelta(hours=each) for each in (2, 4))
    async with Server() as server:
        async with start(server.port, tmp_path, f"--hours={start_at:%H:%M}-{end_at:%H:%M}") as client:
            line = (await asyncio.wait_for(client.stdout.readline(), LIMIT_S)).decode()
            assert line.startswith("outside its hours; it comes back in ")
            client.send_signal(signal.SIGINT)
            assert (await end(client))[0] == 130
        async with start(server.port, tmp_path, f"--hours={end_at:%H:%M}-{start_at:%H:%M}") as client:
            one = await server.meet()
            await one.hear("join")
            await one.dismiss(client)


@live
async def test_a_refusal_that_is_not_final_is_tried_again(tmp_path):
    async with Server() as server, start(server.port, tmp_path) as client:
        one = await server.meet()
        await one.hear("join")
        await one.say("refused", reason="all seats are taken now", is_final=False)
        two = await server.meet()
        await one.close()
        await two.hear("join")
        assert "all seats are taken now" in await two.dismiss(client)


@live
async def test_nobody_there_is_said_once_and_tried_again(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    async with start(port, tmp_path, "--give_up_after_s=0.5") as client:
        code, lines = await end(client)
        assert code == 2 and len(lines) == 2
        assert "no live run answers there" in lines[0] and "tried for 0.5 s" in lines[1]
    async with start(port, tmp_path) as client:
        assert b"no live run answers there" in await asyncio.wait_for(client.stdout.readline(), LIMIT_S)
        async with Server(port) as server:
            one = await server.meet()
            await one.hear("join")
            await one.dismiss(client)


@live
async def test_a_certificate_is_one_that_the_machine_trusts_or_that_is_named(tmp_path):
    certificate, key = make_certificate(tmp_path)
    async with Server(tls=Door("", certificate, key).open_tls()) as server:
        async with start(server.port, tmp_path / "a", scheme="https") as client:
            code, (line,) = await end(client)
            assert code == 2 and line.endswith(
                "is not trusted here (self-signed certificate); --certificate=<PEM file> names one that is"
            )
        named = f"--certificate={certificate}"
        async with start(server.port, tmp_path / "b", named, scheme="https") as client:
            one = await server.meet()
            await one.enrol()
            await one.dismiss(client)


@live
async def test_https_for_a_server_without_is_a_line_at_once_and_so_is_the_reverse(tmp_path):
    async with Server() as server, start(server.port, tmp_path, scheme="https") as client:
        code, (line,) = await end(client)
        assert code == 2 and line.endswith("the server speaks no https; give its link, which begins with http:")
    tls = Door("", *make_certificate(tmp_path)).open_tls()
    async with Server(tls=tls) as server, start(server.port, tmp_path) as client:
        code, (line,) = await end(client)
        assert code == 2 and line.endswith("the server speaks https; give its link, which begins with https:")


@live
async def test_another_server_is_a_line(tmp_path):
    runner = web.AppRunner(web.Application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with start(site._server.sockets[0].getsockname()[1], tmp_path) as client:
        code, lines = await end(client)
    await runner.cleanup()
    assert code == 2 and len(lines) == 1 and "no live run is there (HTTP 404)" in lines[0]
