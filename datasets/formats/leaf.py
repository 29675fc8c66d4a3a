"""LEAF's JSON: read once, a file after the other, into a store; images that it names are decoded into another one.

Source: Caldas et al., LEAF: A Benchmark for Federated Settings, 2018. A file is {"users": [names], "num_samples":
[numbers], "user_data": {name: {"x": [...], "y": [...]}}}, with "hierarchies" beside it where users belong to groups. A
folder has files `all_data*.json`, or folders `train` and `test` of them, or such folders as LEAF's scripts leave.

What the examples are is told from the first of them:

images       784 numbers from 0 to 1 (FEMNIST): pixels of 28x28, 1 is the background.
features     other numbers (LEAF's synthetic data).
characters   80 characters and the one after them (Shakespeare). As in LEAF only that one is predicted: the labels of
             the positions before the last are padding. The vocabulary is that of `datasets.character_text`.
image_names  names of image files (CelebA), which lie in a folder beside.
tweets       [.., .., .., .., text] (Sent140): its first 25 words, the label is its mood.
words        pieces of a comment, each a list of words, and of each the words that come next (Reddit).
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from datasets.character_text import NUM_TOKENS, OOV, OOV_NAME, PAD, PAD_NAME, TOKEN_NAMES, encode_characters
from datasets.client_source import TEST, TRAIN, ClientSource
from datasets.dataset import OF_TABLES_ALONE, DatasetOptions, refuse_options
from datasets.emnist import ALL_NAMES, CLASS_NAMES
from datasets.errors import DatasetError
from datasets.example_format import NEXT_TOKEN, ExampleFormat, LabelFormat, Preprocessing
from datasets.file_formats import FileFormat, name_data
from datasets.image_pixels import CHANNELS, COLOUR, GREY, ImageLayout, count_at_once, read_image
from datasets.stored_source import Description, Reading, StoreWriter, open_reading, show_progress
from files.reading import explain_errors, find_files, open_regular

_KEYS = ("users", "num_samples", "user_data", "hierarchies")
# The first key tells, whatever the size of the file.
_PEEKED_BYTES = 256


class User(NamedTuple):
    """One user of a file: where that is, for errors; whose examples of which part; as JSON has them."""

    where: str
    name: str
    part: str
    x: list
    y: list


def looks_like_leaf(path: str) -> bool:
    """Whether a file begins as LEAF's do. Raises OSError."""
    with open(path, "rb") as file:
        start = file.read(_PEEKED_BYTES).lstrip()
    keys = tuple(f'"{key}"'.encode() for key in _KEYS)
    return start.startswith(b"{") and start[1:].lstrip().startswith(keys)


def find_leaf_files(path: str) -> list[tuple[str, str]]:
    """(path, part) of the files of a file or folder, in order of their names; [] if there is none.

    Files `train` and `test` come before `all_data`, of which LEAF's scripts make them.

    Raises:
      OSError: the folder cannot be read.
    """
    if os.path.isfile(path):
        return [(path, TRAIN)]
    train, test = (_list_json(os.path.join(path, part)) for part in ("train", "test"))
    if train:
        return [(file, TRAIN) for file in train] + [(file, TEST) for file in test]
    files = [file for file in _list_json(path) if os.path.basename(file).startswith("all_data")]
    files = files or _list_json(os.path.join(path, "all_data"))
    if files:
        return [(file, TRAIN) for file in files]
    # LEAF's scripts leave their files in a folder data.
    inner = os.path.join(path, "data")
    return find_leaf_files(inner) if os.path.isdir(inner) else []


def _list_json(folder: str) -> list[str]:
    return list(map(str, find_files(folder, "*.json")))


