"""Configs and their flags are two spellings of the same thing."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.settings.algorithms import ALGORITHMS
from launch.settings.flag_fields import (
    FlagField,
    complete_stored_flags,
    find_idle_flags,
    iterate_fields,
    replace_fields,
)
from launch.settings.run_config import algorithm_fields, build_run_config, flag_values, shared_fields
from launch.settings.run_flags import SMOKE_ROUNDS
from tff_algos.fed_cd.config import FedCDConfig
from tff_algos.settings.config_fields import (
    ASCENDING,
    SMOKE_CLIENTS,
    AlgorithmConfig,
    ConfigError,
    Needs,
    check,
    group,
    needs_value,
    setting,
)
from tff_algos.settings.local_training import LocalTrainingConfig


def draw_value(draw, field: FlagField):
    if field.setting.choices:
        return draw(st.sampled_from(field.setting.choices))
    if isinstance(field.default, bool):
        return draw(st.booleans())
    if isinstance(field.default, (int, float)):
        values = st.integers(1, 50) if isinstance(field.default, int) else st.floats(1e-9, 50)
        return draw(values.filter(field.setting.admits))
    return field.default


@st.composite
def flag_sets(draw):
    """Any flags of any algorithm with values in their ranges; those that depend on each other are left out."""
    name = draw(st.sampled_from(list(ALGORITHMS)))
    dependent = (
        "algo",
        "npz",
        "dataset",
        "resume",
        "overwrite",
        "smoke",
        "activation",
        "qat_start_round",
        "bias_min",
        "bias_max",
        "width",
        "precision",
        "device",
        "compile",
        "standardize",
        "target_metric",
        "first_order",
        "max_resource",
        "proximal_weight",
        "averaging",
        "proximal_weight",
    )
    ends = ("momentum", "optimizer", "compression_bits", "dp_epsilon")
    fields = [
        field
        for field in (*shared_fields(), *algorithm_fields(name))
        if field.name not in dependent and not field.name.endswith(ends)
        if (name, field.name) != ("fedcd", "rounds")  # its milestones lie within the rounds
    ]
    chosen = draw(st.lists(st.sampled_from(fields), unique_by=lambda field: field.name))
    return {"algo": name, **{field.name: draw_value(draw, field) for field in chosen}}


@given(flag_sets())
@settings(deadline=None)
def test_config_survives_the_way_through_json(values):
    config = build_run_config(values)
    written = flag_values(config)
    assert {name: written[name] for name in values} == values
    assert build_run_config(json.loads(json.dumps(written))) == config


@pytest.mark.parametrize(("algo", "rule"), [("amfl_p", "resources"), ("fine_tuning", "same")])
def test_a_run_that_is_older_than_a_setting_has_what_its_algorithm_did_then(algo, rule):
    """AMFL-P's rule by default was another one when the setting came."""
    name = {"amfl_p": "fine_tuning_rule", "fine_tuning": "rule"}[algo]
    stored = {key: value for key, value in flag_values(build_run_config({"algo": algo})).items() if key != name}
    completed = complete_stored_flags(stored, (*shared_fields(), *algorithm_fields(algo)))
    assert build_run_config(completed).algorithm.fine_tuning.rule == rule
    assert complete_stored_flags({name: "steps"}, algorithm_fields(algo))[name] == "steps"


PRIVATE = {"algo": "fedcd", "weighting": "equal", "dp_epsilon": 4.0}


def test_a_budget_survives_the_way_through_json_and_is_to_last_for_the_rounds_of_the_run():
    """FedCD has 45 by default."""
    given_rounds = ({}, {"rounds": 33, "milestones": ""}, {"smoke": True})
    planned = [build_run_config(PRIVATE | given).algorithm.privacy.rounds for given in given_rounds]
    assert planned == [45, 33, SMOKE_ROUNDS]
    config = build_run_config(PRIVATE)
    written = flag_values(config)
    assert config.algorithm.privacy.epsilon == 4 and not any("dp_rounds" in name for name in written)
    assert build_run_config(json.loads(json.dumps(written))) == config


