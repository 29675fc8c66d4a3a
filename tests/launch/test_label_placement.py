"""Labels find room beside their points."""

import numpy as np

from launch.label_placement import RADII, place_labels

GAP = (9.0, 7.0)


def test_a_lonely_point_has_its_label_up_to_the_right_and_near():
    ((x, y),) = place_labels(np.array([[5.0, 5.0]]), GAP)
    assert x > 0 and y > 0
    assert np.isclose(np.hypot(x, y), RADII[0])


def test_labels_of_a_crowd_cover_neither_points_nor_each_other():
    points = np.random.default_rng(0).normal(0, 25, (40, 2))
    labels = points + place_labels(points, GAP)
    for i, label in enumerate(labels):
        others = np.concatenate([points, np.delete(labels, i, axis=0)])
        assert not (np.abs(others - label) < GAP).all(axis=1).any()


def test_where_there_is_no_room_every_point_still_has_a_label():
    offsets = place_labels(np.zeros((200, 2)), GAP)
    assert len(offsets) == 200
    assert np.isclose(np.hypot(*offsets[-1]), RADII[-1])