def iterate_users(files: list[tuple[str, str]]) -> Iterator[User]:
    """All users of all files, a file in memory at a time.

    Raises:
      DatasetError: a file is damaged, or its parts contradict each other; or a user is in two files of one part.
    """
    seen: dict[tuple[str, str], str] = {}
    for path, part in show_progress(files, "files"):
        content = _read(path)
        for index, name in enumerate(content["users"]):
            where = f"{path}: user {name!r}"
            if (part, name) in seen:
                first = "" if seen[part, name] == path else f", first in {seen[part, name]}"
                raise DatasetError(f"{where} is there twice{first}")
            seen[part, name] = path
            data = content["user_data"][name]
            x, y = (data.get(key) if isinstance(data, dict) else None for key in "xy")
            if not isinstance(x, list) or not isinstance(y, list):
                raise DatasetError(f"{where} has no lists x and y")
            if len(x) != len(y):
                raise DatasetError(f"{where} has {len(x)} examples in x, but {len(y)} labels in y")
            stated = content["num_samples"][index]
            if stated != len(y):
                raise DatasetError(f"{where} has {len(y)} examples, num_samples says {stated}")
            # A file of many users need not stay whole while they are worked on.
            content["user_data"][name] = None
            yield User(where, name, part, x, y)


def _read(path: str) -> dict[str, Any]:
    """What a file holds, once its parts agree on who the users are."""
    try:
        with explain_errors(path, DatasetError), open_regular(path) as file:
            content = json.load(file)
    except DatasetError:
        raise
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: damaged or truncated, or no JSON ({error})") from None
    if not isinstance(content, dict):
        raise DatasetError(f"{path}: expected an object with users, num_samples and user_data, as LEAF writes it")
    kinds = {"users": list, "num_samples": list, "user_data": dict}
    for key, kind in kinds.items():
        if not isinstance(content.get(key), kind):
            raise DatasetError(f"{path}: {key} is no {'object' if kind is dict else 'list'}, expected LEAF's form")
    names = content["users"]
    if not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{path}: users holds what is no text")
    for key in ("num_samples", "hierarchies"):
        if content.get(key) is not None and len(content[key]) != len(names):
            raise DatasetError(f"{path}: {len(content[key])} {key} for {len(names)} users")
    if missing := [name for name in names if name not in content["user_data"]]:
        raise DatasetError(f"{path}: user {missing[0]!r} has no user_data")
    if len(content["user_data"]) != len(known := set(names)):
        extra = next(name for name in content["user_data"] if name not in known)
        raise DatasetError(f"{path}: user_data has user {extra!r}, who is not among the users")
    return content


IMAGES, FEATURES, CHARACTERS, IMAGE_NAMES = "images", "features", "characters", "image_names"
TWEETS, WORDS = "tweets", "words"
MOST_NAME_BYTES = 64
TWEET_LENGTH, WORDS_LENGTH, DEFAULT_NUM_WORDS = 25, 10, 10_000
_TEXT_OF_TWEET = 4
_IMAGE_SIDE = 28
_IMAGE_NAME = re.compile(r"[^/\\]+\.(?:jpe?g|png|bmp)", re.IGNORECASE)
_WORD = re.compile(r"\w+|[^\w\s]")
_LEAF_PADDING = "<PAD>"


def find_schema(x: Any, y: Any) -> str:
    """The schema of an example. Raises ValueError, in words, if it is of none."""
    if isinstance(x, str):
        if _IMAGE_NAME.fullmatch(x):
            return IMAGE_NAMES
        if isinstance(y, str) and len(y) == 1 and x:
            return CHARACTERS
    elif isinstance(x, list) and x:
        if all(isinstance(each, list) for each in x) and isinstance(y, dict) and "target_tokens" in y:
            return WORDS
        if len(x) > _TEXT_OF_TWEET and isinstance(x[_TEXT_OF_TWEET], str):
            return TWEETS
        if all(_is_number(each) for each in x):
            return IMAGES if len(x) == _IMAGE_SIDE**2 and 0 <= min(x) <= max(x) <= 1 else FEATURES
    raise ValueError(f"x is {_show(x)} and y is {_show(y)}, of none of LEAF's forms")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


