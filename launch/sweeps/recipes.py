"""What runs are made from: an experiment, a user's flagfile, or an algorithm with flags of the command line."""

import glob
import os
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from launch.settings.algorithms import Algorithm
from launch.settings.errors import FlagError
from launch.settings.experiments import Experiment, find_experiment, format_flagfile, get_experiment, match_experiments
from launch.settings.flags import (
    describe_unknown_in_run,
    find_asked_algorithm,
    list_fields_of,
    list_names_of_runs,
    parse_config,
)
from launch.settings.run_config import RunConfig, find_algorithm, shared_fields
from launch.settings.setting_names import find_owner, find_setting, get_flag, join_values, rename_arguments

FLAGFILE, EXPERIMENT, ALGO = "--flagfile=", "--experiment=", "--algo="


class Recipe(NamedTuple):
    """Settings under a name.

    Attributes:
      name: of the folder of its runs.
      argument: what `launch.train` gets.
    """

    name: str
    argument: str

    @property
    def shown(self) -> str:
        """As a user wrote it."""
        return self.argument.partition("=")[2]

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that it is, if it is one."""
        return find_experiment(self.shown) if self.argument.startswith(EXPERIMENT) else None

    def read(self) -> str:
        """A flagfile with the same settings."""
        if self.argument.startswith(FLAGFILE):
            return pathlib.Path(self.shown).read_text("utf-8-sig")
        return format_flagfile(self.experiment) if self.experiment else f"{self.argument}\n"

    @property
    def algorithm(self) -> Algorithm | None:
        """Its algorithm; None where `resolve` will say what is wrong."""
        spelling = find_asked_algorithm([self.argument])
        return find_algorithm(spelling) if spelling else None

    def resolve(self, arguments: Sequence[str] = ()) -> RunConfig:
        """What it asks for, with further arguments after it.

        Raises:
          FlagError: it cannot be; the line names it, and a setting as that of its algorithm alone, which may be given.
        """
        try:
            config = parse_config([self.argument, *arguments])
        except FlagError as error:
            text, algorithm = str(error), self.algorithm
            if self.argument.startswith(ALGO) and text.startswith(f"{self.argument}:"):
                raise
            if algorithm and (found := re.match(r"--(\w+)", text)) and found[1] in algorithm.names:
                text = f"--{algorithm.flag_prefix}{text[2:]}"
            raise FlagError(f"{self.shown}: {text}") from None
        if self.argument.startswith(ALGO) and config.algo != self.shown:
            raise FlagError(f"{self.shown}: --algo={config.algo} after it; name the algorithms in --algos alone")
        return config


def from_flagfile(path: pathlib.Path) -> Recipe:
    """The settings in a file."""
    return Recipe(path.stem, f"{FLAGFILE}{path}")


def from_experiment(experiment: Experiment) -> Recipe:
    """The settings of an experiment."""
    return Recipe(experiment.name, f"{EXPERIMENT}{experiment.full_name}")


def from_algorithm(typed: str) -> Recipe:
    """An algorithm with its defaults."""
    asked = find_asked_algorithm([f"{ALGO}{typed}"])
    # Where there is none, `Recipe.resolve` will say what is wrong.
    return Recipe(find_algorithm(asked).name, f"{ALGO}{asked}") if asked else Recipe(typed, f"{ALGO}{typed}")


def find_recipe(text: str) -> Recipe:
    """What `--experiment` of a search names: a flagfile or an experiment. Raises FlagError if it is neither."""
    path = pathlib.Path(os.path.expanduser(text))
    if path.is_file():
        return from_flagfile(path)
    if path.suffix == ".flags":
        raise FlagError(f"--experiment={text}: no such file; expected a flagfile or the name of an experiment")
    try:
        return from_experiment(get_experiment(text))
    except FlagError as error:
        raise FlagError(f"--experiment={error}") from None


def find_recipes(flagfiles: Sequence[str], experiments: Sequence[str], algos: Sequence[str]) -> list[Recipe]:
    """What these name, each once.

    Args:
      flagfiles: files or patterns of their names.
      experiments: names of experiments or patterns of them.
      algos: algorithms.

    Raises:
      FlagError: one names nothing, or two would share a folder of runs.
    """
    found = []
    for pattern in flagfiles:
        paths = [pathlib.Path(name) for name in sorted(glob.glob(os.path.expanduser(pattern)))]
        if not paths:
            raise FlagError(f"--flagfiles: no file is named {pattern}")
        found += [("flagfiles", from_flagfile(path)) for path in paths]
    for pattern in experiments:
        try:
            found += [("experiments", from_experiment(each)) for each in match_experiments(pattern)]
        except FlagError as error:
            raise FlagError(f"--experiments={error}") from None
    found += [("algos", from_algorithm(typed)) for typed in algos]
    recipes: dict[str, Recipe] = {}
    for flag, recipe in found:
        other = recipes.setdefault(recipe.name, recipe)
        # Two patterns may find one file; two files of one name would share a folder.
        are_files = other.argument.startswith(FLAGFILE) and recipe.argument.startswith(FLAGFILE)
        if other != recipe and not (are_files and pathlib.Path(other.shown).samefile(recipe.shown)):
            raise FlagError(f"--{flag}: {other.shown} and {recipe.shown} would share a run folder; rename one")
    return list(recipes.values())


def check_handed_on(
    own: Sequence[str], recipes: Sequence[Recipe], arguments: Sequence[str], set_by_us: Sequence[str]
) -> None:
    """Raises FlagError unless each argument is a flag of the runs.

    Args:
      own: the flags of the command, which are none.
      recipes: what the runs are made from.
      arguments: those that go to the runs.
      set_by_us: flags of runs that the command sets itself.
    """
    rows = [row for recipe in recipes if (row := recipe.algorithm)]
    not_handed_on = {"algo", *set_by_us, *own}
    names = list_names_of_runs(rows) - not_handed_on
    for name in map(get_flag, arguments):
        if name not in names and name.removeprefix("no") not in names:
            known = dict.fromkeys(field.name for field in list_fields_of(rows) if field.name not in not_handed_on)
            raise FlagError(describe_unknown_in_run(name, rows, [*own, *known]))


def share_arguments(
    recipes: Sequence[Recipe], arguments: Sequence[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Gives each recipe those of the arguments that its algorithm has, `--<algo>_X` after X, so that it counts.

    Returns:
      (arguments, lacking): by the recipe's name, with settings under their own names; and {setting: the algorithms that
      have none of this name}, of what only some have.

    Raises:
      FlagError: a setting of none of the algorithms.
    """
    rows = {recipe.name: recipe.algorithm for recipe in recipes}
    everyone = list({row.name: row for row in rows.values() if row}.values())
    known, shared = list_names_of_runs(everyone), {field.name for field in shared_fields()}
    of_all, alone = ({name: [] for name in rows} for _ in range(2))
    lacking: dict[str, list[str]] = {}
    for argument in join_values(arguments):
        typed = get_flag(argument)
        # --noX switches X off, unless a flag's own name begins so.
        flag = typed.removeprefix("no") if typed not in known else typed
        owner, setting = find_owner(flag, everyone), find_setting(flag, everyone)
        having = [owner] if owner else [row for row in everyone if setting in row.names]
        if not having and flag in known - shared:
            raise FlagError(f"--{flag}: belongs to none of the algorithms {', '.join(row.name for row in everyone)}")
        for name, row in rows.items():
            if not having or row in having:
                # What names its algorithm comes later on the command line, and there the last one counts.
                given = alone if owner else of_all
                given[name] += rename_arguments([argument], everyone)
        if having and not owner and len(having) < len(everyone):
            lacking[flag] = [row.name for row in everyone if row not in having]
    return {name: [*of_all[name], *alone[name]] for name in rows}, lacking
