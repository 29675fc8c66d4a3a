"""Figures in few colours look the same and are small."""

import numpy as np
from PIL import Image

from reproductions.engine.palette import COLORS, reduce_colors


def test_a_figure_keeps_its_colours_and_is_the_same_again(tmp_path):
    path = tmp_path / "figure.png"
    pixels = np.full((40, 60, 4), 255, np.uint8)
    pixels[10:20, 5:50, :3] = (200, 30, 30)
    Image.fromarray(pixels).save(path)
    reduce_colors(path)
    with Image.open(path) as image:
        assert image.mode == "P" and len(image.getcolors()) <= COLORS
        assert np.array_equal(np.array(image.convert("RGB")), pixels[..., :3])
    before = path.read_bytes()
    reduce_colors(path)
    assert path.read_bytes() == before