class Encoder:
    """Makes arrays of a user's examples, all of one schema.

    Attributes:
      schema: see the module.
      shape: of an example's x.
      words: of the vocabulary, of tweets and words, in order of their tokens; else ().
      class_texts: label -> its number, in order of appearance, where labels are texts; else empty.
      most: the highest label that was seen.
    """

    def __init__(self, schema: str, first_x: Any, length: int = 0, words: tuple[str, ...] = ()):
        self.schema = schema
        self.words = words
        self.class_texts: dict[str, int] = {}
        self.most = 0
        self._tokens = {word: token for token, word in enumerate(words, start=1)}
        self.shape = {
            IMAGES: (_IMAGE_SIDE, _IMAGE_SIDE, 1),
            IMAGE_NAMES: (MOST_NAME_BYTES,),
            TWEETS: (length or TWEET_LENGTH,),
            WORDS: (length or WORDS_LENGTH,),
        }.get(schema) or (len(first_x),)

    def encode(self, xs: list, ys: list) -> tuple[np.ndarray, np.ndarray]:
        """x and y as the store keeps them. Raises ValueError, in words."""
        if self.schema == WORDS:
            pieces = [get_pieces(row, x, y) for row, (x, y) in enumerate(zip(xs, ys, strict=True))]
            x, y = (self._encode_words([piece for pair in pieces for piece in pair[side]]) for side in (0, 1))
            return x, y
        if self.schema == TWEETS:
            x = self._encode_words([split_words(get_tweet(row, each)) for row, each in enumerate(xs)])
            return x, self._encode_labels(ys)
        if self.schema == IMAGE_NAMES:
            return _encode_names(xs), self._encode_labels(ys)
        kind, noun = (str, "characters") if self.schema == CHARACTERS else (list, "numbers")
        number = int(np.prod(self.shape))
        for row, each in enumerate(xs):
            if not isinstance(each, kind) or len(each) != number:
                found = f"has {len(each)} {noun}" if isinstance(each, kind) else f"is {_show(each)}"
                raise ValueError(f"example {row} (from 0) {found}, expected {number} as in the first")
        if self.schema == CHARACTERS:
            y = np.full((len(ys), *self.shape), PAD, np.int32)
            for row, each in enumerate(ys):
                if not isinstance(each, str) or len(each) != 1:
                    raise ValueError(f"label {row} (from 0) is {_show(each)}, expected one character")
                y[row, -1] = encode_characters(each)[0]
            return encode_characters("".join(xs)).reshape(len(xs), number), y
        try:
            x = np.array(xs, np.float32).reshape(len(xs), *self.shape)
        except (ValueError, TypeError, OverflowError):
            raise ValueError("x holds what is no number") from None
        if not np.isfinite(x).all() or (self.schema == IMAGES and x.size and (x.min() < 0 or x.max() > 1)):
            raise ValueError("x holds a pixel outside of 0..1" if self.schema == IMAGES else "x holds NaN or infinity")
        return x, self._encode_labels(ys)

    def _encode_words(self, texts: list[list[str]]) -> np.ndarray:
        """Tokens of the first words of each text, int32, shape (texts, length)."""
        x, oov = np.full((len(texts), *self.shape), PAD, np.int32), len(self.words) + 1
        for row, words in enumerate(texts):
            tokens = [PAD if word == _LEAF_PADDING else self._tokens.get(word, oov) for word in words[: self.shape[0]]]
            x[row, : len(tokens)] = tokens
        return x

    def _encode_labels(self, ys: list) -> np.ndarray:
        labels = np.empty(len(ys), np.int32)
        for row, label in enumerate(ys):
            if isinstance(label, str):
                label = self.class_texts.setdefault(label, len(self.class_texts))
            elif self.class_texts or not _is_number(label) or label != int(label) or not 0 <= label < 10**6:
                raise ValueError(f"label {row} (from 0) is {_show(label)}, expected whole numbers from 0, or texts")
            labels[row] = label
        self.most = max(self.most, int(labels.max(initial=0)))
        return labels


def _encode_names(xs: list) -> np.ndarray:
    rows = np.zeros((len(xs), MOST_NAME_BYTES), np.uint8)
    for row, each in enumerate(xs):
        # A name never leads out of the folder of the images.
        name = each.encode() if isinstance(each, str) and _IMAGE_NAME.fullmatch(each) else b""
        if not 0 < len(name) <= MOST_NAME_BYTES:
            raise ValueError(f"example {row} (from 0) is {_show(each)}, expected the name of an image file")
        rows[row, : len(name)] = np.frombuffer(name, np.uint8)
    return rows


