"""LEAF's JSON in each of its forms, and wrong in each way."""

import json
import os
import pathlib

import numpy as np
import PIL.Image
import pytest
from refusals import assert_refused

from datasets.catalog import DATASETS, load_arrays
from datasets.character_text import OOV, PAD, TOKEN_NAMES
from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions
from datasets.file_formats import find_format, get_format, open_data
from datasets.formats.leaf import is_leaf, make_format, recognise_schema

LINE = "O Romeo, Romeo! wherefore art thou Romeo? Deny thy father and refuse thy name; Or, if thou wilt not"


def make_content(users, /, **changes):
    """A file of LEAF's: {user: (x, y)}."""
    content = {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {name: {"x": x, "y": y} for name, (x, y) in users.items()},
    }
    return {**content, **changes}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def write_all(folder, users, **changes):
    write(folder / "all_data.json", make_content(users, **changes))
    return folder


def open_folder(folder, **options):
    return open_data(DatasetOptions(data=str(folder), **options))


def load(name, folder, **options):
    return load_arrays(name, DatasetOptions(str(folder), download=False, **options))


def read(source, name, split=TRAIN):
    return source.read(source.client_names.index(name), split)


def make_numbers(*rows):
    return [[float(value), 0.5, -2] for value in rows]


def test_numbers_are_features_and_labels_may_be_texts(tmp_path):
    users = {"f_10": (make_numbers(3), [0]), "f_9": (make_numbers(1, 2), [2, 1]), "Zoë": (make_numbers(4), [0])}
    source = open_folder(write_all(tmp_path / "numbers", users))
    assert set(source.client_names) == {"Zoë", "f_10", "f_9"} and not source.has_tests
    x, y = read(source, "f_9")
    np.testing.assert_array_equal(x, np.array(make_numbers(1, 2), np.float32))
    assert (y.tolist(), source.format.class_names) == ([2, 1], ("0", "1", "2"))
    users = {"a": (make_numbers(1, 2), ["warm", "cold"]), "b": (make_numbers(2), ["hot"])}
    source = open_folder(write_all(tmp_path / "texts", users))
    assert source.format.class_names == ("cold", "hot", "warm")
    assert [read(source, name)[1].tolist() for name in "ab"] == [[2, 0], [1]]


def test_folders_train_and_test_are_each_users_own_splits(tmp_path):
    write(tmp_path / "data" / "train" / "all_data_0.json", make_content({"a": (make_numbers(1, 2), [0, 1])}))
    write(tmp_path / "data" / "train" / "all_data_1.json", make_content({"b": (make_numbers(5), [1])}))
    write(
        tmp_path / "data" / "test" / "all_data_0.json",
        make_content({"b": (make_numbers(6), [0]), "a": (make_numbers(3), [1])}),
    )
    write(tmp_path / "data" / "all_data" / "all_data_0.json", "not read, since train and test are made of it")
    for path in (tmp_path, tmp_path / "data"):
        source = open_folder(path)
        assert [source.num_examples[split].tolist() for split in (TRAIN, TEST)] == [[2, 1], [1, 1]]
        assert read(source, "a", TEST)[1].tolist() == [1]
        assert read(source, "b", TEST)[0][0, 0] == 6
    assert find_format(str(tmp_path)) == get_format("leaf")


def test_a_single_file_is_read_and_a_second_time_from_the_store(tmp_path):
    path = write(tmp_path / "some.json", make_content({"a": (make_numbers(1), [0]), "b": (make_numbers(2), [1])}))
    assert is_leaf(str(path))
    first, second = open_folder(path), open_folder(path)
    assert first.digest == second.digest
    np.testing.assert_array_equal(read(first, "b")[0], read(second, "b")[0])
    write(path, make_content({"a": (make_numbers(9), [0]), "b": (make_numbers(2), [1])}))
    assert open_folder(path).digest != first.digest


def test_other_json_is_not_leafs(tmp_path):
    for name, content in (("a.json", {"features": [1]}), ("b.json", "[1]"), ("users.csv", '{"users"')):
        assert not is_leaf(str(write(tmp_path / name, content)))
    assert not is_leaf(str(tmp_path))


def test_hierarchies_stand_beside_the_users(tmp_path):
    users = {"a": (make_numbers(1), [0]), "b": (make_numbers(2), [1])}
    assert len(open_folder(write_all(tmp_path / "a", users, hierarchies=["play 1", "play 2"])).client_names) == 2
    folder = write_all(tmp_path / "b", users, hierarchies=["play 1"])
    assert_refused(r"all_data\.json: 1 hierarchies for 2 users", open_folder, folder)


