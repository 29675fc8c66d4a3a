"""Refuses to train an experiment on other data than its kept runs had, before anything is trained.

The `config.json` of a run names its data set, a subset by its sizes; newer ones have digests as well. Imports no
TensorFlow.
"""

from collections.abc import Sequence

from launch.runs.run_records import RunPath, RunRecordError, find_run_dirs, list_other_settings, read_config
from launch.settings.errors import FlagError
from launch.sweeps.jobs import is_done
from launch.sweeps.present_data import PresentData
from launch.sweeps.tasks import Task


def check_kept_data(tasks: Sequence[Task], archives: Sequence[RunPath], present: PresentData) -> None:
    """Compares the data of what is still to be trained with those of kept runs with the same settings.

    Kept runs of other seeds tell the data set as well; where there are none, nothing is known.

    Args:
      tasks: of a command.
      archives: folders and archives of kept runs.
      present: the data as they are now.

    Raises:
      FlagError: they are others.
    """
    to_train = [task for task in tasks if not is_done(task)] if archives else []
    if not to_train:
        return
    kept: dict[str, list[RunPath]] = {}
    for run_dir in (each for archive in archives for each in find_run_dirs(archive)):
        kept.setdefault(run_dir.parent.name, []).append(run_dir)
    for task in to_train:
        # That of the same seed says most.
        for run_dir in sorted(kept.get(task.recipe.name, ()), key=lambda each: not _has_seed(each, task)):
            if other := _find_other_data(run_dir, task, present):
                raise FlagError(
                    f"{task.name}: {run_dir} was trained on {other}; expected the same data: name their folder by "
                    "--data_dir, or leave out --finished and --same_data_as to train on these"
                )


def _has_seed(run_dir: RunPath, task: Task) -> bool:
    return run_dir.name == f"seed_{task.config.seed}"


def _find_other_data(run_dir: RunPath, task: Task, present: PresentData) -> str:
    """What a kept run had and what there is now, if these differ; "" if they do not, or it has other settings."""
    try:
        stored = read_config(run_dir)
    except RunRecordError:
        return ""
    flags, data = stored.get("flags"), stored.get("data")
    if not (isinstance(flags, dict) and isinstance(data, dict)):
        return ""
    if list_other_settings({**flags, "seed": task.config.seed}, task.config):
        return ""
    theirs, ours = data.get("dataset"), present.name(task.config)
    if theirs and ours and theirs != ours:
        return f"{theirs}, and this run would have {ours}"
    if _has_seed(run_dir, task) and (changed := present.find_other_data(stored, task.config)):
        return f"other data than {changed} holds now"
    return ""
