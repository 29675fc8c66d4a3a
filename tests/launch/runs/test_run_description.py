"""What `config.json` says of a run's data, and which data a run goes on with."""

import dataclasses
import json

import pytest
from small_formats import change_format

from datasets.example_format import CategoryGroup
from datasets.federated_data import Archetypes
from launch.runs.errors import RunFolderError
from launch.runs.run_description import check_same_data, check_same_modules, describe_data, write_config
from launch.runs.run_folder import open_run_folder
from launch.settings.run_config import build_run_config


@pytest.fixture
def config(tmp_path):
    return build_run_config({"algo": "fedavg", "run_dir": str(tmp_path / "run")})


@pytest.fixture
def folder(config):
    opened = open_run_folder(config)
    yield opened
    opened.close()


def test_resume_on_other_data_is_refused(make_federation, config, folder):
    kinds = Archetypes(("x", "y"), (0, 1), (0, 1))
    data = dataclasses.replace(make_federation([3, 5]), archetypes=kinds, source_digests={"source_digest": "a"})
    assert json.loads(json.dumps(describe_data(data))) == describe_data(data)
    write_config(folder, config, data)
    # Another version may find other words for the same data, and a file may hold the same in other bytes.
    for change in ({}, {"reading": "numbers", "notes": ("see there",)}, {"source_digests": {"source_digest": "b"}}):
        check_same_data(folder, dataclasses.replace(data, **change))
    described = describe_data(data)
    for content, said in (
        (folder.config.read_text(), "the data changed since it began"),
        *((content, "damaged") for content in ("{}", "[]", "", '{"data": 3}')),
        (json.dumps({"data": described, "num_shares": 2}), "was begun on 2 TFF workers, which are gone; start a new"),
    ):
        folder.config.write_text(content)
        with pytest.raises(RunFolderError, match=said):
            check_same_data(folder, make_federation([3, 6]))
    folder.config.write_text(json.dumps({"data": described, "num_shares": 1}))
    check_same_data(folder, data)


def test_names_that_are_new_or_gone_are_no_other_data(make_federation, config, folder):
    """A later version may read them from a file beside the data; other names in place of some are other data."""
    data, (names, others) = make_federation([3, 5]), ("abcd", "abce")
    group = CategoryGroup("c", (1, 2), ("x", "y"))
    named = change_format(data, feature_names=tuple(names), feature_units=("K",) * 4, groups=(group,))
    for before, now in ((data, named), (named, data), (named, named)):
        write_config(folder, config, before)
        check_same_data(folder, now)
    write_config(folder, config, named)
    with pytest.raises(RunFolderError, match=r"changed since it began \(feature_names\)"):
        check_same_data(folder, change_format(named, feature_names=tuple(others)))
    with pytest.raises(RunFolderError, match=r"changed since it began \(groups\)"):
        check_same_data(folder, change_format(named, groups=(group._replace(values=("y", "x")),)))


def test_resume_with_other_code_is_refused(tmp_path, monkeypatch, make_federation, config, folder):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_net.py").write_text("import own_units\n")
    (tmp_path / "own_units.py").write_text("UNITS = 4\n")
    own = dataclasses.replace(config, model="own_net:build")
    write_config(folder, own, make_federation([3, 5]))
    sums = json.loads(folder.config.read_text())["own_modules"]
    assert list(sums) == ["own_net", "own_units"] and str(tmp_path) not in str(sums)
    check_same_modules(folder, own)
    (tmp_path / "own_units.py").write_text("UNITS = 8\n")
    with pytest.raises(RunFolderError, match=r"your code changed since it began \(own_units\); put the former"):
        check_same_modules(folder, own)
    write_config(folder, config, make_federation([3, 5]))
    assert "own_modules" not in json.loads(folder.config.read_text())
