"""A histogram of whole numbers as lines of text."""

import numpy as np

MOST_BINS = 10
WIDE = 20  # times the least number, from which on bins grow


def choose_edges(values: np.ndarray) -> list[int]:
    """The starts of the bins, ascending, and one past the last: a bin a number if there are few, else of equal width.

    Where the largest is far above the least, each bin is a power of 2 or of a larger number times the one before.

    Args:
      values: whole numbers of at least 0, at least one.
    """
    low, high = int(values.min()), int(values.max())
    if high - low < MOST_BINS:
        return list(range(low, high + 2))
    if high > WIDE * max(low, 1):
        first = max(low, 1)
        base = next(base for base in (2, 4, 10, 100, 10**6) if first * base**MOST_BINS > high)
        edges = [*range(low, first), *(first * base**power for power in range(MOST_BINS + 1))]
        return [*(edge for edge in edges if edge <= high), high + 1]
    step = -(-(high + 1 - low) // MOST_BINS)
    return [*range(low, high + 1, step), low + step * -(-(high + 1 - low) // step)]


def draw_histogram(values: np.ndarray, width: int, bar: str) -> list[str]:
    """Lines of range, bar and count, from the least to the largest.

    Args:
      values: as in `choose_edges`.
      width: of the longest bar, in characters.
      bar: the character of bars.
    """
    edges = choose_edges(values)
    counts, _ = np.histogram(values, np.array(edges, np.float64))
    names = [
        f"{low:,}" if low == high else f"{low:,} to {high:,}"
        for low, high in zip(edges[:-1], [edge - 1 for edge in edges[1:]], strict=True)
    ]
    longest, wide = max(map(len, names)), len(f"{counts.max():,}")
    lengths = [-(-int(count) * width // int(counts.max())) for count in counts]  # what is not 0 is seen
    rows = zip(names, lengths, counts, strict=True)
    return [f"{name:>{longest}}  {count:>{wide},}  {bar * length}".rstrip() for name, length, count in rows]
