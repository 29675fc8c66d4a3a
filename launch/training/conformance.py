"""Holds an algorithm to the protocol on a small federation: two rounds, and the first of them repeated.

Each fault is one line that names what the author must change. A run of own code whose modules have changed is checked
so before its first round; `launch.check` asks for it. Imports no TensorFlow at its top.
"""

import contextlib
import dataclasses
import hashlib
import inspect
import itertools
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from datasets.federated_data import SPLITS, ClientFiles, DeviceProfiles, FederatedData
from datasets.own_objects import ContractError, describe_failure, find_definition
from files.cache_folder import default_cache_dir
from files.writing import write_text
from launch.command_line import WRONG_REQUESTS
from launch.runs import columns
from launch.runs.checkpoints import NUMBER_KINDS
from launch.runs.tables import format_json
from launch.runs.task_columns import TaskColumns
from launch.runtimes.in_process import run_in_process
from launch.settings.flags import FlagError
from launch.settings.module_sums import sum_run_modules
from launch.settings.run_config import RunConfig, find_algorithm, flag_values
from launch.settings.trusted_modules import AGGREGATOR, PROJECT, list_objects
from models.task_kinds import TASK_KINDS
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, RoundOutput, State
from tff_algos.settings.config_fields import SMOKE_CLIENTS, ConfigError

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

_ARGUMENTS = "(model_spec, clients, config, seed)"
# Of a client and split.
_MOST_EXAMPLES = 8
# What the state of a `SynchronousProcess` has.
_SYNCHRONOUS = ("round_num", columns.VIRTUAL_TIME_S, "aggregator", "server", "kept")
_TEXTS_OF_EVENT = [False, False, True, False]
_TASKS = [TaskColumns(kind) for kind in TASK_KINDS.values()]
_DRIVERS_METRICS = {columns.ROUND, *(name for task in _TASKS for name in (*task.evaluation, *task.spread))}
_DRIVERS_METRICS |= {columns.JOULES, columns.JOULES_TOTAL}
_DRIVERS_CLIENT_COLUMNS = {
    *(columns.CLIENT, columns.NUM_TRAIN, columns.NUM_VALIDATION, columns.NUM_TEST, columns.EXAMPLES_PER_S),
    *(columns.DOWNLINK_BYTES_PER_S, columns.UPLINK_BYTES_PER_S, columns.AVAILABILITY, columns.DEVICE_NAME),
    *(columns.MODEL, columns.LOSS, columns.TOOK_PART, columns.ATTACKER, columns.ARCHETYPE, columns.ARCHETYPE_NAME),
    *(columns.META_ARCHETYPE, *(task.of_client for task in _TASKS)),
}


def check_changed(config: RunConfig, data: FederatedData, spec: "ModelSpec", log_path: str) -> None:
    """Checks a run's own algorithm or aggregator, unless its modules, and ours, are as they were when they passed.

    Raises:
      FlagError: a fault, in one line.
    """
    sums = sum_run_modules(config, lambda name: name == "algo" or name.endswith(AGGREGATOR))
    if not sums:
        return
    ours = [path.read_bytes() for path in sorted((PROJECT / "tff_algos").rglob("*.py"))]
    key = hashlib.sha256(b"".join([json.dumps([config.algo, sums]).encode(), *ours])).hexdigest()
    passed = pathlib.Path(default_cache_dir("checked"), key)
    if passed.exists():
        return
    # Settings need not allow so few clients; and where nothing can be written, the next run is checked, too.
    with contextlib.suppress(ConfigError, OSError), run_in_process(log_path, config.device):
        check_small(config, data, spec)
        write_text(passed, "")


