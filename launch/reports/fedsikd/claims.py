"""What the FedSiKD paper claims in words, each with the rule that decides it.

The text of the paper that we have has lost most of the alphas. They are read here from the tables that a sentence is
about, and those of the abstract (0.1 for HAR, 0.5 for MNIST, "respectively") from the version on arXiv, 2402.09095.
"Per cent" of an accuracy or a loss means points. Sentences that say nothing measurable are left out. Where a sentence
is vague ("similar", "minimal"), the threshold is ours and stands in the rule.
"""

import math
from collections.abc import Iterable, Sequence

from launch.reports.claims import Claim
from launch.reports.collection import Cell
from launch.reports.conditions import Condition, differs, exceeds, gains_more, near
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT
from launch.settings.algorithms import ALGORITHMS

ALPHAS = ("0.1", "0.5", "1", "2")
LAST_ROUND = {"mnist": 70, "har": 50}
FIRST_ROUNDS = (1, 2, 3, 4, 5)
NAMES = {algo: ALGORITHMS[algo].title for algo in ("fedsikd", "random_cluster", "fl_hc", "fedavg")}
OTHERS = ("fl_hc", "random_cluster", "fedavg")
ACCURACY, LOSS = TEST_ACCURACY, TEST_LOSS
ACCURACY_TOLERANCE = 0.05
LOSS_TOLERANCE = 0.25
SMALL_LOSS_CHANGE = 0.1
EARLY = f"rounds {FIRST_ROUNDS[0]} to {FIRST_ROUNDS[-1]}"
CLOSE = f"within {100 * ACCURACY_TOLERANCE:g} points of those"
CLOSE_LOSS = f"within {LOSS_TOLERANCE:g} of those"
HARDLY_FALLS = f"from round {FIRST_ROUNDS[0]} to {FIRST_ROUNDS[-1]} it falls by less than {SMALL_LOSS_CHANGE:g}"


def _place(cell: Cell) -> str:
    return f"{cell.dataset.upper()}, alpha {cell.setting}, round {cell.round_num}"


def _near(cell: Cell, value: float) -> Condition:
    """The result is about what the paper's sentence says."""
    tolerance = ACCURACY_TOLERANCE if cell.metric == ACCURACY else LOSS_TOLERANCE
    return near(cell, f"{NAMES[cell.algo]} {{0}} ({_place(cell)})", value, tolerance)


def _beats(cell: Cell, other: str, by: float = 0.0) -> Condition:
    """More accuracy, or less loss, than another in the same place, by more than `by`."""
    rival = cell._replace(algo=other)
    is_more = cell.metric == ACCURACY
    mine, theirs = ("{0}", "{1}") if is_more else ("{1}", "{0}")
    text = f"{NAMES[cell.algo]} {mine}, {NAMES[other]} {theirs} ({_place(cell)})"
    return exceeds(*((cell, rival) if is_more else (rival, cell)), text, by)


def _beat(cells: Iterable[Cell], others: Iterable[str], by: float = 0.0) -> tuple[Condition, ...]:
    """Each cell beats each of the others."""
    return tuple(_beats(cell, other, by) for cell in cells for other in others)


def _is_ahead(other: str, cell: Cell, above: float, below: float) -> Condition:
    """What `other` has more than the cell lies between the bounds."""
    text = f"{NAMES[cell.algo]} {{1}}, {NAMES[other]} {{0}} ({_place(cell)})"
    return differs(cell._replace(algo=other), cell, text, above, below)


def _changes(cell: Cell, first: int, above: float = 0.0, below: float = math.inf) -> Condition:
    """The result at the cell's round minus that at round `first` lies between the bounds."""
    where = f"{cell.dataset.upper()}, alpha {cell.setting}, rounds {first} and {cell.round_num}"
    text = f"{NAMES[cell.algo]} {{1}}, then {{0}} ({where})"
    return differs(cell, cell._replace(round_num=first), text, above, below)


def _falls(cell: Cell, first: int) -> Condition:
    """The result at the cell's round is smaller than that at round `first`."""
    return _changes(cell, first, above=-math.inf, below=0)


