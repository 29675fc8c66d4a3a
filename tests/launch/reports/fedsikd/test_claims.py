"""The paper's claims against its own tables: which of them the printed numbers contradict, found by reading them."""

import numpy as np
import pytest

from launch.reports.claims import FAILS, HOLDS, UNKNOWN, decide
from launch.reports.fedsikd.claims import ALPHAS, FEDSIKD_CLAIMS, LAST_ROUND, NAMES
from launch.reports.fedsikd.report import list_printed_values
from launch.reports.registry import PAPERS

# Printed at round 5 and alpha 0.1: MNIST 74.83 against 65.18 % (no lead of 18 points), HAR 55.55 against 60.10 %.
# Table V: FL+HC is 3.61 and 3.48 ahead at alpha 0.5 and 2. Table VI: FL+HC leads in round 1. Table VIII: FL+HC's loss
# falls from 1.78 to 1.64 at alpha 0.5.
CONTRADICTED = {
    "FedSiKD is 25 % more accurate than the state of the art on HAR, highly skewed (round 5)",
    "FedSiKD is 18 % more accurate than the state of the art on MNIST, highly skewed (round 5)",
    "HAR: FL+HC's loss is 2 to 3 below FedSiKD's, except at a low alpha, where they are alike",
    "MNIST: FedSiKD outperforms the baselines",
    "MNIST, highly skewed: FedSiKD outperforms the baselines",
    "HAR, highly skewed: FedSiKD outperforms the baselines",
    "HAR, alpha 0.5: the others' loss rises or does not improve",
}


@pytest.fixture(scope="module")
def printed():
    return {value.cell: value.value for value in list_printed_values(PAPERS["fedsikd"].read_printed_rows())}


def test_texts_are_unique():
    assert len({claim.text for claim in FEDSIKD_CLAIMS}) == len(FEDSIKD_CLAIMS)


def test_the_printed_tables_contradict_these_claims(printed):
    verdicts = {claim.text: decide(claim, printed.get).verdict for claim in FEDSIKD_CLAIMS}
    assert {text for text, verdict in verdicts.items() if verdict == FAILS} == CONTRADICTED


def test_the_headline_claims_agree_with_the_printed_tables(printed):
    verdicts = {claim.text: decide(claim, printed.get).verdict for claim in FEDSIKD_CLAIMS}
    assert verdicts["MNIST, alpha 0.1: from 51 % to almost 75 %"] == HOLDS
    assert verdicts["HAR, alpha 0.1: from 31 % to 55 %"] == HOLDS
    assert verdicts["MNIST, alpha 2: better than FL+HC and FedAvg, less than 1 % below RandomCluster"] == HOLDS
    assert verdicts["MNIST, alpha 1: FedSiKD outperforms all others"] == UNKNOWN  # Figure 3 has no printed numbers


def test_every_claim_is_about_a_cell_of_the_experiments():
    for claim in FEDSIKD_CLAIMS:
        for cell in claim.cells:
            assert cell.dataset in LAST_ROUND
            assert cell.setting in ALPHAS
            assert cell.algo in NAMES
            assert 1 <= cell.round_num <= LAST_ROUND[cell.dataset]


def test_every_claim_can_fail():
    generator = np.random.default_rng(0)
    for claim in FEDSIKD_CLAIMS:
        draws = ({cell: generator.uniform() for cell in sorted(claim.cells)} for _ in range(50))
        assert FAILS in {decide(claim, draw.get).verdict for draw in draws}, claim.text
