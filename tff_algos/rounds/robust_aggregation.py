"""Aggregators that a minority of clients, whatever it sends, cannot lead astray. NumPy and SciPy, float64 inside.

| rule | paper | clients' weights |
|---|---|---|
| coordinate-wise median | Yin et al. 2018, Definition 1 | not used |
| trimmed mean | Yin et al. 2018, Definition 2 | not used |
| Krum, multi-Krum | Blanchard et al. 2017 | not used |
| geometric median | Pillutla et al. 2022 (RFA), smoothed Weiszfeld algorithm | used, as in the paper |
| centred clipping | Karimireddy et al. 2021, Eq. (CC) | not used, as in the paper |

A weight that a client chooses itself, such as its number of examples, is a way to lead the server astray. So the
geometric median is robust only as long as clients that send wrong updates have less than half of the weight.

Each rule keeps the memory small: it takes some of the weights at a time, or one client at a time.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial.distance import pdist, squareform

from tff_algos.rounds.list_aggregator import ListAggregator, count_weights

BLOCK_NUMBERS = 2**20  # of all clients together, that are looked at at a time as float64
CONVERGED = 1e-6  # relative gain below which the geometric median is found, as in RFA's Section 5
FAR = 1000.0  # times the length that more than half of the weight stays within


def _iterate_blocks(updates: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Columns of the updates, some at a time: where they are, and their values as float64."""
    num_clients, num_weights = updates.shape
    # In blocks, since all updates as float64 would need twice the memory of the list.
    width = max(1, BLOCK_NUMBERS // num_clients)
    for start in range(0, num_weights, width):
        columns = slice(start, min(start + width, num_weights))
        yield columns, updates[:, columns].astype(np.float64)


class MedianAggregator(ListAggregator):
    """The median of each weight alone; of an even number of clients the mean of the two in the middle.

    All clients count alike. No column of its own.
    """

    def combine(self, updates, weights, state):
        median = np.empty(updates.shape[1], np.float32)
        for columns, values in _iterate_blocks(updates):
            median[columns] = np.median(values, axis=0)
        return median, state, {}


def count_trimmed(share: float, num_clients: int) -> int:
    """How many clients the trimmed mean leaves out at each end."""
    return int(np.floor(share * num_clients + 1e-9))  # 0.29 * 100 is 28.999...


class TrimmedMeanAggregator(ListAggregator):
    """The equal mean of each weight, without the clients with the largest and the smallest values.

    At each end floor(share * clients) values are left out; share 0 is the equal mean. All clients count alike. Column:
    `num_trimmed`, values left out at both ends together.

    Args:
      share: at each end, at least 0 and below 0.5, so that something is left of any number of clients.
    """

    def __init__(self, share: float):
        self.share = share

    def combine(self, updates, weights, state):
        num_clients, num_weights = updates.shape
        trimmed = count_trimmed(self.share, num_clients)
        mean = np.empty(num_weights, np.float32)
        for columns, values in _iterate_blocks(updates):
            rest = np.sort(values, axis=0)[trimmed : num_clients - trimmed] if trimmed else values
            mean[columns] = rest.mean(axis=0)
        return mean, state, {"num_trimmed": 2 * trimmed}


def compute_squared_distances(updates: np.ndarray) -> np.ndarray:
    """Squared L2 distance between any two updates, float64, shape (clients, clients), exactly 0 between equal ones."""
    num_clients = len(updates)
    total = np.zeros(num_clients * (num_clients - 1) // 2)
    for _, values in _iterate_blocks(updates):
        # Not |a|^2 + |b|^2 - 2ab, which is not exactly 0 between equal updates.
        total += pdist(values, "sqeuclidean")
    return squareform(total)


def compute_krum_scores(squared_distances: np.ndarray, num_byzantine: int) -> np.ndarray:
    """The sum of each update's squared distances to its clients - num_byzantine - 2 nearest others, but at least one.

    Args:
      squared_distances: float64, shape (clients, clients).
      num_byzantine: f.

    Returns:
      float64, shape (clients,); 0 for a single client.
    """
    num_clients = len(squared_distances)
    num_neighbours = min(max(num_clients - num_byzantine - 2, 1), num_clients - 1)
    # The nearest one of all is the update itself, at distance 0; that of an equal one is 0 as well.
    return np.sort(squared_distances, axis=1)[:, 1 : num_neighbours + 1].sum(axis=1)


class KrumAggregator(ListAggregator):
    """The update with the lowest Krum score, or the equal mean of those with the lowest.

    With equal scores it is the client that comes first. In a round that rejected updates have left with fewer than
    2 f + 3 clients, f is the largest number that they allow, at least 0; of one or two clients it is then the first.
    All clients count alike. Columns: `krum_chosen`, which update of the round is the best, counted from 0, and
    `krum_num_byzantine`, the f of the round.

    Args:
      num_byzantine: f, clients that may send anything.
      num_chosen: m, updates that are averaged, at most as many as there are; 1 is Krum; 0 means clients - f.
    """

    def __init__(self, num_byzantine: int, num_chosen: int = 1):
        self.num_byzantine, self.num_chosen = num_byzantine, num_chosen

    def combine(self, updates, weights, state):
        num_clients = len(updates)
        # Updates that were rejected can leave a round smaller than the settings were checked for.
        num_byzantine = min(self.num_byzantine, max((num_clients - 3) // 2, 0))
        scores = compute_krum_scores(compute_squared_distances(updates), num_byzantine)
        order = np.argsort(scores, kind="stable")
        # In the order of the clients, so that the sum rounds alike whatever the scores are.
        chosen = np.sort(order[: self.num_chosen or num_clients - num_byzantine])
        mean = np.zeros(updates.shape[1])
        for client in chosen:
            mean += updates[client]
        columns = {"krum_chosen": int(order[0]), "krum_num_byzantine": num_byzantine}
        return (mean / len(chosen)).astype(np.float32), state, columns


def _measure_distances(updates: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """L2 distance of each update from the centre, float64, shape (clients,)."""
    return np.array([np.linalg.norm(update - centre) for update in updates])


def _add_weighted(updates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum of the updates, each times its weight, float64; one client at a time."""
    total = np.zeros(updates.shape[1])
    for update, weight in zip(updates, weights, strict=True):
        total += weight * update.astype(np.float64)
    return total


def _draw_in(updates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The updates, those shortened that are more than `FAR` times as long as more than half of the shares are."""
    norms = _measure_distances(updates, np.zeros(updates.shape[1]))
    order = np.argsort(norms, kind="stable")
    usual = norms[order][np.argmax(np.cumsum(shares[order]) > 0.5)] or 1.0  # where these are zeros, weights' own size
    if norms.max() <= FAR * usual:
        return updates
    factors = np.minimum(FAR * usual / np.maximum(norms, usual), 1)
    return np.stack([(factor * row).astype(np.float32) for factor, row in zip(factors, updates, strict=True)])


class GeometricMedianAggregator(ListAggregator):
    """The point whose weighted sum of distances to the updates is the least, by the smoothed Weiszfeld algorithm.

    What is `FAR` longer than the others is shortened to that first: the point itself feels only its direction, but
    the mean, and what a step must gain, are as large as a client likes. It begins at the weighted mean. In a step,
    each update gets its client's weight divided by its distance from the point (at least `smoothing`), and the point
    moves to the mean with these. It ends when a step lowers the sum by less than a millionth. The clients' weights
    are used; if all are 0, they count alike. Column: `geometric_median_steps`, 0 where all updates lie within
    `smoothing` of their mean.

    Args:
      max_steps: at least 1.
      smoothing: nu, above 0.
    """

    def __init__(self, max_steps: int, smoothing: float):
        self.max_steps, self.smoothing = max_steps, smoothing

    def combine(self, updates, weights, state):
        shares = weights.astype(np.float64)
        shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(updates), 1 / len(updates))
        updates = _draw_in(updates, shares)
        point = _add_weighted(updates, shares)
        distances = _measure_distances(updates, point)
        steps = 0
        while steps < self.max_steps and distances.max() > self.smoothing:
            factors = shares / np.maximum(distances, self.smoothing)
            point = _add_weighted(updates, factors / factors.sum())
            previous, distances = shares @ distances, _measure_distances(updates, point)
            steps += 1
            if previous - shares @ distances <= CONVERGED * previous:
                break
        return point.astype(np.float32), state, {"geometric_median_steps": steps}


class CentredClippingAggregator(ListAggregator):
    """The centre moved by the mean of the updates' differences from it, each clipped to a radius.

    v <- v + mean_i (x_i - v) min(1, radius / |x_i - v|), some times over. The centre stays from round to round (zeros
    before the first) and is the aggregator's state, float32, shape (num_weights,), one a group. All clients count
    alike. Column: `clipped_share`, of the clients in the last pass.

    Args:
      radius: tau, above 0.
      iterations: passes, at least 1.
    """

    def __init__(self, radius: float, iterations: int):
        self.radius, self.iterations = radius, iterations

    def initialize(self, shapes: Sequence[tuple[int, ...]], num_groups: int) -> tuple:
        return tuple(np.zeros(count_weights(shapes), np.float32) for _ in range(num_groups))

    def combine(self, updates, weights, state):
        centre, clipped = np.asarray(state, np.float64), 0.0
        for _ in range(self.iterations):
            distances = _measure_distances(updates, centre)
            factors = self.radius / np.maximum(distances, self.radius) / len(updates)
            # sum_i f_i (x_i - v) = sum_i f_i x_i - v sum_i f_i
            centre = centre + _add_weighted(updates, factors) - centre * factors.sum()
            clipped = float(np.mean(distances > self.radius))
        centre = centre.astype(np.float32)
        return centre, centre, {"clipped_share": clipped}
