"""The league's problems as contests: who competes, with what, judged by what, and for whom further seeds are."""

import csv
import json

import pytest

from launch.contests.contest import Entered, Outcome
from launch.contests.methods import ALONE, REFERENCE
from launch.contests.search_points import draw_points
from launch.settings.algorithms import ALGORITHMS
from reproductions.contests import run
from reproductions.contests.contests import (
    build_chooser,
    build_contest,
    build_plan,
    collect_judged,
    title_methods,
)
from reproductions.contests.problems import CONTESTS, PROBLEMS, read_words
from reproductions.league.experiments import METHODS_OF


@pytest.fixture(scope="module")
def slow():
    return build_contest("slow_digits")


def test_the_problems_are_those_of_the_first_league_with_the_same_methods():
    assert set(PROBLEMS) - {"tiny"} == set(METHODS_OF)
    for name in METHODS_OF:
        words = read_words(name)
        if "methods" in words:
            there = {"fine_tuning" if each == "fedavg_fine_tuned" else each for each in words["methods"]}
            assert {"local_only", REFERENCE, *there} - {"local_only"} == set(METHODS_OF[name]) - {"local_only"}, name


def test_a_problem_may_be_like_another_but_for_some_flags():
    twenty, sixty_five = read_words("archetypes20"), read_words("archetypes65")
    assert sixty_five["flags"] == [*twenty["flags"], "--bias_min=0.65", "--bias_max=0.65"]
    assert sixty_five["methods"] == twenty["methods"] and sixty_five["title"] != twenty["title"]


def test_methods_differ_in_what_their_papers_have(slow):
    """All clients train as long by the same optimizer; each varies its own list, which is not what is fixed."""
    assert [method.name for method in slow.methods] == ["fedavg", "async_periodic", "fed_async", "buffered"]
    for method in slow.methods:
        assert {"--steps=4", "--speed=by_label", "--optimizer=sgd"} <= set(method.fixed)
        fixed = {each.removeprefix("--").partition("=")[0] for each in method.fixed}
        assert (
            method.space.keys() <= ALGORITHMS[method.algo].searched.keys() - fixed and "learning_rate" in method.space
        )
    assert slow.problem.objective == "validation_accuracy" and slow.problem.result == "test_accuracy"
    assert slow.plan == build_plan(20, 2) and (slow.plan.trials, slow.plan.kept) == (17, 4)
    assert (build_plan(30).trials, build_plan(30).kept) == (9, 2)
    assert len(slow.plan.seeds) == 5 and slow.plan.most_seeds == 10
    assert not set(slow.plan.seeds) & set(slow.plan.trial_seeds)


def test_the_methods_of_digits_have_one_local_work(monkeypatch):
    words = {"rounds": 3, "flags": ["--dataset=digits", "--num_clients=8", "--partition=iid", "--new_clients=2",
             "--model=perceptron"], "methods": ["fedavg_fine_tuned", "fedcd", "fedsikd", "ditto", "cfl",
             "random_cluster"]}  # fmt: skip
    monkeypatch.setitem(CONTESTS, "digits", words)
    found = {method.name: method for method in build_contest("digits").methods}
    assert "--evaluated_devices=cohort" in found["fedcd"].fixed and "--epochs=2" in found["fedcd"].fixed
    assert {"--student_epochs=2", "--teacher_epochs=5", "--student_optimizer=sgd"} <= set(found["fedsikd"].fixed)
    assert all("server_momentum" in found[name].space for name in found if name != "local_only")
    assert draw_points(found["random_cluster"].space, 8) == draw_points(found["fedsikd"].space, 8)
    assert found["fedavg_fine_tuned"].space.keys() > {"final_steps", "final_learning_rate"}
    assert "epochs" not in found["local_only"].space
    monkeypatch.setitem(CONTESTS, "digits", {**words, "judged": "new", "methods": ["ifca"]})
    new = {method.name: method for method in build_contest("digits").methods}
    assert new.keys() == {"local_only", "fedavg", "ifca"}
    monkeypatch.setitem(CONTESTS, "digits", {**words, "judged": "common", "methods": ["fedcd"]})
    common = {method.name: method for method in build_contest("digits").methods}
    assert "final_steps" in found["fedcd"].space
    assert not [name for name in common["fedcd"].space if name.startswith("final_")], "they change no shared model"
    variants = {"ifca_two": {"of": "ifca", "title": "IFCA, two", "flags": ["--num_models=2"]}}
    monkeypatch.setitem(CONTESTS, "digits", {**words, "methods": ["ifca"], "variants": variants})
    varied = {method.name: method for method in build_contest("digits").methods}
    assert varied["ifca_two"].fixed == (*varied["ifca"].fixed, "--num_models=2")
    assert varied["ifca_two"].title == "IFCA, two" and varied["ifca_two"].space == varied["ifca"].space
    alone = new["local_only"]
    assert (alone.algo, alone.fixed, alone.rounds, alone.role) == ("fine_tuning", ("--start=initial",), 1, ALONE)
    assert alone.space.keys() == {"learning_rate", "steps"} and alone.space["steps"] == ("50", "200", "400", "800")


