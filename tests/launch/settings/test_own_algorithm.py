"""`--algo=my_module:ALGORITHM`: a row of a user's own, its flags, and every way in which it can be wrong."""

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from launch.runs.run_folder import open_run_folder
from launch.settings.flags import FlagError, parse_config, parse_given, read_stored_flags
from launch.settings.help_pages import format_help
from launch.settings.own_algorithm import ENTRY_POINTS
from launch.settings.run_config import build_run_config, find_algorithm, flag_values
from launch.settings.run_titles import describe_run
from launch.settings.trusted_modules import check_trusted, spell_program
from launch.sweep import parse_request
from launch.sweeps.recipes import find_recipes
from tff_algos.settings.config_fields import ConfigError

TRUST = "--trust_module=tiny_algorithm"
ROOT = pathlib.Path(__file__).parents[3]
MODULE = '''
import dataclasses

from launch.settings.algorithms import Algorithm
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, Needs, group, setting
from tff_algos.settings.local_training import LocalTrainingConfig


@dataclasses.dataclass(frozen=True)
class TinyConfig(AlgorithmConfig):
    """A tiny algorithm: local training, then more of it for each client."""

    training: LocalTrainingConfig = group(LocalTrainingConfig, flag_prefix="")
    personal_epochs: int = setting(1, "Epochs of the personal model.", minimum=0, smoke=1)
    pull: float = setting(0.1, "Pull.", minimum=0, needs=Needs("personal_epochs", lambda epochs: epochs > 0, "epochs"))
    layers: tuple[int, ...] = setting((1, 2), "Layers that stay personal.", minimum=1)

    def check_run(self, rounds):
        if self.personal_epochs > rounds:
            raise ConfigError("personal_epochs", self.personal_epochs, f"at most --rounds={rounds}")


def build(model_spec, clients, config, seed):
    from tff_algos.local_only.process import build_local_only_process

    return build_local_only_process(model_spec, clients, config, seed)


ALGORITHM = Algorithm("tiny", "Tiny", "#000000", "Tiny: an algorithm of a user's own.", TinyConfig, "build")
NO_ROW = build
'''


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """(text, name) -> writes a module that can be imported in this test alone."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def write(text, name="tiny_algorithm"):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        names.append(name)
        sys.modules.pop(name, None)

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_a_users_row_gives_flags_which_its_name_may_stand_before(write_module, tmp_path, monkeypatch):
    write_module(MODULE)
    monkeypatch.chdir(tmp_path)
    config = parse_config(["--algo=tiny_algorithm:ALGORITHM", "--pull=0.5", "--tiny_steps=3", "--layers=4,5"])
    assert (config.algo, config.algorithm.pull, config.algorithm.training.steps) == ("tiny_algorithm:ALGORITHM", 0.5, 3)
    flags = flag_values(config)
    assert (config.algorithm.layers, flags["algo"], flags["layers"]) == ((4, 5), "tiny_algorithm:ALGORITHM", "4,5")
    assert build_run_config(json.loads(json.dumps(flags))) == config
    assert describe_run(flags) == "Tiny on digits, alpha 0.5, seed 0"
    with contextlib.closing(open_run_folder(config)) as folder:
        assert str(folder.path) == "runs/tiny_digits_001"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """(name, value) -> an installed package names this row, or this module that holds one."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, value, package="theirs"):
        folder = tmp_path / f"{package}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {package}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{name} = {value}\n")

    return write


def settle(typed):
    return parse_given([f"--algo={typed}"])["algo"]


def test_every_spelling_of_a_row_is_the_same_text(write_module, install, tmp_path, monkeypatch):
    write_module(MODULE)
    install("tiny-one", "tiny_algorithm")
    install("tiny-two", "tiny_algorithm:ALGORITHM", "others")
    monkeypatch.chdir(tmp_path)
    typed = ["tiny_algorithm", "tiny_algorithm.py", "./tiny_algorithm.py", str(tmp_path / "tiny_algorithm.py")]
    for spelling in (*typed, "tiny-one", "tiny-two", "tiny_algorithm:ALGORITHM"):
        assert settle(spelling) == "tiny_algorithm:ALGORITHM"
    (tmp_path / "tiny_kit").mkdir()
    write_module(MODULE, "tiny_kit/inner")
    assert settle("tiny_kit.inner") == settle("tiny_kit/inner.py") == "tiny_kit.inner:ALGORITHM"
    [recipe] = find_recipes([], [], ["tiny_algorithm", "tiny-one"])
    assert (recipe.name, recipe.argument) == ("tiny", "--algo=tiny_algorithm:ALGORITHM")
    assert recipe.resolve(["--pull=3"]).algorithm.pull == 3


