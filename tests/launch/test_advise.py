"""`launch.advise`: what it says before it runs anything, what it asks for, and a small contest from end to end."""

import functools
import html
import json
import pathlib
import shlex

import pytest

import launch.train
from launch import advise
from launch.console.stop_signals import StopSignal
from launch.contests import stages
from launch.contests.contest import Entered, Outcome, run_contest
from launch.contests.plan import Plan, Planned
from launch.settings.flags import parse_config
from launch.sweeps.tasks import build_arguments

PLAN = Plan(rounds=3, trials=1, first_share=1.0, kept=1, trial_seeds=(100,), finalists=1, seeds=(0, 1), most_seeds=2)
OUTCOME = Outcome(None, None, {}, (), 0.0, False)
DIGITS = ("--dataset=digits", "--partition=iid", "--num_clients=4", "--model=logistic_regression")


@pytest.fixture
def advise_here(tmp_path, monkeypatch, capsys):
    """(arguments) -> (exit code, stdout, stderr) of the command in a folder and with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda *arguments: (advise.main(list(arguments)), *capsys.readouterr())


HEAD = """\
data     digits: classification, 10 classes
judged   by the clients' own accuracy
clients  4, examples of each to train on: 215 to 216, in the middle 216
splits   of each client's examples 15% to choose by, 25% to test on, where the data do not say it
note     clients are simulated (--partition=iid): the advice is for clients that differ like that
left out All data in one place: as --no_pooled asks
left out IFCA: 4 clients are too few for groups; expected at least 6
left out FedPer or FedRep: the model has one layer alone
left out CFL: 4 clients are too few for groups; expected at least 6
left out FedSiKD: 4 clients are too few for groups; expected at least 6
left out FedCD: 4 clients are too few for groups; expected at least 6
left out Asynchronous FL: nothing says that devices differ; give --device_profiles
"""


def test_what_it_says_before_anything_runs(advise_here, tmp_path, monkeypatch):
    """With --plan_only the contest stops at its plan, and nothing is advised."""
    asked = {}
    monkeypatch.setattr(advise, "run_contest", lambda *_, **further: asked.update(further) or OUTCOME)
    assert advise_here(*DIGITS, "--no_pooled", "--plan_only") == (0, HEAD, "")
    assert asked["plan_only"] and not (tmp_path / "runs").exists()


def test_what_the_contest_is_asked_for(advise_here, monkeypatch):
    """And that a command which is stopped says how to go on."""
    asked = {}

    def stop(problem, methods, folder, **further):
        asked.update(further, problem=problem, methods=methods, folder=folder)
        raise StopSignal(15)

    monkeypatch.setattr(advise, "run_contest", stop)
    arguments = (*DIGITS, "--minutes=3", "--rounds=7", "--jobs=1", "--methods=ditto", "--data_dir=my data")
    code, _, error = advise_here(*arguments)
    assert code == 143 and error == f"stopped; go on with: python -m launch.advise {shlex.join(arguments)}\n"
    # Of 180 seconds 3 % are for the advice after the contest.
    assert asked["seconds"] == pytest.approx(174.6) and 0 < asked["spent_s"] < 60
    assert asked["rounds"] == 7 and asked["jobs"] == 1
    assert asked["always"] == ["local_only", "fedavg", "pooled"] and asked["folder"] == pathlib.Path(
        "runs/advice/digits"
    )
    problem, methods = asked["problem"], asked["methods"]
    assert [method.name for method in methods] == ["local_only", "fedavg", "pooled", "ditto"]
    # What algorithms have defaults of their own for is the same for all.
    configs = [parse_config([f"--algo={method.algo}", *problem.arguments, *method.fixed]) for method in methods]
    for name in ("dataset", "partition", "batch_size", "validation_fraction", "test_fraction", "model", "num_clients"):
        assert len({getattr(config, name) for config in configs}) == 1, name
    assert configs[0].dataset == "digits" and configs[0].test_fraction == 0.25 and configs[0].data_dir == "my data"
    assert problem.name == "digits" and problem.result == "client_test_accuracy"


def test_minutes_that_were_too_few_are_a_failure_with_a_page(advise_here, tmp_path, monkeypatch):
    def end(problem, methods, folder, **_):
        folder.mkdir(parents=True)
        return Outcome(problem, PLAN, {}, tuple(map(Entered, methods)), 60.0, True)

    monkeypatch.setattr(advise, "run_contest", end)
    code, printed, error = advise_here(*DIGITS, "--minutes=1")
    assert (code, error) == (1, "") and "advice   Nothing can be advised yet" in printed
    page = (tmp_path / "runs" / "advice" / "digits" / "advice.html").read_text()
    assert "4 clients are too few for groups" in page


@pytest.fixture
def contest_here(monkeypatch, engine_of, no_plots):
    """Contests run in this process, one run after the other, by a plan that no time decides: a list of their runs."""
    trained = []

    def train(task):
        trained.append(str(task.run_dir))
        return launch.train.main(build_arguments(task))

    def plan(methods, always, seconds, pace, rounds=None):
        return Planned(PLAN, tuple(method.name for method in methods), {}, (1.0, 1.0, 1.0), pace)

    monkeypatch.setattr(stages, "make_plan", plan)
    engine = lambda tasks, jobs: engine_of(train)
    monkeypatch.setattr(advise, "run_contest", functools.partial(run_contest, open_engine=engine))
    return trained


def test_a_small_contest_from_end_to_end(advise_here, contest_here, tmp_path):
    """Digits, with the two methods that are always there; then the same command has nothing left to run."""
    arguments = (*DIGITS, "--minutes=1000", "--methods=fedavg", "--no_pooled")
    code, printed, error = advise_here(*arguments)
    assert (code, error) == (0, "")
    folder = tmp_path / "runs" / "advice" / "digits"
    names = ("local_only", "fedavg")
    assert sorted(path.name for path in (folder / "seeds").iterdir()) == sorted(names)
    for name in names:
        assert len(list((folder / "seeds" / name).glob("seed_*/report.html"))) == 2
    lines = printed.splitlines()
    [start] = [number for number, line in enumerate(lines) if line.startswith("advice   ")]
    sentences = [line[9:] for line in lines[start : start + 5]]
    page = html.unescape((folder / "advice.html").read_text())
    assert all(sentence in page for sentence in sentences)
    assert lines[start + 5].startswith("page     runs/advice/digits/advice.html; the same for programs: ")
    assert "one place: as --no_pooled asks" in page
    facts = json.loads((folder / "advice.json").read_text())
    assert facts["plan"]["rounds"] == 3 and min(facts["methods"][name]["mean"] for name in names) > 0.5
    # What is advised by then is what the same command says again, from the runs that are there.
    number = len(contest_here)
    code, again, error = advise_here(*arguments)
    assert (code, error) == (0, "") and len(contest_here) == number
    assert again.splitlines()[-len(lines) + start :] == lines[start:]