def get_tweet(row: int, x: Any) -> str:
    """The text of a tweet. Raises ValueError, in words."""
    if not isinstance(x, list) or len(x) <= _TEXT_OF_TWEET or not isinstance(x[_TEXT_OF_TWEET], str):
        raise ValueError(f"example {row} (from 0) is {_show(x)}, expected a list whose fifth entry is a text")
    return x[_TEXT_OF_TWEET]


def split_words(text: str) -> list[str]:
    """The words of a text in small letters, and its punctuation marks."""
    return _WORD.findall(text.lower())


def get_pieces(row: int, x: Any, y: Any) -> tuple[list[list[str]], list[list[str]]]:
    """The pieces of a comment and what comes after each of their words. Raises ValueError, in words."""
    targets = y.get("target_tokens") if isinstance(y, dict) else None
    for side in (x, targets):
        is_of_words = isinstance(side, list) and all(
            isinstance(piece, list) and all(isinstance(word, str) for word in piece) for piece in side
        )
        if not is_of_words:
            raise ValueError(f"example {row} (from 0) is no lists of words with target_tokens")
    if [len(piece) for piece in x] != [len(piece) for piece in targets]:
        raise ValueError(f"example {row} (from 0) has other numbers of words in x than in target_tokens")
    return x, targets


def count_words(schema: str, xs: list, ys: list, counts: Counter[str]) -> None:
    """Adds the words of a user's examples. Raises ValueError, in words."""
    for row, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if schema == TWEETS:
            counts.update(split_words(get_tweet(row, x)))
        else:
            for piece in get_pieces(row, x, y)[0]:
                counts.update(word for word in piece if word != _LEAF_PADDING)


def make_format(schema: str, shape: tuple[int, ...], classes: tuple[str, ...], words: tuple[str, ...]) -> ExampleFormat:
    """The format of examples of a schema, as a model gets them.

    Args:
      schema: see the module; of image names, the names are the examples.
      shape: of an example.
      classes: names of the labels, where these are classes.
      words: of the vocabulary, else ().
    """
    if schema == CHARACTERS:
        labels = LabelFormat(NEXT_TOKEN, shape, NUM_TOKENS, padding=PAD, oov=OOV)
        return ExampleFormat(shape, "int32", TOKEN_NAMES, labels=labels, takes_tokens=True)
    if schema == WORDS:
        names = (PAD_NAME, *words, OOV_NAME)
        labels = LabelFormat(NEXT_TOKEN, shape, len(names), padding=PAD, oov=len(names) - 1)
        return ExampleFormat(shape, "int32", names, labels=labels, takes_tokens=True)
    if schema == TWEETS:
        return ExampleFormat(shape, "int32", classes, takes_tokens=True)
    if schema == IMAGES:
        return ExampleFormat(shape, "float32", classes, Preprocessing(feature_range=(0.0, 1.0)))
    return ExampleFormat(shape, "uint8" if schema == IMAGE_NAMES else "float32", classes)


def recognise_schema(example_format: ExampleFormat) -> str:
    """The schema of the examples that `make_format` gave this format."""
    if example_format.takes_tokens:
        if example_format.labels.task != NEXT_TOKEN:
            return TWEETS
        return CHARACTERS if example_format.class_names == TOKEN_NAMES else WORDS
    if example_format.input_dtype == "uint8":
        return IMAGE_NAMES
    return IMAGES if example_format.preprocessing.feature_range else FEATURES


# LEAF's own model of CelebA has this size.
DEFAULT_SIZE = 84
_FOLDERS = (
    os.path.join("raw", "img_align_celeba"),
    os.path.join("data", "raw", "img_align_celeba"),
    "img_align_celeba",
    "images",
    "raw",
)


