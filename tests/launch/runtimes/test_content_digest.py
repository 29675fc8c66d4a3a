"""What a computation is made of, as a digest: what tells two apart, and what cannot be told."""

import dataclasses
import functools
import os
import pathlib
import types

import numpy as np
import pytest
from small_formats import make_spec

import launch
from launch.runtimes.content_digest import UnknownContent, describe_surroundings, digest_content
from models.standardization import Standardization
from tff_algos.client.cohort import NOBODY
from tff_algos.fed_sikd.config import FedSiKDConfig
from tff_algos.fed_sikd.student_round import build_distillation
from tff_algos.rounds.aggregators import SumAggregator
from tff_algos.rounds.training_phase import TrainingPhase, _build_listed, _build_summed, build_group_training
from tff_algos.rounds.transport import Transport
from tff_algos.settings.aggregation import CompressionConfig
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import build_type

ROOT = pathlib.Path(launch.__file__).parents[1]
SPEC = make_spec("perceptron", (4,))
TRAINING = LocalTrainingConfig()


def make_phase(spec=SPEC, training=TRAINING, bits=32, work=None, seed=1):
    transport = Transport(CompressionConfig(bits), (bits < 32,) * 2, seed, 100, (bits < 32,) * 2)
    return TrainingPhase(work or build_group_training(spec, training), transport, SumAggregator(), ((4, 3), (3,)))


def digest(phase, build=_build_summed, num_groups=1, surroundings=""):
    return digest_content(surroundings, build, (phase, build_type(NOBODY), NOBODY, num_groups))


def test_the_same_content_has_the_same_digest():
    again = make_spec("perceptron", (4,))
    assert digest(make_phase()) == digest(make_phase(again, LocalTrainingConfig()))
    assert digest(make_phase(seed=2)) == digest(make_phase())  # the run's, which no graph holds
    used = make_phase()
    assert SPEC.weight_shapes and used._computations == {}  # what is kept for later is no content
    assert digest(used) == digest(make_phase(again))


def test_whatever_differs_makes_another_digest():
    scaled = SPEC.with_standardization(Standardization((0.0,) * 4, (2.0,) * 4))
    phases = [
        make_phase(),
        make_phase(make_spec("perceptron_2nn", (4,))),
        make_phase(make_spec("perceptron", (4,), "float32", 2)),
        make_phase(make_spec("perceptron", (4,), precision="bfloat16")),
        make_phase(dataclasses.replace(SPEC, compiled=True)),
        make_phase(scaled),
        make_phase(scaled.with_standardization(Standardization((0.0,) * 4, (2.0, 2.0, 2.0, np.nextafter(2.0, 3.0))))),
        *(make_phase(training=dataclasses.replace(TRAINING, **{name: 3})) for name in ("epochs", "batch_size")),
        make_phase(bits=8),
        make_phase(work=build_distillation(SPEC, FedSiKDConfig())),
        make_phase(work=build_distillation(SPEC, FedSiKDConfig(temperature=5.0))),
    ]
    digests = [digest(phase) for phase in phases]
    digests += [digest(make_phase(), _build_listed), digest(make_phase(), num_groups=2)]
    digests += [digest(make_phase(), surroundings="another")]
    assert len(set(digests)) == len(digests) == 15


def own_function():
    """A function that is none of our packages'."""


CIRCLE = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "content",
    [
        own_function,
        functools.partial(own_function, 1),
        [lambda: None],
        make_phase(work=own_function),
        object(),
        np.array([object()]),
        np.random.default_rng(0),
        type("Local", (), {}),
        os.environ,
        CIRCLE,
        types.FunctionType(own_function.__code__, {"__name__": "models.perceptron"}, "build_perceptron"),  # replaced
    ],
    ids=lambda content: type(content).__name__,
)
def test_what_is_not_ours_cannot_be_told(content):
    with pytest.raises(UnknownContent):
        digest_content("", _build_summed, (content,))


def test_surroundings_tell_devices_and_switches_apart_and_nothing_after_an_edit(monkeypatch):
    found = describe_surroundings("cpu")
    assert found == describe_surroundings("cpu") != describe_surroundings("gpu")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert describe_surroundings("cpu") != found
    newest = max(path.stat().st_mtime for path in (ROOT / "tff_algos").rglob("*.py"))
    monkeypatch.setattr(launch, "IMPORTED_S", newest)
    assert describe_surroundings("cpu") is None
