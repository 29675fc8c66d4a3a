"""The devices of FedCD's experiments find their images in the whole of CIFAR-10; without it the test is skipped."""

import dataclasses
import os

import numpy as np
import pytest

from datasets.archetypes import draw_clients
from datasets.catalog import DatasetOptions, load_arrays
from datasets.errors import DatasetError
from datasets.partition_settings import ArchetypeSettings
from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, match_experiments
from reproductions.fedcd.measures import AUTHORS_SMALL, WHOLE_DATA, find_place

# Experiments of the same size, partition and bias draw the same devices, FedAvg's beside FedCD's among them.
STEMS = sorted(
    each.name
    for each in match_experiments("fedcd/*_cifar10_*")
    if (place := find_place(each.name)).preset in WHOLE_DATA or place.preset == AUTHORS_SMALL
)


@pytest.fixture(scope="module")
def cifar10():
    try:
        arrays = load_arrays("cifar10", DatasetOptions(data_dir=os.environ.get("FL_DATA_DIR", "")))
    except DatasetError as error:
        pytest.skip(f"no CIFAR-10: {error}")
    if len(arrays.train_y) < 50_000:
        pytest.skip("CIFAR-10 is a subset here; the sizes are for all of its 60,000 images")
    return arrays


def get_settings(stem):
    config = resolve_experiment(get_experiment(stem))
    names = [field.name for field in dataclasses.fields(ArchetypeSettings)]
    return config.partition, ArchetypeSettings(**{name: getattr(config, name) for name in names})


def list_different(stems):
    """One of the experiments for each kind of devices."""
    return list({get_settings(stem): stem for stem in reversed(stems)}.values())


@pytest.mark.parametrize("stem", list_different(STEMS))
def test_the_devices_find_their_images(stem, cifar10):
    partition, settings = get_settings(stem)
    for seed in range(3):
        clients = draw_clients(cifar10, partition, settings, seed)
        assert {len(client["train"]) for client in clients} == {settings.train_per_client}
        assert {len(client["validation"]) for client in clients} == {settings.validation_per_client}
        assert {len(client["test"]) for client in clients} == {settings.test_per_client}


def test_fedavg_and_variants_are_among_them():
    assert {
        "fedavg_cifar10_hierarchical_authors_full",
        "fedcd_cifar10_hierarchical_authors_shared",
        "fedcd_cifar10_hierarchical_paper_bias0.8",
        "fedcd_cifar10_hierarchical_authors_small_bias0.2",
    } <= set(STEMS)


def test_what_the_papers_devices_need_of_a_label(cifar10):
    """With a fifth for validation there are 4,000 of a label: enough for hierarchical devices, not for ten draws."""
    most = {}
    for stem in ("fedcd_cifar10_hierarchical_paper", "fedcd_cifar10_hypergeometric_paper"):
        partition, settings = get_settings(stem)
        clients = draw_clients(cifar10, partition, settings, 0)
        most[partition] = max(np.bincount(cifar10.train_y[client["train"]]).max() for client in clients)
    assert most["hypergeometric"] == 4162 and most["hierarchical"] <= 3500
    partition, settings = get_settings("fedcd_cifar10_hypergeometric_paper")
    with pytest.raises(DatasetError, match="needs 4,162 train examples of label 9"):
        draw_clients(cifar10, partition, dataclasses.replace(settings, validation_pool=0.2), 0)