def open_named_images(path: str, source: ClientSource, options: DatasetOptions) -> ClientSource:
    """The clients of a source with an image in place of each name.

    The images lie in `raw/img_align_celeba`, `img_align_celeba`, `images` or `raw`, beside the files or above.

    Args:
      path: of the files that name images.
      source: of what is in them: an example is a name, uint8, shape (bytes,), padded by zeros.
      options: size and colour.

    Raises:
      DatasetError: there is no such folder, or an image is missing or damaged.
    """
    start = os.path.abspath(path)
    above = (start, os.path.dirname(start), os.path.dirname(os.path.dirname(start)))
    folders = [os.path.join(each, folder) for each in above for folder in _FOLDERS]
    folder = next(filter(os.path.isdir, folders), None)
    if folder is None:
        raise DatasetError(f"{path}: names images, but has no folder of them; put it there as {_FOLDERS[0]}")
    colour, size = GREY if options.image_colour == GREY else COLOUR, options.image_size or DEFAULT_SIZE
    shape = (size, size, CHANNELS[colour])
    parts = []  # (client, split, paths of its images, their labels)
    for split in source.num_examples:
        for client, name in enumerate(source.client_names):
            x, y = source.read(client, split)
            names = [each.tobytes().rstrip(b"\0").decode() for each in x]
            parts.append((name, split, [os.path.join(folder, each) for each in names], y))
    files = sorted({image for _, _, images, _ in parts for image in images})
    missing = next((file for file in files if not os.path.isfile(file)), None)
    if missing:
        raise DatasetError(f"{missing}: no such image, though the data name it")

    def write(writer: StoreWriter) -> Description:
        layout = ImageLayout(size, colour, is_published=True)
        for client, split, images, y in show_progress(parts, "images of clients"):
            step = count_at_once(shape)
            # A user without examples stays a client.
            for start in range(0, max(1, len(images)), step):
                some = images[start : start + step]
                x = np.empty((len(some), *shape), np.uint8)
                for row, image in enumerate(some):
                    x[row] = read_image(image, image, layout)
                writer.append(x, y[start : start + step], client, split)
        preprocessing = Preprocessing(1 / 255, feature_range=(0.0, 1.0))
        return Description(ExampleFormat(shape, "uint8", source.format.class_names, preprocessing), notes=source.notes)

    return open_reading(Reading(source.name, path, files, ["leaf images", source.digest, shape], write))


# Examples are compared within a user alone, for which 8 bytes are enough.
_DIGEST_BYTES = 8
# Test examples: one alone may well be said twice.
_LEAST_TO_REFUSE = 2


class RepeatCheck:
    """Is told all users' examples, train before test.

    Attributes:
      notes: what was found, a line, or nothing.
    """

    def __init__(self):
        self._trained: dict[str, set[bytes]] = {}
        self._num_repeated = 0
        self._first = ""

    def add(self, user: User, x: np.ndarray, y: np.ndarray) -> None:
        """Raises DatasetError if all test examples of a user are trained on."""
        pairs = (each.tobytes() + label.tobytes() for each, label in zip(x, y, strict=True))
        digests = [hashlib.blake2b(pair, digest_size=_DIGEST_BYTES).digest() for pair in pairs]
        if user.part == TRAIN:
            self._trained[user.name] = set(digests)
        elif user.part == TEST and user.name in self._trained:
            trained = self._trained.pop(user.name)
            num_repeated = sum(digest in trained for digest in digests)
            if num_repeated == len(digests) >= _LEAST_TO_REFUSE:
                raise DatasetError(f"{user.where}: all {num_repeated} test examples are among its train examples, too")
            self._first = self._first or (user.name if num_repeated else "")
            self._num_repeated += num_repeated

    @property
    def notes(self) -> list[str]:
        if not self._num_repeated:
            return []
        noun = "example is" if self._num_repeated == 1 else "examples are"
        return [f"{self._num_repeated:,} test {noun} among the train examples of the same user, first {self._first!r}"]


_READING_VERSION = 1
_READINGS = {
    CHARACTERS: "text in pieces of {0} characters, of which the one after the last is predicted",
    TWEETS: "the first {0} words of texts",
    WORDS: "pieces of {0} words, of which the next one is predicted",
}


