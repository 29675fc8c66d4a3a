"""Holds a user's own algorithm to the protocol: whatever it gets wrong, or its code raises, is one line.

The project's own algorithms are held to it by tests. Imports no TensorFlow.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from datasets.federated_data import ClientFiles, FederatedData
from datasets.own_objects import describe_failure
from launch.runs import columns
from launch.runs.nested_state import flatten_state
from launch.runs.tables import format_json
from launch.runs.task_columns import TaskColumns
from launch.runtimes.runtime import WorkerError
from launch.settings.flags import FlagError
from models.model_names import ModelError
from models.task_kinds import TASK_KINDS
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, KeptFileError, RoundOutput, State, Weights
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.settings.config_fields import ConfigError

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

# What has a line of its own already, or is no fault of the algorithm's.
_PASSED_ON = (FlagError, ConfigError, ModelError, KeptFileError, WorkerError, BrokenPipeError)
_ARGUMENTS = "(model_spec, clients, config, seed)"
_TASKS = [TaskColumns(kind) for kind in TASK_KINDS.values()]
_DRIVERS_METRICS = {columns.ROUND, *(name for task in _TASKS for name in (*task.evaluation, *task.spread))}
_DRIVERS_METRICS |= {columns.JOULES, columns.JOULES_TOTAL}
_DRIVERS_CLIENT_COLUMNS = {
    columns.CLIENT,
    columns.NUM_TRAIN,
    columns.NUM_VALIDATION,
    columns.NUM_TEST,
    columns.EXAMPLES_PER_S,
    columns.DOWNLINK_BYTES_PER_S,
    columns.UPLINK_BYTES_PER_S,
    columns.AVAILABILITY,
    columns.DEVICE_NAME,
    columns.MODEL,
    *(task.of_client for task in _TASKS),
    columns.LOSS,
    columns.TOOK_PART,
    columns.ATTACKER,
    columns.ARCHETYPE,
    columns.ARCHETYPE_NAME,
    columns.META_ARCHETYPE,
}


def build_checked_process(
    label: str, build: Callable[..., Any], model_spec: "ModelSpec", data: FederatedData, config: Any, seed: int
) -> "CheckedProcess":
    """The process that a user's builder gives, held to the protocol.

    Args:
      label: what errors begin with, "--algo=my_module:ALGORITHM".
      build: the builder.
      model_spec: what it is called with, as all that follow.
      data: the federation.
      config: the algorithm's settings.
      seed: the run's.

    Raises:
      FlagError: the builder fails, or gives something else.
    """
    arguments = (model_spec, data, config, seed)
    try:
        inspect.signature(build).bind(*arguments)
    except TypeError as error:
        raise FlagError(f"{label}: its builder must be a function of {_ARGUMENTS}: {error}") from error
    with _in_one_line(label, "its builder"):
        process = build(*arguments)
    if not isinstance(process, FederatedProcess):
        raise FlagError(f"{label}: its builder gave {_name(process)}, expected a FederatedProcess")
    return CheckedProcess(label, process, model_spec, data)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.bool_ | np.number) or (isinstance(value, np.ndarray) and not value.ndim)


def _is_cell(value: Any) -> bool:
    return value is None or isinstance(value, str) or _is_number(value)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(each, str) for each in values)


def _is_event(event: Any) -> bool:
    if not (isinstance(event, Sequence) and len(event) == 4):
        return False
    time_s, client, what, model = event
    return isinstance(what, str) and all(map(_is_number, (time_s, client, model)))


def _ask(method: str, is_right: Callable[[Any], Any] = lambda value: True, expected: str = "") -> Callable:
    """A method that asks the user's process, and holds what it gives to what is expected."""

    def ask(self: "CheckedProcess", *arguments: Any) -> Any:
        value = self._call(method, *arguments)
        self._expect(is_right(value), method, expected, _name(value))
        return value

    return ask


