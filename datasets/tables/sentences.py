"""Sentences of a table's text column become tokens: the words of a text, each by its number in a vocabulary.

A text is brought to Unicode's form NFC and to lower case. Its words are runs of letters, digits and marks that begin
with a letter or a digit; all else only separates them. Token 0 is padding, 1 a word that is not in the vocabulary, and
from 2 on are the words of the vocabulary, the most frequent first. The page of a run computes the same
(`launch/tflite/web/words.js`).

The vocabulary is made of the rows that the data do not mark as test rows; where none is marked, of all. Which rows a
partition will hold back for tests is not known here.

Privacy: a vocabulary lists words that people wrote, and goes with the run into each exported file. So it takes only
words of at least two clients, where clients are known. That leaves out a name that one client writes, and guarantees
nothing: on real devices, words and their counts need a private protocol. Hashing each word to a number would need no
list. But a guessed word can be hashed as well, words would share a token, and no page could say which words the model
does not know. So there is a list.
"""

import dataclasses
import functools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from datasets.character_text import OOV_NAME, PAD_NAME
from datasets.client_source import TEST
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import TextFormat
from datasets.stored_source import SPLIT_ORDER
from datasets.tables.cells import STRING, TEXT, Cells, block_cells
from datasets.tables.scan import ColumnScan, read_splits
from datasets.tables.table import Location, Piece, Roles, Table, count_rows

VERSION = 1  # of how texts become tokens; another makes other data
PAD, UNKNOWN = 0, 1
FIRST_NAMES = (PAD_NAME, OOV_NAME)
DEFAULT_NUM_WORDS = 2000
FEWEST_CLIENTS = 2  # whose texts have a word of the vocabulary
MOST_TOKENS, LENGTH_PERCENT = 256, 95  # the default length covers so many percent of the texts, up to this bound
LEAST_WORDS = 4  # of a sentence, in the median
_MOST_ANSWERS = 20  # different sentences that rows share may be the answers of a form, which are categories
_ASCII_WORD = re.compile("[a-z0-9]+")
WORDS_RULE = (
    "The text in Unicode's form NFC and in lower case; a word is a run of letters, digits and marks that begins with a "
    "letter or a digit."
)


@functools.cache
def _compile_word() -> re.Pattern[str]:
    # Python's \w has no marks, such as the vowels of Hindi, without which words fall apart.
    marks = filter(lambda letter: unicodedata.category(letter)[0] == "M", map(chr, range(sys.maxunicode + 1)))
    return re.compile(rf"\w[\w{''.join(marks)}]*")


def split_words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    if text.isascii():  # as most are, and it is quicker
        return _ASCII_WORD.findall(text.lower())
    # The underscore is in \w, but is no letter.
    return _compile_word().findall(unicodedata.normalize("NFC", text).lower().replace("_", " "))


def is_sentences(values: Iterable[str] | Mapping[str, int]) -> bool:
    """Whether values of a column are sentences: mostly of several words, and not few that many rows share.

    Args:
      values: each as often as it stands there, or how often each does.
    """
    counts = Counter(values)
    is_varied = len(counts) > _MOST_ANSWERS or 2 * len(counts) > counts.total()
    return is_varied and bool(np.median([len(split_words(text)) for text in counts]) >= LEAST_WORDS)


def holds_sentences(column: ColumnScan) -> bool:
    """Whether the values of a column that was scanned are sentences."""
    if column.num_blanks < (LEAST_WORDS - 1) * column.num_different:
        return False
    # Of very many different texts only the blanks were counted.
    return column.texts is None or is_sentences(column.texts + column.test_texts)


def advise_sentences(column: str) -> str:
    """How to train on a column of sentences, in words."""
    return f"give --text_column={column} to train on their words"


def encode_texts(texts: Sequence[str], vocabulary: Sequence[str], length: int) -> np.ndarray:
    """The tokens of texts, int32 (texts, length): a word's place in the vocabulary; longer texts are cut."""
    ids = {word: token for token, word in enumerate(vocabulary)}
    found = np.full((len(texts), length), PAD, np.int32)
    for row, text in zip(found, texts, strict=True):
        tokens = [ids.get(word, UNKNOWN) for word in split_words(text)[:length]]
        row[: len(tokens)] = tokens
    return found