def is_leaf(path: str) -> bool:
    """Whether it is such a file, or a folder of them."""
    files = find_leaf_files(path) if os.path.isdir(path) or path.endswith(".json") else []
    return bool(files) and looks_like_leaf(files[0][0])


def open_leaf(path: str, options: DatasetOptions, name: str = "", schema: str = "") -> ClientSource:
    """The clients of a file or folder; see `ClientSource`.

    Labels that are texts are in their order; numbers are their own names, but EMNIST's for images of 784 numbers.

    Args:
      path: of the file, or of a folder as `find_leaf_files` takes it.
      options: lengths, size of a vocabulary, size of images.
      name: of the data set; "" is that of the path.
      schema: that its examples must have, one that `find_schema` gives; "" for any.

    Raises:
      DatasetError: there is no such file, it is damaged, or contradicts itself; one line that names file and user.
    """
    refuse_options(path, "LEAF's JSON", options, "drop_columns", *OF_TABLES_ALONE)
    with explain_errors(path, DatasetError):
        files = find_leaf_files(path)
    if not files:
        raise DatasetError(f"{path}: no files all_data*.json, and no folders train and test with JSON of LEAF's form")
    how = ["leaf", _READING_VERSION, [part for _, part in files], options.sequence_length, options.vocabulary_size]
    source = open_reading(
        Reading(
            name or name_data(path),
            path,
            [file for file, _ in files],
            how,
            lambda writer: _write(path, files, options, writer),
        )
    )
    kind = recognise_schema(source.format)
    if schema not in ("", kind):
        raise DatasetError(f"{path}: its examples are {kind}, expected {schema}".replace("_", " "))
    return open_named_images(path, source, options) if kind == IMAGE_NAMES else source


def _write(path: str, files: list[tuple[str, str]], options: DatasetOptions, writer: StoreWriter) -> Description:
    """Goes through the files to the first example, for the words if there are any, and then for the examples."""
    first = next((user for user in iterate_users(files) if user.part == TRAIN and user.y), None)
    if first is None:
        raise DatasetError(f"{path}: nobody has an example to train on")
    try:
        kind = find_schema(first.x[0], first.y[0])
    except ValueError as error:
        raise DatasetError(f"{first.where}: {error}") from None
    # The vocabulary must be known before the first example is encoded, so the files are gone through twice.
    counts: Counter[str] = Counter()
    for user in iterate_users(files) if kind in (TWEETS, WORDS) else ():
        try:
            if user.part == TRAIN:
                count_words(kind, user.x, user.y, counts)
        except ValueError as error:
            raise DatasetError(f"{user.where}: {error}") from None
    most = options.vocabulary_size or DEFAULT_NUM_WORDS
    words = tuple(word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])
    encoder = Encoder(kind, first.x[0], options.sequence_length, words)
    if kind == CHARACTERS and options.sequence_length not in (0, encoder.shape[0]):
        raise DatasetError(
            f"{first.where}: its texts have {encoder.shape[0]} characters, expected --sequence_length=0 or as many"
        )
    repeats = RepeatCheck()
    for user in iterate_users(files):
        try:
            x, y = encoder.encode(user.x, user.y)
        except ValueError as error:
            raise DatasetError(f"{user.where}: {error}") from None
        repeats.add(user, x, y)
        writer.append(x, y, user.name, user.part)
    if encoder.class_texts:
        classes = tuple(sorted(encoder.class_texts))
        # Texts were numbered as they came; only the last of them tells their order.
        ranks = np.empty(len(classes), np.int32)
        ranks[[encoder.class_texts[text] for text in classes]] = np.arange(len(classes))
        writer.relabel(ranks)
    elif kind == IMAGES and encoder.most < len(ALL_NAMES):
        classes = CLASS_NAMES["digits"] if encoder.most < 10 else ALL_NAMES
    else:
        classes = tuple(str(label) for label in range(max(2, encoder.most + 1)))
    example_format = make_format(kind, encoder.shape, classes, words)
    reading = _READINGS.get(kind, "").format(*encoder.shape)
    return Description(example_format, reading=reading, notes=tuple(repeats.notes))


FORMAT = FileFormat("LEAF's JSON", is_leaf, open_leaf, rank=30)
