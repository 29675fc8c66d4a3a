"""The runtime and the device that a run's config asks for. Imports no TensorFlow at its top."""

import contextlib
import dataclasses

from launch.runtimes.device import DeviceError, give_sessions_own_threads, use_device
from launch.runtimes.registry import RuntimeOptions, open_runtime
from launch.runtimes.runtime import Runtime
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig
from launch.settings.runtimes import AUTO, CPU, IN_PROCESS


def settle_device(config: RunConfig) -> RunConfig:
    """The config with the device that is used, "cpu" or "gpu", which TensorFlow computes on from now on.

    Call it before TensorFlow computes anything.

    Raises:
      FlagError: there is no such device.
    """
    if config.runtime == IN_PROCESS:
        give_sessions_own_threads()
    try:
        return dataclasses.replace(config, device=use_device(config.device))
    except DeviceError as error:
        raise FlagError(f"--device={config.device}: {error}") from None


def settle_device_again(config: RunConfig) -> RunConfig:
    """The same for a run that is finished: what ran on a GPU may be looked at where there is none."""
    return settle_device(config if config.device == CPU else dataclasses.replace(config, device=AUTO))


def open_run_runtime(
    config: RunConfig, log_path: str, keeps_memory: bool = False, num_shares: int | None = None
) -> contextlib.AbstractContextManager[Runtime]:
    """The runtime of a run whose device is settled; see `open_runtime`."""
    workers = tuple(config.worker_addresses)
    options = RuntimeOptions(log_path, config.device, workers, keeps_memory, num_shares=num_shares)
    return open_runtime(config.runtime, options)
