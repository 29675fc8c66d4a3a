"""What runs are made from: an experiment, a user's flagfile, or an algorithm with flags of the command line."""

import glob
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.experiments import Experiment, find_experiment, format_flagfile, get_experiment, match_experiments
from launch.settings.flags import parse_config
from launch.settings.run_config import RunConfig, find_algorithm

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

    def resolve(self, arguments: Sequence[str] = ()) -> RunConfig:
        """What it asks for, with further arguments after it. Raises FlagError, naming it."""
        try:
            config = parse_config([self.argument, *arguments])
        except FlagError as error:
            raise FlagError(f"{self.shown}: {error}") from None
        if self.argument.startswith(ALGO) and config.algo != self.shown:
            raise FlagError(f"{self.shown}: --algo={config.algo} after it; name the algorithms in --algos alone")
        return config


def from_flagfile(path: pathlib.Path) -> Recipe:
    """The settings in a file."""
    return Recipe(path.stem, f"{FLAGFILE}{path}")


def from_experiment(experiment: Experiment) -> Recipe:
    """The settings of an experiment."""
    return Recipe(experiment.name, f"{EXPERIMENT}{experiment.full_name}")


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
    recipes: dict[str, Recipe] = {}
    for flag, recipe in (*_find_files(flagfiles), *_find_experiments(experiments), *_find_algorithms(algos)):
        other = recipes.setdefault(recipe.name, recipe)
        if not _is_same(other, recipe):
            raise FlagError(f"--{flag}: {other.shown} and {recipe.shown} would share a run folder; rename one")
    return list(recipes.values())


def _is_same(one: Recipe, other: Recipe) -> bool:
    are_files = one.argument.startswith(FLAGFILE) and other.argument.startswith(FLAGFILE)
    return one == other or (are_files and pathlib.Path(one.shown).samefile(other.shown))


def _find_files(patterns: Iterable[str]) -> Iterable[tuple[str, Recipe]]:
    for pattern in patterns:
        paths = [pathlib.Path(name) for name in sorted(glob.glob(os.path.expanduser(pattern)))]
        if not paths:
            raise FlagError(f"--flagfiles: no file is named {pattern}")
        yield from (("flagfiles", from_flagfile(path)) for path in paths)


def _find_experiments(patterns: Iterable[str]) -> Iterable[tuple[str, Recipe]]:
    for pattern in patterns:
        try:
            found = match_experiments(pattern)
        except FlagError as error:
            raise FlagError(f"--experiments={error}") from None
        yield from (("experiments", from_experiment(each)) for each in found)


def _find_algorithms(spellings: Iterable[str]) -> Iterable[tuple[str, Recipe]]:
    for spelling in spellings:
        name = spelling.rpartition(":")[2]  # of a user's own, which is module:NAME
        yield "algos", Recipe(name, f"{ALGO}{spelling}")


def check_arguments(recipes: Iterable[Recipe], arguments: Sequence[str]) -> None:
    """Raises FlagError for an argument that no recipe gets, see `select_arguments`."""
    used = {each for recipe in recipes for each in select_arguments(recipe, arguments)}
    unused = [each for each in arguments if each not in used]
    if unused:
        raise FlagError(f"{unused[0].partition('=')[0]} after --: belongs to no algorithm of --algos")


def select_arguments(recipe: Recipe, arguments: Sequence[str]) -> list[str]:
    """Those of the arguments, which all recipes get, that are not about another algorithm than the one it names."""
    if not recipe.argument.startswith(ALGO) or recipe.shown not in ALGORITHMS:
        return list(arguments)
    own = find_algorithm(recipe.shown).flag_prefix
    foreign = tuple(row.flag_prefix for row in ALGORITHMS.values() if row.flag_prefix != own)
    names = [(each, each.lstrip("-").removeprefix("no")) for each in arguments]
    return [each for each, name in names if name.startswith(own) or not name.startswith(foreign)]
