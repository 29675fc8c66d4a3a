"""How much devices of different speed count in the model, by the base of the age weights.

Where each device has a training time of its own, T_k = u T_max with u in (0, 1], and the server aggregates every
T_max / 4, a device is ready at every m-th aggregation, m = ceil(4 u) = 1, 2, 3 or 4. Its update then has the age m - 1:
the server has made m - 1 models since it handed out the start. All devices start together and get the new model
whenever they are ready, so who is ready repeats every 12 aggregations. Eq. (14) divides the weights of an aggregation
by their sum: at aggregation t a device counts gamma^(m-1) / sum of gamma^(h-1) over the h that divide t, if m does. Its
share is the mean of that over the 12.

The shares are of groups with equally many devices. Random scheduling draws from all that are ready alike; that it draws
30 of them, so that the groups' numbers vary, is left out.
"""

import math
from collections.abc import Sequence

from launch.papers.async_periodic.claims import OLDER
from launch.papers.engine.markdown import Section, Table, format_table

AGGREGATIONS = 4  # in T_max
CYCLE = math.lcm(*range(1, AGGREGATIONS + 1))  # aggregations, after which the same devices are ready again
GAMMAS = (0.5, 1.0, *OLDER.values())
HOW_COUNTED = """\
Slow devices hold digits of their own here, and each device keeps its speed. With T = T_max / 4, a device that takes m
periods is ready at every m-th aggregation, with an update of age m - 1. The weights of an aggregation are divided by
their sum, Eq. (14). The fastest are alone at a third of the aggregations, and have all the weight there, whatever gamma
is: so no gamma makes the shares even. Of the bases below 2 comes nearest, and 0.5 all but leaves the slowest out.
"""


def compute_shares(gamma: float, periods: Sequence[int] = range(1, AGGREGATIONS + 1)) -> list[float]:
    """The shares of groups of equally many devices that take so many periods each; they sum to 1."""
    shares = dict.fromkeys(periods, 0.0)
    for aggregation in range(1, math.lcm(*periods) + 1):
        weights = {m: gamma ** (m - 1) for m in periods if aggregation % m == 0}
        for m, weight in weights.items():
            shares[m] += weight / sum(weights.values())
    return [share / sum(shares.values()) for share in shares.values()]


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