def _grows_more(cell: Cell, first: int, other: str) -> Condition:
    """The result rises more from round `first` on than another's."""
    where = f"{cell.dataset.upper()}, alpha {cell.setting}, rounds {first} to {cell.round_num}"
    pairs = [(each._replace(round_num=first), each) for each in (cell, cell._replace(algo=other))]
    text = f"{NAMES[cell.algo]} {{0}} to {{1}}, {NAMES[other]} {{2}} to {{3}} ({where})"
    return gains_more(*pairs, text)


def _cell(dataset: str, alpha: str, round_num: int, metric: str = ACCURACY, algo: str = "fedsikd") -> Cell:
    return Cell(dataset, alpha, algo, round_num, metric)


def _last(dataset: str, alpha: str, metric: str = ACCURACY, algo: str = "fedsikd") -> Cell:
    return _cell(dataset, alpha, LAST_ROUND[dataset], metric, algo)


def _lead_early(dataset: str, alphas: Iterable[str], others: Sequence[str] = OTHERS) -> tuple[Condition, ...]:
    return _beat((_cell(dataset, alpha, round_num) for alpha in alphas for round_num in FIRST_ROUNDS), others)


def _others_lose_ground(dataset: str, alpha: str, allowed: float) -> tuple[Condition, ...]:
    """The loss of the other algorithms does not fall by `allowed` or more over the first five rounds."""
    return tuple(_changes(_cell(dataset, alpha, 5, LOSS, other), 1, above=-allowed) for other in OTHERS)


def _abstract() -> list[Claim]:
    claims = []
    for dataset, alpha, lead, rise in (("har", "0.1", 0.25, 0.17), ("mnist", "0.5", 0.18, 0.20)):
        name = dataset.upper()
        says = f"FedSiKD is {100 * lead:.0f} % more accurate than the state of the art on {name}, highly skewed"
        rule = f"leads each of the other three by more than {100 * lead:.0f} points at alpha {alpha}"
        at_end, at_five = _last(dataset, alpha), _cell(dataset, alpha, 5)
        claims += [
            Claim("abstract", f"{says} (last round)", rule, _beat([at_end], OTHERS, lead)),
            Claim("abstract", f"{says} (round 5)", rule, _beat([at_five], OTHERS, lead)),
            Claim(
                "abstract",
                f"accuracy rises by {100 * rise:.0f} % on {name} within the first five rounds",
                f"at alpha 0.1 by more than {100 * rise:.0f} points from round 1 to 5",
                (_changes(_cell(dataset, "0.1", 5), 1, above=rise),),
            ),
        ]
    return claims


def _accuracy_over_all_rounds() -> list[Claim]:
    """Section V-B on Figure 3, decided in the last round."""
    similar = [
        _is_ahead("random_cluster", _last("mnist", "2"), -0.02, 0.02),
        *_beat([_last("mnist", "2", algo=algo) for algo in ("fedsikd", "random_cluster")], ("fl_hc", "fedavg")),
    ]
    overtaking = [
        *_beat([_cell("har", "1", 1, algo="random_cluster")], ("fedsikd", "fl_hc", "fedavg")),
        _falls(_last("har", "1", algo="random_cluster"), 5),
        _changes(_last("har", "1"), 5),
    ]
    return [
        Claim(
            "V-B",
            "MNIST, alpha 2: FedSiKD and RandomCluster are alike and outperform FL+HC and FedAvg",
            "last round; alike: within 2 points",
            tuple(similar),
        ),
        Claim(
            "V-B",
            "MNIST, alpha 1: FedSiKD outperforms all others",
            "last round",
            _beat([_last("mnist", "1")], OTHERS),
        ),
        Claim(
            "V-B",
            "MNIST, alpha 0.1: from 51 % to 74 % in the first four rounds",
            f"rounds 1 and 4 {CLOSE}",
            (_near(_cell("mnist", "0.1", 1), 0.51), _near(_cell("mnist", "0.1", 4), 0.74)),
        ),
        Claim(
            "V-B",
            "HAR, alpha 2: FedSiKD and RandomCluster are more accurate than the others",
            "last round",
            _beat([_last("har", "2", algo=algo) for algo in ("fedsikd", "random_cluster")], ("fl_hc", "fedavg")),
        ),
        Claim(
            "V-B",
            "HAR, alpha 1: RandomCluster leads at first, then its accuracy decreases, while FedSiKD's improves",
            "RandomCluster leads in round 1; from round 5 to the last it falls and FedSiKD rises",
            tuple(overtaking),
        ),
        Claim(
            "V-B",
            "HAR, alpha 0.5: FedSiKD handles the heterogeneity better than the others",
            "most accurate in the last round",
            _beat([_last("har", "0.5")], OTHERS),
        ),
    ]


