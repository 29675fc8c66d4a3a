"""Section V-C of the FedSiKD paper: the first five rounds, Tables VI to IX."""

from launch.papers.engine.claims import Claim
from launch.papers.fedsikd.comparisons import (
    CLOSE,
    CLOSE_LOSS,
    EARLY,
    HARDLY_FALLS,
    LOSS,
    OTHERS,
    SMALL_LOSS_CHANGE,
    beats,
    cell_of,
    changes,
    falls,
    grows_more,
    is_ahead,
    is_near,
    lead_early,
    others_lose_ground,
)
from launch.papers.fedsikd.measures import (
    ALPHAS,
    DATA_NAMES,
    FEDAVG,
    FEDSIKD,
    FIRST_ROUNDS,
    FL_HC,
    MNIST,
    RANDOM_CLUSTER,
)

SECTION, SUMMARY = "V-C", "V-D"


def list_mnist_claims() -> list[Claim]:
    """On Tables VI and VII."""
    start, end = cell_of(MNIST, "0.1", 1), cell_of(MNIST, "0.1", 5)
    first_loss, fifth_loss = start._replace(metric=LOSS), end._replace(metric=LOSS)
    improving = [
        condition
        for alpha in ("0.5", "1")
        for condition in (changes(cell_of(MNIST, alpha, 5), 1), falls(cell_of(MNIST, alpha, 5, LOSS), 1))
    ]
    behind = [is_ahead(RANDOM_CLUSTER, cell_of(MNIST, "2", round_num), 0, 0.01) for round_num in FIRST_ROUNDS]
    return [
        Claim(
            SECTION,
            'MNIST: "These results clearly demonstrate that FedSiKD outperforms other baseline algorithms"',
            f"most accurate in {EARLY}, every alpha",
            lead_early(MNIST, ALPHAS),
        ),
        Claim(
            f"{SECTION}, {SUMMARY}",
            'MNIST: FedSiKD outperforms the others, "especially in highly skewed data distributions"',
            f"most accurate in {EARLY} at alpha 0.1",
            lead_early(MNIST, ["0.1"]),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 0.1: FedSiKD rises "from 51% to almost 75%"',
            f"rounds 1 and 5 {CLOSE}",
            (is_near(start, 0.51), is_near(end, 0.75)),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 0.1: "other methods either improve slowly or show no significant change in performance"',
            "FedSiKD gains more accuracy from round 1 to 5 than each of them",
            tuple(grows_more(end, 1, other) for other in OTHERS),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 0.1: FedSiKD\'s loss "starts at 1.45 and decreases to 1 by the fifth round"',
            f"rounds 1 and 5 {CLOSE_LOSS}",
            (is_near(first_loss, 1.45), is_near(fifth_loss, 1.0)),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 0.1: the loss of the others "either increases or shows minimal improvement"',
            HARDLY_FALLS,
            others_lose_ground(MNIST, "0.1", SMALL_LOSS_CHANGE),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 0.5 and 1: "significant improvements toward accuracy and reduction in loss in just a few '
            'rounds"',
            "FedSiKD is better in round 5 than in round 1, in accuracy and loss",
            tuple(improving),
        ),
        Claim(
            SECTION,
            'MNIST, alpha 2: "better results than FL+HC and FedAvg", RandomCluster ahead by "less than 1%"',
            f"accuracy in {EARLY}; RandomCluster ahead by 0 to 1 point",
            (*lead_early(MNIST, ["2"], (FL_HC, FEDAVG)), *behind),
        ),
    ]


def list_har_claims(dataset: str) -> list[Claim]:
    """On Tables VIII and IX, for one input of HAR."""
    name = DATA_NAMES[dataset]
    half = is_near(cell_of(dataset, "0.5", 1, LOSS), 0.96), is_near(cell_of(dataset, "0.5", 5, LOSS), 0.77)
    head_starts = {alpha: beats(cell_of(dataset, alpha, 1, algo=RANDOM_CLUSTER), FEDSIKD) for alpha in ("1", "2")}
    gains = tuple(grows_more(cell_of(dataset, "1", 5), 1, other) for other in OTHERS)
    close = is_ahead(RANDOM_CLUSTER, cell_of(dataset, "2", 5), -0.05, 0.05)
    losses = [falls(cell_of(dataset, alpha, 5, LOSS), 1) for alpha in ("1", "2")]
    losses += [condition for alpha in ("1", "2") for condition in others_lose_ground(dataset, alpha, 0.0)]
    return [
        Claim(
            SUMMARY,
            f'{name}: FedSiKD outperforms the others, "especially in highly skewed data distributions"',
            f"most accurate in {EARLY} at alpha 0.1",
            lead_early(dataset, ["0.1"]),
        ),
        *_list_levels(dataset),
        Claim(
            SECTION, f'{name}, alpha 0.5: the loss "drops from 0.96% to 0.77%"', f"rounds 1 and 5 {CLOSE_LOSS}", half
        ),
        Claim(
            SECTION,
            f'{name}, alpha 0.5: the loss of the others "either rises or demonstrates no improvement"',
            HARDLY_FALLS,
            others_lose_ground(dataset, "0.5", SMALL_LOSS_CHANGE),
        ),
        Claim(
            SECTION,
            f'{name}, alpha 1: FedSiKD "surpasses FL+HC and FedAvg in terms of accuracy increases"; RandomCluster '
            '"starts strong, but its growth" is less',
            "gain in accuracy from round 1 to 5; RandomCluster ahead in round 1",
            (*gains, head_starts["1"]),
        ),
        Claim(
            SECTION,
            f'{name}, alpha 2: FedSiKD "outperforms FL+HC and FedAvg"; RandomCluster "performs similarly [...] but '
            'starts with higher initial accuracy"',
            f"accuracy in {EARLY}; RandomCluster ahead in round 1, within 5 points in round 5",
            (*lead_early(dataset, ["2"], (FL_HC, FEDAVG)), head_starts["2"], close),
        ),
        Claim(
            SECTION,
            f'{name}, alpha 1 and 2: "the reduction in loss observed with FedSiKD [...] while the loss associated with '
            'all other algorithms is increasing"',
            "round 5 against round 1",
            tuple(losses),
        ),
    ]


def _list_levels(dataset: str) -> list[Claim]:
    """The numbers that the section gives for alpha 0.1."""
    name = DATA_NAMES[dataset]
    start, end = cell_of(dataset, "0.1", 1), cell_of(dataset, "0.1", 5)
    losses = is_near(start._replace(metric=LOSS), 3.14), is_near(end._replace(metric=LOSS), 2.06)
    return [
        Claim(
            SECTION,
            f'{name}, alpha 0.1: "increasing from 31% in the first round to 55% in the fifth round"',
            f"rounds 1 and 5 {CLOSE}",
            (is_near(start, 0.31), is_near(end, 0.55)),
        ),
        Claim(
            SECTION,
            f'{name}, alpha 0.1: "a decrease in test loss from 3.14% to 2.06%"',
            f"rounds 1 and 5 {CLOSE_LOSS}",
            losses,
        ),
    ]