def test_two_own_algorithms_share_a_sweep_but_no_name(write_module, install, tmp_path):
    write_module(MODULE)
    write_module(MODULE.replace('"tiny"', '"twin"'), "twins")
    asked = ["--algos=tiny_algorithm,twins", f"--runs_dir={tmp_path}", "--twin_pull=4", "--smoke"]
    found = [(each.run_dir, each.name, each.config.algorithm.pull) for each in parse_request(asked).tasks]
    assert found == [
        (tmp_path / name / "seed_0", f"{name}, seed 0", pull) for name, pull in (("tiny", 0.1), ("twin", 4))
    ]
    write_module(MODULE, "twin")
    install("both", "tiny_algorithm")
    install("both", "twin", "others")
    with pytest.raises(FlagError, match="--algo=both: tiny_algorithm and twin have this name; expected one of them"):
        settle("both")
    said = "--algos: tiny_algorithm:ALGORITHM and twin:ALGORITHM would share a run folder; rename one"
    with pytest.raises(FlagError, match=said):
        find_recipes([], [], ["tiny_algorithm", "twin"])


def test_a_package_may_be_called_as_its_entry_point_and_nothing_is_imported_that_nobody_typed(write_module, install):
    write_module("raise AssertionError('it runs')")
    install("tiny", "tiny_algorithm:ALGORITHM")
    with pytest.raises(FlagError, match="did you mean tiny"):
        settle("tinny")
    assert settle("fedavg") == "fedavg" and "tiny_algorithm" not in sys.modules
    write_module(MODULE)
    write_module("", "sunset")
    install("sunset", "tiny_algorithm:ALGORITHM", "others")
    assert settle("sunset") == "tiny_algorithm:ALGORITHM"


def test_a_file_that_python_does_not_find_has_its_folder_in_the_path(write_module, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("launch.settings.trusted_modules._of_typed_files", [])
    monkeypatch.setenv("PYTHONPATH", "/other")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "far_algorithm.py").write_text(MODULE)
    (tmp_path / "two" / "far-away.py").write_text(MODULE)
    write_module("", "near")
    sys.path.remove(str(tmp_path))
    folder = tmp_path / "one"
    assert settle(f"{folder}/far_algorithm.py") == "far_algorithm:ALGORITHM"
    assert os.environ["PYTHONPATH"] == f"{folder}:/other", "what this process starts finds it as well"
    flags = {"algo": "far_algorithm:ALGORITHM"}
    assert spell_program("launch.train", flags) == f"PYTHONPATH={folder}:/other python -m launch.train"
    with pytest.raises(FlagError, match="needs your module far_algorithm"):  # a later command would not find it
        check_trusted(flags, "run", ())
    for name, said in (
        ("two/far_algorithm.py", f"another far_algorithm is there already, {folder}/far_algorithm.py; rename one"),
        ("two/far-away.py", "Python imports no file of this name"),
        ("two/gone.py", "no such file"),
    ):
        with pytest.raises(FlagError, match=f"^--algo={tmp_path}/{name}: {said}"):
            settle(f"{tmp_path}/{name}")
    sys.modules.pop("far_algorithm")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("X = 3", "tiny_algorithm holds no Algorithm (of launch.settings.algorithms), expected one"),
        (
            f"{MODULE}\nB = dataclasses.replace(ALGORITHM, name='b')\n_C = dataclasses.replace(B)\nD = B",
            "tiny_algorithm holds 2 algorithms, expected one of tiny_algorithm:ALGORITHM, tiny_algorithm:B",
        ),
        ("raise ValueError('no luck')", "importing tiny_algorithm failed: ValueError: no luck (tiny_algorithm.py"),
    ],
)
def test_a_module_without_one_row_is_one_line(write_module, refuse, text, said):
    write_module(text)
    assert refuse("tiny_algorithm", lambda typed: settle(*typed)).startswith(f"--algo=tiny_algorithm: {said}")


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        ("build", "tiny_algorithm:build"),
        ("tff_algos.local_only.process:build_local_only_process",) * 2,
        ("tiny_builder:build", "builder of tiny: importing tiny_builder failed: ValueError: late"),
        ("ALGORITHM", "builder of tiny: expected a function, tiny_algorithm:ALGORITHM is a Algor"),
    ],
)
def test_a_builders_name_alone_means_the_rows_own_module_and_one_that_fails_is_one_line(
    write_module, refuse, builder, expected
):
    write_module("raise ValueError('late')", "tiny_builder")
    write_module(MODULE.replace('"build")', f'"{builder}")'))
    load = find_algorithm("tiny_algorithm:ALGORITHM").load_builder
    if expected.startswith("builder"):
        assert refuse((), lambda nothing: load()).startswith(expected)
    else:
        assert f"{load().__module__}:{load().__name__}" == expected


