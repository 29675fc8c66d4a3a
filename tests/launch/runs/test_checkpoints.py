"""Checkpoints come back as they were, whatever their nesting and however their lists grew; damaged ones are noticed."""

import collections
import signal
from typing import NamedTuple

import numpy as np
import pytest
import tree

from files.writing import replace_whole
from launch.runs import checkpoints as module
from launch.runs.checkpoints import KEPT, Checkpoints, find_checkpoints, flatten_state, pack_state
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
def folder(tmp_path):
    return tmp_path / "checkpoints"


@pytest.fixture
def checkpoints(folder):
    return Checkpoints(folder)


def name_of(round_num):
    return f"round_{round_num}.npz"


def read_entries(path):
    with np.load(path) as file:
        return dict(file)


def test_a_state_comes_back_in_any_layout_and_with_other_shapes_than_the_template(checkpoints):
    assert checkpoints.last_round() == 0
    layouts = (np.float32(0.1), np.array(7, np.int8), 0.1, True, np.arange(6.0).reshape(2, 3).T, np.arange(9)[::2])
    for i, (state, template) in enumerate([(make_state(5), make_state(1)), (layouts, (0,) * 6)], 1):
        checkpoints.save(state, i)
        loaded = checkpoints.load(i, template)
        assert type(loaded) is type(state)
        for got, expected in zip(tree.flatten(loaded), tree.flatten(state), strict=True):
            assert (got.dtype, got.shape) == (np.asarray(expected).dtype, np.shape(expected))
            np.testing.assert_array_equal(got, expected)


def test_the_last_ones_are_kept_and_what_a_killed_save_did_not_remove_goes_with_the_next(checkpoints, folder):
    for round_num in (1, 2, 9, 10):
        checkpoints.save(make_state(round_num), round_num)
    left = (folder / name_of(9)).read_bytes()
    (folder / name_of(2)).write_bytes(left)
    checkpoints.save(make_state(3), 10)  # there already
    assert checkpoints.last_round() == 10
    assert int(checkpoints.load(10, make_state(1)).round_num) == 10
    assert KEPT == 2 and {path.name for path in folder.iterdir()} == {name_of(9), name_of(10)}


def test_an_unfinished_save_is_cleared_away_but_not_one_that_goes_on(tmp_path):
    with replace_whole(tmp_path / name_of(4)) as draft:
        draft.write_bytes(b"half")
        assert Checkpoints(tmp_path).last_round() == 0 and draft.exists()
    (tmp_path / name_of(4)).rename(tmp_path / f".123.{name_of(4)}")
    assert Checkpoints(tmp_path).last_round() == 0 and list(tmp_path.iterdir()) == []


def test_a_save_that_fails_leaves_what_was_there(checkpoints, folder, monkeypatch):
    checkpoints.save(make_state(1), 1)

    def fail(file, **leaves):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="no space left"):
        checkpoints.save(make_state(2), 2)
    assert [path.name for path in folder.iterdir()] == [name_of(1)]


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change_a_leaf(path):
    entries = read_entries(path)
    entries["leaf_1"][0] += 1
    np.savez(path, **entries)


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    place = content.rindex(np.full(6, 5, np.float32).tobytes())
    content[place] ^= 1
    path.write_bytes(content)


def leave_out_a_leaf(path):
    """A whole checkpoint, of a state with fewer leaves."""
    module._write(path, [np.zeros(3)])


def raise_the_version(path):
    np.savez(path, **(read_entries(path) | {"version": module.VERSION + 1}))


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": truncate,
    "no zip": lambda path: path.write_text("a file of someone else"),
    "foreign npz": lambda path: np.savez(path, x=np.zeros(3)),
    "pickled": lambda path: np.savez(path, version=module.VERSION, digest=np.array([object()]), leaf_0=1),
    "wrong digest": change_a_leaf,
    "flipped bit": change_a_byte,
    "fewer leaves": leave_out_a_leaf,
    "other version": raise_the_version,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(checkpoints, folder, capsys, damage):
    assert checkpoints.restore("template") == (0, "template")
    for round_num in (4, 5):
        checkpoints.save(make_state(round_num), round_num)
    damage(folder / name_of(5))
    round_num, state = checkpoints.restore(make_state(1))
    assert (round_num, int(state.round_num)) == (4, 4)
    said = "resume   the checkpoint of round 5 is damaged; going on from round 4"
    assert capsys.readouterr().out.splitlines() == [said]
    assert checkpoints.last_round() == 4
    checkpoints.save(make_state(5), 5)  # the damaged one is out of the way
    assert checkpoints.restore(make_state(1))[0] == 5
    assert capsys.readouterr().out == ""


def test_without_a_whole_checkpoint_nothing_is_removed(checkpoints, folder):
    for round_num in (1, 2):
        checkpoints.save(make_state(round_num), round_num)
        truncate(folder / name_of(round_num))
    with pytest.raises(RunFolderError, match="no checkpoint in it can be read"):
        checkpoints.restore(make_state(1))
    assert list(find_checkpoints(folder)) == [1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_waits_for_the_save(checkpoints, monkeypatch, number):
    def interrupted_savez(*arguments, **entries):
        signal.raise_signal(number)
        savez(*arguments, **entries)

    savez, before = np.savez, signal.signal(number, signal.default_int_handler)
    monkeypatch.setattr(np, "savez", interrupted_savez)
    try:
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(make_state(2), 1)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert checkpoints.restore(make_state(1))[0] == 1


class Clock(NamedTuple):
    time_s: np.float64
    events: tuple


def make_nested():
    return {
        "z": [np.int8(1), (np.zeros((2, 0)), True)],
        "a": Clock(np.float64(0.5), (np.arange(3), {}, ())),
        "m": collections.OrderedDict(second=2.0, first=np.float32(3)),
    }


def test_the_order_is_that_of_tf_nest():
    import tensorflow as tf

    leaves, expected = flatten_state(make_nested()), tf.nest.flatten(make_nested())
    assert [leaf.dtype.name for leaf in leaves] == ["float64", "int64", "float32", "float64", "int8", "float64", "bool"]
    np.testing.assert_equal(leaves, expected)
    packed = pack_state(make_nested(), leaves)
    tf.nest.assert_same_structure(packed, make_nested())
    assert [leaf.tolist() for leaf in flatten_state(packed)] == [leaf.tolist() for leaf in leaves]
    assert type(packed["a"]) is Clock and list(packed["m"]) == ["second", "first"]
    assert type(packed["a"].time_s) is np.float64 and type(packed["z"][0]) is np.int8


def test_what_is_no_number_and_a_wrong_number_of_leaves_are_refused():
    for leaf in (None, "text", b"bytes", object()):
        with pytest.raises(TypeError, match="expected arrays of numbers only"):
            flatten_state((1, [leaf]))
    for count in (6, 8):
        with pytest.raises(ValueError, match=f"{count} leaves, expected 7"):
            pack_state(make_nested(), [np.zeros(())] * count)
