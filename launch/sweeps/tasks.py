"""Which runs are asked for, and which of them are finished: what `launch.sweep` and `launch.tune` share."""

import dataclasses
import pathlib

from launch.runs.columns import BUDGET_SPENT, CONFIG_FILE, PATIENCE, REACHED_LIMITS, STOPPED_EARLY, SUMMARY_FILE
from launch.runs.errors import RunFolderError
from launch.runs.run_records import RunPath, RunRecordError, list_other_settings, read_config, read_json
from launch.runs.task_columns import read_task_columns
from launch.settings.run_config import RunConfig
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe
from launch.training.cost_limits import list_limits

OWN_FLAGS = ("seed", "run_dir", "resume", "overwrite", "rounds")  # which the runs get from their task


@dataclasses.dataclass(frozen=True)
class Task:
    """One run to make.

    Attributes:
      recipe: its settings.
      arguments: those of the command line after the recipe.
      run_dir: its folder.
      config: what both ask for.
      finished: folders and archives in which the run may lie finished already.
      label: what tells it from others of the recipe and seed, "" for nothing.
      present: the data as they are now, of all tasks of a command.
    """

    recipe: Recipe
    arguments: tuple[str, ...]
    run_dir: pathlib.Path
    config: RunConfig
    finished: tuple[RunPath, ...] = ()
    label: str = ""
    present: PresentData = dataclasses.field(default_factory=PresentData, compare=False, repr=False)

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.recipe.name, self.label, f"seed {self.config.seed}")))

    @property
    def log(self) -> pathlib.Path:
        """Where the run's output goes if other runs go on beside it."""
        return self.run_dir.with_name(f"{self.run_dir.name}.log")

    @property
    def place(self) -> str:
        """Where its folder lies in a folder or an archive of runs."""
        return f"{self.recipe.name}/seed_{self.config.seed}"


def is_finished(task: Task) -> bool:
    """Whether the run folder, or one of `task.finished`, holds a run with these settings and the rounds asked for.

    Raises:
      RunFolderError: the run folder holds a run with other settings, which training would not go on with, or a finished
        one of other data or code; or something is left to do, but the folder or the log is a link, which nobody has
        typed, to what may be another run.
    """
    other = _find_other_settings(task.run_dir, task.config)
    if other:
        raise RunFolderError(
            f"{task.run_dir}: a run with other settings ({'; '.join(other)}); choose another --runs_dir"
        )
    is_over = _has_finished(task.run_dir, task.config)
    if change := task.present.find_change(task.run_dir, task.config, is_over):
        raise RunFolderError(f"{task.run_dir}: a run {change}; choose another --runs_dir, or move it away")
    is_over = is_over or any(_is_kept(runs / task.place, task) for runs in task.finished)
    for path in (task.run_dir, task.log):
        if not is_over and path.is_symlink():
            raise RunFolderError(f"{path}: is a symbolic link, by which a sweep trains nothing; remove it")
    return is_over


def _is_kept(place: RunPath, task: Task) -> bool:
    """Whether a kept run is the one asked for; with other settings, data or code it is another, and this is made."""
    if _find_other_settings(place, task.config) or not _has_finished(place, task.config):
        return False
    return not task.present.find_change(place, task.config)


def _find_other_settings(run_dir: RunPath, config: RunConfig) -> list[str]:
    """The settings in which a stored run differs, as `list_other_settings` gives them; none if there is no run."""
    try:
        stored = read_config(run_dir)
    except RunRecordError:
        return []
    flags = stored.get("flags", {})
    if not isinstance(flags, dict):
        raise RunFolderError(f"{run_dir}: its config.json is damaged; move it away")
    return list_other_settings(flags, config)


def _has_finished(run_dir: RunPath, config: RunConfig) -> bool:
    """Whether a run has its rounds, target, budget, limits or patience behind it; false if none can be read."""
    try:
        read_json(run_dir / CONFIG_FILE)
        summary = read_json(run_dir / SUMMARY_FILE)
        is_over = summary.get("rounds", 0) >= config.rounds or bool(summary.get(BUDGET_SPENT))
        has_lost_patience = summary.get(STOPPED_EARLY, {}).get(PATIENCE, 0) >= config.patience > 0
        has_reached_limits = summary.get(REACHED_LIMITS) == list_limits(config)
        columns = read_task_columns(summary)
        has_reached_target = columns.has_reached_target(config, summary.get("final", {}).get(columns.test))
        return is_over or has_lost_patience or has_reached_limits or has_reached_target
    except (RunRecordError, TypeError, AttributeError):  # of a damaged one, whose values are of other kinds
        return False


def build_arguments(task: Task) -> list[str]:
    """What `launch.train` gets to train a task's run or, if its folder holds one, to go on with it."""
    resume = ["--resume"] if (task.run_dir / CONFIG_FILE).exists() else []
    return [task.recipe.argument, *task.arguments, *resume]
