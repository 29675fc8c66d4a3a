"""The card inside a file: any bytes come back, and what is wrong with a file is one line."""

import hashlib
import io
import json
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from launch.tflite.embedded_card import CARD_NAME, CardedFile, embed_card, read_card, split_file
from models.model_names import ModelError

HEAD = b"\x1c\x00\x00\x00TFL3"


def make_zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(CARD_NAME, "another")
    return file.getvalue()


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
@example(make_zip(), b"card")
@example(b"PK\x05\x06" + 18 * b"\0", b"PK\x05\x06" + 18 * b"\0")
def test_any_model_and_any_card_come_back(tail, card):
    file = embed_card(HEAD + tail, card)
    assert file.startswith(HEAD + tail)
    assert split_file(file) == CardedFile(HEAD + tail, card)
    assert embed_card(HEAD + tail, card) == file


def test_further_files_lie_beside_the_card_and_other_programs_unzip_them():
    file = embed_card(HEAD, b"{}", {"labels.txt": b"a\nb\n", "features.txt": b"c\n"})
    assert split_file(file) == CardedFile(HEAD, b"{}")
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        assert archive.testzip() is None
        read = {name: archive.read(name) for name in archive.namelist()}
    assert read == {CARD_NAME: b"{}", "labels.txt": b"a\nb\n", "features.txt": b"c\n"}


@settings(deadline=None)
@given(st.binary(max_size=200), st.data())
def test_a_file_that_is_cut_short_is_one_line(card, data):
    file = embed_card(HEAD, card)
    cut = file[: data.draw(st.integers(0, len(file) - 1))]
    with pytest.raises(ModelError) as error:
        split_file(cut)
    assert "\n" not in str(error.value)


@settings(deadline=None)
@given(st.data())
def test_a_changed_byte_never_passes_for_the_card(data):
    """Whatever byte is changed, the model and card come back as they were or there is one line."""
    model = HEAD + b"weights"
    card = make_card(model)
    file = bytearray(embed_card(model, card))
    file[data.draw(st.integers(0, len(file) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        assert read_card(bytes(file)) == json.loads(card)
    except ModelError as error:
        assert "\n" not in str(error)


def make_card(model):
    return json.dumps({"files": [{"model_sha256": hashlib.sha256(model).hexdigest()}]}).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no TFLite file"),
        (make_zip(), "no TFLite file"),
        (HEAD, "there is no card in it"),
        (HEAD + make_zip().replace(CARD_NAME.encode(), b"other.txt"), "there is no card in it"),
        (embed_card(HEAD, make_card(HEAD))[:-1], "a part of its card is gone"),
        (embed_card(HEAD, b"no JSON"), "its card is not as launch.export writes it"),
        (embed_card(HEAD, b"[]"), "its card is not as launch.export writes it"),
        (embed_card(HEAD, b'{"files": []}'), "its card is not as launch.export writes it"),
        (embed_card(HEAD + b"!", make_card(HEAD)), "the model is not the one that its card describes"),
    ],
)
def test_what_is_wrong_is_one_line(content, message):
    with pytest.raises(ModelError, match=message) as error:
        read_card(content)
    assert "\n" not in str(error.value)
