"""The runtime and the device that a run's config asks for. Imports no TensorFlow at its top."""

import contextlib
import dataclasses

import launch
from launch.runtimes.device import DeviceError, give_sessions_own_threads, use_device
from launch.runtimes.kept_graphs import default_graph_dir
from launch.runtimes.ray_cluster import INSTALL, is_ray_installed
from launch.runtimes.registry import open_runtime
from launch.runtimes.runtime import Runtime, WorkerError
from launch.runtimes.tff_worker import install_worker
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig, flag_values
from launch.settings.runtimes import AUTO, CPU, IN_PROCESS, RAY, TFF
from launch.settings.trusted_modules import list_modules


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


def ensure_installed(config: RunConfig) -> None:
    """Installs TFF's worker if the run needs it and it is missing, which a line on stdout says.

    Raises:
      FlagError: that fails, or the runtime needs an extra that is not installed.
    """
    if config.runtime == TFF:
        try:
            install_worker()
        except WorkerError as error:
            raise FlagError(f"--runtime={TFF}: {error}") from None
    if config.runtime == RAY and not is_ray_installed():
        raise FlagError(f"--runtime={RAY}: Ray is not installed; {INSTALL}")


def keep_to_this_machine(config: RunConfig) -> RunConfig:
    """The config for what is left to do when a run is finished, without other machines.

    What a single client's work gives is the same in this process as on Ray, byte for byte: both run one graph.
    """
    return dataclasses.replace(config, runtime=IN_PROCESS, ray_address="") if config.runtime == RAY else config


def open_run_runtime(config: RunConfig, log_path: str) -> contextlib.AbstractContextManager[Runtime]:
    """The runtime of a run whose device is settled; see `open_runtime`.

    Graphs are kept for later runs by commands alone, and if all of the run's code is this project's: a program or a
    notebook may have replaced parts of it.
    """
    graph_dir = default_graph_dir() if launch.IS_COMMAND and not list_modules(flag_values(config)) else ""
    ray = config.ray_address, config.ray_shares
    return open_runtime(config.runtime, log_path, config.device, *ray, graph_dir=graph_dir)
