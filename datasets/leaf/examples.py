"""The examples of LEAF's data sets: numbers, characters, words, names of images. Told from the first of them.

images       784 numbers from 0 to 1 (FEMNIST): pixels of 28x28, 1 is the background.
features     other numbers (LEAF's synthetic data).
characters   80 characters and the one after them (Shakespeare). As in LEAF only that one is predicted: the labels of
             the positions before the last are padding. The vocabulary is that of `datasets.character_text`.
image_names  names of image files (CelebA), which lie in a folder beside.
tweets       [.., .., .., .., text] (Sent140): its first 25 words, the label is its mood.
words        pieces of a comment, each a list of words, and of each the words that come next (Reddit).
"""

import re
from collections import Counter
from typing import Any

import numpy as np

from datasets.character_text import NUM_TOKENS, OOV, OOV_NAME, PAD, PAD_NAME, TOKEN_NAMES, encode_characters
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.label_format import NEXT_TOKEN, LabelFormat

IMAGES, FEATURES, CHARACTERS, IMAGE_NAMES = "images", "features", "characters", "image_names"
TWEETS, WORDS = "tweets", "words"
MOST_NAME_BYTES = 64
TWEET_LENGTH, WORDS_LENGTH, DEFAULT_NUM_WORDS = 25, 10, 10_000
_TEXT_OF_TWEET = 4
_IMAGE_SIDE = 28
_IMAGE_NAME = re.compile(r"[^/\\]+\.(?:jpe?g|png|bmp)", re.IGNORECASE)
_WORD = re.compile(r"\w+|[^\w\s]")
_LEAF_PADDING = "<PAD>"


def find_form(x: Any, y: Any) -> str:
    """The form of an example. Raises ValueError, in words, if it is of none."""
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
    """Makes arrays of a user's examples, all of one form.

    Attributes:
      form: see the module.
      shape: of an example's x.
      words: of the vocabulary, of tweets and words, in order of their tokens; else ().
      class_texts: label -> its number, in order of appearance, where labels are texts; else empty.
      most: the highest label that was seen.
    """

    def __init__(self, form: str, first_x: Any, length: int = 0, words: tuple[str, ...] = ()):
        self.form = form
        self.words = words
        self.class_texts: dict[str, int] = {}
        self.most = 0
        self._tokens = {word: token for token, word in enumerate(words, start=1)}
        self.shape = {
            IMAGES: (_IMAGE_SIDE, _IMAGE_SIDE, 1),
            IMAGE_NAMES: (MOST_NAME_BYTES,),
            TWEETS: (length or TWEET_LENGTH,),
            WORDS: (length or WORDS_LENGTH,),
        }.get(form) or (len(first_x),)

    def encode(self, xs: list, ys: list) -> tuple[np.ndarray, np.ndarray]:
        """x and y as the store keeps them. Raises ValueError, in words."""
        if self.form == WORDS:
            pieces = [get_pieces(row, x, y) for row, (x, y) in enumerate(zip(xs, ys, strict=True))]
            x, y = (self._encode_words([piece for pair in pieces for piece in pair[side]]) for side in (0, 1))
            return x, y
        if self.form == TWEETS:
            x = self._encode_words([split_words(get_tweet(row, each)) for row, each in enumerate(xs)])
            return x, self._encode_labels(ys)
        if self.form == IMAGE_NAMES:
            return _encode_names(xs), self._encode_labels(ys)
        kind, noun = (str, "characters") if self.form == CHARACTERS else (list, "numbers")
        number = int(np.prod(self.shape))
        for row, each in enumerate(xs):
            if not isinstance(each, kind) or len(each) != number:
                found = f"has {len(each)} {noun}" if isinstance(each, kind) else f"is {_show(each)}"
                raise ValueError(f"example {row} (from 0) {found}, expected {number} as in the first")
        if self.form == CHARACTERS:
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
        if not np.isfinite(x).all() or (self.form == IMAGES and x.size and (x.min() < 0 or x.max() > 1)):
            raise ValueError("x holds a pixel outside of 0..1" if self.form == IMAGES else "x holds NaN or infinity")
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


def count_words(form: str, xs: list, ys: list, counts: Counter[str]) -> None:
    """Adds the words of a user's examples. Raises ValueError, in words."""
    for row, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if form == TWEETS:
            counts.update(split_words(get_tweet(row, x)))
        else:
            for piece in get_pieces(row, x, y)[0]:
                counts.update(word for word in piece if word != _LEAF_PADDING)


def make_format(form: str, shape: tuple[int, ...], classes: tuple[str, ...], words: tuple[str, ...]) -> ExampleFormat:
    """The format of examples of a form, as a model gets them.

    Args:
      form: see the module; of image names, the names are the examples.
      shape: of an example.
      classes: names of the labels, where these are classes.
      words: of the vocabulary, else ().
    """
    if form == CHARACTERS:
        labels = LabelFormat(NEXT_TOKEN, shape, NUM_TOKENS, padding=PAD, oov=OOV)
        return ExampleFormat(shape, "int32", TOKEN_NAMES, labels=labels, takes_tokens=True)
    if form == WORDS:
        names = (PAD_NAME, *words, OOV_NAME)
        labels = LabelFormat(NEXT_TOKEN, shape, len(names), padding=PAD, oov=len(names) - 1)
        return ExampleFormat(shape, "int32", names, labels=labels, takes_tokens=True)
    if form == TWEETS:
        return ExampleFormat(shape, "int32", classes, takes_tokens=True)
    if form == IMAGES:
        return ExampleFormat(shape, "float32", classes, Preprocessing(feature_range=(0.0, 1.0)))
    return ExampleFormat(shape, "uint8" if form == IMAGE_NAMES else "float32", classes)


def tell_form(example_format: ExampleFormat) -> str:
    """The form of the examples that `make_format` gave this format."""
    if example_format.takes_tokens:
        if example_format.labels.task != NEXT_TOKEN:
            return TWEETS
        return CHARACTERS if example_format.class_names == TOKEN_NAMES else WORDS
    if example_format.input_dtype == "uint8":
        return IMAGE_NAMES
    return IMAGES if example_format.preprocessing.feature_range else FEATURES
