"""Whole contests in a made-up world: what is run, what decides, and that a kill at any line changes nothing."""

import json
import math
import re

import pytest
import scripted_contest
from scripted_contest import ALWAYS, LEVELS, METHODS, PROBLEM, Killed, Nature, World, compete, make_method

from launch.contests.journal import JOURNAL
from launch.contests.methods import PERSONAL, POOLED
from launch.contests.plan import NO_LIMIT_S, Plan
from launch.runs.errors import RunFolderError, RunStopped
from launch.settings.errors import FlagError
from launch.sweeps.held_journal import hold_journal


def read_lines(folder, what=""):
    lines = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    return [line for line in lines if what in ("", line["what"])]


def summarize(outcome):
    """What must be the same again: all but the seconds, and where the folders are."""
    entered = [each._replace(runs=sorted(each.runs)) for each in outcome.entered]
    return outcome._replace(entered=tuple(entered), seconds=0.0)


def test_the_best_settings_of_the_best_methods_go_to_fresh_seeds(run, tmp_path):
    outcome = run(world := World(LEVELS))
    plan = outcome.plan
    assert (plan.rounds, plan.trials, plan.kept, plan.trial_seeds) == (30, 3, 1, (100, 101))
    assert plan.seeds == (0, 1, 2, 3, 4)
    for each in outcome.entered:
        assert each.chosen == {"learning_rate": "0.1"} and not each.why_out and sorted(each.runs) == [0, 1, 2, 3, 4]
        assert all(path == tmp_path / "c/seeds" / each.method.name / f"seed_{s}" for s, path in each.runs.items())
        (kept,) = [trial for trial in each.trials if trial.scores[1]]
        assert len(each.trials) == 3 and kept.settings == each.chosen and set(kept.scores[1]) == {100, 101}
        assert [set(trial.scores[0]) for trial in each.trials] == [{100}] * 3
        assert [trial.why_out for trial in each.trials if trial != kept] == ["others were better by then"] * 2
    assert not outcome.is_cut and 400 < outcome.seconds < 900 and world.is_closed
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"trials", "seeds", JOURNAL, ".lock"}


def test_only_the_best_are_finalists_and_equals_go_by_their_order(run, monkeypatch):
    monkeypatch.setattr("launch.contests.stages.MOST_FINALISTS", 2)
    more = [make_method(f"m_{i}", "fedavg") for i in range(3)]
    outcome = run(World(LEVELS), 1200.0, methods=(*METHODS[:3], *more))
    assert outcome.plan.finalists == 2
    assert [each.method.name for each in outcome.entered if each.runs] == ["local_only", "fedavg", "ifca", "m_0"]
    assert outcome.get("m_1").why_out == "not among the best 2 on validation examples (accuracy 0.4844)"
    assert outcome.get("m_1").chosen == {"learning_rate": "0.1"}


def test_what_time_is_left_after_the_trials_decides_how_many_finalists_have_whole_seeds(run, tmp_path):
    """A run of 30 rounds takes 15 s or more; planned were two finalists on three seeds."""
    more = [make_method(f"m_{i}", "fedavg") for i in range(3)]
    methods = (*METHODS[:3], *more)
    number = find_line(run, tmp_path, methods, "chosen") - 1
    with pytest.raises(Killed):
        run(World(LEVELS), 700.0, methods=methods, kill_after=number)
    seconds = read_lines(tmp_path / "c")[-1]["seconds"] + 190.0
    outcome = run(World(LEVELS), seconds, methods=methods)
    (chosen,) = read_lines(tmp_path / "c", "chosen")
    assert chosen["finalists"] == ["fedavg", "local_only", "ifca"] and chosen["seeds"] == [0, 1, 2]
    assert {len(each.runs) for each in outcome.entered if each.runs} == {3}
    assert "not among the best on validation" in outcome.get("m_0").why_out


def find_line(run, tmp_path, methods, what):
    """How many lines of a whole contest there are up to the first of a kind, that time passes not counted."""
    run(World(LEVELS), 700.0, methods=methods, folder="whole")
    return [line["what"] for line in read_lines(tmp_path / "whole") if line["what"] != "time"].index(what) + 1


def test_a_plan_alone_binds_nobody_to_its_time(run, tmp_path):
    first = run(World(LEVELS), 1800.0, plan_only=True)
    outcome = run(World(LEVELS), 600.0)
    assert first.plan.rounds > outcome.plan.rounds and not outcome.is_cut
    assert [line["what"] for line in read_lines(tmp_path / "c")].count("plan") == 2
    assert summarize(outcome) == summarize(run(World(LEVELS), 600.0))


