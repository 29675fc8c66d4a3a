"""The handwritten digits that come with scikit-learn: 1,797 real images of 8x8 pixels, no download.

Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

import numpy as np

from datasets.arrays import DIGITS_FORMAT, ArrayDataset, hold_out_test_part, make_array_dataset


def load_digits_arrays(seed: int = 0) -> ArrayDataset:
    """Grey values 0..16 as uint8, shape (8, 8, 1); a stratified fifth, drawn from `seed`, is the test set."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = bunch.images.astype(np.uint8)[..., np.newaxis]
    train, test = hold_out_test_part(bunch.target, 0.2, seed)
    return make_array_dataset(
        "digits",
        (images[train], bunch.target[train]),
        (images[test], bunch.target[test]),
        DIGITS_FORMAT.class_names,
        DIGITS_FORMAT.preprocessing,
    )
