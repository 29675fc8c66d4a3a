"""How often the advice errs, by simulation: of labels that no feature tells, federation is hardly ever advised.

The hard case is drawn: all seeds are tested on the same examples, and runs of a method answer most of them alike. So
the seeds agree on what is chance.
"""

import numpy as np
import pytest
from made_contests import METHODS, ROWS

from launch.advice.decision import ALONE, FEDERATE, decide, list_open
from launch.advice.measures import TRIVIAL, Cost, Measured
from launch.advice.trivial import ALL, OWN
from launch.contests.methods import PERSONAL, Method
from launch.runs.task_columns import find_task_columns

CLASSES = find_task_columns("classification")
NUM_CLIENTS, NUM_TEST, NUM_VALIDATION, NUM_SEEDS, MOST_SEEDS = 20, 15, 9, 3, 5
ALIKE = 0.8  # of two runs of a method, the share of examples that they answer by the same draw
OTHERS = tuple(f"method_{i}" for i in range(6))
NAMES = ("local_only", "fedavg", "ifca", *OTHERS)


def draw_table(generator, chances, share):
    """All methods on one table: (methods, rows) with `MOST_SEEDS` seeds.

    Args:
      generator: random.
      chances: {method: how likely its answer to an example is right}, a number or one a client; of others 0.5.
      share: of the more frequent of two classes, which the rows without a model answer.
    """
    shape = (NUM_CLIENTS, NUM_TEST + NUM_VALIDATION)
    is_frequent = generator.random(shape) < share

    def measure(name, draw_answers, role, title):
        rights = [draw_answers() for _ in range(MOST_SEEDS)]
        tests = {
            seed: {f"client {i}": float(row[:NUM_TEST].mean()) for i, row in enumerate(right)}
            for seed, right in enumerate(rights)
        }
        validations = {seed: float(right[:, NUM_TEST:].mean()) for seed, right in enumerate(rights)}
        sizes = dict.fromkeys(tests[0], float(NUM_TEST))
        return Measured(name, title, role, tests, validations, {}, sizes, {}, Cost(1e6, 1.0, 0.0, 40.0))

    methods = []
    for name in NAMES:
        chance = np.broadcast_to(np.reshape(chances.get(name, 0.5), (-1, 1)), shape)
        common = generator.random(shape)

        def answer(chance=chance, common=common):
            drawn = np.where(generator.random(shape) < ALIKE, common, generator.random(shape))
            return drawn < chance

        row = METHODS.get(name, Method(name, name, "ditto", role=PERSONAL))
        methods.append(measure(name, answer, row.role, row.title))
    rows = [measure(name, lambda: is_frequent, TRIVIAL, ROWS[name]) for name in (OWN, ALL)]
    return methods, rows


def decide_with_further_seeds(methods, rows):
    """The verdict, as a contest comes to it: seeds are added to the two of an open question, one at a time."""
    seeds = dict.fromkeys((each.name for each in methods), NUM_SEEDS)

    def cut(each):
        number = seeds.get(each.name, MOST_SEEDS)
        return each._replace(
            tests={seed: each.tests[seed] for seed in range(number)},
            validations={seed: each.validations[seed] for seed in range(number)},
        )

    for _ in range(MOST_SEEDS - NUM_SEEDS):
        now = list(map(cut, methods))
        for name in list_open(decide(now, rows, CLASSES), now, CLASSES):
            seeds[name] += 1
    return decide(list(map(cut, methods)), rows, CLASSES)


def count_verdicts(chances, share, number, seed=0):
    """{verdict: share of the draws}."""
    generator, counts = np.random.default_rng(seed), {}
    for _ in range(number):
        verdict = decide_with_further_seeds(*draw_table(generator, chances, share)).verdict
        counts[verdict] = counts.get(verdict, 0) + 1
    return {verdict: count / number for verdict, count in counts.items()}


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_without_signal_hardly_any_table_says_federate(share):
    """Labels that no feature tells: whatever a method answers is right by chance, or as often as its class is there."""
    chances = dict.fromkeys(NAMES, 0.5 if share == 0.5 else 0.66)
    verdicts = count_verdicts(chances, share, 150)
    assert verdicts.get(FEDERATE, 0) <= 0.01 and verdicts.get(ALONE, 0) <= 0.01


def test_without_a_difference_between_both_hardly_any_table_decides():
    """All learn, and all alike: 80 % right, of some clients 70 % and of others 90 %."""
    chances = dict.fromkeys(NAMES, np.tile([0.7, 0.9], NUM_CLIENTS // 2))
    verdicts = count_verdicts(chances, 0.5, 150)
    assert verdicts.get(FEDERATE, 0) <= 0.03 and verdicts.get(ALONE, 0) <= 0.03


def test_what_is_there_is_found():
    """15 points over alone, and 15 under it."""
    better = dict.fromkeys(NAMES, 0.85) | {"local_only": 0.7}
    worse = dict.fromkeys(NAMES, 0.7) | {"local_only": 0.85}
    assert count_verdicts(better, 0.5, 40).get(FEDERATE, 0) >= 0.9
    assert count_verdicts(worse, 0.5, 40).get(ALONE, 0) >= 0.9
