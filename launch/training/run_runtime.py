"""What computes a run: its runtime, its device, and whether training is compiled. Imports no TensorFlow at its top.

All three are settled when a run begins, and stand in `config.json`.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import launch
from datasets.federated_data import FederatedData
from launch.runtimes.cached_graphs import default_graph_dir
from launch.runtimes.device import DeviceError, give_sessions_own_threads, use_device
from launch.runtimes.registry import open_runtime
from launch.runtimes.runtime import Runtime
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig, flag_values
from launch.settings.runtimes import AUTO, CPU, IN_PROCESS, OFF, ON, RAY, TFF
from launch.settings.trusted_modules import list_modules
from tff_algos.settings.local_training import LocalTrainingConfig

if TYPE_CHECKING:
    from models.model_spec import ModelSpec


def settle_device(config: RunConfig) -> RunConfig:
    """The config with the device that is used, "cpu" or "gpu", which TensorFlow computes on from now on.

    Call it before TensorFlow computes anything.

    Raises:
      FlagError: there is no such device.
    """
    if config.runtime in (IN_PROCESS, RAY):
        give_sessions_own_threads()
    try:
        return dataclasses.replace(config, device=use_device(config.device))
    except DeviceError as error:
        raise FlagError(f"--device={config.device}: {error}") from None


def settle_device_again(config: RunConfig) -> RunConfig:
    """The same for a run that is finished: what ran on a GPU may be looked at where there is none."""
    return settle_device(config if config.device == CPU else dataclasses.replace(config, device=AUTO))


def keep_to_this_machine(config: RunConfig) -> RunConfig:
    """The config for what is left to do when a run is finished, without other machines.

    What a single client's work gives is the same in this process as on Ray, byte for byte: both run one graph.
    """
    return dataclasses.replace(config, runtime=IN_PROCESS, ray_address="") if config.runtime == RAY else config


def open_run_runtime(config: RunConfig, log_path: str) -> contextlib.AbstractContextManager[Runtime]:
    """The runtime of a run whose device is settled; see `open_runtime`.

    Graphs are cached for later runs by commands alone, and if all of the run's code is this project's: a program or a
    notebook may have replaced parts of it.
    """
    graph_dir = default_graph_dir() if launch.IS_COMMAND and not list_modules(flag_values(config)) else ""
    ray = config.ray_address, config.ray_shares
    return open_runtime(config.runtime, log_path, config.device, *ray, graph_dir=graph_dir)


# A step gains about 0.05 ms, and each core compiles for about a second for each size of a chunk that it needs.
LEAST_STEPS = 30_000


def settle_compilation(config: RunConfig, spec: "ModelSpec", data: FederatedData) -> tuple[RunConfig, "ModelSpec"]:
    """The config with "on" or "off", and its model; `spec` is as `build_spec` made it.

    Raises:
      FlagError: it is to be compiled, and cannot be.
    """
    from models.compilation import compile_spec, find_obstacle, pays

    if config.compile == ON and (reason := find_obstacle(spec)):
        raise FlagError(f"--compile={ON}: {spec.name} cannot be compiled, since {reason}; leave it out")
    if config.compile != AUTO:
        return config, spec
    may = config.runtime != TFF and config.device == CPU and count_steps(config, data) >= LEAST_STEPS
    if may and pays(spec):
        return dataclasses.replace(config, compile=ON), compile_spec(spec)
    return dataclasses.replace(config, compile=OFF), spec


def count_steps(config: RunConfig, data: FederatedData) -> int:
    """About how many steps the clients take in the run: full cohorts, whose clients have as many examples as most."""
    num_examples = int(data.num_train.mean())
    cohort_size = next((size for size in _find(config.algorithm, "cohort_size") if size), len(data.clients))
    trainings = [each for each in _walk(config.algorithm) if isinstance(each, LocalTrainingConfig)]
    steps = sum(each.steps or each.epochs * -(-num_examples // each.batch_size) for each in trainings)
    return config.rounds * min(cohort_size, len(data.clients)) * steps


def _walk(config: Any) -> Iterator[Any]:
    """A config and the groups in it."""
    yield config
    for field in dataclasses.fields(config):
        if dataclasses.is_dataclass(value := getattr(config, field.name)):
            yield from _walk(value)


def _find(config: Any, name: str) -> Iterator[Any]:
    return (getattr(each, name) for each in _walk(config) if hasattr(each, name))
