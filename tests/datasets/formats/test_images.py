"""Folders of images, by clients and classes."""

import dataclasses
import os

import numpy as np
import PIL.Image
import pytest
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.formats.images import choose_image_partition, is_image_tree, open_image_tree

OPTIONS = DatasetOptions()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    return path


def draw(path, value=0, size=(5, 4), mode="L", **how):
    """An image of one colour, size as (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new(mode, size, value).save(path, **how)


def draw_all(folder, *names):
    """Images of the values 0, 1, ..."""
    for value, name in enumerate(names):
        draw(folder / name, value)
    return open_folder(folder)


def open_folder(folder, **options):
    return open_image_tree(str(folder), dataclasses.replace(OPTIONS, **options))


def test_a_folder_a_client_and_a_folder_a_class(folder):
    source = draw_all(folder, "Zoë/cat/b.png", "Zoë/cat/a.png", "Zoë/dog/1.png", "bob/dog/x.PNG", "10/cat/1.png")
    assert source.client_names == ("10", "Zoë", "bob") and source.format.class_names == ("cat", "dog")
    assert source.format.input_shape == (4, 5, 1) and source.format.input_dtype == "uint8"
    assert source.format.preprocessing.scale == 1 / 255
    x, y = source.read(1, "train")
    assert x[:, 0, 0, 0].tolist() == [1, 0, 2] and y.tolist() == [0, 0, 1] and x.dtype == np.uint8
    assert source.count_labels().tolist() == [[1, 0], [2, 1], [0, 1]]
    assert "in grey; a folder a class, a folder a client, 3" in source.reading
    assert choose_image_partition(str(folder), OPTIONS) == "natural" and is_image_tree(str(folder))


def test_classes_without_clients(folder):
    source = draw_all(folder, "cat/1.png", "dog/1.png", "dog/2.png")
    assert not source.has_clients and source.num_examples["train"].tolist() == [3]
    assert choose_image_partition(str(folder), OPTIONS) == ""


@pytest.mark.parametrize("client", ["", "ann/"])
def test_train_and_test_on_top(folder, client):
    source = draw_all(
        folder, *(f"{each}/1.png" for each in (f"train/{client}cat", f"train/{client}dog", f"test/{client}dog"))
    )
    assert source.num_examples["train"].tolist() == [2] and source.num_examples["test"].tolist() == [1]
    assert source.read(0, "test")[0][0, 0, 0, 0] == 2 and source.has_clients == bool(client)


def test_resized_and_converted_on_request(folder):
    draw(folder / "cat/1.png", (10, 20, 30), (8, 4), "RGB")
    draw(folder / "dog/1.png", 7, (3, 9), "L")
    draw(folder / "dog/2.png", (1, 2, 3, 4), (3, 3), "RGBA")
    source = open_folder(folder, image_size=6, image_colour="colour")
    x, _ = source.read(0, "train")
    assert x.shape == (3, 6, 6, 3) and x[0, 0, 0].tolist() == [10, 20, 30] and x[1, 5, 5].tolist() == [7, 7, 7]
    assert "in colour, resized to 6 x 6" in source.reading
    grey = open_folder(folder, image_size=6, image_colour="grey").read(0, "train")[0]
    # 0.299 R + 0.587 G + 0.114 B of (10, 20, 30)
    assert grey.shape == (3, 6, 6, 1) and grey[0, 0, 0, 0] in (18, 19)


def test_a_photograph_is_turned_as_its_camera_says(folder):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    draw(folder / "cat/1.jpg", (9, 9, 9), (8, 4), "RGB", exif=exif)
    draw(folder / "dog/1.jpg", (9, 9, 9), (4, 8), "RGB")
    source = open_folder(folder)
    assert source.format.input_shape == (8, 4, 3) and source.read(0, "train")[0].shape == (2, 8, 4, 3)


def test_pixels_are_decoded_once_whatever_their_scale(folder, monkeypatch):
    first = draw_all(folder, "a/cat/1.png", "b/dog/1.png")
    monkeypatch.setattr("datasets.formats.images.read_image", lambda *_: pytest.fail("decoded twice"))
    source = open_folder(folder, scale="0.5", task="binary")
    assert source.num_examples["train"].tolist() == [1, 1] and source.digest == first.digest
    assert source.format.preprocessing.scale == 0.5 and source.format.labels.task == "binary"
    assert source.reading.startswith("images of 4 x 5 pixels, 1 channel, scaled by 1/2, in grey; a folder a class")


def test_the_digest_is_of_the_images_their_paths_and_how_they_are_read(folder):
    first, resized = draw_all(folder, "cat/1.png", "dog/1.png"), open_folder(folder, image_size=3)
    os.rename(folder / "dog/1.png", folder / "dog/2.png")
    renamed = open_folder(folder)
    draw(folder / "dog/2.png", 5)
    changed = open_folder(folder)
    assert changed.read(0, "train")[0][1, 0, 0, 0] == 5
    assert len({source.digest for source in (first, resized, renamed, changed)}) == 4


WRONG = {
    "another size": (lambda odd: draw(odd, 0, (6, 4)), {}, "6 x 4 pixels in grey, expected 5 x 4 pixels in grey"),
    "colour": (
        lambda odd: draw(odd, (0, 0, 0), mode="RGB"),
        {},
        "5 x 4 pixels in colour, expected 5 x 4 pixels in grey",
    ),
    "16 bits": (lambda odd: draw(odd, 9, mode="I;16"), {}, "its pixels are I;16, expected 8 bits"),
    "text": (lambda odd: odd.write_text("no image"), {}, "no image, or a damaged one"),
    "nothing": (lambda odd: odd.write_bytes(b""), {}, "no image, or a damaged one"),
    "deeper": (lambda odd: draw(odd.parent / "new" / "z.png"), {}, "expected <client>/<class>/<image>"),
    "higher": (lambda odd: draw(odd.parent.parent / "z.png"), {}, "expected <client>/<class>/<image>"),
    "an empty folder": (lambda odd: (odd.parent.parent / "wolf").mkdir(), {}, "wolf: no image in it"),
    "a regression": (lambda odd: None, {"task": "regression"}, "task=regression: the folders of images are classes"),
    "a giant": (lambda odd: draw(odd, 0, (20000, 10000), mode="1"), {}, "a damaged image (Image size (200000000"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_that_names_the_odd_one(folder, name):
    spoil_it, options, expected = WRONG[name]
    draw(folder / "ann/cat/1.png")
    draw(folder / "ann/dog/1.png")
    spoil_it(folder / "ann/dog/zz.png")
    caught = assert_refused("", open_folder, folder, **options)
    assert expected in caught and str(folder) in caught


def test_an_image_that_is_cut_is_named(folder):
    for name in ("cat/1.png", "dog/1.png"):
        draw(folder / name, size=(50, 50))
    os.truncate(folder / "dog/1.png", 60)
    assert_refused(r"dog/1\.png: a damaged image", open_folder, folder)


def test_a_pipe_is_no_image(folder):
    draw_all(folder, "cat/1.png", "dog/1.png")
    os.mkfifo(folder / "dog/2.png")
    assert open_folder(folder).num_examples["train"].tolist() == [2]


def test_one_class_and_no_image_are_one_line(folder):
    assert_refused("no image in this folder", open_folder, folder)
    assert not is_image_tree(str(folder))
    assert_refused("1 class, expected at least 2", draw_all, folder, "cat/1.png")