def test_trials_and_results_never_share_a_seed_and_the_second_rung_goes_on_with_the_first(run):
    run(world := World(LEVELS))
    trial_seeds = {seed for folder, _, seed, _ in world.started if folder.startswith("trial_")}
    fresh = {seed for folder, _, seed, _ in world.started if not folder.startswith("trial_")}
    assert (trial_seeds, fresh) == ({100, 101}, {0, 1, 2, 3, 4})
    again = [arguments for folder, name, seed, arguments in world.started if (name, seed) == ("ditto", 100)]
    dirs = [next(each for each in arguments if each.startswith("--run_dir")) for arguments in again]
    assert len(dirs) == 4 and len(set(dirs)) == 3
    # One of three thirds goes on to the whole.
    rounds = [next(each for each in arguments if each.startswith("--rounds=")) for arguments in again]
    assert rounds == ["--rounds=1000"] * 3 + ["--rounds=3000"]


@pytest.mark.parametrize(("judged", "of_trials"), [("own", "0"), ("common", "1000000")])
def test_shared_models_are_evaluated_where_something_is_read_of_it(run, monkeypatch, judged, of_trials):
    """What trials are scored by is the clients' own, or what all have in common."""
    problem = PROBLEM._replace(judged=judged)
    monkeypatch.setattr(scripted_contest, "PROBLEM", problem)
    monkeypatch.setattr(scripted_contest, "COLUMNS", (problem.objective, problem.result))
    run(world := World(LEVELS))
    flag = "--rounds_per_shared_evaluation="
    found = {
        (folder.startswith("trial_"), [each for each in arguments if each.startswith(flag)][-1].removeprefix(flag))
        for folder, _, _, arguments in world.started
    }
    assert found == {(True, of_trials), (False, "1000000")}


def test_each_federated_method_has_what_fedavg_takes_on_the_same_seed(run):
    """In this world a round takes 1, 1.5 or 2 virtual seconds with seeds 0, 1, 2; 100 and 101 are like 1 and 2."""
    outcome = run(world := World(LEVELS))
    found = {}
    for folder, name, seed, arguments in world.started:
        limit = next(float(each.partition("=")[2]) for each in arguments if each.startswith("--most_virtual_s"))
        found.setdefault((name, folder == name, seed), set()).add(limit)
    assert {found[name, True, seed] == {0.0} for name in ALWAYS for seed in range(5)} == {True}
    assert [found["ifca", True, seed] for seed in range(3)] == [{30.03}, {45.045}, {60.06}]
    assert found["ditto", False, 101] == {60.06} and found["ditto", False, 100] == {15.015, 45.045}
    # Whose rounds take twice as long has half as many.
    assert len(world.read_rows(outcome.get("ditto").runs[1])) == 15
    assert outcome.limits["ifca"] == (3000, 0.0, pytest.approx(52.5525)) and outcome.limits["fedavg"] == (30, 0.0, 0.0)


@pytest.mark.parametrize(
    ("equal", "words"),
    [
        ([], "as many rounds"),
        (["most_bytes"], "as many bytes"),
        (["most_bytes", "most_virtual_s"], "as much device time and as many bytes"),
    ],
)
def test_the_plan_says_what_is_equal(run, capsys, equal, words):
    run(World(LEVELS), equal=equal, plan_only=True)
    assert f"every federated method may use {words}\n" in capsys.readouterr().out


def test_bytes_can_be_what_is_equal(run):
    outcome = run(World(LEVELS), equal=["most_bytes"])
    assert outcome.limits["ifca"] == (3000, 6006.0, pytest.approx(525.525)), "and ten times its seconds at most"


@pytest.mark.parametrize("slots", [3, 16])
def test_any_number_of_slots_gives_the_same_scores(run, slots):
    """With many slots, runs wait for what FedAvg takes on their seed."""
    one, many = run(World(LEVELS), rounds=20), run(World(LEVELS, slots), rounds=20, folder="d")
    for first, second in zip(one.entered, many.entered, strict=True):
        assert first.chosen == second.chosen and first.runs.keys() <= second.runs.keys()
        for before, after in zip(first.trials, second.trials, strict=False):
            shared = {(rung, seed) for rung in range(2) for seed in before.scores[rung].keys() & after.scores[rung]}
            if many.plan.first_share == one.plan.first_share:
                assert all(before.scores[rung][seed] == after.scores[rung][seed] for rung, seed in shared)


