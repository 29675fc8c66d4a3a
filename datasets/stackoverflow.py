"""Stack Overflow's questions and answers by user, from TFF's file: the next word, or the tags of the question.

Source: the data that Stack Overflow publishes, as TFF's authors cut them: 342,477 users to train on with 135,818,730
sentences, 38,758 others to validate on, 204,088 of the former to test on. Preprocessing is that of
`tff.simulation.baselines.stackoverflow`, as in Reddi et al., Adaptive Federated Optimization, 2021:

next_word  The 10,000 most frequent words (`--vocabulary_size`), the first 20 of a sentence (`--sequence_length`)
           between a mark of its beginning and, if it is shorter, one of its end; padded.
tags       How often each of the words occurs in a sentence and the question's title, over all that do; which of the
           500 most frequent tags the question has. (TFF's sums count a tag that stands there twice as 2; here it is 1.)

The vocabularies are two files beside TFF's. A file of this form that comes without them has the words and tags that are
most frequent among its first examples.
"""

import contextlib
import hashlib
import itertools
import json
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from datasets.character_text import BOS_NAME, EOS_NAME, OOV_NAME, PAD_NAME
from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.download import KnownFiles, RemoteFile, look_for, search_dirs
from datasets.errors import DatasetError
from datasets.example_format import MULTI_LABEL, NEXT_TOKEN, ExampleFormat, LabelFormat, Preprocessing
from datasets.formats.tff import Decoder, get_text, open_records, open_tff
from datasets.tff_database import Features, TffDatabase, decode_example

_ADDRESS = "https://storage.googleapis.com/tff-datasets-public/"
REMOTE_FILE = RemoteFile("stackoverflow.sqlite.lzma", (f"{_ADDRESS}stackoverflow.sqlite.lzma",))
VOCABULARY_FILES = {
    "words": RemoteFile(
        "stackoverflow.word_count.tar.bz2",
        (f"{_ADDRESS}stackoverflow.word_count.tar.bz2",),
        "1dc00256d6e527c54b9756d968118378ae14e6692c0b3b6cad470cdd3f0c519c",
    ),
    "tags": RemoteFile(
        "stackoverflow.tag_count.tar.bz2",
        (f"{_ADDRESS}stackoverflow.tag_count.tar.bz2",),
        "6fe281cec490d9384a290d560072438e7e2b377bbb823876ce7bd6f82696772d",
    ),
}
FILES = KnownFiles(
    "stackoverflow",
    look_for("stackoverflow.sqlite", REMOTE_FILE.name),
    (*VOCABULARY_FILES.values(), REMOTE_FILE),
    REMOTE_FILE.name,
)
DEFAULT_LENGTH, DEFAULT_NUM_WORDS, NUM_TAGS = 20, 10_000, 500
# Of 135 million examples the first ones tell which words are frequent.
COUNTED_EXAMPLES = 200_000
_SPLIT_BY = {"words": None, "tags": b"|"}
PAD = 0


def load_stackoverflow(options: DatasetOptions) -> ClientSource:
    """The catalog's loader: a client is a user.

    Raises:
      DatasetError: a file is missing and cannot be downloaded, or is damaged or of another form.
    """
    return open_tff(FILES.find_or_fetch(options), options, "stackoverflow", schema="stackoverflow")


def choose_stackoverflow_format(options: DatasetOptions) -> ExampleFormat:
    """The format for a smoke run, whose words and tags have no names: those are in files."""
    num_words = options.vocabulary_size or DEFAULT_NUM_WORDS
    if options.stackoverflow_task == "tags":
        return make_tag_format(num_words, tuple(f"tag_{number}" for number in range(NUM_TAGS)))
    return make_word_format(tuple(f"word_{number}" for number in range(num_words)), options.sequence_length)


def choose_stackoverflow_model(options: DatasetOptions) -> str:
    """The model of TFF's baseline for the task."""
    return "logistic_regression" if options.stackoverflow_task == "tags" else "word_lstm"


def make_word_format(words: tuple[str, ...], length: int = 0) -> ExampleFormat:
    """Sequences of tokens: 0 is padding, then the words, then those of other words, of the beginning and of the end."""
    length = length or DEFAULT_LENGTH
    names = (PAD_NAME, *words, OOV_NAME, BOS_NAME, EOS_NAME)
    labels = LabelFormat(NEXT_TOKEN, (length,), len(names), padding=PAD, oov=len(words) + 1)
    return ExampleFormat((length,), "int32", names, labels=labels, takes_tokens=True)


def make_tag_format(num_words: int, tags: tuple[str, ...]) -> ExampleFormat:
    """Shares of the words, and a switch for each tag."""
    labels = LabelFormat(MULTI_LABEL, (len(tags),), len(tags))
    return ExampleFormat((num_words,), "float32", tags, Preprocessing(feature_range=(0.0, 1.0)), labels=labels)


