"""A live run: it opens the network, waits for clients, and keeps what became of each round.

`Session` is what `launch.training.partners` asks for. The rounds themselves are the algorithm's, whose process gets the
network.
"""

import contextlib
import dataclasses
import logging
import math
import os
import pathlib
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.federated_data import FederatedData
from datasets.partition_settings import NATURAL
from files.writing import write_whole
from launch.console.progress import StatusLine, format_duration, say, say_while_waiting
from launch.console.shown_text import format_count
from launch.live.door import Door
from launch.live.guard import SPARE_CONNECTIONS
from launch.live.links import Links
from launch.live.measured import Answer, read_devices, write_devices
from launch.live.messages import VERSION
from launch.live.ports import listen
from launch.live.private_runs import (
    check_private,
    check_private_training,
    choose_limits,
    describe_spent,
    is_private_run,
)
from launch.live.roster import Roster
from launch.live.status import Status, describe_round, name_some, read_rounds
from launch.live.training_file import build_fine_tuning, check_can_train, make_training_file, prepare_examples
from launch.live.twin import describe_stand_in, list_twin_commands
from launch.runs import columns
from launch.runs.errors import RunFolderError
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.run_records import RunRecordError
from launch.runs.task_columns import TaskColumns
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.settings.run_titles import name_dataset
from launch.settings.serving import LIVE, ON_CLIENTS, OWN_DATA, PROTOCOL, SEATS, SHARED, ServeFlags, write_serve_flags
from tff_algos.protocol import FederatedProcess, State
from tff_algos.rounds.synchronous_config import SynchronousConfig
from tff_algos.settings.config_fields import ConfigError

# These import TensorFlow, which a wrong request does without.
if TYPE_CHECKING:
    from launch.live.network import LiveNetwork
    from launch.live.offers import Offer
    from launch.live.served import ServedFile
    from launch.live.traffic import Traffic
    from launch.live.transport import Transport
    from launch.live.tuning import Tuned
    from models.model_spec import ModelSpec
    from tff_algos.rounds.network import Happening, Network, Task

JOIN = pathlib.Path(__file__).with_name("join.py")
NOBODY_WAIT_S = 10.0
RETURN_S = 60.0  # at most, in which the clients of a run that goes on may come back, once it could go on without them
MOST_SHOWN_EXAMPLES = 100  # of which the training file is made


OpenTransport = Callable[..., "Transport"]


class PatientNetwork:
    """A network that says so while nobody is there, or fewer than a round needs."""

    def __init__(self, network: "Network", least: int):
        self._network, self._least = network, least

    def start_clock(self, time_s: float) -> None:
        self._network.start_clock(time_s)

    def now_s(self) -> float:
        return self._network.now_s()

    def find_present(self) -> np.ndarray:
        return self._network.find_present()

    def ask(self, *tasks: "Task") -> None:
        self._network.ask(*tasks)

    def withdraw(self, client: int) -> None:
        self._network.withdraw(client)

    def take(self, until_s: float | None) -> "Happening | None":
        here = len(self._network.find_present())
        if here >= self._least:
            return self._network.take(until_s)
        text = "no client is here; the run goes on when one comes"
        if self._least > 1:
            text = f"{here} of the {self._least} clients that a round needs are here; it goes on when the others come"
        with say_while_waiting(text, NOBODY_WAIT_S):
            return self._network.take(until_s)


