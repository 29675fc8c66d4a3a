"""Accuracy by archetype, and models that several meta-archetypes use."""

import numpy as np

from datasets.federated_data import Archetypes
from launch.runs.archetype_metrics import compute_archetype_metrics, name_archetype_metrics

KINDS = Archetypes(("a", "b", "c"), (0, 0, 1), (0, 0, 1, 2, 2))


def test_the_last_clients_of_the_archetypes_may_not_have_taken_part():
    """Four of five took part; `model_1` is used by archetypes 1 and 2, of two meta-archetypes."""
    models = ["model_0", "model_0", "model_1", "model_1", "model_1"]
    accuracy, before = np.array([0.5, 0.7, np.nan, 1.0]), np.array([0.5, 0.5, np.nan, 0.6])
    found = compute_archetype_metrics(KINDS, models, accuracy, before)
    assert list(found) == list(name_archetype_metrics(KINDS))
    change, mixed, *means = found.values()
    assert np.isclose(change, 0.2) and mixed == 1
    assert np.allclose(means[0::2], [0.6, 1.0]) and not np.isfinite(np.array([means[1]], float)).any()