def choose_ifca(outcome):
    return ["ifca"] if len(outcome.get("ifca").runs) < 5 else []


# With a method whose flags are refused, and one of whose trials fails.
WITH_FAILURES = {"methods": (*METHODS[1:], make_method("wrong", "fedavg", fixed=("--cohort_size=-1",)))}
WITH_FAILURES |= {"always": ["fedavg"], "rounds": 5, "seconds": 300.0, "choose_more": choose_ifca}
FAILING = {**LEVELS, "ditto": Nature(level=0.6, failure="error: no such luck", fails_with="learning_rate=0.3")}


def test_a_contest_that_is_killed_after_every_line_of_its_journal_ends_the_same(run, tmp_path):
    """One command after the other, each of which is killed after a line; what went on beside it is lost."""
    expected = summarize(run(World(FAILING, slots=2, overhead_s=1), **WITH_FAILURES))
    assert expected.entered[1].runs == [0, 1, 2, 3, 4] and not expected.is_cut
    world, outcome, num_kills = World(FAILING, slots=2, overhead_s=1), None, 0
    while outcome is None:
        try:
            outcome = run(world, folder="d", kill_after=1, **WITH_FAILURES)
        except Killed:
            num_kills += 1
    assert summarize(outcome) == expected
    lines = [line for line in read_lines(tmp_path / "d") if line["what"] != "time"]
    assert num_kills == len(lines) > 40 and sum(line["what"] == "plan" for line in lines) == 1


@pytest.mark.slow
def test_a_contest_that_is_killed_once_ends_the_same_whenever_that_was(run, tmp_path):
    expected = summarize(run(World(FAILING, slots=2, overhead_s=1), **WITH_FAILURES))
    for killed_after in range(1, len([line for line in read_lines(tmp_path / "c") if line["what"] != "time"])):
        world, folder = World(FAILING, slots=2, overhead_s=1), f"k{killed_after}"
        with pytest.raises(Killed):
            run(world, folder=folder, kill_after=killed_after, **WITH_FAILURES)
        assert summarize(run(world, folder=folder, **WITH_FAILURES)) == expected, killed_after


@pytest.mark.parametrize("seconds", [100.0, 250.0])
def test_where_time_is_short_what_was_decided_stays_decided_after_a_kill(run, tmp_path, seconds):
    """Time goes on, so less may be run; but what is in the journal is neither run anew nor decided otherwise."""
    natures = {**LEVELS, "ifca": Nature(level=0.8, real=6)}
    run(World(natures, slots=2), seconds)
    count = len([line for line in read_lines(tmp_path / "c") if line["what"] != "time"])
    for killed_after in range(2, count, 5):
        world, folder = World(natures, slots=2), f"k{killed_after}"
        with pytest.raises(Killed):
            run(world, seconds, folder=folder, kill_after=killed_after)
        before, num_started = read_lines(tmp_path / folder), len(world.started)
        outcome = run(world, seconds, folder=folder)
        after = read_lines(tmp_path / folder)
        assert after[: len(before)] == before
        over = [tuple(line["key"]) for line in after if line["what"] in ("run", "skip", "stop")]
        assert (
            len(set(over)) == len(over) and outcome.seconds <= 1.1 * seconds and world.clock.now - 1000 <= 1.1 * seconds
        )
        done = {tuple(line["key"][1:]) for line in before if line["what"] == "run" and line["key"][0] == "fresh"}
        assert not done & {(name, -1, seed) for folder, name, seed, _ in world.started[num_started:] if folder == name}


def test_a_finished_contest_is_not_run_again(run):
    first = run(world := World(LEVELS))
    num_started = len(world.started)
    world.clock.sleep(5000)
    assert run(world) == first and len(world.started) == num_started


def test_a_command_that_is_stopped_goes_on_with_its_runs_and_its_time(run, tmp_path):
    world = World(LEVELS)

    class Rings(type(world.clock)):
        def sleep(self, seconds):
            super().sleep(seconds)
            if self.now == 1200.0:
                raise KeyboardInterrupt

    world.clock = Rings()
    with pytest.raises(KeyboardInterrupt):
        run(world)
    assert 200 <= read_lines(tmp_path / "c")[-1]["seconds"] < 203
    world.clock.now += 10_000
    outcome = run(world)
    assert outcome.seconds < 750 and not outcome.get("ifca").why_out
    assert summarize(outcome)._replace(is_cut=False) == summarize(run(World(LEVELS), folder="d"))


