"""The version of TensorFlow is found whichever distribution brings it."""

import importlib.metadata

import pytest

from launch.runs.library_versions import find_version, name_library


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"tensorflow-cpu": "2.14.1"}, "2.14.1"),
        ({"tensorflow": "2.14.0"}, "2.14.0"),
        ({"tensorflow-cpu": "2.14.1", "tensorflow": "2.14.0"}, "2.14.0"),  # laid over the other, for a GPU
        ({}, None),
    ],
)
def test_tensorflow_is_found_by_each_of_its_distributions(monkeypatch, installed, expected):
    def find(distribution):
        if distribution not in installed:
            raise importlib.metadata.PackageNotFoundError(distribution)
        return installed[distribution]

    monkeypatch.setattr(importlib.metadata, "version", find)
    assert find_version("tensorflow") == find_version("tensorflow-cpu") == expected
    assert find_version("numpy") is None


def test_it_is_named_alike_in_records():
    assert [name_library(name) for name in ("tensorflow-cpu", "tensorflow", "numpy")] == [
        "tensorflow",
        "tensorflow",
        "numpy",
    ]
