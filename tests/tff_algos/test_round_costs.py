"""Bytes and virtual seconds of a round by hand; that rounds cost what is listed is in `test_protocol`."""

import numpy as np
import pytest

from tff_algos.rounds.aggregation import sum_bytes
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.simulation.virtual_clock import compute_phases_s

ONE = {"training": LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=0.1)}
TWO = {"training": LocalTrainingConfig(epochs=2, optimizer="sgd", learning_rate=0.1)}
STUDENTS = {"student": ONE["training"], "label_weight": 1.0, "num_clusters": 2}

TEACHERS = {**STUDENTS, "teacher_training": ONE["training"], "label_weight": 0.5}


@pytest.mark.parametrize(
    ("algorithm", "rounds_done", "fields", "bytes_down", "bytes_up", "seconds"),
    [
        ("fedavg", 0, ONE, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.12),
        # 12 and 3 weights at 3 bits are 5 and 2 bytes, and each tensor's range takes 8.
        ("fedavg", 0, {**ONE, "compression": CompressionConfig(bits=3)}, 69, 69, 0.023 + 0.09 + 0.046),
        ("fednova", 0, ONE, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.12),
        ("ditto", 0, ONE, 3 * 60, 3 * 60, 0.06 + 2 * 0.09 + 0.12),  # two models are trained and one is sent
        ("apfl", 0, TWO, 3 * 60, 3 * 60, 0.06 + 2 * 0.18 + 0.12),
        ("pfedme", 0, {**TWO, "inner_steps": 5}, 3 * 60, 3 * 60, 0.06 + 5 * 0.18 + 0.12),
        ("partial", 0, {**ONE, "personal": "*/bias"}, 3 * 48, 3 * 48, 0.048 + 0.09 + 0.096),  # the kernel alone travels
        (
            "partial",  # two epochs of the bias before that of the kernel
            0,
            {**ONE, "personal": "*/bias", "schedule": "head_first", "head_epochs": 2},
            3 * 48,
            3 * 48,
            0.048 + 3 * 0.09 + 0.096,
        ),
        ("scaffold", 0, ONE, 3 * 120, 3 * 120, 0.12 + 0.09 + 0.24),  # a variate travels beside the model, both ways
        ("moon", 0, ONE, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.06 + 0.12),  # two passes are two thirds of the examples
        ("moon", 0, {**ONE, "contrast_weight": 0.0}, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.12),
        ("ifca", 0, {**ONE, "num_models": 3}, 3 * 180, 3 * 60, 0.18 + 0.09 + 0.12),
        ("fl_hc", 0, ONE, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.12),
        ("fl_hc", 1, ONE, 2 * 3 * 60, 2 * 3 * 60, 2 * (0.06 + 0.09 + 0.12)),  # the clustering round has two exchanges
        # All get the model twice in the first round, and a score of 4 bytes is sent with it.
        ("fedcd", 0, {**ONE, "cohort_size": 3}, 2 * 3 * 60, 3 * 64, 0.09 + 0.128 + 0.12),
        ("fedcd", 1, {**ONE, "cohort_size": 3}, 3 * 60, 3 * 64, 0.09 + 0.128 + 0.06),
        # Before the first round the statistics: 3 float64 a client, of each of 4 features, or beside a noisy count.
        ("fedsikd", 0, STUDENTS, 3 * 60, 3 * 60 + 72, 0.06 + 0.09 + 0.12),
        ("fedsikd", 0, {**STUDENTS, "statistics": "per_feature"}, 3 * 60, 3 * 60 + 288, 0.06 + 0.09 + 0.12),
        ("fedsikd", 0, {**STUDENTS, "privacy_epsilon": 2.0}, 3 * 60, 3 * 60 + 96, 0.06 + 0.09 + 0.12),
        ("fedsikd", 1, STUDENTS, 3 * 60, 3 * 60, 0.06 + 0.09 + 0.12),
        # A teacher has 67 floats, 268 bytes. All train and get it.
        (
            "fedsikd",
            1,
            {**TEACHERS, "teacher": "cluster"},
            3 * 328,
            3 * 328,
            (0.09 + 0.536) + (0.328 + 0.09 + 0.12),
        ),
        # Clients 1 and 2 are leaders, and 0 alone gets a teacher. Client 1 is the slower one: 4 examples at 200 a
        # second, 1000 bytes/s up.
        ("fedsikd", 1, TEACHERS, 3 * 60 + 268, 3 * 60 + 2 * 268, (0.02 + 0.268) + (0.328 + 0.09 + 0.12)),
    ],
)
def test_bytes_and_seconds_by_hand(
    build_algorithm, make_federation, algorithm, rounds_done, fields, bytes_down, bytes_up, seconds
):
    """A model of 15 floats; client 0 is the slowest: 1000 bytes/s down, 9 examples at 100 a second, 500 bytes/s up."""
    data, cohort = make_federation([9, 4, 14]), np.arange(3)
    process = build_algorithm(algorithm, data, **fields)
    state = process.initialize()._replace(round_num=np.int32(rounds_done))
    phases = process.list_phases(state, cohort)
    assert sum_bytes([*phases, *process.list_untimed(state, cohort)]) == (bytes_down, bytes_up)
    assert compute_phases_s(data.profiles, phases, 0.0) == pytest.approx(seconds)
