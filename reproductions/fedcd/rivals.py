"""FedCD beside what one would try first, trained alike: IFCA, and FedAvg with steps at the end. Imports no TensorFlow.

FedAvg and FedCD are as their authors train them; what the rivals have of their own was chosen by trials in the small
size. What was expected stands in `experiments`. Only runs on the whole of CIFAR-10 count.
"""

from collections.abc import Sequence
from typing import Any

from launch.pages.comparison.pairs import judge_pairs
from launch.runs.columns import CLIENT_TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.tables import SEED, Table, make_frame, show, show_difference
from reproductions.fedcd.measures import AUTHORS, AUTHORS_SMALL, CIFAR10, FEDAVG, FEDCD, SIZES

METHODS = {FEDCD: "FedCD", "ifca": "IFCA", f"{FEDAVG}_fine_tuned": "FedAvg + fine-tuning", FEDAVG: "FedAvg"}
COLUMNS = ("runs", "algorithm", "seeds", "accuracy (%)", "FedCD ahead (points)", "verdict")


def name_experiment(method: str, size: str) -> str:
    """The experiment of a method in a size."""
    algo, _, variant = method.partition("_")
    return "_".join(filter(None, (algo, "cifar10_hierarchical", size, variant)))


PLACES = {name_experiment(method, size): (size, method) for size in (AUTHORS_SMALL, AUTHORS) for method in METHODS}
RIVALS = {name for name, (_, method) in PLACES.items() if method not in (FEDCD, FEDAVG)}


def tabulate_rivals(runs: Sequence[RunRecord]) -> Table:
    """A row a method of each size in which a rival was run: where it ends, and how far FedCD is ahead of it."""
    frame = make_frame(runs, _measure, ("size", "method", "accuracy")).dropna(subset="accuracy")
    rows = []
    for size in dict.fromkeys(size for size, _ in PLACES.values()):
        own = frame[frame["size"] == size].set_index(SEED)
        values = {name: own.accuracy[own.method == name] for name in METHODS if name in set(own.method)}
        if FEDCD not in values or not values.keys() - {FEDCD, FEDAVG}:
            continue
        others = [name for name in values if name != FEDCD]
        pairs = judge_pairs([(FEDCD, name) for name in others], {name: each.to_dict() for name, each in values.items()})
        verdicts = {pair.second: pair.verdict for pair in pairs}
        for name, reached in values.items():
            ahead = "" if name == FEDCD else show_difference(values[FEDCD], reached)[0]
            rows.append([SIZES[size], METHODS[name], str(len(reached)), show(reached), ahead, verdicts.get(name, "")])
    return Table(COLUMNS, rows)


def _measure(run: RunRecord) -> dict[str, Any]:
    """The mean accuracy of the devices after the last round, a share of 1; nothing of a run that does not count."""
    last = run.rounds.get(run.flags["rounds"], {})
    if run.experiment not in PLACES or run.dataset != CIFAR10 or CLIENT_TEST_ACCURACY not in last:
        return {}
    size, method = PLACES[run.experiment]
    return {"size": size, "method": method, "accuracy": last[CLIENT_TEST_ACCURACY]}
