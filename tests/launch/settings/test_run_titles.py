"""Titles of runs from their flags."""

import ast
import dataclasses
import importlib.util
import pathlib

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import algorithm_fields, build_run_config, flag_values, shared_fields
from launch.settings.run_titles import describe_run, describe_split


@pytest.mark.parametrize(
    ("values", "run", "split"),
    [
        (
            {"algo": "fedsikd", "dataset": "mnist", "dirichlet_alpha": 0.1},
            "FedSiKD on MNIST, alpha 0.1, seed 0",
            "MNIST, dirichlet partition, alpha 0.1, seed 0",
        ),
        (
            {"algo": "fl_hc", "dataset": "har", "partition": "natural", "seed": 7},
            "FL+HC on HAR, natural partition, seed 7",
            "HAR, natural partition, seed 7",
        ),
        (
            {"algo": "fedavg", "partition": "shards"},
            "FedAvg on digits, shards partition, at most 2 labels a client, seed 0",
            "digits, shards partition, at most 2 labels a client, seed 0",
        ),
        (
            {"algo": "fedavg", "partition": "hierarchical"},
            "FedAvg on digits, hierarchical partition, bias 0.6 to 0.7, seed 0",
            "digits, hierarchical partition, bias 0.6 to 0.7, seed 0",
        ),
        (
            {"algo": "fedavg", "partition": "hierarchical", "bias_min": 0.5, "bias_max": 0.5},
            "FedAvg on digits, hierarchical partition, bias 0.5, seed 0",
            "digits, hierarchical partition, bias 0.5, seed 0",
        ),
    ],
)
def test_a_run_and_its_split_in_words(values, run, split):
    flags = flag_values(build_run_config(values))
    assert (describe_run(flags), describe_split(flags)) == (run, split)


def test_a_subset_is_named_in_the_titles():
    flags = flag_values(build_run_config({"algo": "fedavg", "dataset": "cifar10", "partition": "iid"}))
    assert describe_run(flags) == describe_run(flags, "cifar10") == "FedAvg on CIFAR-10, iid partition, seed 0"
    subset = "cifar10 subset (20 + 5 images)"
    assert describe_run(flags, subset) == "FedAvg on cifar10 subset (20 + 5 images), iid partition, seed 0"
    assert describe_split(flags, subset).startswith(subset)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"dataset": "npz", "npz": "data/tumours.npz"}, "FedAvg on tumours, alpha 0.5, seed 0"),
        ({"data": "/home/me/My table.csv"}, "FedAvg on My table, alpha 0.5, seed 0"),
        ({"data": "folder/of/clients/"}, "FedAvg on clients, alpha 0.5, seed 0"),
    ],
)
def test_ones_own_data_are_called_by_their_file(values, expected):
    flags = flag_values(build_run_config({"algo": "fedavg", **values, "partition": "dirichlet"}))
    assert describe_run(flags) == describe_run(flags, flags["dataset"]) == expected


@pytest.mark.parametrize("name", ALGORITHMS)
def test_builder_is_a_function_of_its_module(name):
    module, function = ALGORITHMS[name].builder.split(":")
    folder, _, file = module.rpartition(".")
    source = pathlib.Path(importlib.util.find_spec(folder).submodule_search_locations[0], f"{file}.py")
    names = [node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert function in names


@pytest.mark.parametrize("name", ALGORITHMS)
def test_fields_without_flag_exist(name):
    fields = {field.name for field in dataclasses.fields(ALGORITHMS[name].config_class)}
    assert ALGORITHMS[name].fields_without_flag <= fields


def test_no_flag_of_a_run_is_claimed_twice():
    for algorithm in ALGORITHMS:
        names = [field.name for field in (*shared_fields(), *algorithm_fields(algorithm))]
        assert len(names) == len(set(names))


def test_random_cluster_is_fedsikd_with_random_clusters():
    assert ALGORITHMS["random_cluster"].default_config().clustering == "random"
    assert ALGORITHMS["fedsikd"].default_config().clustering == "kmeans"
    own = {field.name for field in algorithm_fields("random_cluster")}
    assert "student_epochs" in own
    assert "clustering" not in own
    assert own - {"cluster_sizes"} == {field.name for field in algorithm_fields("fedsikd")}