def open_stackoverflow(
    database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str
) -> ClientSource:
    """A file of TFF's form with `tokens`, `title` and `tags`, each one text."""
    notes: list[str] = []
    split = next(split for split, part in parts.items() if part == TRAIN)
    num_words = options.vocabulary_size or DEFAULT_NUM_WORDS
    words = _find_vocabulary("words", num_words, database, split, options, notes)
    if options.stackoverflow_task == "tags":
        tags = _find_vocabulary("tags", NUM_TAGS, database, split, options, notes)
        example_format = make_tag_format(len(words), _decode_names(database, tags))
        decode = make_tag_decoder(words, tags)
        identity = ["tags", _digest(words), _digest(tags)]
        features, reading = ("tokens", "title", "tags"), f"shares of {len(words):,} words, {len(tags)} tags"
    else:
        example_format = make_word_format(_decode_names(database, words), options.sequence_length)
        length = example_format.input_shape[0]
        decode = make_word_decoder(words, length)
        identity = ["words", length, _digest(words)]
        features = ("tokens",)
        reading = f"sentences of {length} words of {len(words):,}, of which the next one is predicted"
    decoder = Decoder(features, decode, identity)
    return open_records(database, parts, name, example_format, decoder, reading, tuple(notes))


def make_word_decoder(words: list[bytes], length: int) -> Callable[[Features], tuple[np.ndarray, np.ndarray]]:
    """(features) -> (tokens, the token after each), int32, shape (length,)."""
    tokens = {word: token for token, word in enumerate(words, start=1)}
    oov, bos, eos = (len(words) + special for special in (1, 2, 3))

    def decode(features: Features) -> tuple[np.ndarray, np.ndarray]:
        found = [tokens.get(word, oov) for word in get_text(features, "tokens").split(b" ")[:length]]
        row = [bos, *found, eos][: length + 1]
        padded = np.full(length + 1, PAD, np.int32)
        padded[: len(row)] = row
        return padded[:-1], padded[1:]

    return decode


def make_tag_decoder(words: list[bytes], tags: list[bytes]) -> Callable[[Features], tuple[np.ndarray, np.ndarray]]:
    """(features) -> (share of each word, float32; whether it has each tag, uint8)."""
    columns, columns_of_tags = ({each: column for column, each in enumerate(names)} for names in (words, tags))

    def decode(features: Features) -> tuple[np.ndarray, np.ndarray]:
        text = get_text(features, "tokens") + b" " + get_text(features, "title")
        found = [columns[word] for word in text.split() if word in columns]
        counts = np.bincount(found, minlength=len(words)).astype(np.float32) if found else np.zeros(len(words))
        switches = np.zeros(len(tags), np.uint8)
        given = get_text(features, "tags").split(b"|")
        switches[[columns_of_tags[tag] for tag in given if tag in columns_of_tags]] = 1
        return counts / np.float32(max(1, len(found))), switches

    return decode


def _find_vocabulary(
    kind: str, most: int, database: TffDatabase, split: str, options: DatasetOptions, notes: list[str]
) -> list[bytes]:
    """The most frequent words or tags, from the file of them, or counted; a note then says so."""
    remote = VOCABULARY_FILES[kind]
    plain = remote.name.removesuffix(".tar.bz2")
    folders = [os.path.dirname(database.source), *search_dirs(options.data_dir, "stackoverflow")]
    paths = [os.path.join(folder, name) for folder in folders for name in (plain, remote.name)]
    path = next(filter(os.path.isfile, paths), None)
    if path is not None:
        return read_vocabulary(path, kind, most)
    counts: Counter[bytes] = Counter()
    feature = "tokens" if kind == "words" else "tags"
    for _, _, record in itertools.islice(database.iterate([split]), COUNTED_EXAMPLES):
        # What is wrong with an example is said when it is read.
        with contextlib.suppress(ValueError, KeyError):
            counts.update(get_text(decode_example(record, [feature]), feature).split(_SPLIT_BY[kind]))
    names = [each for each, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if each][:most]
    if not names:
        raise DatasetError(f"{database.source}: no {kind} in its examples; put {plain} beside it")
    notes.append(
        f"{plain} is not beside {os.path.basename(database.source)}: {kind} were counted in its first examples"
    )
    return names


def read_vocabulary(path: str, kind: str, most: int) -> list[bytes]:
    """The first `most` words, or most frequent tags, of TFF's file of them or the archive that it comes in.

    Raises:
      DatasetError: damaged, or not of that form.
    """
    try:
        with contextlib.ExitStack() as stack:
            if path.endswith(".tar.bz2"):
                archive = stack.enter_context(tarfile.open(path, "r:bz2"))
                member = next((each for each in archive if each.isfile()), None)
                lines = archive.extractfile(member) if member else ()
            else:
                lines = stack.enter_context(open(path, "rb"))
            if kind == "words":
                return [word for word, _ in map(bytes.split, itertools.islice(lines, most))]
            counts = json.loads(b"".join(lines))
            return [tag.encode() for tag in sorted(counts, key=counts.__getitem__, reverse=True)[:most]]
    except (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, tarfile.TarError) as error:
        raise DatasetError(f"{path}: damaged, or not TFF's file of {kind} ({error}); get it again") from None


def _decode_names(database: TffDatabase, names: Iterable[bytes]) -> tuple[str, ...]:
    try:
        return tuple(name.decode() for name in names)
    except UnicodeDecodeError:
        raise DatasetError(f"{database.source}: its words are not all UTF-8; put the file of words beside it") from None


def _digest(names: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(names)).hexdigest()
