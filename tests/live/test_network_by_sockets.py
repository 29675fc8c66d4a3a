"""The network of a run with clients that connect by sockets."""

import asyncio
import contextlib
import hashlib
import time
import types

import aiohttp
import numpy as np
from live_sockets import PATIENCE_S, connect, run_client

from launch.live.messages import pack, unpack
from launch.live.network import LiveNetwork
from launch.live.offers import Offer, count_most_bytes
from launch.live.roster import Roster
from launch.live.transport import WebSocketTransport
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, Task
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig

WEIGHTS = [np.zeros((20, 10), np.float32), np.ones(10, np.float32)]
FILE = types.SimpleNamespace(
    content=b"x" * 70_000,
    sha256=hashlib.sha256(b"x" * 70_000).hexdigest(),
    names=("weight_0", "weight_1"),
    shapes=((20, 10), (10,)),
    positions=(0, 1),
)
OFFER = Offer("FedAvg, digits", FILE, LocalTrainingConfig(epochs=1, batch_size=4), WEIGHTS, (8, 8, 1), 2, ["a", "b"], 3)


async def take_part(port, index, token, losses=()):
    """A client that answers by its index; it loses its connection before the tasks with these numbers, once each."""
    join = {"type": "join", "protocol": 2, "key": f"{index:032x}", "name": f"c{index}", "kind": "python"}
    join["token"] = token
    losses, heard = set(losses), []
    while True:
        async with connect(port) as ws:
            await ws.send_bytes(pack(join | {"num_train": 0, "num_test": 0}))
            async for each in ws:
                if each.type != aiohttp.WSMsgType.BINARY:
                    break
                message = unpack(each.data)
                heard.append(message.type)
                if message.type == "done":
                    return heard
                if message.type == "welcome" and "file" not in heard:
                    await ws.send_bytes(pack({"type": "fetch", "what": "file"}))
                if message.type == "train":
                    number = message.header["number"]
                    if number in losses:
                        losses.remove(number)
                        break
                    header = {name: message.header[name] for name in ("run", "number", "client", "file", "task")}
                    header |= {"type": "answer", "num_trained": 5, "loss_sum": 1.0, "seconds": 0.0}
                    deltas = {n: np.full_like(message.arrays[n], message.header["client"]) for n in FILE.names}
                    await ws.send_bytes(pack(header, deltas))


def ask_all(network, clients, number):
    for client in clients:
        seed = derive_seed(0, "training", number, client)
        network.ask(Task(client, number, number, tuple(WEIGHTS), seed, np.float32(0.1)))


def serve(folder, transport, num, away_after_s=PATIENCE_S):
    """(the network, a token for each of its clients)"""
    transport.start()
    roster = Roster(folder / "roster.json", [(5, 1)] * num)
    return LiveNetwork(transport, roster, away_after_s), list(roster.draw_tokens().values())


def test_fifty_clients_take_part_and_connections_that_are_lost_lose_nothing(tmp_path):
    num = 50
    transport = WebSocketTransport(0, count_most_bytes(WEIGHTS), num + 4)
    network, tokens = serve(tmp_path, transport, num)

    async def take_all_parts():
        parts = [take_part(transport.port, i, tokens[i], losses=[2] if i % 5 == 0 else []) for i in range(num)]
        return await asyncio.gather(*parts)

    clients = run_client(take_all_parts())
    network.enrol(num)
    network.publish(OFFER)
    network.start_clock(0.0)
    for number in (1, 2, 3):
        ask_all(network, range(num), number)
        answers = [network.take(None) for _ in range(num)]
        assert {each.what for each in answers} == {ANSWERED} and {each.number for each in answers} == {number}
        assert sorted(each.client for each in answers) == list(range(num))
        for each in answers:
            assert all((delta == each.client).all() for delta in each.result.weights_delta)
    traffic = network.take_traffic()
    assert (traffic.num_answered, traffic.num_late, traffic.num_returns) == (3 * num, 0, num / 5)
    network.finish("thank you")
    heard = clients.result(PATIENCE_S)
    assert all(each.count("train") >= 3 and each[-1] == "done" for each in heard)


def test_a_client_that_stays_away_leaves_and_may_come_back(tmp_path):
    transport = WebSocketTransport(0, count_most_bytes(WEIGHTS), 4)
    network, tokens = serve(tmp_path, transport, 1, away_after_s=0.1)

    async def join_and_go(port):
        async with connect(port) as ws:
            await ws.send_bytes(
                pack(
                    {"type": "join", "protocol": 2, "key": f"{0:032x}", "name": "", "kind": "python"}
                    | {"num_train": 0, "num_test": 0, "token": tokens[0]}
                )
            )
            return unpack(await ws.receive_bytes()).type

    first = run_client(join_and_go(transport.port))
    network.enrol(1)
    network.publish(OFFER)
    network.start_clock(0.0)
    assert first.result(PATIENCE_S) == "welcome"
    assert network.take(None).what == LEFT
    second = run_client(take_part(transport.port, 0, None))
    assert network.take(None).what == JOINED
    ask_all(network, [0], 1)
    assert network.take(None).what == ANSWERED
    network.finish("")
    assert second.result(PATIENCE_S)[-1] == "done"


def test_a_server_that_is_started_again_is_given_its_clients_by_themselves(tmp_path):
    transport = WebSocketTransport(0, count_most_bytes(WEIGHTS), 4)
    network, tokens = serve(tmp_path, transport, 1)

    async def insist(port):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(aiohttp.ClientError):
                return await take_part(port, 0, tokens[0])
            await asyncio.sleep(0.02)
        return []

    client = run_client(insist(transport.port))
    network.enrol(1)
    network._roster.keep()
    network.publish(OFFER)
    network.start_clock(0.0)
    ask_all(network, [0], 1)
    assert network.take(None).what == ANSWERED
    transport.stop()
    transport = WebSocketTransport(transport.port, count_most_bytes(WEIGHTS), 4)
    transport.start()
    roster = Roster(tmp_path / "roster.json", [(5, 1)])
    roster.read()
    network = LiveNetwork(transport, roster, PATIENCE_S)
    network.publish(OFFER)
    network.start_clock(7.0)
    assert network.find_present().tolist() == [0]
    ask_all(network, [0], 2)
    happening = network.take(None)
    assert happening.what == ANSWERED and happening.time_s > 7.0
    network.finish("")
    assert client.result(PATIENCE_S)[-1] == "done"