def test_what_a_kill_lost_does_not_count(run, tmp_path):
    """Killed amid runs, and begun again after an hour: it has the time that it had, and ends as if nothing had been."""
    expected = run(World(LEVELS), folder="d")
    world, path = World(LEVELS), tmp_path / "c" / JOURNAL

    class Ends(type(world.clock)):
        def sleep(self, seconds):
            super().sleep(seconds)
            if self.now == 1200.0:
                self.journal = path.read_bytes()
                raise Killed

    world.clock = clock = Ends()
    with pytest.raises(Killed):
        run(world)
    path.write_bytes(clock.journal)  # without the line of an orderly end
    before_s = read_lines(tmp_path / "c")[-1]["seconds"]
    assert 150 < before_s < 200
    clock.now += 3600
    outcome = run(world, spent_s=50.0)
    assert summarize(outcome) == summarize(expected) and outcome.seconds == pytest.approx(expected.seconds, abs=10)


def change_problem(*arguments):
    return PROBLEM._replace(arguments=arguments)


def test_seconds_before_the_contest_count(run):
    assert run(World(LEVELS), spent_s=30.0).seconds > 330


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"rounds": 7}, "without --rounds, not with --rounds=7"),
        ({"always": ["fedavg"]}, "by other rules (always), those of another version"),
        ({"methods": METHODS[:3]}, "on other --methods (also ditto)"),
        ({"methods": (*METHODS[:3], make_method("prox"))}, "on other --methods (also ditto, not prox)"),
        ({"methods": (*METHODS, make_method("pooled", role=POOLED))}, "with --no_pooled, not without it"),
        (
            {"methods": (*METHODS[:3], make_method("ditto", "ditto", {}, role=PERSONAL))},
            "by other rules (ditto), those of another version",
        ),
        ({"problem": change_problem("--data=ch/shared.csv")}, "on digits, not on ch/shared.csv"),
        (
            {"problem": change_problem("--dataset=digits", "--validation_fraction=0.3")},
            "with --validation_fraction=0.15, not with --validation_fraction=0.3",
        ),
        ({"problem": change_problem("--dataset=digits")}, "with --validation_fraction=0.15, not without "),
    ],
)
def test_another_request_in_the_folder_is_refused_in_a_line(run, monkeypatch, tmp_path, changes, what):
    with pytest.raises(Killed):
        run(World(LEVELS), kill_after=4)
    monkeypatch.setattr(scripted_contest, "PROBLEM", changes.pop("problem", PROBLEM))
    with pytest.raises(RunFolderError, match=re.escape(f"c has advice {what}")) as error:
        run(World(LEVELS), **changes)
    assert str(error.value).endswith("; give another --runs_dir, or delete that folder")
    assert "\n" not in str(error.value) and len(read_lines(tmp_path / "c")) == 4


def test_data_that_have_changed_since_are_refused(run, monkeypatch):
    with pytest.raises(Killed):
        run(world := World(LEVELS), kill_after=9)
    change = "on other data than my.csv holds now"
    monkeypatch.setattr("launch.sweeps.present_data.PresentData.find_change", lambda *arguments: change)
    with pytest.raises(
        RunFolderError, match=r"seed_100: a run on other data than my\.csv holds now; choose another folder"
    ):
        run(world)


def test_a_folder_that_is_in_use_or_damaged_or_lacks_a_run_is_refused(run, tmp_path):
    outcome = run(world := World(LEVELS))
    with (
        hold_journal(tmp_path / "c", JOURNAL, "contest"),
        pytest.raises(RunFolderError, match="a contest goes on there"),
    ):
        run(world)
    (outcome.get("ifca").runs[1] / "summary.json").unlink()
    with pytest.raises(RunFolderError, match="ifca/seed_1: this run of the contest is gone"):
        run(world)
    (tmp_path / "c" / JOURNAL).write_text('{"what": "request"}\n')
    with pytest.raises(RunFolderError, match="damaged; move it away"):
        run(world)


def test_the_torn_line_of_a_crash_is_dropped(run, tmp_path):
    expected = summarize(run(World(LEVELS), folder="d"))
    with pytest.raises(Killed):
        run(world := World(LEVELS), kill_after=8)
    with open(tmp_path / "c" / JOURNAL, "a") as file:
        file.write('{"what": "run", "sec')
    assert summarize(run(world)) == expected


