"""bfloat16 in a federated round: the models that are averaged are float32, and a round can be repeated."""

import numpy as np
import pytest
from small_formats import make_spec

from tff_algos.fed_avg.config import FedAvgConfig
from tff_algos.fed_avg.process import build_fed_avg_process
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.process import build_fed_sikd_process
from tff_algos.settings.local_training import LocalTrainingConfig

TRAINING = LocalTrainingConfig(epochs=2, batch_size=8)


@pytest.mark.parametrize("algorithm", ["fed_avg", pytest.param("fed_sikd", marks=pytest.mark.slow)])
def test_a_round_is_in_float32_and_repeats(tff_runtime, make_federation, algorithm):
    data = make_federation([9, 12, 30])
    states = []
    for precision in ("bfloat16", "float32"):
        spec = make_spec("perceptron", data.format.input_shape, precision=precision)
        if algorithm == "fed_avg":
            process = build_fed_avg_process(spec, data, FedAvgConfig(training=TRAINING), 0)
        else:
            config = FedSiKDConfig(student=TRAINING, teacher_training=TRAINING, num_clusters=2)
            process = build_fed_sikd_process(spec, data, config, 0)
        states += [process.next(process.initialize()).state for _ in range(1 + (precision == "bfloat16"))]
    first, again, whole = (process.get_models(state)["global"] for state in states)
    assert {array.dtype for array in first} == {np.dtype(np.float32)}
    for a, b, c in zip(first, again, whole, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
        np.testing.assert_allclose(a, c, atol=0.05)