def write_runs(folder, slow, results):
    """The outcome of these results by method and seed, as run folders."""
    entered = []
    for method in slow.methods:
        runs = {}
        for seed, value in results.get(method.name, {}).items():
            runs[seed] = folder / method.name / f"seed_{seed}"
            runs[seed].mkdir(parents=True)
            with open(runs[seed] / "metrics.csv", "w", newline="") as file:
                csv.writer(file).writerows([["round", "test_accuracy"], [1, 0.1], [2, value]])
            (runs[seed] / "summary.json").write_text(json.dumps({"new_clients": {"accuracy_mean": value / 2}}))
        chosen = {"final_steps": "50"} if method.name == "buffered" else {}
        entered.append(Entered(method, chosen=chosen, runs=runs))
    return Outcome(slow.problem, slow.plan, {}, tuple(entered), 60.0, False)


def test_further_seeds_are_for_those_that_are_not_told_from_the_best(tmp_path, slow, monkeypatch):
    """FedBuff leads by 20 points all but FedAsync, which is as good but for noise; seed 5 is looked at by nobody."""
    noise = (0.0, 0.02, -0.02, 0.01, -0.01, -9.0)
    results = {
        "buffered": {seed: 0.8 + noise[seed] for seed in range(6)},
        "fed_async": {seed: 0.8 - noise[seed] / 2 for seed in range(6)},
        "fedavg": {seed: 0.6 + noise[seed] / 3 for seed in range(6)},
        "async_periodic": {},
    }
    outcome = write_runs(tmp_path, slow, results)
    assert set(build_chooser(slow, "seconds")(outcome)) == {"buffered", "fed_async"}
    assert collect_judged(outcome, slow)["fedavg"] == pytest.approx(results["fedavg"])
    assert title_methods(outcome)["buffered"] == "FedBuff + fine-tuning"
    decided = {**results, "fed_async": dict.fromkeys(range(5), 0.5)}
    assert build_chooser(slow, "seconds")(write_runs(tmp_path / "decided", slow, decided)) == ()
    monkeypatch.setitem(CONTESTS, "slow_digits", {**CONTESTS["slow_digits"], "judged": "new"})
    assert collect_judged(outcome, slow)["fedavg"][0] == pytest.approx(0.3)


def test_the_command_asks_for_contests_at_equal_bytes_or_seconds(tmp_path, slow, monkeypatch, capsys):
    asked = []

    def compete(problem, methods, folder, **further):
        asked.append((folder, further))
        return write_runs(tmp_path / str(len(asked)), slow, {"fedavg": {0: 0.6}, "buffered": {0: 0.7}})

    monkeypatch.setattr(run, "run_contest", compete)
    monkeypatch.setattr(run, "keep_runs", lambda *_: pytest.fail("nothing was to be kept"))
    assert run.main(["--problems=slow_digits", "--equal=bytes", f"--runs_dir={tmp_path}"]) == 0
    ((folder, further),) = asked
    assert folder == tmp_path / "bytes" / "slow_digits" and further["equal"] == ("most_bytes",)
    assert further["limits_alone"]
    assert further["plan"] == slow.plan and further["always"] == [method.name for method in slow.methods]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].strip() == "FedBuff + fine-tuning: 0.7000, mean of 1 seed" and "FedAvg: 0.6000" in lines[2]
    assert run.main(["--problems=nowhere"]) == 2
    assert "error: --problems=nowhere: nowhere: expected some of rotated" in capsys.readouterr().err
    assert run.main(["--problems=har", "--equal=rounds"]) == 2
    assert "error: --problems=har: har: expected some of tiny\n" in capsys.readouterr().err
