"""The table of algorithms: every row can be used, and no two rows claim the same flag."""

import ast
import dataclasses
import importlib.util
import pathlib

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import algorithm_fields, shared_fields


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