def test_groups_share_the_batch_size_and_are_else_told_apart_by_their_prefix():
    config = build_run_config({"algo": "fedsikd", "batch_size": 7, "teacher_epochs": 9})
    groups = config.algorithm.student, config.algorithm.teacher_training
    assert [(each.batch_size, each.epochs) for each in groups] == [(7, 5), (7, 9)]
    assert "fedsikd_student_batch_size" not in flag_values(config)
    values = {"x_epochs": 3, "batch_size": 8, "epochs": 99}
    changed = replace_fields(LocalTrainingConfig(proximal_weight=0.5), values, "x_")
    assert changed == dataclasses.replace(LocalTrainingConfig(proximal_weight=0.5), epochs=3, batch_size=8)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"algo": None}, "algo=None: expected one of fedavg"),
        ({"algo": "nope"}, "algo=nope: expected one of fedavg"),
        ({"rounds": 0}, "rounds=0: expected a number at least 1"),
        (
            {"resume": True, "overwrite": True, "run_dir": "x"},
            "overwrite=True: expected either --resume or --overwrite",
        ),
        ({"dataset": "npz"}, "npz=: expected a file together with --dataset=npz"),
        ({"teacher_model": "a:b:c"}, "teacher_model=a:b:c: expected auto"),
        ({"runtime": "ray", "ray_address": "localhost"}, "ray_address=localhost: expected auto, host:port"),
        ({"width": 0.0, "model": "image_cnn10"}, "width=0.0: expected a number above 0"),
        ({"algo": "fedsikd", "teacher_momentum": 1.0}, "teacher_momentum=1.0: expected a number"),
        ({"algo": "fedcd", "milestones": "5,46"}, "milestones=5,46: expected rounds up to the last one, --rounds=45"),
        *(
            ({"algo": "fedcd", "milestones": text}, f"milestones={text}: expected {ASCENDING}")
            for text in ("5,5", "15,5", "0,5", "-1", "5;15", "five", "5,,6", ",", "1_0", "5,1_5", "1.5", "\u0665")
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(values, said):
    """What the command line can ask for as well is in the table of its mistakes."""
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}"):
        build_run_config({"algo": "fedavg", **values})