def check_small(config: RunConfig, data: FederatedData, spec: "ModelSpec") -> None:
    """Checks the algorithm of a run on a few clients and examples of its data; call it in a runtime.

    Raises:
      FlagError: a fault, in one line.
      ConfigError: the settings do not fit so few clients.
    """
    settings = config.algorithm.shrink_to_smoke()
    if getattr(settings, "cohort_size", 1) == 0:
        settings = dataclasses.replace(settings, cohort_size=SMOKE_CLIENTS)
    with tempfile.TemporaryDirectory(prefix="federated_check_") as folder:
        small = _make_small(data, folder)
        settings.check_clients(len(small.clients))
        settings.check_examples(int(small.num_train.min()))
        settings.check_devices(small.profiles, len(small.clients))
        build, label = find_algorithm(config.algo).load_builder(), name_own(config) or f"--algo={config.algo}"
        process = build_own_process(label, build, spec, small, settings, config.seed)
        Conformance(label, process, spec, small).check()


def name_own(config: RunConfig, reason: str = "") -> str:
    """The flag that names own code of a run, of several the one in whose module it failed by `reason`; "" for none."""
    flags = flag_values(config)
    objects = {*list_objects(flags)}
    named = [f"--{name}={value}" for name, value in flags.items() if objects & {*str(value).split(",")}]
    found = (each for each in named if f"({each.partition('=')[2].partition(':')[0].rpartition('.')[2]}.py," in reason)
    return next(found, next(iter(named), ""))


def _make_small(data: FederatedData, folder: str) -> FederatedData:
    """A few of the clients, one of each archetype among them, with a few of their examples in files of this folder."""
    kinds = data.archetypes.of_clients[: len(data.clients)] if data.archetypes else ()
    chosen = sorted({*range(min(SMOKE_CLIENTS, len(data.clients))), *map(kinds.index, kinds)})
    clients = tuple(_cut(data.clients[each], index, folder) for index, each in enumerate(chosen))

    def choose(value: Any) -> Any:
        return value[chosen] if isinstance(value, np.ndarray) else value

    profiles = {name: tree.map_structure(choose, value) for name, value in vars(data.profiles).items()}
    of_clients = tuple(kinds[each] for each in chosen) if kinds else ()
    return dataclasses.replace(
        data,
        clients=clients,
        new_clients=(),
        label_counts=data.label_counts[chosen],
        profiles=DeviceProfiles(**profiles),
        archetypes=data.archetypes and dataclasses.replace(data.archetypes, of_clients=of_clients),
        reader=None,
    )


def _cut(client: ClientFiles, index: int, folder: str) -> ClientFiles:
    path, counts = f"{folder}/{index}", []
    for split in SPLITS:
        count = getattr(client, f"num_{split}")
        counts.append(min(count, _MOST_EXAMPLES))
        # The last where examples have weights.
        for kind in ("x", "y", "w"):
            with contextlib.suppress(FileNotFoundError), open(f"{client.path}.{split}.{kind}", "rb") as source:
                size = os.fstat(source.fileno()).st_size * counts[-1] // max(count, 1)
                pathlib.Path(f"{path}.{split}.{kind}").write_bytes(source.read(size))
    return ClientFiles(index, client.name, path, *counts)


