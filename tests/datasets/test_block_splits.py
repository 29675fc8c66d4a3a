"""Whole blocks are held out, by hand, and no window on one side shares a sample with one on another."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.arrays import TrainBlocks
from datasets.block_splits import split_blocks
from datasets.partition_settings import PartitionSettings

NATURAL = PartitionSettings(partition="natural", validation_fraction=0.25, test_fraction=0.25)


def split(sizes, classes=None, settings=NATURAL, overlap=1, client=0):
    """{split: indices} of blocks of these sizes and classes one after the other."""
    values = np.repeat(np.arange(len(sizes)), sizes)
    labels = None if classes is None else np.repeat(classes, sizes)
    return split_blocks(np.arange(len(values)), TrainBlocks(values, overlap), labels, client, settings)


def list_parts(parts):
    return [parts[name].tolist() for name in ("train", "validation", "test")]


def test_of_two_blocks_one_is_trained_on_and_the_other_cut_in_two():
    """One of 10 windows: 5 validate, the sixth shares samples with the fifth, 4 are tested."""
    seen = [list_parts(split([10, 10], settings=dataclasses.replace(NATURAL, seed=seed))) for seed in range(20)]
    first, second = list(range(10)), list(range(10, 20))
    assert [first, second[:5], second[6:]] in seen and [second, first[:5], first[6:]] in seen
    assert len({str(each) for each in seen}) == 2


def test_of_four_alike_two_are_trained_on_and_one_each_held_out():
    parts = split([5, 5, 5, 5])
    assert [len(parts[name]) for name in ("train", "validation", "test")] == [10, 5, 5]
    blocks = [set(np.unique(rows // 5)) for rows in parts.values()]
    assert not blocks[0] & blocks[1] and not blocks[1] & blocks[2] and len(set.union(*blocks)) == 4


def test_a_class_of_one_block_gives_its_last_part_less_what_overlaps():
    """Of 20 the last 6 are held out; of these the first shares samples with the 14 before it, and of the other 5 the
    validation has 2, the third is left out, and 2 are tested."""
    assert list_parts(split([20])) == [list(range(14)), [15, 16], [18, 19]]
    alone = dataclasses.replace(NATURAL, validation_fraction=0)
    assert list_parts(split([20], settings=alone)) == [list(range(14)), [], list(range(15, 20))]
    alone = dataclasses.replace(NATURAL, test_fraction=0)
    assert list_parts(split([20], settings=alone, overlap=3)) == [list(range(14)), [17, 18, 19], []]
    assert list_parts(split([20], settings=alone, overlap=9)) == [list(range(14)), [], []]


def test_classes_are_divided_apart_and_a_small_one_of_one_block_stays():
    """Class 0 has two blocks, class 1 one of 11: too few to be cut."""
    parts = split([8, 11, 8], classes=[0, 1, 0])
    assert set(range(8, 19)) <= set(parts["train"]) and len(parts["train"]) == 19
    assert len(parts["validation"]) == 4 and len(parts["test"]) == 3
    assert list_parts(split([5, 6])) == [list(range(11)), [], []]
    nothing = dataclasses.replace(NATURAL, validation_fraction=0, test_fraction=0)
    assert list_parts(split([20, 20], settings=nothing)) == [list(range(40)), [], []]


def test_few_train_examples_leave_the_other_splits_whole():
    whole, few = (split([20] * 5, settings=dataclasses.replace(NATURAL, most_train_examples=most)) for most in (0, 7))
    assert len(few["train"]) == 7 and set(few["train"]) < set(whole["train"])
    assert list_parts(few)[1:] == list_parts(whole)[1:]


SHARES = st.sampled_from([0.0, 1 / 12, 0.15, 0.25, 0.45])


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    classes=st.lists(st.integers(0, 2), min_size=12, max_size=12) | st.none(),
    shares=st.tuples(SHARES, SHARES),
    length=st.integers(1, 40),
    step=st.integers(1, 20),
    seed=st.integers(0, 3),
    most=st.integers(0, 30),
    is_mixed=st.booleans(),
)
def test_no_two_windows_that_share_samples_lie_on_two_sides(sizes, classes, shares, length, step, seed, most, is_mixed):
    """Recordings one after another, cut into windows of this length and step; rows of the file in any order of them."""
    overlap = -(-length // step) - 1
    values = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.concatenate([block * 10_000 + step * np.arange(size) for block, size in enumerate(sizes)])
    if is_mixed:  # the blocks' rows lie between each other
        order = np.argsort(starts % 10_000, kind="stable")
        values, starts = values[order], starts[order]
    labels = None if classes is None else np.array(classes)[values]
    indices = np.arange(0, 2 * len(values), 2)  # the other rows are another client's
    doubled = [None if array is None else np.repeat(array, 2) for array in (values, labels)]
    chosen = dataclasses.replace(
        NATURAL, validation_fraction=shares[0], test_fraction=shares[1], seed=seed, most_train_examples=most
    )
    parts = split_blocks(indices, TrainBlocks(doubled[0], overlap), doubled[1], 5, chosen)
    again = split_blocks(indices, TrainBlocks(doubled[0], overlap), doubled[1], 5, chosen)
    used = np.concatenate(list(parts.values()))
    assert len(set(used)) == len(used) and set(used) <= set(indices) and len(parts["train"])
    assert all(np.all(np.diff(rows) > 0) and np.array_equal(rows, again[name]) for name, rows in parts.items())
    samples = [set((starts[rows // 2, np.newaxis] + np.arange(length)).ravel().tolist()) for rows in parts.values()]
    assert not (samples[0] & samples[1] or samples[0] & samples[2] or samples[1] & samples[2])
    if not shares[0]:
        assert not len(parts["validation"])
    if not shares[1]:
        assert not len(parts["test"])
    # At most two cuts in a class.
    assert most or len(indices) - len(used) <= 2 * overlap * (1 if labels is None else len(set(labels)))
