"""The clients of a live run: who is there, what each was asked, and what they answer.

`LiveNetwork` is the `Network` of the algorithms, and does what a run needs of its clients beside rounds: they join,
fetch the training file, measure a model, and are told the end. All is called from the main thread; messages wait in the
transport until a call takes them. Who is there when the clock starts is present from the beginning: nobody hears of
JOINED. A run that goes on has all of its seats present, and those who do not come back within the grace leave then.
"""

import collections
import math
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from launch.live.client_state import ClientState, Pending, Queued
from launch.live.fields import read_duration, read_text
from launch.live.measured import Answer
from launch.live.messages import NOTHING, Message, MessageError, Packed, pack, pack_arrays, unpack
from launch.live.offers import Offer, describe_work, pick_weights
from launch.live.orders import order_all
from launch.live.referee import EXPELLED, LENIENT, Asked, Conduct, Limits, Referee, Rejection, Sums
from launch.live.roster import Refusal, Roster, read_caller, read_join
from launch.live.status import Status, describe_seat
from launch.live.traffic import Traffic
from launch.live.transport import Received, Transport
from launch.live.waiting import Waiting
from tff_algos.client.local_training import count_examples_trained
from tff_algos.rounds.network import ANSWERED, JOINED, LEFT, REJECTED, TICK_S, Happening, Task

MOST_NOTICES = 200  # different lines that are kept for who runs the server
MOST_FETCHED = 16  # files and parts by a connection; a client needs three

# What is asked beside rounds, and the message that answers it.
EVALUATE, FINE_TUNE = "evaluate", "fine_tune"
_ANSWERS = (ANSWERED, REJECTED)
Show = Callable[[list[str]], None]
_REPLIES = {"measured": EVALUATE, "tuned": FINE_TUNE}


