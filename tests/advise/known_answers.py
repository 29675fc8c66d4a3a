"""What `launch.advise` says where the answer is known: `.venv/bin/python tests/advise/known_answers.py [problems]`.

For each problem and seed of a made table: the verdict, what is advised, minutes asked for and taken, and the regret, by
how much the best that is known does better. That is the best of the contest's own methods and of the settings below,
which were tuned before, on the same clients, fresh seeds and device time. An undecided advice has the regret of the
better of the two that it names, and is right where that is small; so is the advice to use no model. `--kills=5` kills
the command as often, at moments spread over its time, and asks for the same advice: what the journal had decided before
each kill must stand after it. It prints a line of JSON a problem, and at the end what was reached of the goals. `make
test-advise` calls it; each problem takes `--minutes`, and each draw of a made table. Data sets are looked for as
everywhere (FL_DATA_DIR).

Exit codes: 0 all goals are reached, 1 they are not, 2 the request was wrong.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from made_tables import MADE_TABLES, write_made_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
FEDERATE, ALONE, UNDECIDED, NOTHING = "federate", "alone", "undecided", "nothing learned"
# Points of regret in the median and at most; times its minutes.
MEDIAN_REGRET, MOST_REGRET, MOST_TIMES = 0.02, 0.05, 1.1
MOST_WRONG = 0.05  # share of tables without signal on which "federate" may be said
NUM_DRAWS = 20  # of the tables without signal
ONE_MODEL = {"fedavg", "fedadam", "fedsikd", "async_periodic"}


class Problem(NamedTuple):
    """A problem and what is known of it.

    Attributes:
      flags: of `launch.advise`.
      verdicts: those that are right, beside UNDECIDED where one of the two that it names is about as good as the best.
      known: flags of `launch.train` that are known to do well, by a name.
      seeds: of a made table; one advice each.
      never: methods that would be wrong, also to be named where it is undecided.
    """

    flags: tuple[str, ...]
    verdicts: frozenset[str]
    known: Mapping[str, tuple[str, ...]] = {}
    seeds: int = 1
    never: frozenset[str] = frozenset()


SGD = ("--optimizer=sgd", "--epochs=2")
PROBLEMS = {
    "iid_digits": Problem(
        ("--dataset=digits", "--partition=iid", "--num_clients=10"),
        frozenset({FEDERATE}),
        {"fedavg": ("--algo=fedavg", "--learning_rate=0.003", "--epochs=5")},
    ),
    "rotated": Problem(
        (
            *("--dataset=mnist", "--variant=rotated", "--variant_groups=4", "--num_clients=100", "--partition=iid"),
            *("--most_train_examples=100", "--model=perceptron_1nn", "--batch_size=20"),
        ),
        frozenset({FEDERATE}),
        {
            "ifca": ("--algo=ifca", *SGD, "--num_models=4", "--learning_rate=1"),
            "fl_hc": ("--algo=fl_hc", *SGD, "--learning_rate=1", "--distance_multiple=0.9"),
            "oracle": ("--algo=oracle", *SGD, "--learning_rate=1", "--groups=archetype"),
        },
    ),
    "archetypes": Problem(
        (
            *("--dataset=cifar10", "--partition=hierarchical", "--clients_per_archetype=3", "--train_per_client=200"),
            *("--validation_per_client=100", "--test_per_client=300", "--bias_min=0.65", "--bias_max=0.65"),
            *("--model=image_student", "--activation=relu", "--batch_size=10"),
        ),
        frozenset({FEDERATE}),
        {
            "oracle": ("--algo=oracle", *SGD, "--learning_rate=0.03"),
            "fine_tuning": ("--algo=fedavg", *SGD, "--learning_rate=0.1", "--final_steps=50"),
        },
    ),
    "har": Problem(
        ("--dataset=har", "--partition=natural", "--har_split=bouts", "--model=perceptron", "--batch_size=20"),
        frozenset({FEDERATE}),
        {"fine_tuning": ("--algo=fedavg", "--optimizer=sgd", "--epochs=5", "--learning_rate=0.1", "--final_steps=100")},
    ),
    "building": Problem(
        ("--dataset=building",),
        frozenset({FEDERATE}),
        {"fine_tuning": ("--algo=fedavg", "--final_steps=200", "--final_learning_rate=0.025")},
    ),
    "shakespeare": Problem(
        (
            *("--dataset=shakespeare", "--fewest_examples=20", "--most_clients=20", "--most_train_examples=40"),
            *("--model=char_transformer", "--batch_size=10"),
        ),
        frozenset({FEDERATE}),
        {"fedavg": ("--algo=fedavg", "--optimizer=adam", "--learning_rate=0.001", "--epochs=2")},
    ),
    "noise": Problem((), frozenset({NOTHING, ALONE}), seeds=NUM_DRAWS),
    "own_rules": Problem((), frozenset({ALONE}), seeds=NUM_DRAWS),
    "two_kinds": Problem(
        (),
        frozenset({FEDERATE}),
        {"ifca": ("--algo=ifca", "--num_models=2", "--learning_rate=0.01", "--epochs=5")},
        never=frozenset(ONE_MODEL),
    ),
    "shared": Problem((), frozenset({FEDERATE}), {"fedavg": ("--algo=fedavg", "--learning_rate=0.01", "--epochs=5")}),
}


def main() -> int:
    """Asks for advice on each problem, and sums up; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=[], help=", ".join(PROBLEMS))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--draws", type=int, help=f"of tables that have {NUM_DRAWS}")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("runs/known_answers"))
    asked = parser.parse_args()
    if unknown := [name for name in asked.problems if name not in PROBLEMS]:
        parser.error(f"{unknown[0]}: expected some of {', '.join(PROBLEMS)}")
    answers = []
    for name in asked.problems or PROBLEMS:
        problem = PROBLEMS[name]
        for seed in range(min(problem.seeds, asked.draws or problem.seeds)):
            answers.append(answer(name, problem, seed, asked))
            print(json.dumps(answers[-1]), flush=True)
    return 0 if sum_up(answers) else 1


