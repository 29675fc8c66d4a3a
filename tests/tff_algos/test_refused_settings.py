"""Settings of an algorithm that do not go together, each with its answer."""

import re

import pytest

from launch.settings.algorithms import ALGORITHMS
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.update_privacy import UpdatePrivacyConfig

PRIVATE = {"privacy": UpdatePrivacyConfig(epsilon=8.0)}


def train(**fields):
    """Plain SGD, but for these fields of it."""
    return {"training": LocalTrainingConfig(**{"optimizer": "sgd", "learning_rate": 0.5, **fields})}


GRADIENTS = {"averaging": "gradients"}
ORDER = "rounds in ascending order with commas, such as 5,15,25"


@pytest.mark.parametrize(
    ("algorithm", "fields", "message"),
    [
        ("apfl", train(proximal_weight=0.1), "proximal_weight=0.1: expected 0: APFL has no such term"),
        ("pfedme", train(proximal_weight=0.1), "expected 0: the pull is pFedMe's own such term"),
        ("scaffold", train(optimizer="adam"), "optimizer=adam: expected sgd without momentum"),
        ("scaffold", train(momentum=0.9), "optimizer=sgd: expected sgd without momentum"),
        ("fednova", train(optimizer="adam"), "optimizer=adam: expected sgd"),
        ("fednova", train(momentum=0.5, proximal_weight=0.1), "proximal_weight=0.1: expected 0 with a mom"),
        # log(1 - eta mu), by which the update is divided, would be NaN, and so would the model.
        ("fednova", train(proximal_weight=3.0), "proximal_weight=3.0: expected below 2, 1 / learning_rate"),
        ("fednova", train(proximal_weight=2.0), "proximal_weight=2.0: expected below 2, 1 / learning_rate"),
        ("ifca", {**GRADIENTS, **train(optimizer="adam", steps=1)}, "optimizer=adam: expected sgd without momentum"),
        ("ifca", {**GRADIENTS, **train(momentum=0.5, steps=1)}, "optimizer=sgd: expected sgd without momentum"),
        ("ifca", {**GRADIENTS, **train()}, "steps=0: expected 1 with averaging=gradients"),
        ("amfl_p", {"reptile": True, "first_order": True}, "expected either first_order or reptile"),
        ("amfl_p", {"reptile": True, "inner_steps": 0}, "inner_steps=0: expected at least 1 with reptile"),
        ("amfl_p", {"min_resource": 0.9, "max_resource": 0.5}, "min_resource=0.9: expected at most max_resource=0.5"),
        *(("fedcd", {"milestones": each}, f"expected {ORDER}") for each in ((5, 5), (15, 5), (0, 5), (-1,))),
        ("fedcd", {"milestones": tuple(range(1, 12))}, "expected at most 10 rounds"),
        ("fedsikd", {"clustering": "random", "cluster_sizes": "equal", "num_clusters": 0}, "num_clusters=0: expected"),
        # What would leave a client without noise, or show its data otherwise.
        ("fedavg", PRIVATE, "client_weighting=examples: expected equal"),
        ("fedavg", {**PRIVATE, "client_weighting": "equal", "participation": "stratified"},
         "participation=stratified: expected fixed or bernoulli, whose part in"),
        ("amfl_p", PRIVATE, "weighting=adaptive: expected equal"),
        ("amfl_p", {**PRIVATE, "weighting": "equal", "resources": "dynamic"}, "resources=dynamic: expected static"),
        ("fedcd", PRIVATE, "weighting=scores: expected equal"),
        ("fedcd", {**PRIVATE, "weighting": "equal", "clone_schedule": "anew"}, "clone_schedule=anew: expected shared"),
        ("fedsikd", {**PRIVATE, "weighting": "examples", "teacher": "cluster"}, "weighting=examples: expected equal"),
        ("fedsikd", PRIVATE, "teacher=leader: expected cluster"),
        ("fedsikd", {**PRIVATE, "teacher": "cluster"}, "privacy_epsilon=0.0: expected above 0"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(algorithm, fields, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        ALGORITHMS[algorithm].config_class(**fields)


@pytest.mark.parametrize(
    ("algorithm", "fields", "check", "refused", "taken", "message"),
    [
        ("fedavg", {**PRIVATE, "client_weighting": "equal"}, "check_clients", 100_000, 99_999,
         "dp_delta=1e-05: expected below 1 / clients, here 1e-05"),
        ("fedcd", {"milestones": (5, 15)}, "check_run", 14, 15,
         "milestones=5,15: expected rounds up to the last one, --rounds=14"),
        ("fedcd", {}, "check_clients", 2, 15, "cohort_size=15: expected at most the 2 clients there are"),
        ("fl_hc", {"distance_multiple": 0.0}, "check_clients", 2, 3, "num_clusters=3: expected at most the 2 clients"),
        ("fedsikd", {}, "check_clients", 2, 3, "num_clusters=3: expected at most the 2 clients"),
        ("fedproto", {"models": "a,b"}, "check_clients", 1, 2, "models=2: expected at most the 1 clients"),
        ("amfl_p", {"support_size": 5, "query_size": 4}, "check_examples", 8, 9,
         "at most 8, the examples of the smallest client, not 9"),
    ],
)  # fmt: skip
def test_settings_that_the_data_do_not_fit_are_refused(algorithm, fields, check, refused, taken, message):
    check = getattr(ALGORITHMS[algorithm].config_class(**fields), check)
    check(taken)
    with pytest.raises(ConfigError, match=re.escape(message)):
        check(refused)


def test_data_without_known_groups_are_refused():
    for algorithm, fields, message in (
        ("oracle", {}, "groups=archetype: expected another --algo, since the data know no groups"),
        ("fedavg", {"participation": "stratified"}, "participation=stratified: expected fixed or bernoulli, since the"),
    ):
        with pytest.raises(ConfigError, match=f"^{message}"):
            ALGORITHMS[algorithm].config_class(**fields).check_archetypes(None)
