"""Labels find room beside their points."""

import numpy as np

from launch.pages.plots.label_placement import RADII, place_labels, spread_out

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


def test_labels_on_a_line_keep_their_order_and_move_as_little_as_it_takes():
    """0, 1 and 2 with a gap of 2 become a block around 1; 9 stays; a block of 8 and 9 stands around 8.5."""
    assert spread_out([1.0, 9.0, 0.0, 2.0], 2.0).tolist() == [1.0, 9.0, -1.0, 3.0]
    assert spread_out([8.0, 9.0], 2.0).tolist() == [7.5, 9.5]
    assert spread_out([], 2.0).tolist() == []
    positions = np.random.default_rng(0).normal(0, 5, 30)
    spread = spread_out(positions, 1.0)
    assert np.diff(spread[np.argsort(positions)]).min() > 1 - 1e-9
    assert abs(spread.mean() - positions.mean()) < 1e-9
