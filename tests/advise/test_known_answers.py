"""The script of known answers judges by hand-made facts as its heading says."""

import json
import types

import known_answers
import pytest
from known_answers import FEDERATE, NOTHING, UNDECIDED, Problem, is_right, measure_regret, read_decisions, sum_up

MEANS = {"fedavg": 0.70, "ifca": 0.80, "local_only": 0.78, "constant": 0.5, "pooled": 0.95}


def make_facts(verdict, advised=None, winner="ifca", alone="local_only", sign=1):
    methods = {name: {"mean": sign * mean, "role": name, "runs": {}} for name, mean in MEANS.items()}
    facts = {"verdict": verdict, "advised": advised, "winner": winner, "alone": alone, "trivial": "constant"}
    facts |= {"plan": {"seeds": [0, 1]}, "metric": "accuracy", "over_alone": {"first": winner}}
    return {**facts, "methods": methods, "larger_is_better": sign > 0}


@pytest.mark.parametrize(
    ("facts", "named", "regret"),
    [
        # The pool, which is no method to advise, is no measure; of an error less is better.
        (make_facts(FEDERATE, "fedavg"), ["fedavg"], 0.10),
        (make_facts(FEDERATE, "fedavg", sign=-1), ["fedavg"], 0.10),
        (make_facts("alone", "local_only"), ["local_only"], 0.02),
        (make_facts(NOTHING), ["constant"], 0.30),
        # The better of two is 2 points behind the best, then 10.
        (make_facts(UNDECIDED, winner="fedavg"), ["fedavg", "local_only"], 0.02),
        (make_facts(UNDECIDED, winner="fedavg", alone="constant"), ["fedavg", "constant"], 0.10),
    ],
)
def test_what_is_named_is_set_beside_the_best(facts, named, regret, tmp_path):
    problem = Problem((), frozenset({FEDERATE}))
    found = measure_regret(facts, problem, tmp_path)
    assert (found["named"], found["regret"], found["best"]) == (named, regret, "ifca")
    known = Problem((), frozenset({FEDERATE}), {"oracle": ()})
    assert measure_regret(facts, known, tmp_path)["not_measured"] == ["oracle"], "there is no time to keep to"


def test_methods_are_set_beside_each_other_on_the_planned_seeds(tmp_path):
    """Further ones went to a few methods; without runs there is the mean alone."""
    facts, runs = make_facts(FEDERATE, "ifca"), {}
    for seed, mean in (("0", 0.6), ("1", 0.7), ("2", 0.1)):
        runs[seed] = str(tmp_path / seed)
        (tmp_path / seed).mkdir()
        (tmp_path / seed / "summary.json").write_text(json.dumps({"clients": {"accuracy_mean": mean}}))
    facts["methods"]["ifca"]["runs"] = runs
    found = measure_regret(facts, Problem((), frozenset({FEDERATE})), tmp_path)
    assert (found["best"], found["best_mean"], found["regret"]) == ("local_only", 0.78, pytest.approx(0.13))


def test_undecided_is_right_between_the_right_two_alone():
    problem = Problem((), frozenset({FEDERATE}), never=frozenset({"fedavg"}))
    assert is_right(make_facts(FEDERATE, "ifca"), problem, 0.2)
    assert not is_right(make_facts(FEDERATE, "fedavg"), problem, 0.0)
    assert not is_right(make_facts("alone", "local_only"), problem, 0.0)
    assert is_right(make_facts(UNDECIDED), problem, 0.05) and not is_right(make_facts(UNDECIDED), problem, 0.051)
    assert not is_right(make_facts(UNDECIDED, winner="fedavg"), problem, 0.0)
    assert not is_right(make_facts(UNDECIDED), problem, None)
    assert is_right(make_facts(NOTHING), problem, 0.05) and not is_right(make_facts(NOTHING), problem, 0.06)
    assert is_right(make_facts(NOTHING), problem._replace(verdicts=frozenset({NOTHING})), 0.06)