class CheckedProcess(ForwardingProcess):
    """A user's algorithm; each method is checked when it is called, and all cheap ones after the first round.

    Args:
      label: what errors begin with.
      process: the algorithm.
      model_spec: the model whose weights it has.
      data: its clients.
    """

    def __init__(self, label: str, process: FederatedProcess, model_spec: "ModelSpec", data: FederatedData):
        self.process = process
        self._label, self._data, self._spec = label, data, model_spec
        self._structure: list[tuple] = []  # that of the first state
        self._metrics: list[str] = []  # the names of the first round
        kinds = {columns.IS_PERSONAL: bool, "takes_new_clients": bool, columns.START: str, "curve": tuple}
        for name, kind in kinds.items():
            value = getattr(process, name)
            self._expect(isinstance(value, kind), name, f"a {kind.__name__}", repr(value))

    def find_current(self, state: State) -> tuple[FederatedProcess, State]:
        return self.process, state

    def initialize(self) -> State:
        state = self._call("initialize")
        self._structure = self._find_structure(state, "initialize")
        self.client_model(state)
        return state

    def next(self, state: State) -> RoundOutput:
        output = self._call("next", state)
        self._expect(isinstance(output, RoundOutput), "next", "a RoundOutput of state and metrics", _name(output))
        found = self._find_structure(output.state, "next")
        self._structure = self._structure or found
        others = [f"state{list(path)}" for path in {*self._structure} ^ {*found}]
        expected = "a state of the structure that initialize gave"
        self._expect(not others, "next", expected, f"another at {min(others, default='')}")
        is_first = not self._metrics
        self._check_metrics(output.metrics)
        if is_first:
            for check in (self.client_model, self.get_teachers, self.summarize, self.client_columns):
                check(output.state)
        return output

    def get_models(self, state: State) -> dict[str, Weights]:
        models = self._call("get_models", state)
        is_right = isinstance(models, Mapping) and models and all(isinstance(name, str) for name in models)
        self._expect(is_right, "get_models", "a dict of at least one name with its weights", _name(models))
        for name, weights in models.items():
            self._check_weights(weights, self._spec, f"get_models, of {name!r}")
        return models

    def client_model(self, state: State) -> list[str]:
        names, number = self._call("client_model", state), len(self._data.everyone)
        is_right = isinstance(names, Sequence) and not isinstance(names, str) and len(names) == number
        self._expect(is_right, "client_model", f"a list of {number} names, one a client", _name(names))
        models = self.get_models(state)
        unknown = next((name for name in names if name not in models), None)
        self._expect(unknown is None, "client_model", f"names of get_models ({', '.join(models)})", repr(unknown))
        return names

    def personalize(self, state: State, clients: Sequence[ClientFiles]) -> Iterator[tuple[ClientFiles, Weights]]:
        return self._check_pairs("personalize", clients, state, clients)

    def personalize_from(
        self, state: State, clients: Sequence[ClientFiles], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientFiles, Weights]]:
        return self._check_pairs("personalize_from", clients, state, clients, start, most_steps)

    def get_teachers(self, state: State) -> dict[str, Weights]:
        teachers = self._call("get_teachers", state)
        self._expect(isinstance(teachers, Mapping), "get_teachers", "a dict", _name(teachers))
        if teachers:
            self._expect(
                self._spec.teacher is not None,
                "get_teachers",
                "no teachers, since the model has none",
                ", ".join(teachers),
            )
        for name, weights in teachers.items():
            self._check_weights(weights, self._spec.teacher, f"get_teachers, of {name!r}")
        return teachers

    def summarize(self, state: State) -> dict[str, Any]:
        summary = self._call("summarize", state)
        self._expect(isinstance(summary, Mapping), "summarize", "a dict", _name(summary))
        try:
            format_json(summary)
        except (TypeError, ValueError) as error:
            self._expect(False, "summarize", "numbers, strings, lists and dicts alone", str(error))
        return summary

    def client_columns(self, state: State) -> dict[str, list]:
        own, number = self._call("client_columns", state), len(self._data.everyone)
        self._expect(isinstance(own, Mapping), "client_columns", "a dict", _name(own))
        for name, values in own.items():
            self._expect(name not in _DRIVERS_CLIENT_COLUMNS, "client_columns", "names of its own", repr(name))
            is_right = isinstance(values, Sequence | np.ndarray) and len(values) == number
            is_right = is_right and all(_is_cell(value) for value in values)
            expected = f"{number} numbers or texts of {name!r}, one a client"
            self._expect(is_right, "client_columns", expected, _name(values))
        return own

    is_spent = _ask("is_spent")
    get_notes = _ask("get_notes", _are_texts, "a list of lines")
    get_events = _ask(
        "get_events",
        lambda events: isinstance(events, Sequence) and all(map(_is_event, events)),
        "a list of (seconds, client, what happened, model)",
    )
    keep_in, find_kept, forget = _ask("keep_in"), _ask("find_kept"), _ask("forget")
    map_models = property(lambda self: self._guard("map_models"))
    list_work = property(lambda self: self._guard("list_work"))

    def _guard(self, method: str) -> Callable | None:
        given = getattr(self.process, method)
        return None if given is None else lambda *arguments: self._call(method, *arguments)

    def _call(self, method: str, *arguments: Any) -> Any:
        with _in_one_line(self._label, method):
            return getattr(self.process, method)(*arguments)

    def _expect(self, is_right: Any, method: str, expected: str, found: str) -> None:
        if not is_right:
            raise FlagError(f"{self._label}: {method}: expected {expected}, got {found}")

    def _find_structure(self, state: State, method: str) -> list[tuple]:
        """The paths to the leaves of a state."""
        try:
            flatten_state(state)
        except TypeError as error:
            expected = "a state of NumPy arrays of numbers, in tuples, lists and dicts"
            self._expect(False, method, expected, f"one that does not fit: {error}")
        return [path for path, _ in tree.flatten_with_path(state)]

    def _check_metrics(self, metrics: Mapping[str, float]) -> None:
        self._expect(isinstance(metrics, Mapping), "next", "metrics in a dict", _name(metrics))
        missing = [name for name in COMMON_METRICS if name not in metrics]
        self._expect(not missing, "next", f"the metrics {', '.join(COMMON_METRICS)}", f"none of {', '.join(missing)}")
        taken = sorted(_DRIVERS_METRICS & set(metrics))
        self._expect(not taken, "next", "metrics under names of their own", ", ".join(taken))
        for name, value in metrics.items():
            self._expect(_is_number(value), "next", f"a number for the metric {name!r}", _name(value))
        self._metrics = self._metrics or list(metrics)
        same = f"the same metrics every round ({', '.join(self._metrics)})"
        self._expect(list(metrics) == self._metrics, "next", same, ", ".join(metrics))

    def _check_weights(self, weights: Any, spec: "ModelSpec", where: str) -> None:
        is_right = isinstance(weights, tuple | list) and all(isinstance(array, np.ndarray) for array in weights)
        found = _name(weights) if not isinstance(weights, tuple | list) else ", ".join(sorted(set(map(_name, weights))))
        self._expect(is_right, where, "a tuple of NumPy arrays", found)
        found, shapes = [array.shape for array in weights], spec.of_weights(weights).weight_shapes
        if found != list(shapes):
            pairs = [(a, b) for a, b in zip(shapes, found, strict=False) if a != b]
            a, b = pairs[0] if pairs else (f"{len(shapes)} arrays", str(len(found)))
            self._expect(False, where, f"the shapes of the model's weights, {a}", str(b))

    def _check_pairs(self, method: str, clients: Sequence[ClientFiles], *arguments: Any) -> Iterator:
        """The pairs of a client and its weights, one for each client in the order given."""
        pairs, expected = (
            iter(self._call(method, *arguments) or ()),
            "a pair (client, weights) for each client, in order",
        )
        for client in clients:
            with _in_one_line(self._label, method):
                pair = next(pairs, None)
            is_right = isinstance(pair, tuple) and len(pair) == 2 and getattr(pair[0], "index", None) == client.index
            self._expect(is_right, method, expected, f"{_name(pair)} for {client.name}")
            self._check_weights(pair[1], self._spec, method)
            yield pair


@contextlib.contextmanager
def _in_one_line(label: str, what: str) -> Iterator[None]:
    try:
        yield
    except _PASSED_ON:
        raise
    except (Exception, SystemExit) as error:
        raise FlagError(f"{label}: {what} failed: {describe_failure(error)}") from error


def _name(value: Any) -> str:
    """What a value is: its type, and how many it holds."""
    size = f" of {len(value)}" if isinstance(value, Sequence | Mapping) else ""
    return "None" if value is None else f"{type(value).__name__}{size}"
