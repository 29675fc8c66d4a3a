"""Checkpoints come back as they were, whatever their nesting and however their lists grew."""

import signal
from typing import NamedTuple

import numpy as np
import pytest

from launch.runs.checkpoints import KEPT, Checkpoints
from launch.runs.errors import RunFolderError


class NestedState(NamedTuple):
    """A state as an algorithm may have it."""

    round_num: np.int32
    models: tuple
    clusters: dict


def make_state(num_models):
    return NestedState(
        np.int32(num_models),
        (np.full((num_models, 2, 3), num_models, np.float32), np.zeros((num_models, 0), np.int64)),
        {"time_s": np.float64(0.1) * num_models, "mask": np.arange(num_models) % 2 == 0},
    )


@pytest.fixture
def checkpoints(tmp_path):
    opened = Checkpoints(tmp_path / "checkpoints")
    yield opened
    opened.close()


def test_state_comes_back_with_other_shapes_than_the_template(checkpoints):
    assert checkpoints.last_round() == 0
    checkpoints.save(make_state(5), 1)
    loaded = checkpoints.load(1, template=make_state(1))
    wanted = make_state(5)
    assert type(loaded) is NestedState
    for got, expected in zip(loaded[1] + tuple(loaded[2].values()), wanted[1] + tuple(wanted[2].values()), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_the_last_ones_are_kept(checkpoints, tmp_path):
    for round_num in range(1, 5):
        checkpoints.save(make_state(round_num), round_num)
    checkpoints.save(make_state(9), 4)  # there already
    assert checkpoints.last_round() == 4
    assert int(checkpoints.load(4, make_state(1)).round_num) == 4
    assert len(list((tmp_path / "checkpoints").iterdir())) == KEPT


def test_unfinished_saves_are_cleared_away(tmp_path):
    (tmp_path / "program_state_3_temp1234" / "variables").mkdir(parents=True)
    reopened = Checkpoints(tmp_path)
    assert reopened.last_round() == 0
    assert list(tmp_path.iterdir()) == []
    reopened.close()


def damage(path):
    for file in path.rglob("*"):
        if file.is_file():
            file.write_bytes(b"")


def test_a_damaged_checkpoint_gives_way_to_the_one_before(checkpoints, tmp_path, capsys):
    assert checkpoints.restore("template") == (0, "template")
    for round_num in (4, 5):
        checkpoints.save(make_state(round_num), round_num)
    damage(tmp_path / "checkpoints" / "program_state_5")
    round_num, state = checkpoints.restore(make_state(1))
    assert (round_num, int(state.round_num)) == (4, 4)
    assert "round 5 is damaged" in capsys.readouterr().out
    checkpoints.save(make_state(5), 5)  # the damaged one is out of the way
    assert checkpoints.restore(make_state(1))[0] == 5


def test_without_a_whole_checkpoint_nothing_is_removed(checkpoints, tmp_path):
    checkpoints.save(make_state(1), 1)
    damage(tmp_path / "checkpoints" / "program_state_1")
    with pytest.raises(RunFolderError, match="no checkpoint in it can be read"):
        checkpoints.restore(make_state(1))
    assert (tmp_path / "checkpoints" / "program_state_1").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_waits_for_the_save(checkpoints, monkeypatch, number):
    before = signal.signal(number, signal.default_int_handler)
    try:
        interrupt_a_save(checkpoints, monkeypatch, number)
    finally:
        signal.signal(number, before)


def interrupt_a_save(checkpoints, monkeypatch, number):
    import tensorflow as tf

    save = tf.saved_model.save

    def interrupted_save(*arguments, **options):
        signal.raise_signal(number)
        save(*arguments, **options)

    monkeypatch.setattr(tf.saved_model, "save", interrupted_save)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(make_state(2), 1)
    assert checkpoints.last_round() == 1
    assert signal.getsignal(number) is signal.default_int_handler
