"""Images that say more than they should: bombs, animations, stacks, pixels of 16 bits, programs, cut files."""

import io
import struct
import zlib

import numpy as np
import PIL.Image
import pytest
from refusals import assert_refused

from datasets import image_pixels
from datasets.image_pixels import ImageLayout, count_at_once, read_image

OWN, PUBLISHED = ImageLayout(), ImageLayout(is_published=True)


def encode(image, kind="PNG", **how):
    content = io.BytesIO()
    image.save(content, kind, **how)
    return content.getvalue()


def encode_all(kind, *values, sizes=((3, 2), (3, 2))):
    first, *others = [PIL.Image.new("L", size, value) for size, value in zip(sizes, values, strict=True)]
    return encode(first, kind, save_all=True, append_images=others)


def claim_size(width, height):
    """A PNG of 67 bytes whose head says that it is of this size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = []
    for kind, body in ((b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")):
        parts.append(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def read(content, layout=OWN):
    return read_image(io.BytesIO(content), "x", layout)


WRONG = {
    "a bomb": (claim_size(1, 10**9), "Image size"),
    "a smaller bomb": (claim_size(1, 89_478_486), r"Image size \(89478486 pixels\) exceeds limit of 89478485"),
    "an animation": (encode_all("GIF", 10, 200), "holds several pictures"),
    "an animated PNG": (encode_all("PNG", 10, 200), "holds several pictures"),
    "an animated WebP": (encode_all("WEBP", 10, 200), "holds several pictures"),
    "a stack": (encode_all("TIFF", 10, 200), "holds several pictures"),
    "16 bits": (encode(PIL.Image.fromarray(np.array([[300, 4]], np.uint16))), "its pixels are I;16"),
    "32 bits": (encode(PIL.Image.fromarray(np.array([[300, 4]], np.int32)), "TIFF"), "its pixels are I"),
    "fractions": (encode(PIL.Image.fromarray(np.array([[0.5, 4]], np.float32)), "TIFF"), "its pixels are F"),
    "a program": (encode(PIL.Image.new("RGB", (4, 4)), "EPS"), "no image, or a damaged one"),
    "a cut one": (encode(PIL.Image.new("L", (40, 40)))[:-30], "a damaged image"),
    "nothing": (b"", "no image, or a damaged one"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("layout", [OWN, PUBLISHED], ids=["own", "published"])
def test_what_cannot_be_read_rightly_is_one_line(name, layout, recwarn):
    content, expected = WRONG[name]
    caught = assert_refused(expected, read, content, layout)
    assert "\n" not in caught and not len(recwarn)


def test_an_image_of_another_size_is_not_unpacked(monkeypatch):
    layout = OWN.fix(np.zeros((2, 3, 1), np.uint8))
    monkeypatch.setattr(PIL.Image.Image, "convert", lambda *_: pytest.fail("unpacked"))
    assert_refused("x: 9000 x 9000 pixels in grey, expected 3 x 2 pixels in grey", read, claim_size(9000, 9000), layout)


def test_pictures_of_one_page_are_read_whatever_their_form():
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for kind in ("PNG", "GIF", "TIFF", "BMP", "PPM"):
        assert read(encode(PIL.Image.fromarray(pixels), kind))[..., 0].tolist() == pixels.tolist()
    preview = encode_all("TIFF", 10, 200, sizes=((3, 2), (1, 1)))
    assert read(preview)[..., 0].tolist() == [[10] * 3] * 2
    inks = encode(PIL.Image.new("CMYK", (1, 1), (0, 255, 255, 0)), "TIFF")
    assert read(inks)[0, 0].tolist() == [255, 0, 0]


def test_a_turned_photo_has_the_size_that_it_is_shown_in():
    photo = PIL.Image.new("L", (3, 2), 7)
    photo.getexif()[0x0112] = 6
    turned = encode(photo, exif=photo.getexif())
    assert read(turned, OWN.fix(np.zeros((3, 2, 1), np.uint8))).shape == (3, 2, 1)
    assert read(turned, PUBLISHED).shape == (2, 3, 1)


def test_images_at_once_are_bounded_by_their_bytes():
    assert count_at_once((28, 28, 1)) == 2**26 // 784 and count_at_once((9000, 9000, 3)) == 1
    assert image_pixels.BYTES_AT_ONCE == 2**26
