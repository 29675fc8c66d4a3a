"""What the clients do in a round of FedSiKD, from which its bytes, virtual seconds and energy follow."""

import numpy as np

from datasets.federated_data import FederatedData
from tff_algos.client.local_training import count_examples_trained
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.protocol import ClientWork


def list_round_phases(
    data: FederatedData, config: FedSiKDConfig, trainers: np.ndarray, student_bytes: int, teacher_bytes: int
) -> list[ClientWork]:
    """The teachers' phase, then the students' phase.

    Args:
      data: the federation.
      config: settings.
      trainers: indices of the clients that train a teacher.
      student_bytes: of one student.
      teacher_bytes: of one teacher, 0 if there is none.
    """
    everyone = np.arange(len(data.clients))
    teacher_examples = np.array([count_examples_trained(config.teacher_training, n) for n in data.num_train[trainers]])
    student_examples = np.array([count_examples_trained(config.student, n) for n in data.num_train])
    down = np.full(len(everyone), student_bytes + teacher_bytes)
    if config.teacher == "leader":
        down[trainers] -= teacher_bytes  # a leader has trained its cluster's teacher itself
    return [
        ClientWork(trainers, teacher_examples, bytes_up=teacher_bytes),
        ClientWork(everyone, student_examples, down, student_bytes),
    ]