def build_own_process(
    label: str, build: Callable[..., Any], model_spec: "ModelSpec", data: FederatedData, config: Any, seed: int
) -> FederatedProcess:
    """The process that a user's builder gives.

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
        problem = ContractError(f"its builder must be a function of {_ARGUMENTS}: {error}", build)
        raise FlagError(f"{label}: {problem}") from error
    with _in_one_line(label, "its builder", build):
        process = build(*arguments)
    if not isinstance(process, FederatedProcess):
        problem = ContractError(f"its builder gave {_name(process)}, expected a FederatedProcess", build)
        raise FlagError(f"{label}: {problem}")
    return process


@contextlib.contextmanager
def _in_one_line(label: str, what: str, called: Any = None) -> Iterator[None]:
    try:
        yield
    except WRONG_REQUESTS:
        raise
    except (Exception, SystemExit) as error:
        raise FlagError(f"{label}: {what}: {describe_failure(error, called)}") from error


class Conformance:
    """What a process must hold to.

    Args:
      label: what errors begin with.
      process: the algorithm.
      model_spec: the model whose weights it has.
      data: its clients.
    """

    def __init__(self, label: str, process: FederatedProcess, model_spec: "ModelSpec", data: FederatedData):
        self.label, self.process, self.spec, self.data = label, process, model_spec, data
        # That of the first state.
        self._structure: list[tuple] = []
        # The names of the first round.
        self._metrics: list[str] = []

    def check(self) -> None:
        """Two rounds, the first of them repeated, and everything else that a run asks.

        Raises:
          FlagError: a fault, in one line.
        """
        for name, kind in {
            columns.IS_PERSONAL: bool,
            "takes_new_clients": bool,
            "shares_models": bool,
            "fine_tuning_start": str,
            "curve": tuple,
        }.items():
            value = getattr(self.process, name)
            self._expect(isinstance(value, kind), name, f"a {kind.__name__}", repr(value))
        first = self._ask("initialize")
        self._check_state(first, "initialize")
        # By name, which needs no TensorFlow.
        bases = {kind.__name__ for kind in type(self.process).__mro__}
        fields = _SYNCHRONOUS if "SynchronousProcess" in bases else ()
        missing = [name for name in fields if not hasattr(first, name)]
        expected = "a state as that of super().initialize(), with ._replace(own=...)"
        self._expect(not missing, "initialize", expected, f"{_name(first)} without {', '.join(missing)}")
        self._check_models(first)
        before = _copy(first)
        again = "initialize gives another state when it is called again, at {}; draw by the seed that the builder gets"
        self._compare(before, _copy(self._ask("initialize")), again)
        output = self._next(first)
        self._compare(before, _copy(first), "next changed the state that it was given, at {}; make new arrays")
        self._check_outcome(first, output)
        before = _list_variables(self.process)
        self._next(output.state)
        changed = [name for name, value in _list_variables(self.process).items() if before.get(name, value) != value]
        repeated, remembered = self._next(first), f", as {' and '.join(changed)} may be" if changed else ""
        advice = f"keep nothing on the process{remembered}, but in the state, and draw by (seed, round)"
        where = f"next gives another result when a round is repeated, at {{}}; {advice}"
        self._compare(_copy(output), _copy(repeated), where)

    def _ask(self, method: str, *arguments: Any) -> Any:
        with _in_one_line(self.label, method, self._find_author(method)):
            return getattr(self.process, method)(*arguments)

    def _ask_dict(self, method: str, state: State) -> Mapping[str, Any]:
        found = self._ask(method, state)
        self._expect(isinstance(found, Mapping), method, "a dict", _name(found))
        return found

    def _find_author(self, method: str) -> Any:
        """The method that a name begins with, if it is the user's, else the class of the process."""
        own = getattr(type(self.process), method.partition(",")[0], None)
        return own if find_definition(own) else type(self.process)

    def _expect(self, is_right: Any, method: str, expected: str, found: str) -> None:
        if not is_right:
            problem = ContractError(f"{method}: expected {expected}, got {found}", self._find_author(method))
            raise FlagError(f"{self.label}: {problem}")

    def _compare(self, before: dict[str, Any], after: dict[str, Any], message: str) -> None:
        for path in (path for path, value in before.items() if after.get(path) != value):
            problem = ContractError(
                message.format(path),
                self._find_author("describe" if path.startswith("metrics.") else message.partition(" ")[0]),
            )
            raise FlagError(f"{self.label}: {problem}")

    def _next(self, state: State) -> RoundOutput:
        output = self._ask("next", state)
        self._expect(isinstance(output, RoundOutput), "next", "a RoundOutput of state and metrics", _name(output))
        self._expect(output.state is not state, "next", "the state after the round", "the one that it was given")
        self._check_state(output.state, "next")
        metrics = output.metrics
        self._expect(isinstance(metrics, Mapping), "next", "metrics in a dict", _name(metrics))
        missing = [name for name in COMMON_METRICS if name not in metrics]
        self._expect(not missing, "next", f"the metrics {', '.join(COMMON_METRICS)}", f"none of {', '.join(missing)}")
        taken = sorted(_DRIVERS_METRICS & set(metrics))
        by = "describe" if find_definition(getattr(type(self.process), "describe", None)) else "next"
        self._expect(not taken, by, "metrics under names of their own", ", ".join(taken))
        for name, value in metrics.items():
            self._expect(_is_number(value), by, f"a number for the metric {name!r}, as of float()", _name(value))
        loss, counted = metrics[columns.TRAIN_LOSS], metrics[columns.NUM_CLIENTS] - metrics[columns.NUM_REJECTED]
        fix = "look at the loss, its gradient and divisions, or lower the learning rate"
        is_finite = counted > 0 or not metrics[columns.NUM_REJECTED]
        self._expect(
            is_finite, "next", f"updates that are finite; {fix}", f"none of {metrics['num_clients']:g} clients"
        )
        is_right = not np.isinf(loss) or counted <= 0
        self._expect(is_right, "next", "a finite train_loss of updates that are finite", f"{loss}")
        self._metrics = self._metrics or list(metrics)
        same = f"the same metrics every round ({', '.join(self._metrics)})"
        self._expect(list(metrics) == self._metrics, by, same, ", ".join(metrics))
        return output

    def _check_state(self, state: State, method: str) -> None:
        """Arrays of numbers alone, nested as they were at first."""
        leaves = tree.flatten_with_path(state)
        for path, leaf in leaves:
            is_right = (
                isinstance(leaf, np.ndarray | np.generic | int | float) and np.asarray(leaf).dtype.kind in NUMBER_KINDS
            )
            expected = "a state of NumPy arrays of numbers, in tuples, lists and dicts"
            self._expect(is_right, method, expected, f"{_name(leaf)}{(path and f' at {_spell(path)}') or ''}")
        self._expect(leaves, method, "a state that holds the round, at least", _name(state))
        found = [path for path, _ in leaves]
        self._structure = self._structure or found
        others = [_spell(path) for path in {*self._structure} ^ {*found}]
        self._expect(
            not others, method, "a state of the structure that initialize gave", f"another at {min(others, default='')}"
        )

    def _check_outcome(self, state: State, output: RoundOutput) -> None:
        """All that a run asks of the state after a round."""
        models, after, number = self._check_models(output.state), output.state, len(self.data.everyone)
        names = self._ask("client_model", after)
        is_right = isinstance(names, Sequence) and not isinstance(names, str) and len(names) == number
        self._expect(is_right, "client_model", f"a list of {number} names, one a client", _name(names))
        unknown = next((name for name in names if name not in models), None)
        self._expect(unknown is None, "client_model", f"names of get_models ({', '.join(models)})", repr(unknown))
        self._check_pairs("personalize", after, self.data.clients)
        if self.process.fine_tuning_start:
            self._check_pairs("personalize_from", after, self.data.clients, self.process.fine_tuning_start, 1)
        for name, weights in self._ask_dict("get_teachers", after).items():
            self._expect(self.spec.teacher, "get_teachers", "no teachers, since the model has none", name)
            self._check_weights(weights, self.spec.teacher, f"get_teachers, of {name!r}")
        summary = self._ask_dict("summarize", after)
        with _in_one_line(self.label, "summarize: expected numbers, strings, lists and dicts alone"):
            format_json(summary)
        for name, values in self._ask_dict("client_columns", after).items():
            self._expect(name not in _DRIVERS_CLIENT_COLUMNS, "client_columns", "names of its own", repr(name))
            is_right = isinstance(values, Sequence | np.ndarray) and len(values) == number
            is_right = is_right and all(
                value is None or isinstance(value, str) or _is_number(value) for value in values
            )
            expected = f"{number} numbers or texts of {name!r}, one a client"
            self._expect(is_right, "client_columns", expected, _name(values))
        for event in self._ask("get_events", after):
            is_right = isinstance(event, Sequence) and [isinstance(each, str) for each in event] == _TEXTS_OF_EVENT
            self._expect(is_right, "get_events", "(seconds, client, what happened, model)", _name(event))
        notes = self._ask("get_notes", after)
        is_right = isinstance(notes, Sequence) and not isinstance(notes, str)
        self._expect(is_right, "get_notes", "a list of lines", _name(notes))
        self._ask("is_spent", after)
        if self.process.list_work is not None:
            self._ask("list_work", state, after)

    def _check_models(self, state: State) -> dict[str, Any]:
        models = self._ask("get_models", state)
        is_right = isinstance(models, Mapping) and models and all(isinstance(name, str) for name in models)
        self._expect(is_right, "get_models", "a dict of at least one name with its weights", _name(models))
        for name, weights in models.items():
            self._check_weights(weights, self.spec, f"get_models, of {name!r}")
        return models

    def _check_weights(self, weights: Any, spec: "ModelSpec", where: str) -> None:
        is_right = isinstance(weights, tuple | list) and all(isinstance(array, np.ndarray) for array in weights)
        found = _name(weights) if not isinstance(weights, tuple | list) else ", ".join(sorted(set(map(_name, weights))))
        self._expect(is_right, where, "a tuple of NumPy arrays", found)
        shapes = spec.of_weights(weights).weight_shapes
        self._expect(len(weights) == len(shapes), where, f"{len(shapes)} arrays, as the model has", str(len(weights)))
        for number, (array, shape) in enumerate(zip(weights, shapes, strict=True)):
            expected = f"the shapes of the model's weights, {shape} of number {number}"
            self._expect(array.shape == tuple(shape), where, expected, str(array.shape))

    def _check_pairs(self, method: str, state: State, clients: Sequence[ClientFiles], *arguments: Any) -> None:
        """A pair of client and weights for each client, in the order given."""
        with _in_one_line(self.label, method, self._find_author(method)):
            pairs = list(getattr(self.process, method)(state, clients, *arguments) or ())
        for client, pair in itertools.zip_longest(clients, pairs):
            is_right = (
                client
                and isinstance(pair, tuple)
                and len(pair) == 2
                and getattr(pair[0], "index", None) == client.index
            )
            expected = "a pair (client, weights) for each client, in order"
            self._expect(is_right, method, expected, f"{_name(pair)} for {client and client.name}")
            self._check_weights(pair[1], self.spec, method)


def _list_variables(process: FederatedProcess) -> dict[str, str]:
    """What a user may keep beside the state: attributes of the process, of their classes and of their modules."""
    own = [each for each in type(process).__mro__ if find_definition(each)]
    held = [*(vars(sys.modules[each.__module__]) for each in own), *map(vars, own[::-1]), vars(process)]
    return {name: repr(value) for each in held for name, value in each.items() if not name.startswith("__")}


def _copy(value: Any) -> dict[str, Any]:
    """What each leaf is, to the byte, by its path."""
    arrays = [(_spell(path), np.asarray(leaf)) for path, leaf in tree.flatten_with_path(value)]
    return {path: (array.dtype, array.shape, array.tobytes()) for path, array in arrays}


def _spell(path: tuple) -> str:
    """A path into a state: "own.mean[2]"."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.bool_ | np.number) or (isinstance(value, np.ndarray) and not value.ndim)


def _name(value: Any) -> str:
    """What a value is: its type, and how many or what kind it holds."""
    size = f" of {len(value)}" if isinstance(value, Sequence | Mapping) else ""
    size = f" of {value.dtype}" if isinstance(value, np.ndarray) else size
    return "None" if value is None else f"{type(value).__name__}{size}"
