"""A contest whose runs lie in folders, with made-up numbers, on digits."""

import pytest
from made_contests import make_outcome, write_seed

from launch.advice.trivial import ALL, OWN, Row
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values

ARGUMENTS = ("--dataset=digits", "--num_clients=6", "--new_clients=1", "--validation_fraction=0.2")
OFFSETS = {"local_only": (0, 1, 2, 0, 1, 2), "fedavg": (1, 1, 0, 2, 0, 2), "ifca": (2, 1, 0, 1, 2, 0)}
MEANS = {"local_only": 0.8, "fedavg": 0.85, "ifca": 0.9}


@pytest.fixture
def write_contest(tmp_path):
    """(means={}, task_flags=()) -> (outcome, rows without a model by seed) of three methods on three seeds."""

    def write(means=None):
        runs = {}
        for name, mean in (MEANS | (means or {})).items():
            config = parse_config([f"--algo={name}", *ARGUMENTS])
            folder = tmp_path / "advice" / "seeds" / name
            for seed in range(3):
                base = mean + 0.001 * (seed - 1)
                results = {f"client_{i}": round(base + 0.01 * each, 4) for i, each in enumerate(OFFSETS[name])}
                new = [] if name == "local_only" else [("client_6", mean)]
                model = {each: f"model_{int(each[-1]) % 2}" for each in results} if name == "ifca" else "global"
                given = write_seed(folder, name, seed, results, mean, flag_values(config), new=new, model=model)
                runs.setdefault(name, {})[seed] = given
        outcome = make_outcome(list(runs), arguments=ARGUMENTS, runs=runs)
        answers = {f"client_{i}": 0.1 + 0.01 * (i % 3) for i in range(6)}
        rows = {seed: {OWN: Row(answers, {}, 0.1), ALL: Row(answers, {}, 0.1)} for seed in range(3)}
        return outcome, rows

    return write
