"""`python -m launch.check my_module` checks your algorithm, or a model, loss, aggregator or data set.

It is used for two small rounds, of which one is repeated from the first state, by default on a few handwritten digits.
What breaks the contract is one line that says what to change. A model, a loss or an aggregator is used by FedAvg; a
function of (updates, weights) is an aggregator, of labels and outputs a loss, of an input shape a model, or what --kind
says. Further flags are those of `launch.train`, as --dataset or the algorithm's own.
Exit codes: 0 it passed, 2 it did not or the request was wrong, 130 Ctrl-C.
"""

import dataclasses
import inspect
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from datasets.dataset import Dataset
from datasets.own_objects import import_module, import_object, is_module
from launch.command_line import parse_flags, run_command
from launch.console.stop_signals import leave
from launch.settings.algorithms import Algorithm
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.own_algorithm import name_file, settle_spelling
from tff_algos.settings.config_fields import is_own, setting

USAGE = "python -m launch.check <module, file.py or module:NAME> [--kind=<kind>] [--flag of launch.train ...]"
ALGO, MODEL, LOSS, AGGREGATOR, DATASET = KINDS = ("algo", "model", "loss", "aggregator", "dataset")
# What the first argument of a function is called, as most people write it.
_FIRST_ARGUMENTS = {AGGREGATOR: ("update", "delta"), LOSS: ("label", "y", "true", "target"), MODEL: ("shape",)}


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command; all others are those of a run."""

    kind: str = setting("", "What it is, where that cannot be told.", choices=("", *KINDS))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "check", USAGE, Flags, argv)


def _run(arguments: Sequence[str]) -> None:
    start_s = time.perf_counter()
    # What stands alone, and cannot be the value of the flag before it.
    free = [not place or arguments[place - 1].partition("=")[1] for place in range(len(arguments))]
    names = [
        each for each, is_free in zip(arguments, free, strict=True) if is_own(each) or (is_free and each[0] != "-")
    ]
    kinds = [argument for argument in arguments if argument.lstrip("-").partition("=")[0] == "kind"]
    if len(names) != 1:
        raise FlagError(f"expected one object of a module, got {' '.join(names) or 'none'}: {USAGE}")
    name = find_name(names[0])
    kind = parse_flags(Flags, kinds).kind or find_kind(name, import_object(name, name, FlagError))
    further = [argument for argument in arguments if argument not in {*names, *kinds}]
    usual = ("--algo=fedavg", "--dataset=digits", "--model=perceptron", "--runtime=in_process")
    given = {argument.lstrip("-").partition("=")[0] for argument in further} | {kind}
    given |= {"model"} if {"dataset", "data"} & given else set()
    usual = [flag for flag in usual if flag[2:].partition("=")[0] not in given]
    config = parse_config([f"--{kind}={name}", *usual, *further])
    from launch.runtimes.in_process import run_in_process
    from launch.runtimes.runtime import quiet_tensorflow
    from launch.training.conformance import check_small
    from launch.training.federation import build_run_task, build_spec, load_federated_data
    from launch.training.opened_data import identify_data
    from launch.training.run_runtime import settle_device
    from launch.training.training_run import check_task

    if kind == DATASET and identify_data(config) != identify_data(config):
        raise FlagError(f"{name}: its loader gives other data when it is called again; draw by the seed of its options")
    data = load_federated_data(config)
    check_task(config, data)
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/worker.log"
        with quiet_tensorflow(log):
            config = settle_device(config)
            spec = build_spec(config, data.format, task=build_run_task(config, data.format))
        with run_in_process(log, config.device):
            check_small(config, data, spec)
    print(f"{name}: two rounds of --algo={config.algo} on {data.dataset}, the first repeated, gave what they have to")
    print(f"ok       {time.perf_counter() - start_s:.1f} s")


def find_name(typed: str) -> str:
    """ "module:NAME" of what was typed, which may be a module or a file that holds one object to check.

    Raises:
      FlagError: there is no such file or module, or it holds no such object or several.
    """
    file, _, name = typed.rpartition(":")
    if file.endswith(".py"):
        return f"{name_file(file, typed)}:{name}"
    if is_own(typed):
        return typed
    module = name_file(typed, typed) if typed.endswith(".py") else typed
    if not all(map(str.isidentifier, module.split("."))) or not is_module(module):
        if is_own(found := settle_spelling(typed)):  # what an installed package gives
            return found
        raise FlagError(f"{typed}: no module or file of this name; expected {USAGE}")
    objects = vars(import_module(module, typed, FlagError))
    public = {name: each for name, each in objects.items() if name[0] != "_"}
    rows = [name for name, each in public.items() if isinstance(each, Algorithm | Dataset)]
    own = [name for name, each in public.items() if getattr(each, "__module__", "") == module and callable(each)]
    found = list({id(public[name]): name for name in reversed(rows or own)}.values())[::-1]  # each by its first name
    if len(found) != 1:
        holds = f"holds {', '.join(found)}" if found else "holds nothing to check"
        raise FlagError(f"{typed}: {module} {holds}; expected one of them, as {module}:{(found or ['NAME'])[0]}")
    return f"{module}:{found[0]}"


def find_kind(name: str, found: Any) -> str:
    """What an object of a user's is, one of `KINDS`.

    Raises:
      FlagError: it could be several things, or is none of them.
    """
    for kind, own in ((ALGO, Algorithm), (DATASET, Dataset)):
        if isinstance(found, own):
            return kind
    bases = {each.__name__ for each in (found if inspect.isclass(found) else type(found)).__mro__}
    if "Loss" in bases:
        return LOSS
    if bases & {"ListAggregator", "WeightedAggregationFactory", "UnweightedAggregationFactory"}:
        return AGGREGATOR
    try:
        first = next(iter(inspect.signature(found).parameters), "")
    except (TypeError, ValueError):
        first = ""
    for kind, words in _FIRST_ARGUMENTS.items():
        if any(word in first for word in words):
            return kind
    expected = "an Algorithm, a Dataset, a loss, an aggregator or a function that makes a model"
    raise FlagError(f"{name}: expected {expected}, got {type(found).__name__}; give --kind={', '.join(KINDS)}")


if __name__ == "__main__":
    leave(main())
