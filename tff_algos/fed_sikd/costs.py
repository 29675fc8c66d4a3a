"""What a round of FedSiKD costs: bytes both ways, virtual seconds, and what the clients do for it."""

from typing import NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.protocol import ClientWork
from tff_algos.simulation.virtual_clock import compute_phases_s


class RoundCosts(NamedTuple):
    """What a round costs: bytes to and from all clients together, virtual seconds, and what the clients do for it."""

    bytes_down: int
    bytes_up: int
    seconds: float
    phases: list[ClientWork]


def compute_round_costs(
    data: FederatedData,
    config: FedSiKDConfig,
    trainers: np.ndarray,
    student_bytes: int,
    teacher_bytes: int,
    start_s: float = 0.0,
) -> RoundCosts:
    """Bytes and virtual seconds of a round: the teachers' phase, then the students' phase.

    Args:
      data: the federation.
      config: settings.
      trainers: indices of the clients that train a teacher.
      student_bytes: of one student.
      teacher_bytes: of one teacher, 0 if there is none.
      start_s: virtual time at which it begins.
    """
    everyone = np.arange(len(data.clients))
    teacher_examples = np.array([count_examples_trained(config.teacher_training, n) for n in data.num_train[trainers]])
    student_examples = np.array([count_examples_trained(config.student, n) for n in data.num_train])
    down = np.full(len(everyone), student_bytes + teacher_bytes)
    if config.teacher == "leader":
        down[trainers] -= teacher_bytes  # a leader has trained its cluster's teacher itself
    phases = [
        ClientWork(trainers, teacher_examples, bytes_up=teacher_bytes),
        ClientWork(everyone, student_examples, down, student_bytes),
    ]
    return RoundCosts(
        bytes_down=int(down.sum()),
        bytes_up=len(everyone) * student_bytes + len(trainers) * teacher_bytes,
        seconds=compute_phases_s(data.profiles, phases, start_s),
        phases=phases,
    )