def test_runs_that_fail_put_out_the_trial_or_the_method_and_never_the_contest(run):
    natures = {
        **LEVELS,
        "ifca": Nature(level=0.8, failure="error: it diverged", fails_with="learning_rate=0.1"),
        "ditto": Nature(failure="error: no memory is left"),
    }
    refused = make_method("refused", "fedavg", {"learning_rate": ("-1", "-2")})
    flags = make_method("flags", "fedavg", fixed=("--no_such_flag=1",))
    late = make_method("late", "fedavg")
    natures["late"] = Nature(level=0.9, failure="error: no such seed", fails_with="--seed=101")
    outcome = run(World(natures), 900.0, methods=(*METHODS, refused, flags, late))
    ifca = outcome.get("ifca")
    assert ifca.chosen != {"learning_rate": "0.1"} and sorted(ifca.runs) == [0, 1, 2, 3, 4]
    assert "it diverged" in [trial.why_out for trial in ifca.trials]
    assert outcome.get("ditto").why_out == "no memory is left" and outcome.get("ditto").chosen is None
    assert outcome.get("refused").why_out.startswith("--learning_rate=-")
    assert outcome.get("flags").why_out.startswith("--no_such_flag") and not outcome.get("flags").trials
    # Its trials have one seed of two: these are compared with the same seed of the others.
    assert sorted(outcome.get("late").runs) == [0, 1, 2, 3, 4]
    assert not outcome.is_cut


def test_a_method_whose_first_round_is_long_has_whole_runs_at_once(run, tmp_path, capsys):
    """As one that first trains teachers: a third of the time is less than its first round takes."""
    natures = {**LEVELS, "ifca": Nature(level=0.9, virtual=14), "ditto": Nature(virtual=50)}
    outcome = run(World(natures, slots=2), 900.0, rounds=30)
    # 45 virtual seconds with seed 100: its rounds take 21 each, so that it has two, and none in 11.
    assert outcome.plan.first_share == 0.25
    assert sorted(outcome.get("ifca").runs) == [0, 1, 2, 3, 4][: len(outcome.get("ifca").runs)]
    assert outcome.get("ifca").trials[0].scores[0].keys() == {100} and len(read_lines(tmp_path / "c", "whole")) == 2
    why = "its first round takes more device time than Fedavg's whole training"
    assert outcome.get("ditto").why_out == why and not outcome.is_cut
    # Of all its trials one line speaks.
    said = capsys.readouterr().out
    assert said.count("Ditto: ") == 1 and f"left out Ditto: {why}\n" in said and "exit code" not in said