def _loss_over_all_rounds() -> list[Claim]:
    """Section V-B on Table V, the last rounds."""
    mnist = [_last("mnist", alpha, LOSS) for alpha in ALPHAS]
    har = [_last("har", alpha, LOSS) for alpha in ALPHAS]
    behind = [_is_ahead("random_cluster", cell, -1, 0) for cell in mnist[1:]]
    return [
        Claim(
            "V-B",
            "MNIST, alpha 0.1: FedSiKD's loss is far below all others', almost 3 below RandomCluster's",
            "last round: lowest of all, RandomCluster's 2 to 3 higher",
            (*_beat(mnist[:1], ("fl_hc", "fedavg")), _is_ahead("random_cluster", mnist[0], 2, 3)),
        ),
        Claim(
            "V-B",
            "MNIST, other alphas: FedSiKD's loss is below FL+HC's and FedAvg's, slightly above RandomCluster's",
            "last round; slightly: by less than 1",
            (*_beat(mnist[1:], ("fl_hc", "fedavg")), *behind),
        ),
        Claim(
            "V-B",
            "HAR, all alphas: FedSiKD's loss is below RandomCluster's and FedAvg's",
            "last round",
            _beat(har, ("random_cluster", "fedavg")),
        ),
        Claim(
            "V-B",
            "HAR: FL+HC's loss is 2 to 3 below FedSiKD's, except at a low alpha, where they are alike",
            "last round; alike at alpha 0.1: within 0.5",
            (_is_ahead("fl_hc", har[0], -0.5, 0.5), *(_is_ahead("fl_hc", cell, -3, -2) for cell in har[1:])),
        ),
    ]


def _first_rounds_mnist() -> list[Claim]:
    """Section V-C on Tables VI and VII."""
    start, end = _cell("mnist", "0.1", 1), _cell("mnist", "0.1", 5)
    first_loss, fifth_loss = start._replace(metric=LOSS), end._replace(metric=LOSS)
    improving = [
        condition
        for alpha in ("0.5", "1")
        for condition in (_changes(_cell("mnist", alpha, 5), 1), _falls(_cell("mnist", alpha, 5, LOSS), 1))
    ]
    behind = [_is_ahead("random_cluster", _cell("mnist", "2", round_num), 0, 0.01) for round_num in FIRST_ROUNDS]
    rising, falling = (_near(start, 0.51), _near(end, 0.75)), (_near(first_loss, 1.45), _near(fifth_loss, 1.0))
    return [
        Claim(
            "V-C",
            "MNIST: FedSiKD outperforms the baselines",
            f"{EARLY}, every alpha",
            _lead_early("mnist", ALPHAS),
        ),
        Claim(
            "V-C, V-D",
            "MNIST, highly skewed: FedSiKD outperforms the baselines",
            f"{EARLY} at alpha 0.1",
            _lead_early("mnist", ["0.1"]),
        ),
        Claim("V-C", "MNIST, alpha 0.1: from 51 % to almost 75 %", f"rounds 1 and 5 {CLOSE}", rising),
        Claim(
            "V-C",
            "MNIST, alpha 0.1: the other methods improve more slowly or not at all",
            "FedSiKD gains more accuracy from round 1 to 5 than each of them",
            tuple(_grows_more(end, 1, other) for other in OTHERS),
        ),
        Claim("V-C", "MNIST, alpha 0.1: loss from 1.45 to 1", f"rounds 1 and 5 {CLOSE_LOSS}", falling),
        Claim(
            "V-C",
            "MNIST, alpha 0.1: the others' loss increases or improves minimally",
            HARDLY_FALLS,
            _others_lose_ground("mnist", "0.1", SMALL_LOSS_CHANGE),
        ),
        Claim(
            "V-C",
            "MNIST, alpha 0.5 and 1: FedSiKD improves in accuracy and loss in a few rounds",
            "round 5 better than round 1 in both",
            tuple(improving),
        ),
        Claim(
            "V-C",
            "MNIST, alpha 2: better than FL+HC and FedAvg, less than 1 % below RandomCluster",
            f"{EARLY}; RandomCluster ahead by 0 to 1 point",
            (*_lead_early("mnist", ["2"], ("fl_hc", "fedavg")), *behind),
        ),
    ]


