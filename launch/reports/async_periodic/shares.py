"""How much devices of different speed count in the model, to first order, by the base of the age weights.

Where each device has a training time of its own, T_k = u T_max with u in (0, 1], and the server aggregates every
T_max / 4, a device is ready at every m-th aggregation, m = ceil(4 u) = 1, 2, 3 or 4. Its update then has the age m - 1:
the server has made m - 1 models since it handed out the start. With random scheduling all ready devices are scheduled
alike. So a device counts in proportion to gamma^(m-1) / m: that often, with that weight.

It is of first order since it leaves out that the weights of each aggregation are divided by their sum, which varies.
The shares would be even with gamma^(m-1) = m: gamma = 2, 1.73 and 1.59 for m = 2, 3 and 4.
"""

from collections.abc import Sequence

from launch.reports.async_periodic.claims import OLDER
from launch.reports.markdown import Section, Table, format_table

AGGREGATIONS = 4  # in T_max
GAMMAS = (0.5, 1.0, *OLDER.values())
HOW_COUNTED = """\
Slow devices hold digits of their own here, and each device keeps its speed. With T = T_max / 4, a device that takes m
periods is ready at every m-th aggregation, with an update of age m - 1. So it counts in proportion to gamma^(m-1) / m,
to first order. Of the bases below, 1.5 comes nearest to even shares; 2 over-corrects, so that the slowest quarter of
the devices counts more than the fastest, and 0.5 all but leaves them out.
"""


def compute_shares(gamma: float, periods: Sequence[int] = range(1, AGGREGATIONS + 1)) -> list[float]:
    """The shares of groups of equally many devices that take so many periods each; they sum to 1."""
    counts = [gamma ** (m - 1) / m for m in periods]
    return [count / sum(counts) for count in counts]


def build_shares() -> Section:
    """A row for each gamma, with the share of each quarter of the devices and the largest over the smallest."""
    columns = ["gamma", *(f"{m} period{'s' if m > 1 else ''} (%)" for m in range(1, AGGREGATIONS + 1))]
    rows = []
    for gamma in GAMMAS:
        shares = compute_shares(gamma)
        cells = [f"{100 * share:.0f}" for share in shares]
        rows.append([f"{gamma:g}", *cells, f"{max(shares) / min(shares):.1f}"])
    table = Table([*columns, "largest over smallest"], rows)
    heading = "What each quarter of the devices counts where each keeps its speed: a count, no run"
    return Section(heading, table, f"{HOW_COUNTED}\n{format_table(table)}")
