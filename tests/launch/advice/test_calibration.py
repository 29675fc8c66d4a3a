"""How often the advice errs, by simulation: of labels that no feature tells, federation is hardly ever advised.

The hard case is drawn: all seeds are tested on the same examples, and runs of a method answer most of them alike. So
the seeds agree on what is chance.
"""

import numpy as np
import pytest
from made_contests import METHODS, PLAN, ROWS

from launch.advice.decision import ALONE, FEDERATE, decide, get_rate, list_open
from launch.advice.measures import TRIVIAL, Cost, Measured
from launch.advice.trivial import ALL, OWN
from launch.contests.methods import PERSONAL, Method
from launch.runs.task_columns import find_task_columns

CLASSES = find_task_columns("classification")
NUM_CLIENTS, NUM_TEST, NUM_VALIDATION, NUM_SEEDS, MOST_SEEDS = 20, 15, 9, 3, 12
CLIENTS_APART, SEEDS_APART = 0.02, 0.015  # of two methods, how far clients lie apart, and whole runs
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


def draw_shifted_table(generator, is_redrawn, gains=None):
    """All methods on clients that are drawn anew: (methods, rows), with what shifts all clients of a run alike.

    A run that ends well does so on validation examples, too, so that the one that is chosen looks better than it is.

    Args:
      generator: random.
      is_redrawn: whether each seed makes other clients, as where they are simulated; else they are drawn once.
      gains: {method: what it gains}; of others 0.
    """
    clients = [f"client {i}" for i in range(NUM_CLIENTS)]
    base = 0.8 + 0.05 * generator.standard_normal(NUM_CLIENTS)
    methods = []
    for name in NAMES:
        row = METHODS.get(name, Method(name, name, "ditto", role=PERSONAL))
        own = CLIENTS_APART * generator.standard_normal((MOST_SEEDS, NUM_CLIENTS))
        own = own if is_redrawn else own[:1]
        level = base + own + (gains or {}).get(name, 0.0) + SEEDS_APART * generator.standard_normal((MOST_SEEDS, 1))
        tests = level + 0.02 * generator.standard_normal((MOST_SEEDS, NUM_CLIENTS))
        seen = (level + 0.03 * generator.standard_normal((MOST_SEEDS, NUM_CLIENTS))).mean(axis=1)
        methods.append(
            Measured(
                name,
                row.title,
                row.role,
                {seed: dict(zip(clients, map(float, each), strict=True)) for seed, each in enumerate(tests)},
                dict(enumerate(map(float, seen))),
                cost=Cost(1e6, 1.0, 0.0, 40.0),
            )
        )
    answers = {seed: dict.fromkeys(clients, 0.3 + 0.001 * seed) for seed in range(MOST_SEEDS)}
    rows = [Measured(name, ROWS[name], TRIVIAL, answers, dict.fromkeys(answers, 0.3)) for name in (OWN, ALL)]
    return methods, rows


def decide_with_further_seeds(methods, rows):
    """The verdict, as a contest comes to it: all further seeds go to the two of what is open at the first look."""

    def cut(number, names=()):
        return [
            each._replace(
                tests={seed: each.tests[seed] for seed in range(MOST_SEEDS if each.name in names else number)},
                validations={
                    seed: each.validations[seed] for seed in range(MOST_SEEDS if each.name in names else number)
                },
            )
            for each in methods
        ]

    first = cut(NUM_SEEDS)
    asked = list_open(decide(first, rows, CLASSES, get_rate(PLAN)), first, CLASSES)
    # FedAvg is run on every seed on which anything is.
    names = {*asked, "fedavg"} if asked else ()
    return decide(cut(NUM_SEEDS, names), rows, CLASSES, get_rate(PLAN))


def count_verdicts(chances, share, number, seed=0):
    """{verdict: share of the draws}."""
    return count(lambda generator: draw_table(generator, chances, share), number, seed)


def count(draw, number, seed=0):
    """{verdict: share of the draws} of a way to draw tables."""
    generator, counts = np.random.default_rng(seed), {}
    for _ in range(number):
        verdict = decide_with_further_seeds(*draw(generator)).verdict
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


@pytest.mark.parametrize("is_redrawn", [False, True])
def test_further_seeds_do_not_make_a_difference_that_is_not_there(is_redrawn):
    """Equal methods, up to 12 seeds: who looks after each, at 5 %, is wrong in 16 of 100 draws."""
    verdicts = count(lambda generator: draw_shifted_table(generator, is_redrawn), 300)
    assert verdicts.get(FEDERATE, 0) + verdicts.get(ALONE, 0) <= 0.05


def test_further_seeds_find_what_three_do_not():
    """5 points over alone and FedAvg, where runs lie 1.5 points apart."""
    verdicts = count(lambda generator: draw_shifted_table(generator, False, {"ifca": 0.05}), 50)
    assert verdicts.get(FEDERATE, 0) >= 0.9
