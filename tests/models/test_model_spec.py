"""Which specification weights belong to, where a run has several models."""

import dataclasses

import numpy as np
from small_formats import make_spec

from models.standardization import Standardization

SMALL, LARGE = (make_spec(name, (4,)) for name in ("perceptron", "perceptron_teacher"))
BOTH = dataclasses.replace(SMALL, peers=(LARGE,))


def test_weights_belong_to_the_peer_of_their_shapes():
    assert BOTH.variants == (BOTH, LARGE) and SMALL.variants == (SMALL,)
    for spec, expected in ((BOTH, BOTH), (LARGE, LARGE)):
        assert BOTH.of_weights(tuple(np.zeros(shape) for shape in spec.weight_shapes)) is expected
    assert SMALL.of_weights(()) is SMALL, "without peers nobody looks"


def test_peers_scale_their_inputs_alike():
    scaled = BOTH.with_standardization(Standardization((1.0,) * 4, (2.0,) * 4))
    assert scaled.peers[0].standardization == scaled.standardization is not None
    assert scaled.peers[0].name == LARGE.name and scaled.with_standardization(None) == BOTH