def write_journal(folder, *facts, torn=""):
    (folder / "toy").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps({"seconds": number, **fact}) + "\n" for number, fact in enumerate(facts))
    (folder / "toy" / "contest.jsonl").write_text(lines + torn)


PLANNED = {
    "what": "plan",
    "planned": {"plan": {"rounds": 9}, "names": ["fedavg"], "pace": {"run_s": 1.5}},
    "points": {},
}
KEPT, SEED = {"what": "kept", "kept": {"fedavg": [0, 2]}}, {"what": "seed", "seed": 3, "methods": ["fedavg"]}


def test_decisions_are_read_without_times_and_without_a_torn_line(tmp_path):
    write_journal(tmp_path, {"what": "request"}, PLANNED, {"what": "run", "took_s": 3}, KEPT, torn='{"what": "chos')
    plan = {"plan": {"rounds": 9}, "names": ["fedavg"], "points": {}}
    assert read_decisions(tmp_path) == {"plan": [plan], "kept": [{"kept": {"fedavg": [0, 2]}}]}
    write_journal(tmp_path, PLANNED, SEED)
    assert read_decisions(tmp_path)["seed 3"] == [{"seed": 3, "methods": ["fedavg"]}]
    assert not read_decisions(tmp_path / "nothing")


@pytest.mark.parametrize("decides_anew", [False, True])
def test_a_decision_that_is_made_anew_after_a_kill_is_found(decides_anew, tmp_path, monkeypatch):
    """Killed twice, after the plan and after what is kept; then it ends, and says as much as without kills."""
    whole = {"verdict": FEDERATE, "advised": "ifca"}
    write_journal(tmp_path / "advice", PLANNED, KEPT)
    states = [[PLANNED], [PLANNED, KEPT], [PLANNED, KEPT, *([KEPT] if decides_anew else []), SEED]]

    def start(flags, runs_dir, timeout=None):
        facts = states.pop(0)
        write_journal(runs_dir, *facts)
        if timeout is not None:
            assert timeout == 20  # of a minute, twice killed
            raise known_answers.subprocess.TimeoutExpired("advise", timeout)
        (runs_dir / "toy" / "advice.json").write_text(json.dumps(whole))
        return 0

    monkeypatch.setattr(known_answers, "start_advice", start)
    found = known_answers.ask_with_kills([], tmp_path / "killed", whole, 2, 60)
    assert found["decisions_stand"] is not decides_anew
    assert (found["kills"], found["same_after_kills"], found["same_plan"], found["same_chosen"]) == (
        2,
        True,
        True,
        True,
    )


def test_a_command_that_fails_is_a_result(tmp_path, monkeypatch):
    def start(flags, runs_dir, timeout=None):
        runs_dir.mkdir(parents=True)
        (runs_dir / "output.log").write_text("data\nerror: no luck\n")
        return 1

    monkeypatch.setattr(known_answers, "start_advice", start)
    asked = types.SimpleNamespace(folder=tmp_path, minutes=5, kills=0)
    found = known_answers.answer("iid_digits", known_answers.PROBLEMS["iid_digits"], 0, asked)
    assert (found["failure"], found["verdict"], found["is_right"]) == ("exit code 1: error: no luck", None, False)
    assert not sum_up([found])


def test_all_goals_are_reached_or_not(capsys):
    good = {"problem": "own_rules", "verdict": UNDECIDED, "is_right": True, "regret": 0.01, "times": 1.05}
    assert sum_up([good, {**good, "same_after_kills": True, "decisions_stand": True}])
    said = capsys.readouterr().out
    assert "right: 2 of 2, of these 2 undecided between the right two" in said
    assert "federate where nothing speaks for it: 0 of 2" in said
    assert sum_up([good, {**good, "problem": "noise", "regret": 0.3}]), "of noise there is no best"
    for bad in ({"regret": 0.06}, {"times": 1.2}, {"is_right": False}, {"verdict": FEDERATE},
                {"same_after_kills": True, "decisions_stand": False}):  # fmt: skip
        assert not sum_up([good, good, {**good, **bad}]), bad
