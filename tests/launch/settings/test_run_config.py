"""Configs and their flags are two spellings of the same thing."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import (
    SMOKE_CLIENTS,
    SMOKE_ROUNDS,
    FlagField,
    algorithm_fields,
    build_run_config,
    check_algorithm,
    flag_values,
    replace_fields,
    shared_fields,
)
from tff_algos.settings.config_fields import ConfigError
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
        "fedcd_compression_bits",
        "amfl_p_first_order",
        "amfl_p_max_resource",
    )
    fields = [field for field in (*shared_fields(), *algorithm_fields(name)) if field.name not in dependent]
    fields = [field for field in fields if not field.name.endswith(("momentum", "optimizer"))]
    if name == "fedcd":  # its milestones lie within the rounds
        fields = [field for field in fields if field.name != "rounds"]
    chosen = draw(st.lists(st.sampled_from(fields), unique_by=lambda field: field.name))
    return {"algo": name, **{field.name: draw_value(draw, field) for field in chosen}}


@given(flag_sets())
@settings(deadline=None)
def test_config_survives_the_way_through_json(values):
    config = build_run_config(values)
    written = flag_values(config)
    assert {name: written[name] for name in values} == values
    assert build_run_config(json.loads(json.dumps(written))) == config


@pytest.mark.parametrize("name", ALGORITHMS)
def test_defaults_are_those_of_the_config_class(name):
    assert build_run_config({"algo": name}).algorithm == ALGORITHMS[name].default_config()


def test_batch_size_reaches_every_group():
    config = build_run_config({"algo": "fedsikd", "batch_size": 7})
    assert (config.algorithm.student.batch_size, config.algorithm.teacher_training.batch_size) == (7, 7)
    assert "fedsikd_student_batch_size" not in flag_values(config)


def test_groups_are_told_apart_by_their_prefix():
    config = build_run_config({"algo": "fedsikd", "fedsikd_teacher_epochs": 9})
    assert config.algorithm.teacher_training.epochs == 9
    assert config.algorithm.student.epochs == ALGORITHMS["fedsikd"].default_config().student.epochs


def test_error_names_the_flag():
    with pytest.raises(ConfigError) as caught:
        build_run_config({"algo": "fedsikd", "fedsikd_teacher_momentum": 1.0})
    assert caught.value.field == "fedsikd_teacher_momentum"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"algo": "nope"},
        {"rounds": 0},
        {"resume": True},
        {"resume": True, "overwrite": True, "run_dir": "x"},
        {"npz": "x.npz"},
        {"dataset": "npz"},
        {"model": "nope"},
        {"teacher_model": "a:b:c"},
        {"workers": "localhost"},
        {"width": 0.5},
        {"width": 0.0, "model": "image_cnn10"},
        {"algo": "fedcd", "rounds": 29},
        {"algo": "fedcd", "fedcd_milestones": "5,46"},
        {"algo": "fedcd", "fedcd_compression_bits": 20},
    ],
)
def test_refuses_what_cannot_be_meant(values):
    with pytest.raises(ConfigError):
        build_run_config(values if "algo" in values or not values else {"algo": "fedavg", **values})


def test_worker_addresses_are_split():
    assert build_run_config({"algo": "fedavg"}).worker_addresses == []
    config = build_run_config({"algo": "fedavg", "workers": "a:1, b:2"})
    assert config.worker_addresses == ["a:1", "b:2"]


def test_smoke_shrinks_what_costs_time_and_nothing_else():
    values = {"algo": "fedsikd", "rounds": 70, "num_clients": 40, "fedsikd_teacher_epochs": 10, "smoke": True}
    config = build_run_config(values)
    assert (config.rounds, config.num_clients) == (SMOKE_ROUNDS, SMOKE_CLIENTS)
    assert (config.algorithm.teacher_training.epochs, config.algorithm.student.epochs) == (1, 1)
    assert config.algorithm.student.steps == 0  # still epochs
    whole = build_run_config({**values, "smoke": False})
    assert config.algorithm.temperature == whole.algorithm.temperature
    assert build_run_config(flag_values(config)) == config


def test_smoke_has_enough_shards_for_all_labels():
    values = {"algo": "fedavg", "num_clients": 100, "partition": "shards", "labels_per_client": 2, "smoke": True}
    config = build_run_config(values)
    assert config.num_clients * config.labels_per_client == 201  # 200, rounded up to whole clients
    assert build_run_config(flag_values(config)) == config


def test_smoke_has_a_client_an_archetype_with_few_examples():
    values = {"algo": "fedavg", "partition": "hierarchical", "train_per_client": 5000, "test_per_client": 2}
    config = build_run_config({**values, "smoke": True})
    assert (config.clients_per_archetype, config.train_per_client, config.test_per_client) == (1, 20, 2)


def test_smoke_clones_once():
    config = build_run_config({"algo": "fedcd", "smoke": True})
    assert (config.algorithm.milestones, config.rounds) == ("1", SMOKE_ROUNDS)
    never = build_run_config({"algo": "fedcd", "fedcd_milestones": "", "smoke": True})
    assert never.algorithm.milestones == ""


def test_an_algorithms_partition_gives_way_to_the_data_sets():
    assert build_run_config({"algo": "fedcd"}).partition == "hierarchical"
    assert build_run_config({"algo": "fedcd", "dataset": "building"}).partition == "natural"
    assert build_run_config({"algo": "amfl_p"}).partition == "natural"
    assert build_run_config({"algo": "amfl_p", "dataset": "digits"}).partition == "dirichlet"


def test_what_an_algorithm_refuses_is_named_by_its_flag():
    config = build_run_config({"algo": "fedcd"})
    check_algorithm(config, "check_clients", 15)
    with pytest.raises(ConfigError, match="fedcd_cohort_size=15: expected at most the 14 clients there are"):
        check_algorithm(config, "check_clients", 14)
    check_algorithm(build_run_config({"algo": "fedavg"}), "check_clients", 1)


def test_replace_fields_leaves_the_rest():
    config = replace_fields(
        LocalTrainingConfig(proximal_weight=0.5), "x_", {"x_epochs": 3, "batch_size": 8, "epochs": 99}
    )
    assert config == dataclasses.replace(LocalTrainingConfig(proximal_weight=0.5), epochs=3, batch_size=8)
