"""Names of flags in records of earlier versions, and what is said to a person who types one."""

import json

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import FlagError, parse_config, parse_given
from launch.settings.renamed_flags import find_new_name, rename_stored_flags
from launch.settings.run_config import build_run_config, flag_values, shared_fields
from launch.settings.setting_names import (
    find_owner,
    find_setting,
    get_flag,
    join_values,
    read_name,
    rename_arguments,
)

# As versions before the renaming wrote them.
EARLIER = {
    "algo": "fine_tuning",
    "client_dir": "",
    "fine_tuning_steps": 4,
    "fine_tuning_epochs": 5,
    "fine_tuning_learning_rate": 0.003,
    "fine_tuning_server_momentum": 0.9,
    "fine_tuning_fine_tuning_steps": 100,
    "fine_tuning_fine_tuning_learning_rate": 0.1,
    "fine_tuning_fine_tuning_rule": "same",
}


def test_settings_of_an_earlier_run_keep_their_meaning():
    renamed = rename_stored_flags(EARLIER)
    config = build_run_config(renamed).algorithm
    assert (config.training.steps, config.training.learning_rate, config.training.epochs) == (4, 0.003, 5)
    assert (config.fine_tuning.steps, config.fine_tuning.learning_rate) == (100, 0.1)
    assert config.server.momentum == 0.9
    assert list(renamed.values()) == list(EARLIER.values())


OF_OWN = {"algo": "gone:ROW", "rounds": 3}
RENAMED = [
    ({"algo": "fedavg", "workers": ""}, {"algo": "fedavg"}),  # it did nothing
    ({"algo": "fedavg", "workers": "a:1"},) * 2,
    ({"algo": "fedavg", "shard_dir": "/x"}, {"algo": "fedavg", "client_dir": "/x"}),
    # The name of a user's own algorithm is told by its flags.
    ({**OF_OWN, "my_own_epochs": 1, "my_own_pull": 0.5}, {**OF_OWN, "epochs": 1, "pull": 0.5}),
    ({**OF_OWN, "epochs": 1, "pull": 0.5},) * 2,
    (rename_stored_flags(EARLIER),) * 2,
    *(
        (flag_values(build_run_config({"algo": algo, **values})),) * 2
        for algo, values in (("fine_tuning", {"steps": 7, "local_steps": 2}), ("amfl_p", {}))
    ),
]


@pytest.mark.parametrize(("stored", "today"), RENAMED)
def test_names_of_earlier_versions_are_read_and_those_of_today_stay(stored, today):
    assert rename_stored_flags(stored) == today
    assert find_new_name("fine_tuning_batch_size") == "" == find_new_name("amfl_p_fine_tuning_steps")


@pytest.mark.parametrize("algo", ["fedavg", "fine_tuning", "amfl_p"])
def test_names_with_the_algorithms_before_them_are_read(algo):
    row, today = ALGORITHMS[algo], flag_values(build_run_config({"algo": algo}))
    earlier = {row.flag_prefix + name if name in row.names else name: value for name, value in today.items()}
    assert rename_stored_flags(earlier) == today


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("fine_tuning --fine_tuning_fine_tuning_steps=100", "is called --steps now"),
        ("fine_tuning --fine_tuning_fine_tuning_rule=same", "is called --rule now"),
        ("fine_tuning --fine_tuning_epochs=2", "is called --local_epochs now"),
        ("fine_tuning --fine_tuning_optimizer=sgd", "is called --local_optimizer now"),
        ("fine_tuning --shard_dir=x", "is called --client_dir now"),
        (
            "fedavg --ditto_epochs=2",
            "belongs to --algo=ditto, expected settings of --algo=fedavg; did you mean --epochs?",
        ),
        ("fedavg --gamma=2", "belongs to --algo=async_periodic, expected settings of --algo=fedavg"),
    ],
)
def test_a_typed_earlier_name_is_answered_with_today_s_and_one_of_others_with_its_owner(refuse, typed, said):
    assert refuse(f"--algo={typed}") == f"{typed.split()[1].split('=')[0]}: {said}"


def test_a_run_of_an_earlier_version_can_be_resumed(tmp_path):
    today = flag_values(build_run_config(rename_stored_flags(EARLIER)))
    earlier = {}
    for name, value in today.items():
        if name.startswith("local_"):
            name = name.replace("local_", "fine_tuning_")
        elif name in ("steps", "learning_rate", "rule", "start"):
            name = f"fine_tuning_fine_tuning_{name}"
        elif name in ALGORITHMS["fine_tuning"].names:
            name = f"fine_tuning_{name}"
        earlier["shard_dir" if name == "client_dir" else name] = value
    assert earlier["fine_tuning_steps"] == 4 and earlier["fine_tuning_fine_tuning_steps"] == 100
    (tmp_path / "config.json").write_text(json.dumps({"flags": earlier}), encoding="utf-8")
    config = parse_config([f"--run_dir={tmp_path}", "--resume"])
    assert (config.algorithm.training.steps, config.algorithm.fine_tuning.steps) == (4, 100)
    with pytest.raises(FlagError, match=r"--local_steps=5 \(the run has 4\)"):
        parse_config([f"--run_dir={tmp_path}", "--resume", "--fine_tuning_local_steps=5"])


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


def test_both_spellings_are_the_same_flag_of_a_run_and_the_last_counts(tmp_path):
    (tmp_path / "a.flags").write_text("--fedavg_epochs=2\n")
    of_file = f"--flagfile={tmp_path / 'a.flags'} --epochs=3"
    for given in (
        "--fedavg_epochs=3",
        "--epochs=3",
        "--epochs=2 --fedavg_epochs=3",
        "--fedavg_epochs 2 --epochs 3",
        of_file,
    ):
        flags = flag_values(parse_config(["--algo=fedavg", *given.split()]))
        assert flags["epochs"] == 3 and not any(name.startswith("fedavg_") for name in flags)
    switched = parse_given(["--algo=apfl", "--noapfl_adaptive"])
    assert switched == parse_given(["--algo=apfl", "--noadaptive"]) == {"algo": "apfl", "adaptive": False}


def test_arguments_are_taken_apart():
    assert list(map(get_flag, ["--a=1", "-b", "c", "--", "--nod", ""])) == ["a", "b", "", "", "nod", ""]
    assert join_values(["--a", "1", "--b=2", "--c", "--d", "x=y", "z"]) == ["--a=1", "--b=2", "--c", "--d=x=y", "z"]
    given = ["--apfl_epochs=--apfl_epochs", "--noapfl_adaptive", "-apfl_steps", "apfl_steps", "--", "--apfl_steps"]
    renamed = ["--epochs=--apfl_epochs", "--noadaptive", "-steps", "apfl_steps", "--", "--apfl_steps"]
    assert rename_arguments(given, ROWS) == renamed
