"""Figures in few colours: they are kept in git, and a palette takes a third of the bytes of full colour."""

import pathlib

COLORS = 64  # lines, bands and their smooth edges


def reduce_colors(path: pathlib.Path) -> None:
    """Rewrites a PNG with a palette of COLORS."""
    from PIL import Image

    with Image.open(path) as image:
        reduced = image.convert("RGB").quantize(COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)