class Session:
    """The clients of a live run, see `launch.training.partners.Partners`.

    Args:
      flags: how they are asked.
      given: which of these were given.
      open_transport: makes what carries messages, of the arguments of `WebSocketTransport` by name; None: that.
    """

    is_live = True
    data_name = ""

    def __init__(
        self,
        flags: ServeFlags,
        given: Collection[str] = (),
        open_transport: OpenTransport | None = None,
    ):
        self._flags, self._given, self._open_transport = flags, given, open_transport
        self._door = Door(flags.host, flags.tls_certificate, flags.tls_key, flags.public_url)
        self._config: RunConfig | None = None
        self._description: dict[str, Any] | None = None
        self._organiser: Any = None  # of clients' own data: the organiser's, or what describes the data
        self._roster: Roster | None = None
        self._network: LiveNetwork | None = None
        self._transport: Any = None
        self._status: Status | None = None
        self._tested: tuple[float | None, float | None] = (None, None)  # the model of the round that is to be noted
        self._noted_s = 0.0  # when the last round was
        self._links: Links | None = None
        self._can_go_on = False  # by another server
        self._offer: Offer | None = None
        self._folder: RunFolder | None = None
        self._traffic: RoundTable | None = None
        self._last: Traffic | None = None
        self._timings: list[Answer] = []
        self._rounds_present = np.zeros(0, np.int64)
        self._num_rounds = 0  # of this process
        self._tuned: list[Tuned] = []

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        if self._links is not None and not self._can_go_on:
            self._links.remove()
        if self._transport is not None:
            self._transport.stop()
            self._transport = None

    # --- Before round 1 ---

    def load_data(self, config: RunConfig, load: Callable[[RunConfig], FederatedData]) -> FederatedData:
        self._config = config
        check_can_train(config, self._flags.own_data)
        self._door.check()
        # The port of a run that goes on may be its own server's, which the lock of its folder tells.
        if self._open_transport is None and ("port" in self._given or not config.resume):
            listen(self._flags.host, self._flags.port).close()
        if not self._flags.own_data:
            return load(config)
        from launch.live.description import describe_examples
        from launch.live.own_federation import build_own_federation
        from launch.live.schema import read_schema

        if self._flags.schema:
            self._organiser = self._description = read_schema(self._flags.schema)
            self.data_name = self._description["name"]
        else:
            # What is not dealt may be small.
            own = config.partition == NATURAL
            self._organiser = load(config if own else dataclasses.replace(config, num_clients=1))
            self._description = describe_examples(config, self._organiser)
        # Stands in for clients that are not known yet, for what is checked before they are waited for: as few as there
        # may be in the end.
        least = self._flags.start_with or self._flags.most_seats
        seats = self._list_kept_seats() if config.resume else [("client", 1, 1)] * least
        return build_own_federation(self._organiser, seats, self._description)

    def check(self, config: RunConfig, data: FederatedData) -> None:
        num_clients, flags = len(data.clients), self._flags
        if flags.start_with > num_clients:
            raise ConfigError("start_with", flags.start_with, f"at most the {num_clients} seats that there are")
        asked = getattr(config.algorithm, "cohort_size", 0) or num_clients
        for name, value in (("least_answers", flags.least_answers), ("more_asked", flags.more_asked)):
            if value > num_clients or (name == "least_answers" and value > asked):
                raise ConfigError(name, value, f"at most {min(asked, num_clients)}, as many as can be asked")
        if flags.more_asked and not getattr(config.algorithm, "cohort_size", 0):
            expected = "--cohort_size beside it, beyond which they are asked; without, all are"
            raise ConfigError("more_asked", flags.more_asked, expected)
        if not len(data.test_y) and flags.evaluate_on != ON_CLIENTS:
            raise ConfigError("evaluate_on", flags.evaluate_on, f"{ON_CLIENTS}, since the server has no test examples")
        if is_private_run(config):
            check_private(config, flags, self._given)

    def describe(self) -> Iterator[tuple[str, str]]:
        yield from ()

    def gather(
        self, config: RunConfig, folder: RunFolder, data: FederatedData, dealt: FederatedData, spec: "ModelSpec"
    ) -> FederatedData:
        from launch.live.client_page import describe_run, pack_page
        from launch.live.description import digest
        from launch.live.offers import Offer, count_most_bytes
        from tff_algos.weights import initialize_weights

        weights = initialize_weights(spec, config.seed)
        training = config.algorithm.training
        examples = data.test_x[:MOST_SHOWN_EXAMPLES] if len(data.test_y) else None
        if is_private_run(config):
            for line in check_private_training(config, spec, len(data.clients)):
                say(line)
        with _hush_converter():
            file = make_training_file(spec, weights, training, examples)
        self._config, self._folder, self._can_go_on = config, folder, not folder.is_new
        self._roster = self._open_roster(folder, data)
        self._links = Links(self._roster, folder.path / columns.LINKS_FILE)
        name = f"{find_algorithm(config.algo).title} on {name_dataset(flag_values(config), data.dataset)}"
        self._offer = Offer(
            name=name,
            file=file,
            training=training,
            weights=weights,
            input_shape=tuple(spec.model_input_shape),
            num_classes=data.format.num_classes,
            class_names=tuple(data.format.class_names),
            rounds=config.rounds,
        )
        columns_digest = digest(self._description) if self._flags.own_data else None
        page = describe_run(self._offer, data, columns_digest, self._flags.round_deadline_s, is_private_run(config))
        load_part = None if self._flags.own_data else _PartLoader(dealt, spec)
        self._open_network(count_most_bytes(weights), load_part, pack_page(page))
        if not self._flags.own_data:
            return data
        from launch.live.own_federation import build_own_federation

        self._wait_for_clients()
        seats = [(seat.name, seat.num_train, seat.num_test) for seat in self._roster.seats]
        return build_own_federation(self._organiser, seats, self._description)

    def join(
        self, process: FederatedProcess, config: RunConfig, spec: "ModelSpec", data: FederatedData, folder: RunFolder
    ) -> FederatedProcess:
        if process.ask is None:
            raise ConfigError("algo", config.algo, _explain_refusal(process))
        from tff_algos.rounds.partners import AskedBy, Terms

        # Where parts are dealt, nobody has to come before the process is known to do.
        self._wait_for_clients()
        self._rounds_present = np.zeros(len(data.clients), np.int64)
        self._network.publish(self._offer)
        self._spec = spec
        flags = self._flags
        terms = Terms(flags.least_answers, flags.more_asked, flags.round_deadline_s, flags.least_answers)
        return process.ask(AskedBy(PatientNetwork(self._network, flags.least_answers), terms))

    def describe_run(self) -> dict[str, Any]:
        seats = len(self._roster.seats)
        return {LIVE: {PROTOCOL: VERSION, SEATS: seats, OWN_DATA: self._flags.own_data}}

    # --- Rounds ---

    def evaluate(self, process: FederatedProcess, evaluate_state: Any, task: TaskColumns) -> Any:
        """On the clients, only sums of theirs are known, and nothing of single ones."""
        if self._flags.evaluate_on != ON_CLIENTS:
            return self._note_tested(evaluate_state, task)
        from launch.live.network import EVALUATE
        from launch.live.offers import pick_weights
        from launch.live.own_federation import average_measured

        def measure(state: State, previous: State | None, with_shared: bool = True) -> dict[str, float | None]:
            weights = process.get_models(state)["global"]
            request = {"round": self._network.round_num}, pick_weights(self._offer.file, weights)
            requests = {int(client): request for client in self._network.find_present()}
            replies = self._network.gather(EVALUATE, requests, self._flags.round_deadline_s)
            accuracy, loss = average_measured(reply[0] for reply in replies.values())
            return {} if math.isnan(accuracy) else {task.test: accuracy, columns.TEST_LOSS: loss}

        return self._note_tested(measure, task)

    def begin(self, folder: RunFolder, last_round: int) -> None:
        self._roster.keep()
        self._links.keep()
        self._can_go_on = True
        write_whole(folder.path / columns.TRAINING_FILE, self._offer.file.content)
        write_serve_flags(folder.path, dataclasses.replace(self._flags, port=self._transport.port))
        self._traffic = RoundTable(folder.path / columns.TRAFFIC_FILE, last_round)
        if not last_round:
            (folder.path / columns.TRAFFIC_FILE).unlink(missing_ok=True)
        self._network.round_num = min(last_round + 1, self._config.rounds)
        self._status.add_past(read_rounds(folder.path, last_round) if last_round else ())
        if not folder.is_new and last_round < self._config.rounds:
            self._wait_for_return()
        self._noted_s = time.monotonic()

    def note_round(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        self._last = self._network.take_traffic()
        self._traffic.append({columns.ROUND: round_num, **self._last._asdict()})
        self._timings += self._network.take_timings()
        self._rounds_present[self._network.find_present()] += 1
        self._num_rounds += 1
        self._network.round_num = min(round_num + 1, self._config.rounds)
        now_s = time.monotonic()
        self._status.add_round(describe_round(round_num, self._tested, self._last, now_s - self._noted_s))
        self._tested, self._noted_s = (None, None), now_s
        self._say_notices()

    def list_digests(self) -> dict[str, str]:
        return {columns.TRAFFIC_FILE: self._traffic.digest()} if self._traffic is not None else {}

    def describe_round(self) -> str:
        last = self._last
        if last is None:
            return ""
        others = [f"{count} {what}" for count, what in ((last.num_missing, "missing"), (last.num_late, "late"),
                                                        (last.num_rejected, "counted out")) if count]  # fmt: skip
        sent = f"{_format_bytes(last.bytes_down)} down, {_format_bytes(last.bytes_up)} up"
        # Where rounds wait for nobody, answers are to what was asked at any time.
        waits = isinstance(self._config.algorithm, SynchronousConfig)
        asked = f"{last.num_answered} of {format_count(last.num_asked, 'client')} answered"
        return ", ".join([asked if waits else format_count(last.num_answered, "answer"), *others, sent])

    # --- After the last round ---

    def finish(self, process: FederatedProcess, state: State, data: FederatedData) -> FederatedData:
        path = self._folder.path
        training = build_fine_tuning(self._config)
        if training is not None and not (path / columns.FINE_TUNED_FILE).exists():
            from launch.live.tuning import tune_clients, write_tuned

            weights = process.get_models(state)["global"]
            if not self._num_rounds:  # a server that was started again for this task alone
                self._wait_for_return()
                self._network.start_clock(0.0)
            with _hush_converter():
                file = make_training_file(self._spec, self._offer.weights, training)
            offer = self._offer._replace(file=file, training=training)
            self._tuned = tune_clients(
                self._network, self._roster, offer, weights, self._config.seed, self._flags.round_deadline_s
            )
            if self._tuned:
                write_tuned(path / columns.FINE_TUNED_FILE, self._tuned)
        if self._num_rounds:
            present = self._rounds_present.tolist()
            write_devices(path / columns.MEASURED_DEVICES_FILE, self._timings, present, self._num_rounds)
        self._status.end(*self._list_results())
        self._links.remove()
        # Stopped by it, too.
        self._network.finish(f"the run is over after {format_count(self._traffic.num_rounds, 'round')}; thank you")
        self._transport = None
        return dataclasses.replace(data, profiles=read_devices(path / columns.MEASURED_DEVICES_FILE, data.profiles))

    def describe_end(self) -> Iterator[tuple[str, str]]:
        if self._tuned:
            means = [sum(getattr(each, when).correct for each in self._tuned) / max(
                sum(getattr(each, when).num for each in self._tuned), 1) for when in ("before", "after")]  # fmt: skip
            yield (
                "tuned",
                f"on {format_count(len(self._tuned), 'client')}, test accuracy {means[0]:.4f} before and "
                f"{means[1]:.4f} after, of all their test examples; by client in {columns.FINE_TUNED_FILE}",
            )
        if is_private_run(self._config):
            yield describe_spent(self._config, self._folder.path)
            yield "twin", "none: the noise of a private run came from the operating system; nobody can draw it again"
            return
        commands = self._list_twin(self._folder.path)
        yield from zip(["twin"] + [""] * (len(commands) - 1), commands, strict=True)

    # --- Inner ---

    def _note_tested(self, measure: Any, task: TaskColumns) -> Any:
        """The same, of which is kept what it found, to be shown with the round."""

        def measure_and_note(state: State, *given: Any) -> dict[str, float | None]:
            found = measure(state, *given)
            self._tested = found.get(task.test), found.get(columns.TEST_LOSS)
            return found

        return measure_and_note

    def _list_results(self) -> tuple[str | None, list[str]]:
        """The run's page, if it gets one, and what to type when it is over."""
        twin = [] if is_private_run(self._config) else self._list_twin(pathlib.Path(os.path.relpath(self._folder.path)))
        if not self._config.run_page:
            return None, twin
        page = os.path.relpath(self._folder.path / columns.RUN_PAGE)
        return page, [f"python -m webbrowser {shlex.quote(page)}", *twin]

    def _list_twin(self, path: pathlib.Path) -> list[str]:
        """What to type to simulate the run in this folder again."""
        stand_in = describe_stand_in(self._description, len(self._roster.seats)) if self._flags.own_data else None
        return list(list_twin_commands(self._config, path, stand_in))

    def _list_kept_seats(self) -> list[tuple[str, int, int]]:
        roster = Roster(pathlib.Path(self._config.run_dir) / columns.ROSTER_FILE)
        _read(roster)
        return [(seat.name, seat.num_train, seat.num_test) for seat in roster.seats if seat]

    def _open_roster(self, folder: RunFolder, data: FederatedData) -> Roster:
        path, is_shared = folder.path / columns.ROSTER_FILE, self._flags.link == SHARED
        if self._flags.own_data:
            from launch.live.description import digest
            from launch.live.orders import count_most_examples

            most, training = self._flags.most_seats, self._config.algorithm.training
            roster = Roster(path, None, most, digest(self._description), count_most_examples(training), is_shared)
        else:
            roster = Roster(path, [(each.num_train, each.num_test) for each in data.clients], is_shared=is_shared)
        if not folder.is_new:
            _read(roster)
        taken = [client for client, seat in enumerate(roster.seats) if seat]
        if unknown := [seat for seat in self._flags.free_seat if seat not in taken]:
            expected = f"one that is taken: {name_some([*map(str, taken)]) or 'none is'}"
            raise ConfigError("free_seat", unknown[0], expected)
        for seat in self._flags.free_seat:
            say(f"note     {roster.name_client(seat)} is freed; links.txt has its new link")
            roster.free(seat)
        return roster

    def _open_network(self, most_bytes: int, load_part: "_PartLoader | None", page: "Mapping[str, ServedFile]") -> None:
        """Listens, and says where."""
        from launch.live.client_page import has_page, say_missing
        from launch.live.network import LiveNetwork
        from launch.live.organiser_page import pack_organiser_page
        from launch.live.served import ServedFile
        from launch.live.transport import WebSocketTransport

        open_transport = self._open_transport or WebSocketTransport
        files = {**page, **pack_organiser_page(), "/join.py": ServedFile(JOIN.read_bytes(), "text/x-python")}
        seats = len(self._roster.seats)
        self._transport = open_transport(
            port=self._flags.port,
            most_bytes=most_bytes,
            most_connections=2 * seats + SPARE_CONNECTIONS,
            files=files,
            watch_token=self._links.watch_token,
            door=self._door,
            num_seats=seats,
        )
        try:
            self._transport.start()
        except ConfigError as error:
            self._transport = None
            if error.field != "port" or "port" in self._given or self._folder.is_new:
                raise
            expected = (
                "no other program on the run's own, to which its clients come back; or another one by --port, by which "
                "browsers lose their seats"
            )
            raise ConfigError("port", self._flags.port, expected) from None
        self._status = Status(
            show=lambda content: self._transport.show(content),
            say=say,
            name=self._offer.name,
            folder=os.path.relpath(self._folder.path),
            rounds=self._config.rounds,
            waits=isinstance(self._config.algorithm, SynchronousConfig),
            find_link=self._find_link,
            is_shared=self._roster.is_shared,
        )
        self._network = LiveNetwork(
            transport=self._transport,
            roster=self._roster,
            away_after_s=self._flags.away_after_s,
            load_part=load_part,
            description=self._description,
            status=self._status,
            limits=choose_limits(self._config, self._flags),
        )
        self._say_links(self._door.name_base(self._transport.port))
        if self._transport.most_connections < seats:
            most = format_count(max(self._transport.most_connections, 0), "connection")
            say(f"note     the system allows this program {most}, fewer than there are seats; raise ulimit -n")
        say("page     a browser takes part by the link" if has_page() else f"note     {say_missing()}")

    def _find_link(self) -> str | None:
        """The link of the next free seat."""
        return next(iter(self._links.find_free()), None)

    def _say_links(self, base: str) -> None:
        self._links.open(base)
        place = os.path.relpath(JOIN)
        data = " --data=<your file>" if self._flags.own_data else ""
        link = self._links.show()
        if link is not None:
            say(f'join     python {place if not place.startswith("..") else JOIN} "{link}"{data}')
            say(f"         join.py is one file, also at {base}/join.py; it needs ai-edge-litert, numpy and aiohttp")
        say(f"watch    {self._links.organiser}")
        if self._links.has_moved:
            say("note     another address than before: join.py needs its new link, of links.txt; browsers, which keep")
            say(f"         their keys by address, have lost their seats{'; see --free_seat' * self._roster.deals}")
        if not self._door.is_private:
            is_beside = self._door.public_base.startswith("https:")
            fix = "leave out --host if the proxy is on this machine" if is_beside else "see --tls_certificate"
            say(f"note     http is not private: others can read and change all on the way; {fix}")
        if link is not None and self._flags.qr and sys.stdout.isatty():
            import segno

            segno.make(link).terminal(compact=True)

    def _wait_for_return(self) -> None:
        """Waits, in a run that goes on, until as many are back as a round needs, so that none is spent on nobody.

        The others have some time to come, too: a round of a few of them may make the model worse.
        """
        least, patience_s = self._flags.least_answers, min(self._flags.round_deadline_s, RETURN_S)
        most = max(least, self._roster.num_seated)
        text = f"those who had a seat have {format_duration(patience_s)} to come back, then {least:,} of them"
        text += f" {'is' if least == 1 else 'are'} enough (--least_answers)"
        self._status.wait_for(most)
        with contextlib.closing(StatusLine("wait")) as line:
            self._network.await_return(
                *(least, patience_s),
                lambda names: line.show(_describe_waiting(names, most) + f"; {text}" * (len(names) < most)),
                self._say_notices,
            )
        self._status.go_on(least)

    def _wait_for_clients(self) -> None:
        """Waits for as many as are to be there before round 1, however long it takes."""
        if self._roster.is_fixed:
            self._status.go_on(self._flags.least_answers)
            return
        least = self._flags.start_with or len(self._roster.seats)
        self._status.wait_for(least)
        with contextlib.closing(StatusLine("wait")) as line:
            self._network.enrol(least, lambda names: line.show(_describe_waiting(names, least)), self._say_notices)
        self._status.go_on(self._flags.least_answers)

    def _say_notices(self) -> None:
        """Says what did not count, and who was refused, since the last time."""
        refused = [f"refused: {count:,} {what}" for what, count in self._transport.take_refused().items()]
        for line in [*self._network.take_notices(), *refused]:
            say(f"note     {line}")


def _describe_waiting(names: Sequence[str], least: int) -> str:
    verb = "is" if least == 1 else "are"
    return f"{len(names)} of {format_count(least, 'client')} {verb} here{f': {name_some(names)}' if names else ''}"


class _PartLoader:
    """A client's part of the data, as the message `part` has it."""

    def __init__(self, data: FederatedData, spec: "ModelSpec"):
        self._data, self._spec = data, spec

    def __call__(self, client: int) -> dict[str, np.ndarray]:
        arrays = {}
        for split in ("train", "test"):
            x, y = self._data.read_split(self._data.clients[client], split)
            arrays |= {f"{split}_x": prepare_examples(self._spec, x), f"{split}_y": y.astype(np.int32)}
        return arrays


def _read(roster: Roster) -> None:
    """Raises RunFolderError if the seats cannot be read, without which nobody's client is known."""
    if not roster.path.exists():
        raise RunFolderError(
            f"{roster.path} is gone, without which no client is known by its seat; restore it, or start a new run"
        )
    try:
        roster.read()
    except (RunRecordError, OSError) as error:
        raise RunFolderError(f"its seats cannot be read, without which the run cannot go on: {error}") from None


@contextlib.contextmanager
def _hush_converter() -> Iterator[None]:
    """Inside, TensorFlow's warnings of gradients that it does not save are not shown: the file has its own."""
    logger = logging.getLogger("absl")
    logger.addFilter(_is_error)
    try:
        yield
    finally:
        logger.removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR


def _explain_refusal(process: FederatedProcess) -> str:
    from tff_algos.rounds.asked_rounds import find_obstacle

    return f"one whose clients can be asked over a network: {find_obstacle(process)}"


def _format_bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