@pytest.mark.parametrize(
    ("values", "shrunk"),
    [
        (
            {"algo": "fedsikd", "rounds": 70, "num_clients": 40, "teacher_epochs": 10, "temperature": 3.5},
            {
                "rounds": SMOKE_ROUNDS,
                "num_clients": SMOKE_CLIENTS,
                "temperature": 3.5,
                "teacher_epochs": 1,
                "student_epochs": 1,
                "student_steps": 0,  # still epochs
            },
        ),
        (  # 200 shards, rounded up to whole clients
            {"num_clients": 100, "partition": "shards", "labels_per_client": 2},
            {"num_clients": SMOKE_CLIENTS, "labels_per_client": 201 // SMOKE_CLIENTS},
        ),
        (
            {"partition": "hierarchical", "train_per_client": 5000, "test_per_client": 2},
            {"clients_per_archetype": 1, "train_per_client": 20, "test_per_client": 2},
        ),
        ({"algo": "fedcd"}, {"milestones": "1", "rounds": SMOKE_ROUNDS}),  # which clones once
        ({"algo": "fedcd", "milestones": ""}, {"milestones": ""}),
    ],
)
def test_smoke_shrinks_what_costs_time_and_keeps_what_makes_a_run_possible(values, shrunk):
    config = build_run_config({"algo": "fedavg", **values, "smoke": True})
    assert flag_values(config).items() >= shrunk.items()
    assert build_run_config(flag_values(config)) == config


@pytest.mark.parametrize(
    ("values", "partition"),
    [
        ({"algo": "fedcd"}, "hierarchical"),
        ({"algo": "fedcd", "dataset": "building"}, "natural"),
        ({"algo": "amfl_p"}, "natural"),
        ({"algo": "amfl_p", "dataset": "digits"}, "dirichlet"),
    ],
)
def test_an_algorithms_partition_gives_way_to_the_data_sets(values, partition):
    config = build_run_config(values)
    assert config.partition == partition
    assert len(values) > 1 or config.algorithm == ALGORITHMS[values["algo"]].default_config()


def test_a_file_that_names_clients_is_divided_by_them(tmp_path):
    path, y = str(tmp_path / "mine.npz"), np.arange(8) % 2
    of_file = {"dataset": "npz", "npz": path}
    for algo in ("fedavg", "fedcd"):
        np.savez(path, x=np.zeros((8, 2)), y=y, client=y)
        assert build_run_config({"algo": algo, **of_file}).partition == "natural"
        assert build_run_config({"algo": algo, **of_file, "partition": "iid"}).partition == "iid"
        np.savez(path, x=np.zeros((8, 2)), y=y)
        assert build_run_config({"algo": algo, **of_file}).partition == build_run_config({"algo": algo}).partition
    for missing in (str(tmp_path), str(tmp_path / "gone.npz")):  # which the loader says
        assert build_run_config({"algo": "fedavg", "dataset": "npz", "npz": missing}).partition == "dirichlet"


@dataclasses.dataclass(frozen=True)
class Personal:
    """A group with a need inside of itself."""

    steps: int = setting(0, "Steps.", minimum=0)
    epochs: int = setting(1, "Epochs.", needs=Needs("steps", lambda steps: steps == 0, "0 steps"))
    batch_size: int = setting(16, "Batch.", shared=True, needs=needs_value("kind", "a"))
    kind: str = setting("a", "Kind.", choices=("a", "b"))

    def __post_init__(self):
        check(self)


@dataclasses.dataclass(frozen=True)
class OwnConfig(AlgorithmConfig):
    """A config like one of a user's: epochs without steps, a group with both, and a tuple."""

    personal_epochs: int = setting(1, "Epochs of the personal model.", minimum=1, smoke=1)
    layers: tuple[int, ...] = setting((3, 4), "Layers that are personal.", minimum=1)
    personal: Personal = group(Personal, flag_prefix="inner_")


def test_needs_are_of_the_field_and_not_of_the_flags_name():
    assert find_idle_flags(OwnConfig(personal_epochs=2)) == {}
    idle = find_idle_flags(OwnConfig(personal=Personal(steps=3, kind="b")))
    assert idle == {
        "inner_epochs": ("inner_steps", 3, "0 steps"),
        "batch_size": ("inner_kind", "b", "--inner_kind=a"),
    }
    assert find_idle_flags(OwnConfig(personal=Personal(steps=3)), {"personal"}) == {}


def test_any_tuple_of_integers_is_a_flag_as_numbers_inside_and_as_text_outside():
    values = {field.name: field.default for field in iterate_fields(OwnConfig())}
    assert values["layers"] == "3,4"
    for typed, found in (("1, 2", (1, 2)), ((7,), (7,)), ("", ())):
        assert replace_fields(OwnConfig(), {"layers": typed}).layers == found
    for text in ("a", "0,1", "1_0"):
        with pytest.raises(ConfigError, match=f"^layers={text}: expected integers at least 1 with commas between"):
            replace_fields(OwnConfig(), {"layers": text})


def test_an_algorithms_config_fits_any_run_and_shrinks_as_declared():
    config = OwnConfig(personal_epochs=9)
    config.check_run(1)
    config.check_clients(1)
    assert config.shrink_to_smoke() == OwnConfig(personal_epochs=1)
    with pytest.raises(ConfigError, match="personal_epochs=0"):
        OwnConfig(personal_epochs=0)
    with pytest.raises(ConfigError, match=r"^cohort_size=15: expected at most the 14 clients there are"):
        FedCDConfig().check_clients(14)
