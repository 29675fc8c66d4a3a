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

METHODS = {  # with steps at the end, where a name says so
    FEDCD: "FedCD",
    f"{FEDCD}_fine_tuned": "FedCD + fine-tuning",
    "ifca": "IFCA",
    "ifca_fine_tuned": "IFCA + fine-tuning",
    FEDAVG: "FedAvg",
    f"{FEDAVG}_fine_tuned": "FedAvg + fine-tuning",
}
SYSTEMS = [name for name in METHODS if name.startswith(FEDCD)]
COLUMNS = (
    *("runs", "algorithm", "seeds", "accuracy (%)"),
    *(text for name in SYSTEMS for text in (f"{METHODS[name]} ahead (points)", f"verdict on {METHODS[name]}")),
)


def name_experiment(method: str, size: str) -> str:
    """The experiment of a method in a size."""
    algo, _, variant = method.partition("_")
    return "_".join(filter(None, (algo, "cifar10_hierarchical", size, variant)))


PLACES = {name_experiment(method, size): (size, method) for size in (AUTHORS_SMALL, AUTHORS) for method in METHODS}
RIVALS = {name for name, (_, method) in PLACES.items() if method not in (FEDCD, FEDAVG)}


def tabulate_rivals(runs: Sequence[RunRecord]) -> Table:
    """A row a method of each size in which a rival was run: where it ends, and how far FedCD is ahead of it.

    FedCD has two columns and verdicts, without steps at the end and with them.
    """
    frame = make_frame(runs, _measure, ("size", "method", "accuracy")).dropna(subset="accuracy")
    rows = []
    for size in dict.fromkeys(size for size, _ in PLACES.values()):
        own = frame[frame["size"] == size].set_index(SEED)
        values = {name: own.accuracy[own.method == name] for name in METHODS if name in set(own.method)}
        others = [name for name in values if name not in SYSTEMS]
        if FEDCD not in values or others in ([], [FEDAVG]):
            continue
        pairs = [(system, other) for system in SYSTEMS if system in values for other in others]
        by_seed = {name: each.to_dict() for name, each in values.items()}
        verdicts = {(pair.first, pair.second): pair.verdict for pair in judge_pairs(pairs, by_seed)}
        for name, reached in values.items():
            row = [SIZES[size], METHODS[name], str(len(reached)), show(reached)]
            for system in SYSTEMS:
                verdict = verdicts.get((system, name), "")
                row += [show_difference(values[system], reached)[0] if verdict else "", verdict]
            rows.append(row)
    return Table(COLUMNS, rows)


def _measure(run: RunRecord) -> dict[str, Any]:
    """The mean accuracy of the devices after the last round, a share of 1; nothing of a run that does not count."""
    last = run.rounds.get(run.flags["rounds"], {})
    if run.experiment not in PLACES or run.dataset != CIFAR10 or CLIENT_TEST_ACCURACY not in last:
        return {}
    size, method = PLACES[run.experiment]
    return {"size": size, "method": method, "accuracy": last[CLIENT_TEST_ACCURACY]}
