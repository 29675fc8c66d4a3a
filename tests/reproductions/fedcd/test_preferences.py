"""Which model devices prefer, and what a round takes beside FedAvg's: measures of made-up runs, by hand."""

import math

import pandas as pd
import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.measures import measure_preferences
from reproductions.fedcd.tables import list_findings

FEDCD = "fedcd_cifar10_hierarchical_cpu"


def lay_out(models):
    """The models of 30 devices, of which the first three are given."""
    return [*models, *[7] * 27]


@pytest.mark.parametrize(
    ("first_archetype", "agreement", "returning"),
    [
        ([[0, 0, 0]] * 40, 100, 0),
        ([[0, 0, 1]] * 40, 90, 0),  # one of ten archetypes never agrees
        ([[0, 0, 0]] * 20 + [[4, 4, 4]] * 10 + [[0, 0, 0]] * 10, 100, 1),
        ([[0, 0, 0]] * 20 + [[4, 4, 4]] * 20, 100, 0),  # it leaves and stays away
        ([[0, 0, 0]] * 20 + [[0, 4, 5]] * 10 + [[0, 0, 0]] * 10, 97.5, 0),  # no two agree: still the last
        ([[0, 0, 0]] * 20 + [[4, 4, 0]] * 10 + [[0, 0, 4]] * 10, 95, 1),
    ],
)
def test_agreement_and_return(tmp_path, write_archetype_run, write_preferences, first_archetype, agreement, returning):
    """Rounds 1 to 5, before the first milestone, do not count; nor do those after the 45th."""
    write_preferences(
        write_archetype_run(tmp_path, FEDCD, [0.5] * 47),
        [
            lay_out(each)
            for each in [[1, 2, 3], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], *first_archetype, *[[2, 3, 4]] * 2]
        ],
    )
    (run,) = collect_runs(tmp_path)[0]
    assert measure_preferences(run, 45) == pytest.approx({"agreement": agreement, "returning": returning})


def test_a_log_that_is_missing_or_ends_early_says_nothing(tmp_path, write_archetype_run, write_preferences):
    run_dir = write_archetype_run(tmp_path, FEDCD, [0.5] * 45)
    (run,) = collect_runs(tmp_path)[0]
    assert measure_preferences(run, 45) == {}
    write_preferences(run_dir, [lay_out([0, 0, 0])] * 44)
    assert measure_preferences(run, 45) == {}


def test_ratios_of_what_both_have():
    """Of seed 0 both moved something, FedCD's alone was timed; of seed 1 FedAvg moved nothing; seed 2 is FedCD's."""
    fedcd = {"algo": "fedcd", "seed": [0, 1, 2], "mb_per_round": [6.0, 6.0, 6.0], "s_per_round": 1.0}
    fedavg = {"algo": "fedavg", "seed": [0, 1, 3], "mb_per_round": [2.0, 0.0, 2.0], "s_per_round": math.nan}
    same = {"experiment": "", "preset": "cpu", "dataset": "hierarchical", "setting": "", "data": "", "variant": ""}
    same |= dict.fromkeys(["real_s", "virtual_s", "megabytes", "last_mb_per_round"], math.nan)
    same |= {"convergence": 14.0, "spent_until": 14, "is_exact": True}
    frame = pd.concat([pd.DataFrame(each | same) for each in (fedcd, fedavg)], ignore_index=True)
    found = list_findings(frame)["cpu"]
    ratios = {(cell.algo, cell.metric): by_seed for cell, by_seed in found.items() if cell.metric.endswith("_ratio")}
    assert ratios == {("fedcd", "mb_per_round_ratio"): {0: 3.0}}
