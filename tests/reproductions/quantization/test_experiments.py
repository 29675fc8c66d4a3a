"""The experiments of quantization are FedSiKD's, once in floats and once trained for 8-bit integers."""

import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.settings.run_config import flag_values


def resolve(name, *arguments):
    return flag_values(resolve_experiment(get_experiment(name), arguments))


@pytest.mark.parametrize("dataset", ["mnist", "har"])
def test_a_quantized_run_differs_from_its_twin_in_quantization_alone(dataset):
    quantized = resolve(f"quantization/fedsikd_{dataset}_quantization_qat")
    twin = resolve(f"quantization/fedsikd_{dataset}_quantization", f"--rounds={quantized['rounds']}")
    assert quantized == twin | {"quantize": "qat"}


@pytest.mark.parametrize("dataset", ["mnist", "har"])
def test_it_clusters_and_distils_and_trains_as_long_as_fedavg(dataset):
    values = resolve(f"quantization/fedsikd_{dataset}_quantization")
    assert values["num_clusters"] != 1 and values["label_weight"] <= 0.8
    fedavg = resolve(f"fedsikd/fedavg_{dataset}_alpha{values['dirichlet_alpha']}")
    for name in ("epochs", "steps", "optimizer", "learning_rate", "momentum"):
        assert values[f"student_{name}"] == fedavg[name], name
    shared = values.keys() & fedavg.keys() - {"algo", "rounds"}
    assert {name for name in shared if values[name] != fedavg[name]} == set()