class LiveNetwork:
    """See the module, and `tff_algos.rounds.network.Network`.

    Args:
      transport: carries messages; the session starts it, `finish` stops it.
      roster: of a new run, or, read, of one that goes on.
      away_after_s: the grace: after so long without a connection a client has left.
      load_part: where the run deals out its examples, a client's, as arrays of the message `part`.
      description: of people's own examples, for `fetch`.
      status: for who watches the run; it is told how it is with each client, and shown while the network waits.
      limits: of what counts.

    Attributes:
      round_num: shown to who joins; the session sets it.
    """

    def __init__(
        self,
        transport: Transport,
        roster: Roster,
        away_after_s: float = 10.0,
        load_part: Callable[[int], Mapping[str, np.ndarray]] | None = None,
        description: Mapping[str, Any] | None = None,
        status: Status | None = None,
        limits: Limits = LENIENT,
    ):
        self._transport, self._roster, self._status = transport, roster, status
        self._grace = math.ceil(away_after_s / TICK_S)
        self._load_part, self._description = load_part, description
        self._clients = [ClientState() for _ in roster.seats]
        self._lost = dict[int, int]()  # by client: when its connection was lost, while the grace lasts
        self._present: np.ndarray | None = None  # see `find_present`; None: anew
        self._client_of = dict[int, int]()  # by connection
        self._closed = set[int]()  # connections of which something may still wait in the transport
        self._happened = collections.deque[Queued]()
        self._held: Received | None = None
        self._start: tuple[int, int] | None = None  # ticks of the transport and of the run when the clock started
        self._floor = 0  # ticks of the run before which nothing more happens
        self._counts = collections.Counter[str]()
        self._timings: list[Answer] = []
        self._notices = collections.Counter[str]()
        self._replies = dict[int, tuple[Sums, ...]]()
        self._offer: Offer | None = None
        self._files = dict[str, bytes]()  # that were offered, by SHA-256: the message, which all get
        self._referee: Referee | None = None
        self._conduct = Conduct(limits)
        self._waiting = Waiting(transport.now_ticks, self._step, self._list_connected)
        self.round_num = 0
        transport.know(self._is_known)
        self._see(*range(len(self._clients)))

    # --- Before the rounds ---

    def enrol(self, least: int, show: Show = lambda names: None, tell: Callable[[], None] | None = None) -> None:
        """Waits until so many clients have joined, and fixes the seats; see `Waiting` for `show` and `tell`.

        A seat whose client goes before that is free again when its grace is over.
        """
        while not self._roster.is_fixed:
            self._waiting.wait(least, least, 0.0, show, tell)
            # Who knocked before it begins is let in, too.
            while self._step(self._transport.now_ticks()):
                pass
            names = self._list_connected()
            if len(names) >= least:
                show(names)
                self._fix()

    def await_return(
        self, least: int, patience_s: float, show: Show = lambda names: None, tell: Callable[[], None] | None = None
    ) -> None:
        """Waits until so many clients of a run that goes on are connected again; the clock does not run yet.

        For the others that have a seat it waits so many seconds more.
        """
        self._waiting.wait(least, max(least, self._roster.num_seated), patience_s, show, tell)

    def _list_connected(self) -> list[str]:
        """The names of those who are connected, in the order of their seats."""
        seats = zip(self._roster.seats, self._clients, strict=True)
        return [seat.name for seat, client in seats if client.connection is not None]

    def publish(self, offer: Offer) -> None:
        """Welcomes all who are there, and from now on who joins. Again, with another file, for a last task."""
        self._offer, self._referee = offer, Referee(self._roster.run, offer.file, offer.weights)
        header = {"type": "file", "sha256": offer.file.sha256}
        self._files[offer.file.sha256] = pack(header, {"content": np.frombuffer(offer.file.content, np.uint8)})
        for client in range(len(self._clients)):
            self._welcome(client)

    # --- The network of an algorithm ---

    def start_clock(self, time_s: float) -> None:
        if self._start is not None:
            return
        now, self._floor = self._transport.now_ticks(), math.ceil(time_s / TICK_S)
        self._start, self._present = (now, self._floor), None
        for index, (seat, client) in enumerate(zip(self._roster.seats, self._clients, strict=True)):
            if seat is not None:
                client.is_here = client.is_present = True
                if client.connection is None:
                    self._lost.setdefault(index, now)

    def now_s(self) -> float:
        self._floor = max(self._floor, self._to_run(self._transport.now_ticks()))
        return self._floor * TICK_S

    def find_present(self) -> np.ndarray:
        if self._present is None:
            self._present = np.flatnonzero([client.is_present for client in self._clients]).astype(np.int64)
        return self._present.copy()

    def ask(self, *tasks: Task) -> None:
        new = [task for task in tasks if not self._has(task)]
        offer, sizes = self._offer, [self._roster.count_examples(task.client)[0] for task in new]
        starts = {id(task.start): task.start for task in new}
        packed = {each: pack_arrays(pick_weights(offer.file, start)) for each, start in starts.items()}
        orders = order_all(offer.training, sizes, [task.seed for task in new])
        for task, size, (steps, order) in zip(new, sizes, orders, strict=True):
            client = self._clients[task.client]
            self._drop_answers(task.client)
            num_trained = count_examples_trained(offer.training, size)
            most_norm = self._conduct.find_most_norm(task.version, task.start)
            asked = Asked(secrets.token_hex(8), task.client, task.number, num_trained, most_norm)
            header = describe_work(offer, steps, task.learning_rate) | self._name(task.client)
            header |= {"number": task.number, "round": self.round_num}
            client.task = Pending("train", asked, header, {"order": order}, packed[id(task.start)])
            self._counts["num_asked"] += 1
            self._send_pending(client, client.task)
            self._see(task.client)

    def _has(self, task: Task) -> bool:
        """Whether its client has this task, or has answered it."""
        client = self._clients[task.client]
        numbers = [each.number for each in self._happened if each.client == task.client and each.what in _ANSWERS]
        return task.number in numbers or bool(client.task and client.task.asked.number == task.number)

    def withdraw(self, client: int) -> None:
        self._counts["num_missing"] += self._clients[client].task is not None
        self._forget(client)

    def take(self, until_s: float | None) -> Happening | None:
        until = None if until_s is None else math.floor(until_s / TICK_S)
        limit = None if until is None else self._to_transport(until)
        while not self._happened:
            if not self._step(limit):
                break
        if not self._happened or (until is not None and self._time_next() > until):
            self._floor = max(self._floor, until + 1)
            return None
        self._floor = self._time_next()
        each = self._happened.popleft()
        self._counts["num_answered"] += each.what == ANSWERED
        self._counts["num_rejected"] += each.what == REJECTED
        self._clients[each.client].num_answered += each.what == ANSWERED
        if each.what in (JOINED, LEFT):
            self._clients[each.client].is_present, self._present = each.what == JOINED, None
        if each.what == LEFT:  # what it was asked since it went is counted out, too
            self._forget(each.client)
        self._see(each.client)
        return Happening(self._floor * TICK_S, each.client, each.what, each.number, each.result)

    # --- Beside rounds ---

    def gather(
        self, kind: str, requests: Mapping[int, tuple[Mapping[str, Any], Mapping[str, np.ndarray]]], timeout_s: float
    ) -> dict[int, tuple[Sums, ...]]:
        """Asks clients to measure a model, or to fine-tune it, and waits for those who are there, at most so long.

        What happens meanwhile to tasks of the algorithm is kept for `take`.

        Args:
          kind: EVALUATE or FINE_TUNE.
          requests: by client: what the header has beside its run, client, file and task; and the arrays. If the header
            has a digest of the weights among these, they are sent only to a client that asks for them.
          timeout_s: how long to wait.

        Returns:
          By client that answered: what it measured; of FINE_TUNE before and after.
        """
        self._replies = {}
        for index, (header, arrays) in requests.items():
            client = self._clients[index]
            if client.is_here:
                asked = Asked(secrets.token_hex(8), index)
                client.request = Pending(kind, asked, self._name(index) | dict(header), arrays)
                self._send_pending(client, client.request)
                self._see(index)
        until = self._transport.now_ticks() + math.ceil(timeout_s / TICK_S)
        while any(client.request for client in self._clients) and self._step(until):
            pass
        for index, client in enumerate(self._clients):
            if client.request is not None:
                self._withdraw(index, client.request)
                client.request = None
                self._see(index)
        return self._replies

    def finish(self, text: str) -> None:
        """Tells all that the run is over, in a line for people, and closes."""
        for client in self._clients:
            if client.connection is not None:
                self._close(client.connection, {"type": "done", "text": text})
        self._transport.stop()

    def take_traffic(self) -> Traffic:
        """What went over the network since the last call."""
        counts = self._counts | {"num_present": len(self.find_present())}
        self._counts = collections.Counter()
        return Traffic(*(counts.get(name, 0) for name in Traffic._fields))

    def take_timings(self) -> list[Answer]:
        """How long the answers took that counted since the last call."""
        taken, self._timings = self._timings, []
        return taken

    def take_notices(self) -> list[str]:
        """Lines for who runs the server, on answers that did not count and clients without a seat."""
        self._note(*self._conduct.take_lines())
        taken = [line + f" ({count:,} times)" * (count > 1) for line, count in self._notices.items()]
        self._notices.clear()
        return taken

    # --- Time ---

    def _to_run(self, ticks: int) -> int:
        start, time = self._start
        return time + max(ticks - start, 0)

    def _to_transport(self, ticks: int) -> int:
        start, time = self._start
        return ticks - time + start

    def _time_next(self) -> int:
        return max(self._floor, self._to_run(self._happened[0].ticks))

    # --- What comes ---

    def _step(self, until: int | None) -> bool:
        """Handles the next thing that came, or lets a client go whose grace is over; False: nothing until this time."""
        expiry, gone = self._find_expiry()
        due = self._status.show_if_due(self._transport.now_ticks()) if self._status is not None else None
        times = [each for each in (until, expiry, due) if each is not None]
        received, self._held = self._held or self._transport.receive(min(times, default=None)), None
        if expiry is not None and (received is None or expiry <= received.ticks) and (until is None or expiry <= until):
            self._held = received
            self._let_go(gone, expiry)
            return True
        if received is None and due is not None and (until is None or due < until):
            return True
        if received is None or (until is not None and received.ticks > until):
            self._held = received
            return False
        if received.content is None:
            self._closed.discard(received.connection)
            self._lose(received)
        elif received.connection not in self._closed:
            self._counts["bytes_up"] += len(received.content)
            self._hear(received)
        return True

    def _find_expiry(self) -> tuple[int | None, int]:
        """When the next grace is over, and whose; None while those of a run that goes on come back."""
        if not self._lost or (self._start is None and self._roster.is_fixed):
            return None, -1
        ticks, index = min((ticks, index) for index, ticks in self._lost.items())
        return ticks + self._grace, index

    def _let_go(self, index: int, ticks: int) -> None:
        client = self._clients[index]
        client.is_here, client.task, client.request = False, None, None
        self._lost.pop(index, None)
        if self._roster.is_fixed:
            self._happened.append(Queued(ticks, index, LEFT))
        else:
            self._roster.release(index)
        self._see(index)

    def _lose(self, received: Received) -> None:
        if (index := self._client_of.pop(received.connection, None)) is None:
            return
        client = self._clients[index]
        client.connection = None
        if client.is_here or self._start is None:
            self._lost[index], client.has_been_lost = received.ticks, self._roster.is_fixed
        self._see(index)

    def _hear(self, received: Received) -> None:
        try:
            message = unpack(received.content)
            index = self._client_of.get(received.connection)
            if index is None:
                self._greet(received, message)
            elif message.type == "answer":
                self._take_answer(index, message, received)
            elif message.type in _REPLIES:
                self._take_reply(index, message)
            elif message.type == "fetch":
                self._serve(index, message)
            elif message.type == "leave":
                self._leave(index, received, message)
            else:
                raise MessageError(f"a message {message.type[:20]!r} was not expected")
        except Refusal as refusal:
            self._refuse(received.connection, refusal.reason, refusal.is_final)
        except MessageError as error:
            self._refuse(received.connection, f"a message cannot be read: {error}", True)

    def _refuse(self, connection: int, reason: str, is_final: bool) -> None:
        self._note(f"a client is refused: {reason}")
        self._close(connection, {"type": "refused", "reason": reason, "is_final": is_final})
        if connection in self._client_of:
            self._lose(Received(connection, self._transport.now_ticks(), None))

    def _is_known(self, content: bytes) -> bool:
        """Whether this first message names the key of a seat, or a token that is good for one. Of any thread."""
        try:
            return self._roster.find_seat(read_caller(unpack(content).header)) not in self._conduct.expelled
        except (Refusal, MessageError, IndexError):  # the last one while the seats are being fixed
            return False

    def _greet(self, received: Received, message: Message) -> None:
        """Hears one that has not joined: if it may, it looks first at what its examples must be."""
        if message.type == "leave":
            self._close(received.connection)
        elif message.type == "fetch" and message.header.get("what") == "description":
            self._roster.find_seat(read_caller(message.header))
            if self._description is None:
                raise Refusal("this run deals out its examples: leave out --data")
            content = self._pack({"type": "description", "description": self._description})
            self._counts["bytes_of_files"] += len(content)
            self._transport.send(received.connection, content)
        elif message.type == "knock":
            self._roster.find_seat(read_caller(message.header))
            self._transport.send(received.connection, self._pack({"type": "known"}))
        elif message.type == "join":
            self._join(received, message)
        else:
            raise MessageError("the first one must be to join")

    def _join(self, received: Received, message: Message) -> None:
        index = self._roster.admit(read_join(message.header))
        client = self._clients[index]
        if index in self._conduct.expelled:
            raise Refusal(EXPELLED)
        self._transport.admit(received.connection)
        if client.connection is not None:
            del self._client_of[client.connection]
            reason = "it was opened again elsewhere, which has the seat now"
            self._close(client.connection, {"type": "refused", "reason": reason, "is_final": True})
        self._client_of[received.connection] = index
        client.connection, client.num_fetched = received.connection, 0
        self._lost.pop(index, None)
        self._counts["num_returns"] += client.has_been_lost
        client.has_been_lost = False
        if self._start is not None and not client.is_here:
            client.is_here = True
            self._happened.append(Queued(received.ticks, index, JOINED))
        self._welcome(index)
        for pending in (client.task, client.request):
            if pending is not None:
                self._send_pending(client, pending)
        self._see(index)

    def _leave(self, index: int, received: Received, message: Message) -> None:
        """A client goes on purpose: it has left without a grace."""
        read_text(message.header, "reason")
        client = self._clients[index]
        self._close(received.connection)
        self._lose(received)
        if self._start is not None and client.is_here:
            self._let_go(index, received.ticks)

    def _serve(self, index: int, message: Message) -> None:
        client, what = self._clients[index], read_text(message.header, "what")
        if what == "weights":
            self._serve_weights(client, read_text(message.header, "task"))
            return
        client.num_fetched += 1
        if client.num_fetched > MOST_FETCHED:
            raise MessageError(f"more than {MOST_FETCHED} files and parts were fetched by one connection")
        if what == "file" and self._offer is not None:
            sha256 = message.header.get("file", self._offer.file.sha256)
            if not isinstance(sha256, str) or sha256 not in self._files:
                raise MessageError("there is no such file to fetch")
            content = self._files[sha256]
        elif what == "part" and self._load_part is not None:
            content = pack({"type": what}, self._load_part(index))
        elif what == "description" and self._description is not None:
            content = pack({"type": what, "description": self._description})
        else:
            raise MessageError(f"there is no {what[:20]!r} to fetch")
        self._counts["bytes_of_files"] += self._send_packed(client, content)

    def _serve_weights(self, client: ClientState, task: str) -> None:
        """Sends a request again, whole, to a client that has not the weights of its digest."""
        if (
            client.request is not None
            and client.request.asked.task == task
            and client.request.header.pop("digest", None)
        ):
            self._send_pending(client, client.request)

    def _take_answer(self, index: int, message: Message, received: Received) -> None:
        client, task = self._clients[index], read_text(message.header, "task")
        if (pending := client.task) is None or task != pending.asked.task:
            self._count_late(index)
            return
        client.task = None
        number = pending.asked.number
        try:
            result = self._referee.judge(message, pending.asked)
        except Rejection as rejection:
            self._happened.append(Queued(received.ticks, index, REJECTED, number))
            client.num_rejected += 1
            name, num_seated = self._roster.name_client(index), self._roster.num_seated
            self._note(*self._conduct.reject(index, name, rejection, num_seated))
            if index in self._conduct.expelled:
                self._close(received.connection, {"type": "refused", "reason": EXPELLED, "is_final": True})
                self._lose(received)
                self._let_go(index, received.ticks)
            self._see(index)
            return
        self._conduct.accept(index)
        elapsed_s = max(received.ticks - pending.sent_ticks, 0) * TICK_S
        training_s = min(read_duration(message.header, "seconds"), elapsed_s)
        sizes = pending.sent_bytes, len(received.content)
        self._timings.append(Answer(index, pending.asked.num_trained, training_s, elapsed_s, *sizes))
        self._happened.append(Queued(received.ticks, index, ANSWERED, number, result))
        self._see(index)

    def _take_reply(self, index: int, message: Message) -> None:
        client, task = self._clients[index], read_text(message.header, "task")
        pending = client.request
        if pending is None or task != pending.asked.task or pending.kind != _REPLIES[message.type]:
            self._count_late(index)
            return
        client.request = None
        self._see(index)
        num_test = self._roster.count_examples(index)[1]
        try:
            if pending.kind == EVALUATE:
                self._replies[index] = (self._referee.judge_sums(message.header, pending.asked, num_test),)
            else:
                self._replies[index] = self._referee.judge_tuning(message.header, pending.asked, num_test)
        except MessageError as error:
            self._counts["num_rejected"] += 1
            client.num_rejected += 1
            self._see(index)
            self._note(f"{self._roster.name_client(index)}: what it measured does not count: {error}")

    # --- What goes out ---

    def _name(self, client: int) -> dict[str, Any]:
        """What every message to a client names beside its task."""
        return {"run": self._roster.run, "client": client, "file": self._offer.file.sha256}

    def _welcome(self, index: int) -> None:
        if (offer := self._offer) is None:
            return
        header = {
            "type": "welcome",
            **self._name(index),
            "name": offer.name,
            "file_bytes": len(offer.file.content),
            "batch_size": offer.training.batch_size,
            "input_shape": list(offer.input_shape),
            "num_classes": offer.num_classes,
            "class_names": list(offer.class_names),
            "weights": [[name, list(shape)] for name, shape in zip(offer.file.names, offer.file.shapes, strict=True)],
            "deals": self._roster.deals,
            "round": self.round_num,
            "rounds": offer.rounds,
        }
        self._send(self._clients[index], header)

    def _send_pending(self, client: ClientState, pending: Pending) -> None:
        pending.sent_ticks = self._transport.now_ticks()
        is_whole = "digest" not in pending.header
        arrays = {name: each for name, each in pending.arrays.items() if is_whole or not name.startswith("weight_")}
        if sent := self._send(client, pending.header, arrays, pending.weights):
            pending.sent_bytes = sent
            if "order" in arrays:
                self._counts["bytes_of_orders"] += arrays["order"].nbytes

    def _withdraw(self, index: int, pending: Pending) -> None:
        self._send(self._clients[index], {"type": "withdrawn", "task": pending.asked.task})

    def _forget(self, client: int) -> None:
        if (pending := self._clients[client].task) is not None:
            self._withdraw(client, pending)
            self._clients[client].task = None
        self._drop_answers(client)
        self._see(client)

    def _drop_answers(self, client: int) -> None:
        """Answers that came and were not taken are late."""
        if not self._happened:
            return
        kept = [each for each in self._happened if each.client != client or each.what not in _ANSWERS]
        self._count_late(client, len(self._happened) - len(kept))
        self._happened = collections.deque(kept)

    def _send(
        self,
        client: ClientState,
        header: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray] | None = None,
        before: Packed = NOTHING,
    ) -> int:
        """Sends a message to a client that is connected; returns its bytes, 0 if it is not."""
        if client.connection is None:
            return 0
        return self._send_packed(client, pack(header, arrays or {}, before))

    def _send_packed(self, client: ClientState, content: bytes) -> int:
        self._counts["bytes_down"] += len(content)
        self._transport.send(client.connection, content)
        return len(content)

    def _close(self, connection: int, header: Mapping[str, Any] | None = None) -> None:
        """Closes a connection, after a last message if there is one; nothing that comes from it counts any more."""
        self._closed.add(connection)
        self._transport.close(connection, header and self._pack(header))

    def _pack(self, header: Mapping[str, Any]) -> bytes:
        content = pack(header)
        self._counts["bytes_down"] += len(content)
        return content

    def _count_late(self, client: int, number: int = 1) -> None:
        self._counts["num_late"] += number
        self._clients[client].num_late += number
        self._see(client)

    def _note(self, *lines: str) -> None:
        for line in lines:
            if line in self._notices or len(self._notices) < MOST_NOTICES:
                self._notices[line] += 1
            if self._status is not None:
                self._status.note(line)

    def _see(self, *clients: int) -> None:
        """Tells who watches how it is with clients."""
        for each in clients if self._status is not None else ():
            client = self._clients[each]
            counts = client.num_answered, client.num_rejected, client.num_late
            seat = describe_seat(self._roster, each, client.connection is not None, client.work, counts)
            self._status.see(each, seat)

    def _fix(self) -> None:
        """Fixes the seats; the clients go on with theirs."""
        kept = self._roster.fix()
        self._clients = [self._clients[client] for client in kept]
        self._client_of = {each.connection: i for i, each in enumerate(self._clients) if each.connection is not None}
        self._lost = {kept.index(client): ticks for client, ticks in self._lost.items()}
        if self._status is not None:
            self._status.forget_seats()
        self._see(*range(len(self._clients)))
