"""How many runs go on at a time, and on which cores each: `--jobs`, or what memory and cores allow."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import psutil

from datasets.catalog import find_dataset
from launch.runs.errors import RunFolderError
from launch.runtimes.processor import list_cores
from launch.settings.data_flags import choose_options
from launch.settings.run_config import RunConfig
from launch.sweeps.local_runs import LocalEngine
from launch.sweeps.tasks import Task, is_finished
from models.model_names import MOST_WEIGHTS, NUM_WEIGHTS, STUDENT_OF_RANK, WIDTH_MODELS
from tff_algos.settings.config_fields import setting

MAX_JOBS = 1000

# Measured on small models, at their largest: a process of the sweep and TFF's worker (0.78 and 0.29 GB).
BASE_BYTES = 1.2 * 2**30
# Copies of the weights: of a client that trains, of the server with what is sent and evaluated, and of each client in
# algorithms that keep its model.
COPIES_TRAINING, COPIES_SERVER, COPIES_CLIENT = 6, 17, 2
UNKNOWN_BYTES = 25e6  # of data whose size only their file tells


@dataclasses.dataclass(frozen=True)
class JobsFlags:
    """The flag of commands that make runs."""

    jobs: int | None = setting(
        None,
        "Runs at a time, each on its share of the cores; by default what memory and cores allow.",
        minimum=1,
        maximum=MAX_JOBS,
    )


def open_engine(tasks: Sequence[Task], jobs: int | None) -> LocalEngine:
    """The engine for these runs. One that makes a single run at a time lets it print to our output.

    Args:
      tasks: the runs that are asked for; those that are finished do not count.
      jobs: how many at a time; None: what memory and cores allow.
    """
    cores = list_cores()
    configs = [task.config for task in tasks if not _is_done(task)]
    if jobs is None:
        jobs = choose_jobs(configs, len(cores), psutil.virtual_memory().available)
    jobs = max(1, min(jobs, len(configs)))
    return LocalEngine(share_cores(cores, jobs), keeps_logs=jobs > 1)


def are_done(tasks: Sequence[Task]) -> bool:
    """Whether there is nothing to run."""
    return all(map(_is_done, tasks))


def _is_done(task: Task) -> bool:
    """Whether there is nothing to run: the run is finished, or its folder holds another."""
    try:
        return is_finished(task)
    except RunFolderError:
        return True


def choose_jobs(configs: Sequence[RunConfig], num_cores: int, available_bytes: int) -> int:
    """As many runs at a time as there are cores, as long as the largest ones fit into the memory together.

    Where a run may use a GPU, whose memory is not known here, one at a time.
    """
    if any(getattr(config, "device", "cpu") != "cpu" for config in configs):
        return 1
    for jobs in range(min(num_cores, len(configs)), 1, -1):
        needed = sorted((estimate_memory_bytes(config, -(-num_cores // jobs)) for config in configs), reverse=True)
        if sum(needed[:jobs]) <= available_bytes:
            return jobs
    return 1


def share_cores(cores: Sequence[int], jobs: int) -> list[list[int]]:
    """The cores of each job: neighbours, as evenly as can be; where there are more jobs than cores, one in turns."""
    count = len(cores)
    if jobs > count:
        return [[cores[job % count]] for job in range(jobs)]
    return [list(cores[job * count // jobs : (job + 1) * count // jobs]) for job in range(jobs)]


def estimate_memory_bytes(config: RunConfig, num_cores: int) -> float:
    """What a run on so many cores may take, roughly and rather too much than too little."""
    row, options = find_dataset(config.dataset), choose_options(vars(config))
    form = None if row.format is None else row.find_format(options)
    # What `--model=auto` means for examples of this form; "" where only their file tells it.
    own = row.find_model(options) or ("" if form is None else STUDENT_OF_RANK.get(len(form.input_shape), ""))
    models = [own if name == "auto" else name for name in config.algorithm.model_names or (config.model,)]
    width = config.width**2 if set(models) & set(WIDTH_MODELS) else 1
    weights_bytes = 4 * width * max(NUM_WEIGHTS.get(model, MOST_WEIGHTS) for model in models)
    num_models = getattr(config.algorithm, "capacity", 1)  # FedCD's slots
    copies = COPIES_TRAINING * 2 * num_cores + COPIES_SERVER * num_models + COPIES_CLIENT * config.num_clients
    is_known = form is not None and row.num_examples
    example_bytes = math.prod(form.input_shape) * np.dtype(form.input_dtype).itemsize if is_known else 0
    return BASE_BYTES + copies * weights_bytes + 2 * (row.num_examples * example_bytes or UNKNOWN_BYTES)
