"""Whether a run's training is compiled: settled when it begins, and kept in `config.json`. No TensorFlow at the top."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from datasets.federated_data import FederatedData
from launch.settings.flags import FlagError
from launch.settings.run_config import RunConfig
from launch.settings.runtimes import AUTO, CPU, OFF, ON, TFF
from tff_algos.settings.local_training import LocalTrainingConfig

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

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