def answer(name: str, problem: Problem, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """The advice on one problem, beside what is known."""
    folder = asked.folder / f"{name}_{seed}"
    made = [f"--data={write_made_table(name, folder, seed)}"] if name in MADE_TABLES else []
    flags = [*made, *problem.flags, f"--minutes={asked.minutes:g}"]
    start_s = time.monotonic()
    facts, failure = ask_for_advice(flags, folder / "advice")
    seconds = time.monotonic() - start_s
    found = {"problem": name, "seed": seed, "verdict": facts.get("verdict"), "advised": facts.get("advised")}
    found |= {"minutes": round(seconds / 60, 2), "times": round(seconds / (60 * asked.minutes), 3)}
    found |= {"failure": failure} if failure else {}
    found |= measure_regret(facts, problem, folder / "known") if facts else {"regret": None}
    found["is_right"] = not failure and is_right(facts, problem, found["regret"])
    if asked.kills:
        found |= ask_with_kills(flags, folder / "killed", facts, asked.kills, 60 * asked.minutes)
    return found


def start_advice(flags: Sequence[str], runs_dir: pathlib.Path, timeout: float | None = None) -> int:
    """The exit code of the command; raises TimeoutExpired after so many seconds, when it is killed."""
    command = [sys.executable, "-m", "launch.advise", *flags, f"--runs_dir={runs_dir}"]
    runs_dir.mkdir(parents=True, exist_ok=True)
    with open(runs_dir / "output.log", "a", encoding="utf-8") as log:
        return subprocess.run(command, env=ENVIRONMENT, stdout=log, stderr=log, timeout=timeout).returncode


def ask_for_advice(flags: Sequence[str], runs_dir: pathlib.Path) -> tuple[dict[str, Any], str]:
    """What `advice.json` says, {} without one, and why the command failed, "" if it did not."""
    code = start_advice(flags, runs_dir)
    paths = [*runs_dir.glob("*/advice.json")]
    facts = json.loads(paths[0].read_text(encoding="utf-8")) if paths else {}
    if not code:
        return facts, ""
    lines = (runs_dir / "output.log").read_text(encoding="utf-8").splitlines() or [""]
    return facts, f"exit code {code}: {lines[-1]}"


def ask_with_kills(
    flags: Sequence[str], runs_dir: pathlib.Path, whole: Mapping[str, Any], kills: int, seconds: float
) -> dict[str, Any]:
    """Asks for the same advice, killed so often at moments spread evenly over the seconds.

    Returns:
      What it is worth: kills before the end, whether each decision stood, and what is as without kills. Another plan
      than there is no mistake, since the machine may have been slower.
    """
    before = []
    for _ in range(kills):
        try:
            start_advice(flags, runs_dir, seconds / (kills + 1))
            break
        except subprocess.TimeoutExpired:  # `run` has killed it
            before.append(read_decisions(runs_dir))
    again, failure = ask_for_advice(flags, runs_dir)
    after = read_decisions(runs_dir)
    same = {key: again.get(key) == whole.get(key) for key in ("verdict", "advised")}
    plain = read_decisions(runs_dir.with_name("advice"))
    return {
        "kills": len(before),
        "decisions_stand": all(after.get(name) == decided for each in before for name, decided in each.items()),
        "same_after_kills": all(same.values()) and not failure,
        "same_plan": after.get("plan") == plain.get("plan"),
        "same_chosen": after.get("chosen") == plain.get("chosen"),
    }


def read_decisions(runs_dir: pathlib.Path) -> dict[str, list[Any]]:
    """What the journal of a contest has decided so far: by what it is about, each line of it; {} without a journal."""
    decided: dict[str, list[Any]] = {}
    for path in runs_dir.glob("*/contest.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            # A kill may have torn the last one, which then counts for nothing.
            fact = json.loads(line) if line.endswith("\n") else {}
            what = fact.pop("what", None)
            fact.pop("seconds", None)
            if what == "plan":
                # What was measured for it differs from command to command; what follows does not.
                fact = {"plan": fact["planned"]["plan"], "names": fact["planned"]["names"], "points": fact["points"]}
            if what in ("plan", "kept", "chosen", "seed"):
                name = f"seed {fact['seed']}" if what == "seed" else what
                decided.setdefault(name, []).append(fact)
    return decided


def list_named(facts: Mapping[str, Any]) -> list[str]:
    """The methods that the advice says are best: one, or the two between which it cannot tell."""
    if facts["verdict"] == FEDERATE:
        return [facts["advised"]]
    if facts["verdict"] == ALONE:
        return [facts["alone"]]
    if facts["verdict"] == NOTHING:
        return [facts["trivial"]]
    beside = facts["over_alone"]
    return [beside["first"] if beside else facts["winner"], facts["alone"]]


def is_right(facts: Mapping[str, Any], problem: Problem, regret: float | None) -> bool:
    """Whether the advice is one that should be given on the problem."""
    if problem.never & {*list_named(facts)}:
        return False
    if facts["verdict"] in {UNDECIDED, NOTHING} - problem.verdicts:
        return regret is not None and regret <= MOST_REGRET
    return facts["verdict"] in problem.verdicts


def measure_regret(facts: Mapping[str, Any], problem: Problem, folder: pathlib.Path) -> dict[str, Any]:
    """How much better the best known is than what is advised, or than the better of the two that are named."""
    sign = 1 if facts["larger_is_better"] else -1
    methods = {name: method for name, method in facts["methods"].items() if method["role"] != "pooled"}
    means = {name: average_planned(facts, method) for name, method in methods.items()}
    means = {name: sign * mean for name, mean in means.items() if mean is not None}
    failed = []
    for name, flags in problem.known.items():
        runs = list_planned(facts, facts["methods"].get("fedavg", {}))
        reached = [train_known(facts, flags, seed, run, folder / name) for seed, run in runs.items()]
        if reached and None not in reached:
            means[f"known {name}"] = sign * statistics.fmean(reached)
        else:
            failed.append(name)
    named = list_named(facts)
    reached = max((means[name] for name in named if name in means), default=None)
    best = max(means, key=means.get, default=None)
    found = {
        "best": best,
        "best_mean": None if best is None else round(sign * means[best], 4),
        "named": named,
        "regret": None if reached is None else round(means[best] - reached, 4),
    }
    return found | ({"not_measured": failed} if failed else {})


def list_planned(facts: Mapping[str, Any], method: Mapping[str, Any]) -> dict[str, str]:
    """The folders of a method's runs by seed, on the seeds that were planned; further ones went to a few."""
    planned = {str(seed) for seed in facts["plan"]["seeds"]}
    return {seed: run for seed, run in method.get("runs", {}).items() if seed in planned}


def average_planned(facts: Mapping[str, Any], method: Mapping[str, Any]) -> float | None:
    """A method's mean over these seeds; of a row without a model that over all, None without any."""
    runs = list_planned(facts, method)
    return statistics.fmean(read_result(facts, run) for run in runs.values()) if runs else method["mean"]


def read_result(facts: Mapping[str, Any], run: str | pathlib.Path) -> float:
    """The clients' own main metric at the end of a run."""
    summary = json.loads((pathlib.Path(run) / "summary.json").read_text(encoding="utf-8"))
    return summary["clients"][f"{facts['metric']}_mean"]


def train_known(
    facts: Mapping[str, Any], flags: Sequence[str], seed: str, fedavg: str, folder: pathlib.Path
) -> float | None:
    """The clients' own main metric of a run with settings that are known, in FedAvg's device time on this seed.

    None if the run failed, whose lines are then in `<folder>/seed_<seed>.log`.
    """
    run_dir = folder / f"seed_{seed}"
    if not (run_dir / "summary.json").exists():
        spent = json.loads((pathlib.Path(fedavg) / "summary.json").read_text(encoding="utf-8"))["virtual_time_s"]
        ends = [f"--rounds={10 * facts['plan']['rounds']}", f"--most_virtual_s={1.001 * spent}", "--limit_fine_tuning"]
        often = ["--rounds_per_evaluation=1000000", "--rounds_per_shared_evaluation=1000000", "--run_page=false"]
        command = [sys.executable, "-m", "launch.train", *facts["arguments"], *flags, *ends, *often]
        command += [f"--seed={seed}", f"--run_dir={run_dir}", "--plot_formats=none"]
        # Some have no model for those, who are not what is measured here.
        command += ["--test_new_clients=false"] if any("new_clients=" in each for each in facts["arguments"]) else []
        command += ["--resume"] if (run_dir / "config.json").exists() else []
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"seed_{seed}.log", "a", encoding="utf-8") as log:
            if subprocess.run(command, env=ENVIRONMENT, stdout=log, stderr=log).returncode:
                return None
    return read_result(facts, run_dir)


def sum_up(answers: Sequence[Mapping[str, Any]]) -> bool:
    """Prints what was reached of the goals; whether it is all of them."""
    goals = []
    # Of noise all answers are equally good, and the best that was seen is that by chance.
    regrets = [each["regret"] for each in answers if each["regret"] is not None and each["problem"] != "noise"]
    if regrets:
        median, most = statistics.median(regrets), max(regrets)
        print(f"regret: median {median:.4f} (goal {MEDIAN_REGRET}), most {most:.4f} (goal {MOST_REGRET})")
        goals += [median <= MEDIAN_REGRET, most <= MOST_REGRET]
    without_signal = [each for each in answers if each["problem"] in ("noise", "own_rules")]
    if without_signal:
        wrong = sum(each["verdict"] == FEDERATE for each in without_signal)
        print(f"federate where nothing speaks for it: {wrong} of {len(without_signal)}")
        goals.append(wrong <= MOST_WRONG * len(without_signal))
    undecided = sum(each["is_right"] and each["verdict"] == UNDECIDED for each in answers)
    right = sum(each["is_right"] for each in answers)
    print(f"right: {right} of {len(answers)}, of these {undecided} undecided between the right two")
    times = max(each["times"] for each in answers)
    print(f"most times its minutes: {times} (goal {MOST_TIMES})")
    goals += [right == len(answers), times <= MOST_TIMES]
    if killed := [each for each in answers if "same_after_kills" in each]:
        same, stand = (sum(each[key] for each in killed) for key in ("same_after_kills", "decisions_stand"))
        print(f"after kills: the same advice {same}, all decisions as before {stand}, of {len(killed)}")
        goals += [same == len(killed), stand == len(killed)]
    return all(goals)


if __name__ == "__main__":
    sys.exit(main())