def test_what_is_said_of_a_contest(run, capsys):
    """Each run by its method's title and what it reached, in lines of at most 100 characters."""
    natures = {**LEVELS, "ditto": Nature(failure=f"error: {'no memory is left, ' * 9}")}
    run(world := World(natures), reserved_s=10.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["measuring  3 rounds of Fedavg, to plan the time", "         took 12 s", lines[2]]
    assert "time     in all about 11 min 46 s of 15 min 10 s" in lines
    start = lines.index("stage    first trials: 12 runs; 12 s gone, 14 min 48 s left")
    assert lines[start + 1 : start + 4] == [
        "run 1/12  Local_Only, setting 1: 38.7 %",
        "run 2/12  Fedavg, setting 1: 45.5 %",
        "run 3/12  Ifca, setting 1: 72.7 %",
    ]
    assert lines[start + 4].startswith("run 4/12  Ditto, setting 1: failed: no memory is left, no memory")
    assert any(line.startswith("run 2/6  Local_Only, setting 1, seed 101: ") for line in lines)
    assert any(line.startswith("run 2/15  Local_Only, seed 0: ") for line in lines)
    assert max(len(line) for line in lines if "its output: " not in line) == 100
    # Nothing is left to run, and so nothing is announced.
    run(world)
    assert capsys.readouterr().out == "done     before; this is the answer again\n"
    run(world, plan_only=True)
    assert capsys.readouterr().out.startswith("methods  Local_Only, Fedavg")


def test_fedavg_has_to_run(run):
    with pytest.raises(RunStopped, match="fedavg, trial 0, seed 100: exit code 2; error: no data"):
        run(World({"fedavg": Nature(failure="error: no data")}))
    with pytest.raises(FlagError, match="--cohort_size=-1"):
        run(World({}), folder="d", methods=(make_method("fedavg", fixed=("--cohort_size=-1",)),), always=())
    with pytest.raises(RunStopped, match="error: 20 s are too short: 3 rounds of Fedavg take longer"):
        run(World({}, overhead_s=100.0), 20.0, folder="e")
    with pytest.raises(
        RunStopped, match=r"error: 1 min 0 s are too short for anything to be told; .* about 4 min 7 s are"
    ):
        run(World({}, overhead_s=20.0), 60.0, folder="g")
    with pytest.raises(FlagError, match="--dp_epsilon=1: expected 0, since trials go on"):
        methods = (make_method("fedavg", fixed=("--dp_epsilon=1", "--client_weighting=equal")),)
        run(World({}), folder="f", methods=methods, always=())
    # Where it fails on another seed, what it takes is what it takes on the first.
    natures = {**LEVELS, "fedavg": Nature(failure="error: no data", fails_with="--seed=101")}
    outcome = run(World(natures, slots=2), folder="h", seconds=900.0)
    assert len(outcome.plan.trial_seeds) > 1 and outcome.get("ifca").trials[0].scores[0] and outcome.get("fedavg").runs
    # What it failed by may be over by now.
    assert run(World(LEVELS)).get("fedavg").runs


@pytest.mark.parametrize(("slots", "trial_seeds", "limit"), [(1, (100, 101), 52.5525), (3, (100, 101, 102), 45.045)])
def test_where_fedavg_fails_on_a_fresh_seed_others_have_what_it_took_on_the_trial_seeds(run, slots, trial_seeds, limit):
    """A round takes 1.5, 2 and 1 virtual seconds with these: in 30 rounds 52.5 or 45, whoever has ended by then."""
    natures = {**LEVELS, "fedavg": Nature(failure="error: no data", fails_with="/seeds/fedavg/seed_1")}
    outcome = run(world := World(natures, slots), rounds=30, seconds=900.0)
    assert 1 not in outcome.get("fedavg").runs and 1 in outcome.get("ifca").runs
    assert outcome.plan.trial_seeds == trial_seeds
    limits = {
        each
        for folder, name, seed, arguments in world.started
        if folder == name == "ifca" and seed == 1
        for each in arguments
        if each.startswith("--most_virtual_s")
    }
    assert limits == {f"--most_virtual_s={limit}"}


def test_a_run_of_fedavg_that_ends_early_without_an_error_keeps_nobody_waiting(run, monkeypatch):
    def write(self, task, *given):
        if "/seeds/fedavg/seed_1" not in str(task.run_dir):
            World.write(self, task, *given)

    monkeypatch.setattr(world := World(LEVELS, slots=2), "write", write.__get__(world))
    outcome = run(world, rounds=10)
    assert 1 not in outcome.get("fedavg").runs and {0, 1, 2} <= outcome.get("ifca").runs.keys()


def test_further_seeds_go_to_whom_is_asked_for_and_to_fedavg(run, tmp_path):
    asked = []

    def choose(outcome):
        asked.append({each.method.name: len(each.runs) for each in outcome.entered})
        return ["ditto", "no_such"] if len(asked) < 3 else []

    outcome = run(World(LEVELS), 900.0, rounds=10, choose_more=choose)
    base = len(outcome.plan.seeds)
    assert [each["ditto"] for each in asked] == [base, base + 1, base + 2]
    assert {each.method.name: len(each.runs) - base for each in outcome.entered if each.runs} == {
        "local_only": 0,
        "fedavg": 2,
        "ifca": 0,
        "ditto": 2,
    }
    assert [line["methods"] for line in read_lines(tmp_path / "c", "seed")] == [["fedavg", "ditto"]] * 2


def test_further_seeds_end_with_their_number_or_with_the_time(run, monkeypatch):
    everyone = lambda outcome: [each.method.name for each in outcome.entered]
    plenty = run(World(LEVELS), 1200.0, rounds=10, choose_more=everyone)
    assert len(plenty.get("ditto").runs) == plenty.plan.most_seeds and not plenty.is_cut
    monkeypatch.setattr("launch.contests.plan.PLANNED_SHARE", 0.95)
    short = run(World(LEVELS), 560.0, folder="d", choose_more=everyone)
    numbers = {len(each.runs) for each in short.entered if not each.why_out}
    # As many as every method can have, none that only some would have had.
    assert len(numbers) == 1 and max(numbers) < short.plan.most_seeds and not short.is_cut and short.seconds <= 560


def test_more_time_gives_further_seeds_and_decides_nothing_anew(run, tmp_path):
    everyone = lambda outcome: [each.method.name for each in outcome.entered]
    short = run(World(LEVELS), 400.0, choose_more=everyone)
    same = run(World(LEVELS), 400.0, choose_more=everyone)
    assert summarize(same) == summarize(short)
    more = run(world := World(LEVELS), 900.0, choose_more=everyone)
    assert {folder.startswith("trial_") for folder, *_ in world.started} == {False}
    assert [each.chosen for each in more.entered] == [each.chosen for each in short.entered]
    runs = {each.method.name: each.runs.keys() for each in short.entered if each.runs}
    assert runs and all(more.get(name).runs.keys() > seeds for name, seeds in runs.items())
    assert short.seconds < 440 < more.seconds < 990
    # Fewer seconds than there were once change nothing of what has ended.
    assert summarize(run(World(LEVELS), 300.0, choose_more=everyone)) == summarize(more)


def test_more_time_makes_the_runs_that_its_end_had_left_out(run, tmp_path):
    whole = run(World(LEVELS), folder="d")
    lines = read_lines(tmp_path / "d")
    number = [line["what"] for line in lines if line["what"] != "time"].index("chosen") + 1
    with pytest.raises(Killed):
        run(World(LEVELS), kill_after=number)
    chosen_s = read_lines(tmp_path / "c", "chosen")[0]["seconds"]
    cut = run(World(LEVELS), chosen_s + 15.0)
    assert cut.is_cut and not cut.get("ifca").runs
    more = run(World(LEVELS), 1000.0)
    assert not more.is_cut and more.get("ifca").runs.keys() == whole.get("ifca").runs.keys() == set(range(5))


def test_lower_is_better_where_the_task_says_so(run, monkeypatch):
    from launch.runs.task_columns import find_task_columns

    task = find_task_columns("regression")
    monkeypatch.setattr("scripted_contest.PROBLEM", compete.__globals__["PROBLEM"]._replace(task=task))
    monkeypatch.setattr("scripted_contest.COLUMNS", (task.client_validation, task.client_test))
    outcome = run(World(LEVELS))
    assert math.isfinite(outcome.get("fedavg").trials[0].scores[0][100])
    assert all(each.chosen != {"learning_rate": "0.1"} for each in outcome.entered)


def test_a_plan_that_is_given_is_done_whatever_time_it_takes(run, capsys):
    """Nothing is left out, and the same plan goes on; another one is another contest."""
    plan = Plan(8, 2, 0.5, 1, (100, 101, 102), 4, (0, 1, 2, 3), 6)
    always = [method.name for method in METHODS]
    given = {"always": always, "seconds": NO_LIMIT_S, "choose_more": lambda outcome: ["ditto"]}
    outcome = run(world := World(LEVELS, round_s=900), plan=plan, **given)
    assert outcome.plan == plan and not outcome.is_cut and outcome.seconds > 50_000
    said = capsys.readouterr().out
    assert not re.search(r"\nstage .* left\n", said) and re.search(r"\ntime     in all about \d+ h \d+ min\n", said)
    numbers = {each.method.name: len(each.runs) for each in outcome.entered}
    assert numbers == {**dict.fromkeys(always, 4), "fedavg": 6, "ditto": 6}
    assert all(set(each.trials[0].scores[0]) == {100} and len(each.trials) == 2 for each in outcome.entered)
    number = len(world.started)
    assert summarize(run(world, plan=plan, **given)) == summarize(outcome) and len(world.started) == number
    with pytest.raises(RunFolderError, match="by other rules"):
        run(world, plan=plan._replace(trials=3), **given)


def test_only_the_plan(run):
    outcome = run(world := World(LEVELS), plan_only=True)
    assert outcome.plan.rounds == 30 and {name for _, name, _, _ in world.started} == {"fedavg"}
    assert run(world).plan == outcome.plan


@pytest.mark.parametrize(
    "methods", [(METHODS[0],), (METHODS[1], METHODS[1]), (METHODS[1], METHODS[2]._replace(role="x"))]
)
def test_methods_are_told_apart(run, methods):
    with pytest.raises(ValueError, match="expected names in snake case"):
        run(World({}), methods=methods, always=())