def test_help_lists_the_flags_of_a_users_row_which_a_flagfile_may_name(write_module, tmp_path):
    write_module(MODULE)
    algo = "--algo=tiny_algorithm:ALGORITHM"
    text = format_help([algo, "--help"])
    assert f"{algo} [--flag=value ...]\nTiny: an algorithm of a user's own.\n" in text
    assert "--epochs [5]" in text and "--layers [1,2]" in text
    assert format_help(["--help", "--rounds=3", algo]) == text
    assert "--layers [1,2]" in format_help(["--helpfull", algo])
    (tmp_path / "tiny.flags").write_text(f"{algo}\n--pull=0.25\n")
    assert parse_config([f"--flagfile={tmp_path / 'tiny.flags'}", "--steps", "7"]).algorithm.pull == 0.25


MISTAKES = {
    "--pull=-1": "--pull=-1: expected a number at least 0",
    "--pul=1": "--pul: unknown flag; did you mean --pull",
    "--layers=1_0": "--layers=1_0: expected integers at least 1 with commas between",
    "--layers=0": "--layers=0: expected integers at least 1 with commas between",
    "--personal_epochs=0 --pull=1": "--pull: does nothing with --personal_epochs=0",
    "--epochs=2 --steps=3": "--epochs: does nothing with --steps=3; leave it out, or give 0 steps",
    "--personal_epochs=3 --rounds=2": "--personal_epochs=3: expected at most --rounds=2",
    "--fedavg_epochs=3": "--fedavg_epochs: belongs to --algo=fedavg, expected settings of --algo=tiny"
    "; did you mean --epochs",
    "--rounds=0": "--rounds=0: expected an integer at least 1",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_with_a_users_flags_is_named_in_one_line(write_module, refuse, arguments):
    write_module(MODULE)
    assert refuse(f"--algo=tiny_algorithm:ALGORITHM {arguments}").startswith(MISTAKES[arguments])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError('no luck')", "failed: ValueError: no luck (tiny_algorithm.py, line 1: `raise"),
        ("import sys; sys.exit()", "importing tiny_algorithm failed: a call of sys.exit (tiny_algorithm.py, line 1"),
        ("x = (", "importing tiny_algorithm failed: SyntaxError"),
        ("import not_installed_anywhere", "tiny_algorithm needs it; correct the name, or install it (tiny_"),
        ("raise ModuleNotFoundError('no luck')", "importing tiny_algorithm failed: ModuleNotFoundError: no luck"),
        ("pass", "expected ALGORITHM in tiny_algorithm, there is none"),
        ("ALGORITHM = 3", "expected an Algorithm (of launch.settings.algorithms), got int"),
        (MODULE.replace('"tiny"', '"fedavg"'), "its name fedavg is that of --algo=fedavg, expected another"),
        (MODULE.replace('"tiny"', '"Tiny-1"'), "its name is 'Tiny-1', expected one in snake case"),
        (MODULE.replace('"tiny"', "7"), "its name is 7, expected one in snake case"),
        (MODULE.replace('"tiny"', '"building"'), "its name building clashes with building_csv"),
        (MODULE.replace('"tiny"', '"seed"'), "its name seed clashes with seed"),
        (MODULE.replace('"tiny"', '"final"'), "its name final clashes with final"),
        (MODULE.replace('"tiny"', '"server"'), "makes --server_beta_1 of --algo=fedavg ambiguous, which could be its"),
        (MODULE.replace('"tiny"', '"local"'), "its name local makes --local_epochs of --algo=fine_tuning ambiguous"),
        (MODULE.replace('"tiny"', '"teacher"'), "its name teacher clashes with teacher_model, which every run has"),
        (MODULE.replace('"tiny"', '"personal"'), "its setting personal_epochs could mean epochs of personal"),
        (MODULE.replace("pull:", "rounds:"), "setting rounds is called as a flag of every"),
        (MODULE.replace("TinyConfig, ", "dict, "), "its config_class is <class 'dict'>, expected a subclass"),
        (MODULE.replace("pull: float = setting(0.1", "pull: float = setting(-1"), "its config cannot be made: Config"),
        (MODULE.replace('Needs("personal_epochs"', 'Needs("nothing"'), "config cannot be made: KeyError: 'nothing'"),
        (MODULE.replace("setting((1, 2)", "setting(None"), "--layers is NoneType, expected bool, int, float, str"),
        (MODULE.replace('"build")', '"build", shared_defaults={"round": 1})'), "its shared_defaults name round"),
        (MODULE.replace('"build")', '"build", shared_defaults={"rounds": "5"})'), "have rounds='5', which --rounds"),
        (MODULE.replace('"build")', '"build", shared_defaults={"rounds": 0})'), "have rounds=0, which --rounds"),
        (MODULE.replace('"build")', '"build", shared_defaults=None)'), "its shared_defaults is None, expected"),
        (MODULE.replace('"build")', '"build", searched={"pul": "0|1"})'), "its searched names pul, expected settings"),
        (MODULE.replace('"build")', '"build", searched="pull=0|1")'), "its searched is 'pull=0|1', expected a mapping"),
        (MODULE.replace('"build")', "build)"), "expected the name of a function, as"),
        (MODULE.replace('"Tiny"', "None"), "its title is None, expected text"),
        (MODULE.replace("#000000", "blueish"), "its color is 'blueish', expected one such as #0072B2"),
        (MODULE.replace('"build")', '"build", unused=("pul",))'), "its unused has pul, expected settings"),
        (MODULE.replace("setting((1, 2)", "setting((1.5, 2)"), "layers=(1.5, 2): expected a tuple of integers, not"),
        (MODULE.replace("def check_run(", "__post_init__ = lambda self: exit()\n\n    def check_run("), "sys.exit"),
        (MODULE.replace('"build")', '"gone")'), "expected gone in tiny_algorithm, there is none"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_refused_in_one_line(write_module, refuse, text, said):
    write_module(text)
    for answer in (parse_config, format_help):
        line = refuse("--algo=tiny_algorithm:ALGORITHM", answer)
        assert line.startswith("--algo=tiny_algorithm:ALGORITHM: ") and said in line


@pytest.mark.parametrize("spelling", ["a:b:c", "my-module:ROW", "module:", ":ROW", "a..b:ROW"])
def test_a_spelling_that_names_no_row_is_refused(spelling):
    with pytest.raises(FlagError, match=f"--algo={spelling}: expected one of .*, or your own as module:ALGORITHM"):
        parse_config([f"--algo={spelling}"])
    with pytest.raises(ConfigError, match="algo="):
        find_algorithm(spelling)


def test_resume_knows_the_flags_of_the_runs_row_and_one_that_is_gone_is_one_line(
    write_module, store_run, refuse, tmp_path
):
    write_module(MODULE)
    resume = [*store_run({"algo": "tiny_algorithm:ALGORITHM", "rounds": 5, "pull": 0.5}), TRUST]
    config = parse_config([*resume, "--rounds=9", "--pull=0.5"])
    assert (config.algo, config.rounds, config.algorithm.pull) == ("tiny_algorithm:ALGORITHM", 9, 0.5)
    assert parse_config([*resume[:2], "--algo=tiny_algorithm"]).algorithm.pull == 0.5
    assert "--pull=0.1 (the run has 0.5)" in refuse([*resume, "--pull=0.1"])
    (tmp_path / "tiny_algorithm.py").unlink()
    sys.modules.pop("tiny_algorithm", None)
    importlib.invalidate_caches()
    said = "no module named tiny_algorithm; run from the folder that holds it"
    for arguments in ([], ["--pull=0.5"], ["--algo=tiny_algorithm:ALGORITHM"]):
        assert said in refuse([*resume, *arguments])
    run_dir = str(tmp_path / "run")
    line = refuse([run_dir, {"tiny_algorithm"}], lambda given: read_stored_flags(*given))
    assert line.startswith(f"--run_dir={run_dir} has --algo=tiny_algorithm:ALGORITHM: {said}")
    open_run_folder(build_run_config({"algo": "fedavg", "run_dir": run_dir, "overwrite": True})).close()


def run_command(folder, *arguments):
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_from_the_current_folder_the_program_answers_with_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "tiny_algorithm.py").write_text("import sys\nsys.exit(0)\n")
    done = run_command(tmp_path, "launch.train", "--algo=tiny_algorithm:ALGORITHM")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


@pytest.mark.slow
def test_a_users_algorithm_trains_resumes_evaluates_and_exports(tmp_path):
    (tmp_path / "tiny_algorithm.py").write_text(MODULE)
    flags = ("--algo=tiny_algorithm:ALGORITHM", "--num_clients=3", "--rounds=1", "--steps=1", "--run_dir=run")
    for arguments in (
        ["launch.train", *flags],
        ["launch.train", "--resume", "--run_dir=run", "--rounds=2", TRUST],
        ["launch.evaluate", "--run_dir=run", TRUST],
        ["launch.export", "--run_dir=run", "--formats=float32", "--model=client_0", TRUST],
    ):
        done = run_command(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["algo"], summary["rounds"]) == ("tiny_algorithm:ALGORITHM", 2)
    assert isinstance(summary["tiny"], dict)
    (tmp_path / "tiny_algorithm.py").unlink()
    for command in ("launch.train --resume", "launch.evaluate", "launch.export"):
        done = run_command(tmp_path, *command.split(), "--run_dir=run", TRUST)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert "no module named tiny_algorithm" in done.stderr
