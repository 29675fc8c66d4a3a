"""A client's examples are divided by blocks: what one recording gave stays on one side.

Windows of a recording that overlap hold the same samples. If some are trained on and others tested, the test asks for
what was seen. So whole blocks are held out. Where a class of a client has one block alone, its last part is, and what
shares something with the part before is left out.
"""

from collections.abc import Sequence

import numpy as np

from datasets.arrays import TrainBlocks
from datasets.partition_settings import PartitionSettings
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT

LAST_SHARE = 0.3  # of a block that is cut since it is its class's only one


def split_blocks(
    indices: np.ndarray, blocks: TrainBlocks, labels: np.ndarray | None, client: int, settings: PartitionSettings
) -> dict[str, np.ndarray]:
    """Divides one client's examples as `split_client` does, but by blocks: split -> ascending indices.

    Of each class, blocks are drawn until they have the share of examples that is nearest to what is to be held out, at
    least one and not all. They are divided into validation and test in the same way; one alone is cut in two. A class
    of one block gives its last `LAST_SHARE`, unless it has too few examples to be divided. Where a block is cut, the
    first `overlap` examples after the cut are left out.

    Args:
      indices: of the client's train examples, ascending.
      blocks: of all train examples.
      labels: classes of all train examples, by which blocks are drawn apart (a block counts for its most frequent
        one), shape (examples,); None where labels are no classes.
      client: its index.
      settings: with the shares and the seed.
    """
    share = settings.validation_fraction + settings.test_fraction
    parts: dict[str, list[np.ndarray]] = {"train": [], "validation": [], "test": []}
    rng = np.random.default_rng([settings.seed, 2, client])
    if len(indices) < MINIMUM_EXAMPLES_TO_SPLIT or not share:
        parts["train"].append(indices)
    else:
        for members in _group_by_class(indices, blocks.values, labels):
            drawn = [members[place] for place in rng.permutation(len(members))]
            if len(drawn) > 1:
                number = _count_nearest(drawn, share * sum(map(len, drawn)), len(drawn) - 1)
                train, held_out = drawn[number:], drawn[:number]
            elif len(drawn[0]) >= MINIMUM_EXAMPLES_TO_SPLIT:
                first, last = _cut(drawn[0], LAST_SHARE, blocks.overlap)
                train, held_out = [first], [last]
            else:
                train, held_out = drawn, []
            parts["train"] += train
            validation, test = _divide(held_out, settings.test_fraction / share, blocks.overlap)
            parts["validation"] += validation
            parts["test"] += test
    splits = {split: np.concatenate([indices[:0], *rows]) for split, rows in parts.items()}
    if settings.most_train_examples:
        splits["train"] = rng.permutation(splits["train"])[: settings.most_train_examples]
    return {split: np.sort(rows) for split, rows in splits.items()}


def _group_by_class(indices: np.ndarray, blocks: np.ndarray, labels: np.ndarray | None) -> list[list[np.ndarray]]:
    """The client's blocks, as indices of their examples, of each class."""
    own = blocks[indices]
    members: dict[int, list[np.ndarray]] = {}
    for block in np.unique(own):
        rows = indices[own == block]
        label = 0 if labels is None else int(np.bincount(labels[rows]).argmax())
        members.setdefault(label, []).append(rows)
    return [members[label] for label in sorted(members)]


def _count_nearest(blocks: Sequence[np.ndarray], target: float, most: int) -> int:
    """How many of the first blocks, at least 1 and at most so many, have nearest to this number of examples."""
    return 1 + int(np.argmin(np.abs(np.cumsum([len(block) for block in blocks[:most]]) - target)))


def _divide(held_out: list[np.ndarray], test_share: float, overlap: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(validation, test): of these blocks so large a share is tested."""
    if not held_out or test_share == 0:
        return held_out, []
    if test_share == 1:
        return [], held_out
    if len(held_out) == 1:
        validation, test = _cut(held_out[0], test_share, overlap)
        return [validation], [test]
    number = _count_nearest(held_out, test_share * sum(map(len, held_out)), len(held_out) - 1)
    return held_out[number:], held_out[:number]


def _cut(block: np.ndarray, share: float, overlap: int) -> tuple[np.ndarray, np.ndarray]:
    """(the first part, the last one without what shares something with the first); the last is so large a share."""
    end = len(block) - int(len(block) * share + 0.5)
    return block[:end], block[end + overlap if end else 0 :]
