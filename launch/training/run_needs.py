"""What a run needs beside its data: what is missing is one line, before anything is read. Imports no TensorFlow."""

from launch.runtimes.device import NO_GPU, may_have_gpu
from launch.runtimes.ray_cluster import INSTALL, is_ray_installed
from launch.runtimes.runtime import WorkerError
from launch.runtimes.tff_worker import install_worker
from launch.settings.errors import FlagError
from launch.settings.named_objects import check_named
from launch.settings.run_config import RunConfig, flag_values
from launch.settings.runtimes import GPU, RAY, TFF
from launch.settings.trusted_modules import list_named
from launch.training.tracking import find_tracker


def check_needs(config: RunConfig) -> None:
    """Looks for all that a training needs, and installs TFF's worker if that is missing, which a line on stdout says.

    Raises:
      FlagError: a model, loss or aggregator of the user's, a GPU, a tracker or an extra is not there.
    """
    for flag, spelling in list_named(flag_values(config)):
        check_named(spelling, f"--{flag}={spelling}")
    if config.device == GPU and not may_have_gpu():
        raise FlagError(f"--device={GPU}: {NO_GPU}")
    find_tracker(config)
    ensure_installed(config)


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