def test_femnist_is_emnist_with_the_background_one(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.random((3, 784)).round(3)
    source = open_folder(write_all(tmp_path, {"f0_1": (images.tolist(), [0, 35, 61])}))
    x, y = read(source, "f0_1")
    np.testing.assert_array_equal(x, images.reshape(3, 28, 28, 1).astype(np.float32))
    assert [source.format.class_names[label] for label in y] == ["0", "Z", "z"]


def test_characters_predict_the_one_after_the_last(tmp_path):
    xs, ys = [LINE[:80], LINE[1:81]], [LINE[80], "é"]
    x, y = read(open_folder(write_all(tmp_path, {"ROMEO": (xs, ys)})), "ROMEO")
    assert "".join(TOKEN_NAMES[token] for token in x[1]) == xs[1]
    assert (y[:, :-1] == PAD).all()
    assert TOKEN_NAMES[y[0, -1]] == ys[0]
    assert y[1, -1] == OOV


def test_leafs_shakespeare_is_found_by_name(tmp_path):
    users = {"A": ([LINE[:80]], [LINE[80]])}
    write(tmp_path / "shakespeare" / "train" / "all_data.json", make_content(users))
    write(tmp_path / "shakespeare" / "test" / "all_data.json", make_content({"A": ([LINE[5:85]], [LINE[85]])}))
    source = load("shakespeare", tmp_path)
    assert (source.name, source.client_names, source.has_tests) == ("shakespeare", ("A",), True)
    assert_refused("sequence_length=0 or as many", load, "shakespeare", tmp_path, sequence_length=70)
    for part, users in (("train", (make_numbers(1, 2), [0, 1])), ("test", (make_numbers(3), [0]))):
        write(tmp_path / "shakespeare" / part / "all_data.json", make_content({"A": users}))
    assert_refused("its examples are features, expected characters", load, "shakespeare", tmp_path)


def test_tweets_become_their_first_words(tmp_path):
    tweets = [["1", "Mon", "NO_QUERY", "me", "Good good MORNING!"], ["2", "Tue", "NO_QUERY", "me", "morning, rain"]]
    source = open_folder(write_all(tmp_path, {"me": (tweets, [1, 0])}), vocabulary_size=3, sequence_length=4)
    # good 2, morning 2, then of "!", "," and "rain" the first.
    x, y = read(source, "me")
    assert x.tolist() == [[1, 1, 2, 3], [2, 4, 4, 0]]
    assert y.tolist() == [1, 0]
    assert source.format.takes_tokens


def test_pieces_of_comments_predict_the_next_word(tmp_path):
    x = [[["<BOS>", "so", "it"], ["goes", "<PAD>", "<PAD>"]]]
    y = [{"target_tokens": [["so", "it", "goes"], ["<EOS>", "<PAD>", "<PAD>"]], "count_tokens": 4}]
    source = open_folder(write_all(tmp_path, {"me": (x, y)}), sequence_length=3)
    tokens, targets = read(source, "me")
    names = source.format.class_names
    assert [[names[token] for token in row] for row in tokens] == [["<BOS>", "so", "it"], ["goes", "<pad>", "<pad>"]]
    assert [[names[token] for token in row] for row in targets] == [["so", "it", "goes"], ["<oov>", "<pad>", "<pad>"]]
    assert source.format.labels.task == "next_token"


@pytest.fixture
def celeba(tmp_path):
    folder = tmp_path / "celeba"
    (folder / "raw" / "img_align_celeba").mkdir(parents=True)
    for number, colour in enumerate([(255, 0, 0), (0, 0, 255), (0, 255, 0)], start=1):
        PIL.Image.new("RGB", (20, 10), colour).save(folder / "raw" / "img_align_celeba" / f"{number:06}.png")
    write(folder / "train" / "all_data.json", make_content({"7": (["000001.png", "000002.png"], [1, 0])}))
    write(folder / "test" / "all_data.json", make_content({"7": (["000003.png"], [1])}))
    return folder


def test_names_of_images_become_the_images(celeba):
    source = load("celeba", celeba.parent, image_size=6)
    x, y = read(source, "7")
    assert (x.shape, x.dtype, x[0, 3, 3].tolist()) == ((2, 6, 6, 3), np.uint8, [255, 0, 0])
    assert (source.format.class_names, y.tolist()) == (("not smiling", "smiling"), [1, 0])
    assert load("celeba", celeba.parent).format.input_shape == (84, 84, 3)
    assert load("celeba", celeba.parent, image_colour="grey").read(0, TEST)[0].shape == (1, 84, 84, 1)
    assert DATASETS["celeba"].find(str(celeba.parent)).found


def test_a_missing_or_damaged_image_is_one_line(celeba):
    images = celeba / "raw" / "img_align_celeba"
    (images / "000003.png").write_bytes(b"no image")
    os.rename(images / "000002.png", celeba / "away.png")
    assert_refused(r"000002\.png: no such image, though the data name it", load, "celeba", celeba.parent)
    os.rename(celeba / "away.png", images / "000002.png")
    assert_refused(r"000003\.png: no image, or a damaged one", load, "celeba", celeba.parent)


def test_images_are_decoded_once_and_anew_when_one_has_changed(celeba, monkeypatch):
    first = load("celeba", celeba.parent, image_size=6)
    with monkeypatch.context() as patch:
        patch.setattr("datasets.formats.leaf.read_image", lambda *_: pytest.fail("decoded twice"))
        assert load("celeba", celeba.parent, image_size=6).digest == first.digest
    PIL.Image.new("RGB", (20, 10), (7, 8, 9)).save(celeba / "raw" / "img_align_celeba" / "000001.png")
    second = load("celeba", celeba.parent, image_size=6)
    assert read(second, "7")[0][0, 3, 3].tolist() == [7, 8, 9] and second.digest != first.digest


def test_images_are_resized_as_pillow_does_by_itself_and_users_without_examples_stay(celeba):
    content = make_content({"7": (["000001.png"], ["no"]), "8": ([], []), "10": (["000002.png"], ["yes"])})
    write(celeba / "train" / "all_data.json", content)
    write(celeba / "test" / "all_data.json", make_content({"7": (["000003.png"], ["yes"])}))
    pixels = np.random.default_rng(0).integers(0, 256, (10, 20, 3), np.uint8)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.fromarray(pixels).save(celeba / "raw" / "img_align_celeba" / "000001.png", exif=exif)
    source = open_folder(celeba)
    assert source.client_names == ("7", "8", "10") and source.num_examples[TRAIN].tolist() == [1, 0, 1]
    np.testing.assert_array_equal(read(source, "7")[0][0], PIL.Image.fromarray(pixels).resize((84, 84)))
    assert source.format.class_names == ("no", "yes") and read(source, "10")[1].tolist() == [1]
    assert read(source, "8")[0].shape == (0, 84, 84, 3)


@pytest.mark.parametrize("schema", ["images", "features", "characters", "image_names", "tweets", "words"])
def test_the_schema_of_examples_is_recognised_by_their_format(schema):
    assert recognise_schema(make_format(schema, (28, 28, 1), ("0", "1"), ("a",))) == schema


def test_the_name_of_an_image_never_leads_out_of_its_folder(celeba):
    write(celeba / "train" / "all_data.json", make_content({"7": (["1.png", "../../secret.png"], [1, 0])}))
    assert_refused("expected the name of an image file", load, "celeba", celeba.parent)


GOOD = {"a": (make_numbers(1), [0]), "b": (make_numbers(2, 3), [1, 0])}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (make_content(GOOD, num_samples=[1, 3]), "user 'b' has 2 examples, num_samples says 3"),
        (make_content(GOOD, num_samples=[1]), "1 num_samples for 2 users"),
        (make_content(GOOD, users=["a", "b", "a"], num_samples=[1, 2, 1]), "user 'a' is there twice"),
        (make_content(GOOD, users=["a", "c"]), "user 'c' has no user_data"),
        (make_content(GOOD, users=["a"], num_samples=[1]), "user_data has user 'b', who is not among the users"),
        (make_content(GOOD, users=["a", 5]), "users holds what is no text"),
        (
            make_content({**GOOD, "b": (make_numbers(2, 3, 4), [1, 0])}),
            "user 'b' has 3 examples in x, but 2 labels in y",
        ),
        (make_content({**GOOD, "b": ([[1.0, 2.0]], [1])}), r"user 'b': example 0 \(from 0\) has 2 numbers, expected 3"),
        (make_content({**GOOD, "b": (make_numbers(float("nan")), [1])}), "user 'b': x holds NaN or infinity"),
        (make_content({**GOOD, "b": ([["a", 1, 2]], [1])}), "user 'b': x holds what is no number"),
        (make_content({**GOOD, "b": (make_numbers(1), [-1])}), r"user 'b': label 0 \(from 0\) is -1, expected whole"),
        (
            make_content({**GOOD, "b": (make_numbers(1), [0.5])}),
            r"user 'b': label 0 \(from 0\) is 0\.5, expected whole",
        ),
        (
            make_content({**GOOD, "b": (make_numbers(1), [None])}),
            r"user 'b': label 0 \(from 0\) is None, expected whole",
        ),
        (make_content({"a": ([{"an": "object"}], [1])}), "user 'a': x is .* of none of LEAF's forms"),
        (
            make_content({"a": ([LINE[:80], LINE[:79]], ["a", "b"])}),
            r"user 'a': example 1 \(from 0\) has 79 characters",
        ),
        (
            make_content({"a": ([LINE[:80]] * 2, ["a", "bc"])}),
            r"user 'a': label 1 \(from 0\) is 'bc', expected one char",
        ),
        (make_content({"a": ([], [])}), "nobody has an example to train on"),
        ({**make_content(GOOD), "user_data": []}, "user_data is no object"),
        ({**make_content(GOOD), "user_data": {"a": 1, "b": 2}}, "user 'a' has no lists x and y"),
        (json.dumps(make_content(GOOD))[:-5], "damaged or truncated"),
        ('{"users": "\xff', "damaged or truncated"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_file_and_user(tmp_path, content, message):
    path = write(tmp_path / "all_data.json", content)
    error = assert_refused(message, open_folder, tmp_path)
    assert str(path) in error or "nobody" in message


def test_a_user_in_two_files_of_one_part_is_refused(tmp_path):
    for number in range(2):
        write(tmp_path / f"all_data_{number}.json", make_content({"a": (make_numbers(number), [number])}))
    assert_refused(r"all_data_1\.json: user 'a' is there twice, first in .*all_data_0\.json", open_folder, tmp_path)


def test_a_test_split_that_is_trained_on_is_refused_and_single_repeats_are_noted(tmp_path):
    write(tmp_path / "train" / "a.json", make_content({"a": (make_numbers(1, 2, 3), [0, 1, 0])}))
    test = write(tmp_path / "test" / "a.json", make_content({"a": (make_numbers(2, 3), [1, 0])}))
    assert_refused("user 'a': all 2 test examples are among its train examples, too", open_folder, tmp_path)
    write(test, make_content({"a": (make_numbers(2, 9), [1, 0])}))
    assert open_folder(tmp_path).notes == ("1 test example is among the train examples of the same user, first 'a'",)
    write(test, make_content({"a": (make_numbers(2, 9), [0, 0])}))  # another label, another example
    assert open_folder(tmp_path).notes == ()


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
def test_real_digits_as_leaf_writes_them(tmp_path):
    from datasets.mnist import load_mnist

    arrays = load_mnist(DatasetOptions(os.environ["FL_DATA_DIR"], download=False))
    images, labels = (1 - arrays.train_x[:40].reshape(40, 784) / 255).round(6), arrays.train_y[:40]
    users = {f"f{n:04}_{n}": (images[n::4].tolist(), labels[n::4].tolist()) for n in range(4)}
    source = open_folder(write_all(tmp_path, users))
    for number in range(4):
        x, y = source.read(number, TRAIN)
        np.testing.assert_allclose(x.reshape(-1, 784), images[number::4], atol=1e-6)
        np.testing.assert_array_equal(y, labels[number::4])
    assert source.format.class_names == tuple("0123456789")


@pytest.mark.skipif(
    not os.path.exists(os.path.join(os.environ.get("FL_DATA_DIR") or "/nowhere", "shakespeare")),
    reason="no Shakespeare in FL_DATA_DIR: no real data here",
)
def test_real_text_as_leaf_writes_it(tmp_path):
    from datasets.shakespeare import FILES
    from datasets.tff_database import TffDatabase, decode_example

    database = TffDatabase(FILES.find(os.environ["FL_DATA_DIR"]))
    users = {}
    for role in sorted(database.count_examples()["train"])[:3]:
        speeches = [decode_example(record)["snippets"][0].decode() for record in database.fetch(role, "train")]
        text = " ".join(" ".join(speeches).split())
        starts = range(len(text) - 80)
        users[role] = [text[start : start + 80] for start in starts], [text[start + 80] for start in starts]
    write(pathlib.Path(tmp_path / "all_data.json"), make_content(users, hierarchies=["A play"] * 3))
    source = open_folder(tmp_path)
    known = set(TOKEN_NAMES)
    for role, (xs, ys) in users.items():
        x, y = read(source, role) if ys else ((), ())
        found = ["".join(TOKEN_NAMES[token] for token in row) for row in x[:50] if OOV not in row]
        assert found == [text for text in xs[:50] if set(text) <= known] and len(y) == len(ys)
