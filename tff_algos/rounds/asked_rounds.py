"""Rounds that wait for clients of a network, or that repeat those of a record, in place of simulated ones.

A round, asked:
1. The server waits until enough clients are there, and draws the cohort among those, some more if asked for.
2. It sends each a task, and waits until all have answered or are gone, or as many answers are there as the cohort has,
   or until the deadline. Who has not answered then is missing.
3. What came is encoded and aggregated as updates of simulated clients are. A client without an answer is not there at
   all; it makes no difference to an update that is not finite. Of too few answers none is used. Of a private sum who
   was rejected must not tell: it counts as an answer, of zeros; and a round without a used answer is noise alone.

Each of it is a row of the log, which says all that a simulation cannot draw again. Repeated, a round has the cohort of
the rows "received", trained by the simulation, and the times of the rows.
"""

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_algos.client.cohort import draw_cohort
from tff_algos.client.local_training import LocalResult
from tff_algos.protocol import NUM_ASKED, NUM_MISSING, FederatedProcess, RoundOutput, State, Weights
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.rounds.network import ANSWERED, LEFT, REJECTED, Task
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.training_phase import PhaseOutcome, SlotInput
from tff_algos.settings.config_fields import ConfigError
from tff_algos.simulation.event_clock import LogRow, PackedLog, pack_log, unpack_log

NOT_PLAIN = "its clients do more than train the model and send its update"
_ROWS = {ANSWERED: "ready", REJECTED: "rejected", LEFT: "dropped"}


class AskedState(NamedTuple):
    """The state of the process whose clients are asked, and what happened in the last round."""

    inner: Any
    log: PackedLog


class Story(NamedTuple):
    """What happened in a round, in order of time, what clients answered, by index, and what those asked were told.

    The latter two are None where clients are simulated.
    """

    rows: Sequence[LogRow]
    results: dict[int, LocalResult] | None = None
    told: Sequence[Any] | None = None

    def find(self, *whats: str) -> np.ndarray:
        """The clients of these rows, ascending, int64."""
        return np.array(sorted(row.client for row in self.rows if row.what in whats), np.int64)


def find_obstacle(process: FederatedProcess) -> str:
    """Why the clients of a process cannot be asked over a network, in words; "" if they can.

    A process says it by `obstacle`, where it is something else than `NOT_PLAIN`.
    """
    return "" if process.ask else getattr(process, "obstacle", "") or NOT_PLAIN


@dataclasses.dataclass(frozen=True, eq=False)
class AskedProcess(ForwardingProcess):
    """A process whose rounds wait, with clients that are asked or read from a record.

    Attributes:
      process: what the server does, and what the clients of a record do.
      partners: whose clients these are.
    """

    process: Any  # a `SynchronousProcess`, which imports this module
    partners: AskedBy | RepeatedFrom

    list_work, map_models = None, None
    clients = property(operator.attrgetter("process.clients"))

    def initialize(self) -> AskedState:
        return AskedState(self.process.initialize(), pack_log([]))

    def get_events(self, state: AskedState) -> list[LogRow]:
        return unpack_log(state.log)

    def next(self, state: AskedState) -> RoundOutput:
        process, inner = self.process, state.inner
        prepared, num_rejected = process.prepare(inner, process.everyone)
        partners = self.partners
        story = self._ask(partners, prepared) if isinstance(partners, AskedBy) else self._repeat(partners, inner)
        used, asked, answered = story.find("received"), story.find("start"), story.find("ready", "rejected")
        who = set(used.tolist())
        told = process.invite(prepared, used) if story.told is None else story.told
        invited = [each for each in told if each.index in who]
        outcome = self._find_outcome(prepared, invited, story)
        end_s = max((row.time_s for row in story.rows), default=float(inner.virtual_time_s))
        model_bytes = process.transport.model_bytes
        sent = len(asked) * model_bytes, len(answered) * model_bytes
        num_rejected += len(story.find("rejected"))
        output = process.conclude(inner, prepared, used, invited, outcome, end_s, sent, num_rejected)
        own = {NUM_ASKED: len(asked), NUM_MISSING: len(story.find("missing"))}
        return RoundOutput(AskedState(output.state, pack_log(story.rows)), {**output.metrics, **own})

    def _find_outcome(self, state: State, invited: Sequence[Any], story: Story) -> PhaseOutcome:
        process, round_num = self.process, int(state.round_num) + 1
        if story.results is None or not invited:
            return process.train(state, invited, round_num)
        inputs = [SlotInput(each.told, each.own) for each in invited]
        results = [story.results[each.index] for each in invited]
        return process.phase.receive(results, inputs, process.count_groups(state), state.aggregator, round_num)

    def _repeat(self, partners: RepeatedFrom, state: State) -> Story:
        record, round_num = partners.record, int(state.round_num) + 1
        last = max(record, default=0)
        if round_num > last:
            raise ConfigError("rounds", round_num, f"at most {last}, as the record has")
        return Story(record.get(round_num, ()))

    def _ask(self, partners: AskedBy, state: State) -> Story:
        (network, terms), process, round_num = partners, self.process, int(state.round_num) + 1
        network.start_clock(float(state.virtual_time_s))
        while len(present := network.find_present()) < terms.least_present:
            network.take(None)
        config = process.config
        cohort = draw_cohort(config, process.clients, present, process.seed, round_num, terms.more_asked)
        is_more = 0 < config.cohort_size < len(cohort) and terms.more_asked > 0
        enough = config.cohort_size if is_more else len(cohort)
        start_s, models = network.now_s(), process.distribute(state)
        rows = [LogRow(start_s, client, "start", round_num) for client in cohort.tolist()]
        tasks, starts = [], dict[int, Weights]()  # by group: the same object, which travels to many
        invited = process.invite(state, cohort)
        for client, told, _ in invited:
            if (group := int(told.group)) not in starts:
                starts[group] = tuple(np.asarray(stacked)[group] for stacked in models)
            tasks.append(Task(client, round_num, round_num, starts[group], told.seed, told.learning_rate))
        network.ask(*tasks)
        results: dict[int, LocalResult] = {}
        open_clients, end_s = set(cohort.tolist()), start_s
        num_zeros = 0  # answers that were rejected where that must not tell
        while open_clients and len(results) + num_zeros < enough:
            happening = network.take(start_s + terms.deadline_s)
            if happening is None:
                end_s = max(end_s, network.now_s())
                break
            client, what, result = happening.client, happening.what, happening.result
            # Counted out here, since those of a record are simulated, and finite.
            if what == ANSWERED and (result is None or not result.is_finite):
                what = REJECTED
            is_old = what != LEFT and happening.number != round_num
            if client not in open_clients or what not in _ROWS or is_old:
                continue
            open_clients.discard(client)
            end_s = max(end_s, happening.time_s)
            rows.append(LogRow(end_s, client, _ROWS[what], round_num))
            if what == ANSWERED and result is not None:
                results[client] = result
            num_zeros += what == REJECTED and process.aggregator.hides_rejected
        for client in sorted(open_clients):
            network.withdraw(client)
            rows.append(LogRow(end_s, client, "missing", round_num))
        used = sorted(results) if len(results) + num_zeros >= terms.least_answers else []
        rows += [LogRow(end_s, client, "received", round_num) for client in used]
        return Story(rows, results, invited)
