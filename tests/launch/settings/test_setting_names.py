"""One name a setting: how `X` and `<algo>_X` are read, alone and beside other algorithms."""

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import parse_config, parse_given
from launch.settings.run_config import flag_values, shared_fields
from launch.settings.setting_names import (
    find_owner,
    find_setting,
    get_flag,
    join_values,
    read_name,
    rename_arguments,
)

ROWS = tuple(ALGORITHMS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_setting_has_one_name_and_may_have_its_owners_before_it(row):
    assert not row.names & {field.name for field in shared_fields()}
    for name in row.names:
        assert read_name(name, row) == name == read_name(row.flag_prefix + name, row)
        assert find_owner(row.flag_prefix + name, ROWS) is row
        assert find_setting(row.flag_prefix + name, ROWS) == name


def test_five_names_of_amfl_p_are_read_otherwise_beside_fine_tuning():
    names = {name for row in ROWS for name in row.names}
    double = {name for name in names if find_setting(name, ROWS) != name}
    assert double == {f"fine_tuning_{name}" for name in ("steps", "learning_rate", "rule", "start", "curve")}
    assert double <= ALGORITHMS["amfl_p"].names
    assert {find_owner(name, ROWS).name for name in double} == {"fine_tuning"}


def test_both_spellings_are_the_same_flag_of_a_run_and_the_last_counts():
    for given in ("--fedavg_epochs=3", "--epochs=3", "--epochs=2 --fedavg_epochs=3", "--fedavg_epochs 2 --epochs 3"):
        config = parse_config(["--algo=fedavg", *given.split()])
        assert flag_values(config)["epochs"] == 3
        assert not any(name.startswith("fedavg_") for name in flag_values(config))
    switched = parse_given(["--algo=apfl", "--noapfl_adaptive"])
    assert switched == parse_given(["--algo=apfl", "--noadaptive"]) == {"algo": "apfl", "adaptive": False}


def test_a_flagfile_of_earlier_names_is_overridden_by_what_is_typed(tmp_path):
    (tmp_path / "a.flags").write_text("--algo=fedavg\n--fedavg_epochs=3\n--fedavg_learning_rate=0.5\n")
    flags = flag_values(parse_config([f"--flagfile={tmp_path / 'a.flags'}", "--epochs=4"]))
    assert (flags["epochs"], flags["learning_rate"]) == (4, 0.5)


def test_the_setting_of_another_algorithm_is_refused(refuse):
    said = "--ditto_epochs: belongs to --algo=ditto, expected settings of --algo=fedavg; did you mean --epochs?"
    assert refuse("--algo=fedavg --ditto_epochs=2") == said
    assert refuse("--algo=fedavg --gamma=2").startswith("--gamma: belongs to --algo=async_periodic")


def test_arguments_are_taken_apart():
    assert list(map(get_flag, ["--a=1", "-b", "c", "--", "--nod", ""])) == ["a", "b", "", "", "nod", ""]
    assert join_values(["--a", "1", "--b=2", "--c", "--d", "x=y", "z"]) == ["--a=1", "--b=2", "--c", "--d=x=y", "z"]
    given = ["--apfl_epochs=--apfl_epochs", "--noapfl_adaptive", "-apfl_steps", "apfl_steps", "--", "--apfl_steps"]
    renamed = ["--epochs=--apfl_epochs", "--noadaptive", "-steps", "apfl_steps", "--", "--apfl_steps"]
    assert rename_arguments(given, ROWS) == renamed