@dataclasses.dataclass(frozen=True)
class WordReader:
    """How the texts of a column become tokens.

    Attributes:
      format: the column and its vocabulary.
      length: tokens of an example.
      num_rows: texts that were looked at.
      num_cut: of these, those with more words.
      has_clients: whether each word is known to be of at least `FEWEST_CLIENTS` clients.
    """

    format: TextFormat
    length: int
    num_rows: int
    num_cut: int
    has_clients: bool

    def encode(self, cells: Cells) -> Cells:
        """The tokens of each text as a block, int32 (rows, length); texts without a word are missing."""
        codes, texts = cells.list_texts()
        found = encode_texts(texts, self.format.vocabulary, self.length)
        return dataclasses.replace(block_cells(found[codes]), is_missing=(found == PAD).all(axis=1)[codes])

    def encode_table(self, table: Table) -> Table:
        """The table with tokens in place of the texts."""

        def read(names: tuple[str, ...]) -> Iterator[Piece]:
            column = self.format.column
            for piece in table.read(names):
                tokens = {column: self.encode(piece.cells[column])} if column in names else {}
                yield piece._replace(cells={**piece.cells, **tokens})

        return dataclasses.replace(table, read=read)

    @property
    def reading(self) -> str:
        """What becomes of the texts, in words."""
        words = len(self.format.vocabulary) - len(FIRST_NAMES)
        whose = f", each of at least {FEWEST_CLIENTS} clients" if self.has_clients else ""
        return (
            f"{self.format.column} as words: a vocabulary of {words:,}{whose}, which the run and its exports list; "
            f"{self.length} tokens an example"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A line if texts are cut."""
        if not self.num_cut:
            return ()
        return (
            f"{self.num_cut:,} of {self.num_rows:,} texts in {self.format.column} have more than {self.length} words "
            f"and are cut; --sequence_length gives examples of more tokens",
        )


def read_words(table: Table, roles: Roles, options: DatasetOptions, joined: Mapping[str, str]) -> WordReader:
    """Reads the texts of a table once, for its vocabulary and the length of examples.

    Args:
      table: to be read.
      roles: of its columns, of which `text` is one.
      options: `vocabulary_size`, `sequence_length` and `missing`.
      joined: the name of each client that is another spelling of one.

    Raises:
      DatasetError: the column holds no texts, a text has no word and is not left out, or no word is of two clients.
    """
    counts: Counter[str] = Counter()
    first_clients: dict[str, str] = {}
    shared: set[str] = set()
    lengths, num_empty, first_empty = [np.zeros(0, np.int64)], 0, None
    for piece in table.read((*roles.used, roles.text)):
        cells = piece.cells[roles.text]
        if cells.kind not in (TEXT, STRING):
            raise DatasetError(
                f"{piece.locate(0)}: text_column={roles.text}: it holds values of the kind {cells.kind}, expected texts"
            )
        codes, texts = cells.list_texts()
        words = list(map(split_words, texts))
        lengths.append(np.array(list(map(len, words)), np.int64)[codes])
        is_empty = lengths[-1] == 0
        num_empty += int(is_empty.sum())
        first_empty = first_empty or (piece.locate(int(np.argmax(is_empty))) if is_empty.any() else None)
        is_counted = read_splits(piece, roles) != SPLIT_ORDER.index(TEST)
        for name in roles.used if options.missing == "drop" else ():
            is_counted &= ~piece.cells[name].is_missing
        for row, client in enumerate(_list_clients(piece, roles)):
            if not is_counted[row]:
                continue
            found = words[codes[row]]
            counts.update(found)
            client = joined.get(client, client)
            shared.update(word for word in set(found) if first_clients.setdefault(word, client) != client)
    all_lengths = np.concatenate(lengths)
    _check_empty(table, roles.text, num_empty, len(all_lengths), first_empty, options)
    has_clients = bool(roles.client) or table.has_clients
    known = shared if has_clients else counts
    ranked = sorted(known, key=lambda word: (-counts[word], word))[: options.vocabulary_size or DEFAULT_NUM_WORDS]
    if not ranked:
        raise DatasetError(
            f"{table.path}: text_column={roles.text}: no word stands in the train texts of {FEWEST_CLIENTS} clients, "
            f"as each word of the vocabulary must, so that it tells of no one alone; give texts of more clients"
        )
    covered = int(np.ceil(np.percentile(all_lengths[all_lengths > 0], LENGTH_PERCENT)))
    length = options.sequence_length or min(covered, MOST_TOKENS)
    text_format = TextFormat(roles.text, (*FIRST_NAMES, *ranked))
    return WordReader(text_format, length, len(all_lengths), int((all_lengths > length).sum()), has_clients)


def _list_clients(piece: Piece, roles: Roles) -> list[str]:
    """Whose each row is, as written."""
    if not roles.client:
        return [piece.client] * piece.num_rows
    codes, names = piece.cells[roles.client].list_texts()
    return [names[code] for code in codes]


def _check_empty(
    table: Table, column: str, num_empty: int, num_rows: int, first: Location | None, options: DatasetOptions
) -> None:
    if num_empty == num_rows:
        raise DatasetError(f"{table.path}: text_column={column}: no row has a word, expected sentences")
    if num_empty and options.missing != "drop":
        raise DatasetError(
            f"{first}: column {column!r} has no word here, and in {count_rows(num_empty)} of {num_rows:,}; expected a "
            f"text in each; --missing=drop leaves such rows out",
            {"missing": "drop"},
        )
