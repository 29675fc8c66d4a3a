"""What `launch.advise` says where the answer is known: `.venv/bin/python tests/advise/known_answers.py [problems]`.

For each problem and seed of a made table: the verdict, what is advised, minutes asked for and taken, and the regret, by
how much the best that is known does better. That is the best of the contest's own methods and of the settings below,
which were tuned before, on the same clients, fresh seeds and device time. `--kills=5` kills the command as often, at
moments spread over its time, and asks for the same advice. It prints a line of JSON a problem, and at the end what was
reached of the goals. Not a test: each problem takes `--minutes`. Data sets are looked for as everywhere (FL_DATA_DIR).
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
FEDERATE, ALONE, UNDECIDED, NOTHING = "federate", "alone", "undecided", "nothing learned"
# Points of regret in the median and at most; times its minutes.
MEDIAN_REGRET, MOST_REGRET, MOST_TIMES = 0.02, 0.05, 1.1
NUM_DRAWS = 20  # of the tables without signal
ONE_MODEL = {"fedavg", "fedadam", "async_periodic"}


class Problem(NamedTuple):
    """A problem and what is known of it.

    Attributes:
      flags: of `launch.advise`.
      verdicts: those that are right.
      known: flags of `launch.train` that are known to do well, by a name.
      seeds: of a made table; one advice each.
      never: methods that would be wrong.
    """

    flags: tuple[str, ...]
    verdicts: frozenset[str]
    known: Mapping[str, tuple[str, ...]] = {}
    seeds: int = 1
    never: frozenset[str] = frozenset()


SGD = ("--optimizer=sgd", "--epochs=2")
EITHER = frozenset({FEDERATE, UNDECIDED})
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
            "oracle": ("--algo=oracle", *SGD, "--learning_rate=1", "--groups=variant"),
        },
    ),
    "archetypes": Problem(
        (
            *("--dataset=cifar10", "--partition=hierarchical", "--clients_per_archetype=3", "--train_per_client=200"),
            *("--validation_per_client=100", "--test_per_client=300", "--bias_min=0.65", "--bias_max=0.65"),
            *("--model=image_student", "--activation=relu", "--batch_size=10"),
        ),
        EITHER,
        {"oracle": ("--algo=oracle", *SGD, "--learning_rate=0.03")},
    ),
    "har": Problem(
        ("--dataset=har", "--partition=natural", "--har_split=bouts", "--model=perceptron", "--batch_size=20"),
        EITHER | {ALONE},
        {"fine_tuning": ("--algo=fedavg", *SGD, "--learning_rate=0.03", "--final_steps=30")},
    ),
    "building": Problem(
        ("--dataset=building",),
        EITHER,
        {"fine_tuning": ("--algo=fedavg", "--final_steps=200", "--final_learning_rate=0.025")},
    ),
    "shakespeare": Problem(
        (
            *("--dataset=shakespeare", "--fewest_examples=20", "--most_clients=60", "--most_train_examples=40"),
            *("--model=char_transformer", "--batch_size=10"),
        ),
        EITHER,
        {"fedavg": ("--algo=fedavg", "--optimizer=adam", "--learning_rate=0.001", "--epochs=2")},
    ),
    "noise": Problem((), frozenset({NOTHING, UNDECIDED, ALONE}), seeds=NUM_DRAWS),
    "own_rules": Problem((), frozenset({ALONE, UNDECIDED}), seeds=NUM_DRAWS),
    "two_kinds": Problem(
        (),
        EITHER,
        {"ifca": ("--algo=ifca", "--num_models=2", "--learning_rate=0.01", "--epochs=5")},
        never=frozenset(ONE_MODEL),
    ),
    "shared": Problem((), frozenset({FEDERATE}), {"fedavg": ("--algo=fedavg", "--learning_rate=0.01", "--epochs=5")}),
}


def main() -> None:
    """Asks for advice on each problem, and sums up."""
    parser = argparse.ArgumentParser(description=__doc__)
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
    sum_up(answers)


def answer(name: str, problem: Problem, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """The advice on one problem, beside what is known."""
    folder = asked.folder / f"{name}_{seed}"
    made = [f"--data={write_made_table(name, folder, seed)}"] if name in MADE_TABLES else []
    flags = [*made, *problem.flags, f"--minutes={asked.minutes:g}"]
    facts, seconds = ask_for_advice(flags, folder / "advice")
    found = {"problem": name, "seed": seed, "verdict": facts["verdict"], "advised": facts["advised"]}
    found["is_right"] = facts["verdict"] in problem.verdicts and facts["advised"] not in problem.never
    found |= {"minutes": round(seconds / 60, 2), "times": round(seconds / (60 * asked.minutes), 3)}
    found |= measure_regret(facts, problem, folder / "known")
    if asked.kills:
        again, _ = ask_for_advice(flags, folder / "killed", asked.kills, 60 * asked.minutes)
        found["same_after_kills"] = [again[key] for key in ("verdict", "advised")] == [
            facts[key] for key in ("verdict", "advised")
        ]
    return found


def ask_for_advice(
    flags: Sequence[str], runs_dir: pathlib.Path, kills: int = 0, seconds: float = 0
) -> tuple[dict[str, Any], float]:
    """What `advice.json` says, and seconds; with kills, at moments spread evenly over the seconds."""
    command = [sys.executable, "-m", "launch.advise", *flags, f"--runs_dir={runs_dir}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs_dir.mkdir(parents=True, exist_ok=True)
    start_s = time.monotonic()
    with open(runs_dir / "output.log", "a", encoding="utf-8") as log:
        for _ in range(kills):
            try:
                subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=seconds / (kills + 1))
            except subprocess.TimeoutExpired:  # `run` has killed it
                continue
        subprocess.run(command, env=environment, stdout=log, stderr=log, check=True)
    (path,) = runs_dir.glob("*/advice.json")
    return json.loads(path.read_text(encoding="utf-8")), time.monotonic() - start_s


def measure_regret(facts: Mapping[str, Any], problem: Problem, folder: pathlib.Path) -> dict[str, Any]:
    """How much better the best known is than what is advised; of an undecided advice, than the better of the two."""
    sign = 1 if facts["larger_is_better"] else -1
    means = {name: method["mean"] for name, method in facts["methods"].items() if method["role"] != "pooled"}
    means = {name: sign * mean for name, mean in means.items() if mean is not None}
    fedavg = facts["methods"]["fedavg"]["runs"]
    for name, flags in problem.known.items():
        reached = [train_known(facts, flags, seed, run, folder / name) for seed, run in fedavg.items()]
        means[f"known {name}"] = sign * statistics.fmean(reached)
    best = max(means, key=means.get)
    named = [facts["advised"]] if facts["verdict"] == FEDERATE else [facts["winner"], facts["alone"]]
    named = [facts["alone"]] if facts["verdict"] == ALONE else named
    reached = max((means[name] for name in named if name in means), default=None)
    regret = None if reached is None else round(means[best] - reached, 4)
    return {"best": best, "best_mean": round(sign * means[best], 4), "named": named, "regret": regret}


def train_known(facts: Mapping[str, Any], flags: Sequence[str], seed: str, fedavg: str, folder: pathlib.Path) -> float:
    """The clients' own main metric of a run with settings that are known, in FedAvg's device time on this seed."""
    run_dir = folder / f"seed_{seed}"
    if not (run_dir / "summary.json").exists():
        spent = json.loads((pathlib.Path(fedavg) / "summary.json").read_text(encoding="utf-8"))["virtual_time_s"]
        ends = [f"--rounds={10 * facts['plan']['rounds']}", f"--most_virtual_s={1.001 * spent}"]
        often = ["--rounds_per_evaluation=1000000", "--rounds_per_shared_evaluation=1000000", "--run_page=false"]
        command = [sys.executable, "-m", "launch.train", *facts["arguments"], *flags, *ends, *often]
        command += [f"--seed={seed}", f"--run_dir={run_dir}", "--plot_formats=none"]
        resume = ["--resume"] if (run_dir / "config.json").exists() else []
        subprocess.run(
            [*command, *resume], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True
        )
    return json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))["clients"][f"{facts['metric']}_mean"]


def sum_up(answers: Sequence[Mapping[str, Any]]) -> None:
    """Prints what was reached of the goals."""
    regrets = [each["regret"] for each in answers if each["regret"] is not None and each["verdict"] != UNDECIDED]
    if regrets:
        print(f"regret: median {statistics.median(regrets):.4f} (goal {MEDIAN_REGRET}), most {max(regrets):.4f} "
              f"(goal {MOST_REGRET}), of {len(regrets)} that were decided")  # fmt: skip
    without_signal = [each for each in answers if each["problem"] in ("noise", "own_rules")]
    wrong = sum(each["verdict"] == FEDERATE for each in without_signal)
    print(f"federate where nothing speaks for it: {wrong} of {len(without_signal)}")
    print(f"right: {sum(each['is_right'] for each in answers)} of {len(answers)}")
    print(f"most times its minutes: {max(each['times'] for each in answers)} (goal {MOST_TIMES})")
    if killed := [each["same_after_kills"] for each in answers if "same_after_kills" in each]:
        print(f"the same advice after kills: {sum(killed)} of {len(killed)}")


if __name__ == "__main__":
    main()
