"""What a file puts out, compared with Keras's model."""

import numpy as np

from launch.tflite.file_outputs import compute_agreement
from models.task import build_task

NAN = np.nan


def test_outputs_with_a_nan_agree_with_nothing():
    """The largest of NaNs is the first, so that a file of NaNs would agree wherever Keras says the first class."""
    task = build_task("classification", 2)
    outputs = np.array([[NAN, NAN], [2, 1], [NAN, NAN], [0, 1]], np.float32)
    reference = np.array([[1, 0], [3, 0], [NAN, 1], [5, 1]], np.float32)
    assert compute_agreement(task, outputs, reference) == 0.25
    assert compute_agreement(build_task("regression", 1), outputs, reference) is None
