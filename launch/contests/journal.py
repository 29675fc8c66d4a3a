"""What is known of a contest, a line a fact, in `contest.jsonl`. Imports no TensorFlow.

Whatever depends on how long something took is written here before anybody acts on it, and is taken from here when the
contest goes on: so a contest that was killed decides as it had decided, however fast the machine is by then. Every line
says how many seconds the contest has taken, of all its commands together.
"""

import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.contests.methods import POOLED
from launch.contests.plan import Pace, Plan, Planned
from launch.runs.errors import RunFolderError
from launch.sweeps.held_journal import drop_torn_line
from launch.sweeps.tuning.search_space import Settings

JOURNAL = "contest.jsonl"
WHAT, SECONDS = "what", "seconds"
# Lines: what was asked for, what is planned, a run that ended, that was not started, that was stopped, a method whose
# short runs are as long as whole ones, what became of the trials, one more seed, the end; that time has passed, and
# that there is more of it than before, or another plan since nothing but the speed was measured.
REQUEST, PLAN, RUN, SKIP, STOP, WHOLE, KEPT, CHOSEN, SEED, END, TIME, MORE, ANEW = (
    *("request", "plan", "run", "skip", "stop", "whole", "kept", "chosen", "seed", "end", "time", "more", "anew"),
)
# Stages of a run: to measure how fast it is, the two rungs, fresh seeds.
CALIBRATION, RUNG_0, RUNG_1, FRESH = "calibration", "rung_0", "rung_1", "fresh"
NO_TRIAL = -1  # on fresh seeds
# Fresh seeds of a method, where more time is given than was planned for.
MOST_SEEDS = 12
SOURCES = ("data", "npz", "dataset")  # flags that name the data
MOST_NAMED = 3  # methods, in a line


class Key(NamedTuple):
    """Which run: its stage, its method's name, its trial or `NO_TRIAL`, its seed."""

    stage: str
    method: str
    trial: int
    seed: int


class Ended(NamedTuple):
    """What is known of a run that is over.

    Attributes:
      score: the objective of a trial, or the result on a fresh seed, after its last round; None if it has none.
      failure: why it has none, in words.
      virtual_s: virtual seconds at its end.
      num_bytes: both ways, of all its rounds.
      took_s: real seconds that it took, without waiting for what all runs need once; None if that was not measured.
      rounds: of FedAvg in whose place these seconds went.
      num_rounds: its own, of all commands.
    """

    score: float | None = None
    failure: str = ""
    virtual_s: float = 0.0
    num_bytes: float = 0.0
    took_s: float | None = None
    rounds: float = 0.0
    num_rounds: int = 0


