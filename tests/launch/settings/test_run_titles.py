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


@pytest.mark.parametrize(
    ("values", "subset", "expected"),
    [
        ({"dataset": "cifar10"}, None, "FedAvg on CIFAR-10, alpha 0.5, seed 0"),
        ({"dataset": "cifar10"}, "cifar10 subset (20 + 5)", "FedAvg on cifar10 subset (20 + 5), alpha 0.5, seed 0"),
        ({"dataset": "npz", "npz": "data/tumours.npz"}, "npz", "FedAvg on tumours, alpha 0.5, seed 0"),
        ({"data": "/home/me/My table.csv"}, None, "FedAvg on My table, alpha 0.5, seed 0"),
        ({"data": "folder/of/clients/"}, "files", "FedAvg on clients, alpha 0.5, seed 0"),
    ],
)
def test_a_subset_and_ones_own_data_are_named_in_the_titles(values, subset, expected):
    flags = flag_values(build_run_config({"algo": "fedavg", **values, "partition": "dirichlet"}))
    assert describe_run(flags, subset) == expected


@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=lambda row: row.name)
def test_a_row_names_a_function_and_fields_that_are_there_and_claims_no_flag_twice(row):
    module, function = row.builder.split(":")
    folder, _, file = module.rpartition(".")
    source = pathlib.Path(importlib.util.find_spec(folder).submodule_search_locations[0], f"{file}.py")
    assert function in {node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert row.fields_without_flag <= {field.name for field in dataclasses.fields(row.config_class)}
    names = [field.name for field in (*shared_fields(), *row.fields)]
    assert len(names) == len(set(names))


def test_random_cluster_is_fedsikd_with_random_clusters():
    assert ALGORITHMS["random_cluster"].default_config().clustering == "random"
    assert ALGORITHMS["fedsikd"].default_config().clustering == "kmeans"
    own = {field.name for field in algorithm_fields("random_cluster")}
    assert "student_epochs" in own
    assert "clustering" not in own
    assert own - {"cluster_sizes"} == {field.name for field in algorithm_fields("fedsikd")}