def _first_rounds_har() -> list[Claim]:
    """Section V-C on Tables VIII and IX."""
    start, end = _cell("har", "0.1", 1), _cell("har", "0.1", 5)
    first_loss, fifth_loss = start._replace(metric=LOSS), end._replace(metric=LOSS)
    falling_half = (_near(_cell("har", "0.5", 1, LOSS), 0.96), _near(_cell("har", "0.5", 5, LOSS), 0.77))
    head_start = _beats(_cell("har", "1", 1, algo="random_cluster"), "fedsikd")
    close = [
        _beats(_cell("har", "2", 1, algo="random_cluster"), "fedsikd"),
        _is_ahead("random_cluster", _cell("har", "2", 5), -0.05, 0.05),
    ]
    losses = [_falls(_cell("har", alpha, 5, LOSS), 1) for alpha in ("1", "2")]
    losses += [condition for alpha in ("1", "2") for condition in _others_lose_ground("har", alpha, 0.0)]
    return [
        Claim(
            "V-D",
            "HAR, highly skewed: FedSiKD outperforms the baselines",
            f"{EARLY} at alpha 0.1",
            _lead_early("har", ["0.1"]),
        ),
        Claim(
            "V-C",
            "HAR, alpha 0.1: from 31 % to 55 %",
            f"rounds 1 and 5 {CLOSE}",
            (_near(start, 0.31), _near(end, 0.55)),
        ),
        Claim(
            "V-C",
            "HAR, alpha 0.1: loss from 3.14 to 2.06",
            f"rounds 1 and 5 {CLOSE_LOSS}",
            (_near(first_loss, 3.14), _near(fifth_loss, 2.06)),
        ),
        Claim("V-C", "HAR, alpha 0.5: loss from 0.96 to 0.77", f"rounds 1 and 5 {CLOSE_LOSS}", falling_half),
        Claim(
            "V-C",
            "HAR, alpha 0.5: the others' loss rises or does not improve",
            HARDLY_FALLS,
            _others_lose_ground("har", "0.5", SMALL_LOSS_CHANGE),
        ),
        Claim(
            "V-C",
            "HAR, alpha 1: FedSiKD gains more than FL+HC and FedAvg; RandomCluster starts strong but grows less",
            "accuracy from round 1 to 5; RandomCluster ahead in round 1",
            (*(_grows_more(_cell("har", "1", 5), 1, other) for other in OTHERS), head_start),
        ),
        Claim(
            "V-C",
            "HAR, alpha 2: FedSiKD beats FL+HC and FedAvg from the start; RandomCluster starts higher, then is alike",
            f"{EARLY}; RandomCluster ahead in round 1, within 5 points in round 5",
            (*_lead_early("har", ["2"], ("fl_hc", "fedavg")), *close),
        ),
        Claim(
            "V-C",
            "HAR, alpha 1 and 2: FedSiKD's loss falls while all others' increase",
            "round 5 against round 1",
            tuple(losses),
        ),
    ]


def _drift() -> list[Claim]:
    """Theorem 1, Eq. (4). Distances to the mean of a group shrink under any grouping; what counts is by how much."""
    conditions = []
    for dataset in ("mnist", "har"):
        for round_num in FIRST_ROUNDS:
            within, total = (_cell(dataset, "0.1", round_num, name) for name in (WITHIN_CLUSTER_DRIFT, TOTAL_DRIFT))
            text = f"within clusters {{1}}, total {{0}} ({_place(total)})"
            conditions.append(exceeds(total, within, text))
    return [
        Claim(
            "IV-B, Eq. (4)",
            "the updates drift less within clusters than over all clients (true of any clusters: see by how much)",
            f"{EARLY} at alpha 0.1 on both data sets",
            tuple(conditions),
        )
    ]


FEDSIKD_CLAIMS: tuple[Claim, ...] = (
    *_abstract(),
    *_accuracy_over_all_rounds(),
    *_loss_over_all_rounds(),
    *_first_rounds_mnist(),
    *_first_rounds_har(),
    *_drift(),
)