class Journal:
    """The facts so far, and how to add one.

    Attributes:
      planned: None before there is a plan.
      points: {method: its trials' settings by number}, as the plan had them drawn.
      until_s: the seconds of the contest at which the two rungs end, by the plan.
      runs: what ended, also by failing.
      skipped: why a run was not started, and whether for want of time.
      stopped: why a run was ended early, and after how many seconds.
      whole: names of methods whose runs of the first rung are as long as whole ones.
      kept: {method: its trials that go on to the second rung}; None before that is known.
      chosen: {method: the trial that was best}; None before.
      finalists: names of those that go to fresh seeds, in the order in which they do.
      out: {method: why it does not}.
      further: {a further fresh seed: names of the methods that have it}.
      end: at the end, whether time was short and the seconds of the contest; None before.
      total_s: the most seconds that a command has allowed.

    Args:
      path: of the file; see `hold_journal`.
      request: what is asked for, as JSON has it.
      total_s: seconds that are allowed now. Where nothing but FedAvg's speed is known, they get a plan of their own.
        Later, more than before reopens a contest: what the end of the time had stopped on fresh seeds is made, and
        further seeds may come. The plan and what trials have decided stay.
      clock: seconds from any start on.
      spent_s: seconds of this command before now, which count in a new contest. One that goes on has the seconds of its
        last line: what a kill lost, and what it takes to begin again, would leave the contest less than it was given.

    Raises:
      RunFolderError: the file is damaged, or of another request.
    """

    def __init__(
        self,
        path: pathlib.Path,
        request: Mapping[str, Any],
        total_s: float,
        clock: Callable[[], float],
        spent_s: float = 0,
    ):
        self._path, self._clock, self.total_s = path, clock, total_s
        self.planned: Planned | None = None
        self.points: dict[str, list[Settings]] = {}
        self.until_s: tuple[float, float] = (0.0, 0.0)
        self.runs: dict[Key, Ended] = {}
        self.skipped: dict[Key, tuple[str, bool]] = {}
        self.stopped: dict[Key, tuple[str, float]] = {}
        self.whole: set[str] = set()
        self.kept: dict[str, list[int]] | None = None
        self.chosen: dict[str, int] | None = None
        self.finalists: list[str] = []
        self.out: dict[str, str] = {}
        self.further: dict[int, list[str]] = {}
        self.end: tuple[bool, float] | None = None
        self._before_s, self._start_s = 0.0, clock()
        drop_torn_line(path)
        self._read(json.loads(json.dumps(request)), spent_s)
        is_measured_alone = {key.stage for key in self.runs} <= {CALIBRATION} and not self.skipped
        if total_s != self.total_s and is_measured_alone:
            self.add(ANEW, total_s=total_s)
        elif total_s > self.total_s:
            self.add(MORE, total_s=total_s)

    def _read(self, request: Mapping[str, Any], spent_s: float) -> None:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        if not lines:
            self._before_s = spent_s
            self.add(REQUEST, request=request, total_s=self.total_s)
            return
        try:
            facts = [json.loads(line) for line in lines]
            stored = facts[0]["request"]
            for fact in facts:
                self._take(fact)
            self._before_s = float(facts[-1][SECONDS])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunFolderError(f"{self._path}: damaged; move it away, or choose another folder") from None
        if other := _tell_apart(stored, request):
            raise RunFolderError(
                f"{self._path.parent} has advice {other}; give another --runs_dir, or delete that folder"
            )

    @property
    def seconds(self) -> float:
        """Real seconds so far, of all commands."""
        return self._before_s + self._clock() - self._start_s

    def add(self, what: str, **content: Any) -> None:
        """Writes a fact, which is on the disk when this returns, and takes it into account."""
        fact = {WHAT: what, SECONDS: round(self.seconds, 3), **content}
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(fact)}\n")
            file.flush()
            os.fsync(file.fileno())
        # As the next command will read it, so that both go by the same.
        self._take(json.loads(json.dumps(fact)))

    def is_over(self, key: Key) -> bool:
        """Whether nothing is to be done for a run any more."""
        return key in self.runs or key in self.skipped or key in self.stopped

    def add_run(self, key: Key, ended: Ended) -> None:
        """Notes a run that is over."""
        self.add(RUN, key=key, **ended._asdict())

    def add_plan(self, planned: Planned, points: Mapping[str, list[Settings]], until_s: tuple[float, float]) -> None:
        """Notes what is planned, and with which trials."""
        content = planned._replace(plan=planned.plan._asdict(), pace=planned.pace._asdict())._asdict()
        self.add(PLAN, planned=content, points=points, until_s=until_s)

    def _take(self, fact: Mapping[str, Any]) -> None:
        key = Key(*fact["key"]) if "key" in fact else None
        match fact[WHAT]:
            case "request":
                self.total_s = fact["total_s"]
            case "anew":
                self.total_s, self.planned, self.points, self.stopped = fact["total_s"], None, {}, {}
            case "more":
                self._reopen(fact["total_s"])
            case "plan":
                self.planned, self.points = _read_planned(fact["planned"]), fact["points"]
                self.until_s = tuple(fact["until_s"])
            case "run":
                self.runs[key] = Ended(**{name: fact[name] for name in Ended._fields})
            case "skip":
                self.skipped[key] = fact["why"], fact["is_cut"]
            case "stop":
                self.stopped[key] = fact["why"], fact["took_s"]
            case "whole":
                self.whole.add(fact["method"])
            case "kept":
                self.kept = fact["kept"]
            case "chosen":
                self.chosen, self.finalists, self.out = fact["chosen"], fact["finalists"], fact["out"]
                plan = self.planned.plan._replace(seeds=tuple(fact["seeds"]))
                self.planned = self.planned._replace(plan=plan)
            case "seed":
                self.further[fact["seed"]] = fact["methods"]
            case "end":
                self.end = fact["is_cut"], fact[SECONDS]

    def _reopen(self, total_s: float) -> None:
        share, self.total_s, self.end = total_s / self.total_s, total_s, None
        self.until_s = tuple(each * share for each in self.until_s)
        self.stopped = {key: why for key, why in self.stopped.items() if key.stage != FRESH}
        self.skipped = {key: why for key, why in self.skipped.items() if key.stage != FRESH or not why[1]}
        if self.planned is not None:
            plan = self.planned.plan
            plan = plan._replace(most_seeds=max(plan.most_seeds, MOST_SEEDS))
            self.planned = self.planned._replace(plan=plan)


def _read_planned(stored: Mapping[str, Any]) -> Planned:
    numbers = {name: tuple(value) if isinstance(value, list) else value for name, value in stored["plan"].items()}
    return Planned(
        Plan(**numbers),
        tuple(stored["names"]),
        stored["left_out"],
        tuple(stored["stages_s"]),
        Pace(**stored["pace"]),
    )


def _tell_apart(stored: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """The first thing that two requests differ in, by the flag that says it; "" if they are the same."""
    there, here = (dict(map(_split_flag, each["problem"][1:-1])) for each in (stored, request))
    names = [name for name in (*here, *there) if here.get(name) != there.get(name)]
    if data := [name for name in names if name in SOURCES]:
        then, now = (next((each[name] for name in SOURCES if name in each), "other data") for each in (there, here))
        return f"on {then}, not on {now}" if then != now else f"with --{data[0]}={now} said otherwise"
    if names:
        return f"{_spell_flag(names[0], there.get(names[0]))}, not {_spell_flag(names[0], here.get(names[0]))}"
    gone = [name for name in stored["methods"] if name not in request["methods"]]
    new = [name for name in request["methods"] if name not in stored["methods"]]
    if POOLED in gone or POOLED in new:
        return "without --no_pooled, not with it" if POOLED in gone else "with --no_pooled, not without it"
    if gone or new:
        others = [f"also {_list_some(gone)}"] * bool(gone) + [f"not {_list_some(new)}"] * bool(new)
        return f"on other --methods ({', '.join(others)})"
    if stored["rounds"] != request["rounds"]:
        then, now = (_spell_flag("rounds", each["rounds"]) for each in (stored, request))
        return f"{then}, not {now}"
    changed = next((name for name, value in request.items() if stored.get(name) != value), "")
    return f"by other rules ({changed}), those of another version" if changed else ""


def _split_flag(argument: str) -> tuple[str, str]:
    name, _, value = argument.removeprefix("--").partition("=")
    return name, value


def _spell_flag(name: str, value: Any) -> str:
    if value is None:
        return f"without --{name}"
    return f"with --{name}" if value == "True" else f"with --{name}={value}"


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"
