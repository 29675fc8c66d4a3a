"""Which runs are asked for, with which seeds, and which are finished: what `launch.sweep` and `launch.tune` share."""

import dataclasses
import pathlib
import re
from collections.abc import Iterable

from launch.runs.columns import BUDGET_SPENT, CONFIG_FILE, PATIENCE, REACHED_LIMITS, STOPPED_EARLY, SUMMARY_FILE
from launch.runs.errors import RunFolderError
from launch.runs.run_records import RunPath, RunRecordError, list_other_settings, read_config, read_json
from launch.runs.task_columns import read_task_columns
from launch.settings.errors import FlagError
from launch.settings.run_config import RunConfig
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe
from launch.training.run_end import list_limits

# Those that the runs get from their task.
OWN_FLAGS = ("seed", "run_dir", "resume", "overwrite", "rounds")


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

    Raises:
      FlagError: it would repeat a live run.
    """

    recipe: Recipe
    arguments: tuple[str, ...]
    run_dir: pathlib.Path
    config: RunConfig
    finished: tuple[RunPath, ...] = ()
    label: str = ""
    present: PresentData = dataclasses.field(default_factory=PresentData, compare=False, repr=False)

    def __post_init__(self):
        if self.config.replay:
            raise FlagError(f"--replay={self.config.replay}: repeats one run; expected launch.train alone with it")

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.recipe.name, self.label, f"seed {self.config.seed}")))

    @property
    def log(self) -> pathlib.Path:
        """Where the run's output goes if other runs go on beside it."""
        return self.run_dir.with_name(f"{self.run_dir.name}.log")

    @property
    def archived_path(self) -> str:
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
    is_over = is_over or any(_is_asked_for(runs / task.archived_path, task) for runs in task.finished)
    for path in (task.run_dir, task.log):
        if not is_over and path.is_symlink():
            raise RunFolderError(f"{path}: is a symbolic link, by which a sweep trains nothing; remove it")
    return is_over


def _is_asked_for(run_dir: RunPath, task: Task) -> bool:
    """Whether a stored run is the one asked for. With other settings, data or code it is another, and this is made."""
    if _find_other_settings(run_dir, task.config) or not _has_finished(run_dir, task.config):
        return False
    return not task.present.find_change(run_dir, task.config)


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
        # Without it a run cannot be told from another, whatever its summary says.
        read_json(run_dir / CONFIG_FILE)
        summary = read_json(run_dir / SUMMARY_FILE)
        is_over = summary.get("rounds", 0) >= config.rounds or bool(summary.get(BUDGET_SPENT))
        has_lost_patience = summary.get(STOPPED_EARLY, {}).get(PATIENCE, 0) >= config.patience > 0
        has_reached_limits = summary.get(REACHED_LIMITS) == list_limits(config)
        columns = read_task_columns(summary)
        has_reached_target = columns.has_reached_target(config, summary.get("final", {}).get(columns.test))
        return is_over or has_lost_patience or has_reached_limits or has_reached_target
    # A damaged summary has values of other kinds; the run goes on.
    except (RunRecordError, TypeError, AttributeError):
        return False


def build_arguments(task: Task) -> list[str]:
    """What `launch.train` gets to train a task's run or, if its folder holds one, to go on with it."""
    resume = ["--resume"] if (task.run_dir / CONFIG_FILE).exists() else []
    return [task.recipe.argument, *task.arguments, *resume]


# Runs of a range: more are a slip of the hand.
MOST = 10**4
EXPECTED = "expected whole numbers with commas between them, or ranges, as 0,1,2 or 0-4"


def read_seeds(texts: Iterable[str], flag: str, may_be_none: bool = False) -> tuple[str, ...]:
    """The seeds, each once, in the order given; "0-4" means 0, 1, 2, 3 and 4.

    Args:
      texts: what stands between the commas.
      flag: where it was given, without dashes.
      may_be_none: whether there need not be any.

    Raises:
      FlagError: a text is neither a number nor a range, or a range ends before it begins or is far too long; or
        there is none.
    """
    texts = [text.strip() for text in texts]
    if not texts and not may_be_none:
        raise FlagError(f"--{flag} is empty: {EXPECTED}")
    seeds: list[int] = []
    for text in texts:
        # Digits of other scripts, which int() takes, and numbers beyond any seed are refused.
        match = re.fullmatch("([0-9]{1,12})(?:-([0-9]{1,12}))?", text)
        if match is None:
            raise FlagError(f"--{flag}={','.join(texts)}: {EXPECTED}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise FlagError(f"--{flag}={','.join(texts)}: {text} ends before it begins; did you mean {last}-{first}?")
        if last - first >= MOST:
            count = f"{last - first + 1:,} seeds"
            raise FlagError(f"--{flag}={','.join(texts)}: {text} are {count}; expected at most {MOST:,}")
        seeds += range(first, last + 1)
    return tuple(map(str, dict.fromkeys(seeds)))
