"""A transport without sockets, whose time stands still until somebody waits; and clients of it.

A client is a pair of functions: what it does with a message, and what it does when its connection is closed.
"""

import bisect
import itertools

import numpy as np

from launch.live.messages import VERSION, pack, unpack
from launch.live.roster import Roster
from launch.live.transport import Received
from tff_algos.rounds.network import TICK_S

TICKS = round(1 / TICK_S)  # a second


class Silence(AssertionError):
    """Somebody waits for ever, and nobody is there who could say anything."""


class MemoryTransport:
    """See `launch.live.transport.Transport`. `ticks` is the time; a test may set it forward."""

    def __init__(self, ticks=1000):
        self.ticks = ticks
        self.is_open = False
        self.shown, self.token, self.admitted = [], None, set()
        self.most_connections = 1000
        self._received, self._numbers, self._clients = [], itertools.count(), {}

    def start(self):
        self.is_open = True

    def stop(self):
        for number in list(self._clients):
            self.close(number)
        self.is_open = False

    def now_ticks(self):
        return self.ticks

    def send(self, connection, content):
        if connection in self._clients:
            self._clients[connection][0](content)

    def close(self, connection, content=None):
        if content is not None:
            self.send(connection, content)
        if (client := self._clients.pop(connection, None)) is not None:
            client[1]()
            self._put(Received(connection, self.ticks, None))

    def receive(self, until_ticks):
        if until_ticks is None and not self._received:
            raise Silence
        if self._received and (until_ticks is None or self._received[0].ticks <= max(until_ticks, self.ticks)):
            self.ticks = max(self.ticks, self._received[0].ticks)
            return self._received.pop(0)
        self.ticks = max(self.ticks, until_ticks)
        return None

    def know(self, is_known):
        self.is_known = is_known

    def admit(self, connection):
        self.admitted.add(connection)

    def take_refused(self):
        return {}

    def show(self, content):
        self.shown.append(content)

    def connect(self, hear, be_closed=lambda: None):
        """Opens a connection; returns two functions: what the client says with, `(content, after_s=0)`, and what it
        hangs up with, `(after_s=0)`. What is to come later is said in the order of its times."""
        number = next(self._numbers)
        self._clients[number] = hear, be_closed

        def say(content, after_s=0.0):
            if number in self._clients or content is None:
                self._put(Received(number, self.ticks + round(after_s * TICKS), content))

        def hang_up(after_s=0.0):
            if self._clients.pop(number, None) is not None:
                say(None, after_s)

        return say, hang_up

    def _put(self, received):
        bisect.insort(self._received, received, key=lambda each: each.ticks)  # behind those of the same time


def open_roster(transport, *arguments, **options):
    """A roster whose seats are taken in order: its one token is that of the transport's clients from now on."""
    roster = Roster(*arguments, is_shared=True, **options)
    transport.token = next(iter(roster.draw_tokens().values()))
    return roster


class ScriptedClient:
    """A client that does what a test says, and keeps what it was told."""

    def __init__(self, transport, key, **header):
        self.server, self.react = transport, lambda message: None
        self.join_header = {
            "type": "join",
            "protocol": VERSION,
            "key": key,
            "token": transport.token,
            "name": f"client {key[:2]}",
            "kind": "python",
            "num_train": 0,
            "num_test": 0,
            "columns": None,
            "round_most_examples": None,
            **header,
        }
        self.connect()

    def connect(self):
        self.heard, self.is_closed = [], False
        self._say, self.hang_up = self.server.connect(self._hear, self._be_closed)

    def join(self, **changes):
        self.say({**self.join_header, **changes})
        return self

    def come_back(self):
        self.connect()
        return self.join()

    def say(self, header, arrays=(), after_s=0.0):
        content = header if isinstance(header, bytes) else pack(header, dict(arrays))
        self._say(content, after_s)

    def list_heard(self, kind):
        return [message for message in self.heard if message.type == kind]

    def answer(self, task, value=1.0, after_s=0.0, arrays=None, **changes):
        """Answers a `train` message by deltas of one value."""
        names = [name for name in task.arrays if name.startswith("weight_")]
        deltas = {name: np.full(task.arrays[name].shape, value, np.float32) for name in names}
        header = {name: task.header[name] for name in ("run", "number", "client", "file", "task")}
        header |= {"type": "answer", "num_trained": task.arrays["order"].size, "loss_sum": 2.5, "seconds": 0.25}
        self.say(header | changes, deltas if arrays is None else arrays, after_s)

    def _hear(self, content):
        self.heard.append(unpack(content))
        self.react(self.heard[-1])

    def _be_closed(self):
        self.is_closed = True
