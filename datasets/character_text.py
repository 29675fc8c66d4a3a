"""Text as characters, in the protocol that TFF has for Shakespeare: sequences in which the next one is predicted.

Source: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, section 3
(sequences of 80); Reddi et al., Adaptive Federated Optimization, 2021; the vocabulary and its order are those of
`tff.simulation.baselines.shakespeare`, so that models and numbers can be compared. Each snippet of text stands alone:
its bytes between a mark of its beginning and one of its end, padded to a multiple of the length and one, and cut.
"""

import numpy as np

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import NEXT_TOKEN, ExampleFormat, LabelFormat

PAD_NAME, OOV_NAME, BOS_NAME, EOS_NAME = "<pad>", "<oov>", "<bos>", "<eos>"
CHARACTERS = "dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#'/37;?bfjnrvzBFJNRVZ\"&*.26:\naeimquyAEIMQUY]!%)-159\r"
PAD, OOV, BOS, EOS = 0, *(len(CHARACTERS) + special for special in (1, 2, 3))
NUM_TOKENS = len(CHARACTERS) + 4
# A name is one line of text: the line feed and the carriage return are written as in a program.
_ESCAPED = {"\n": "\\n", "\r": "\\r"}
TOKEN_NAMES = (PAD_NAME, *(_ESCAPED.get(each, each) for each in CHARACTERS), OOV_NAME, BOS_NAME, EOS_NAME)
DEFAULT_LENGTH = 80
_TOKENS_OF_BYTES = np.full(256, OOV, np.int32)
_TOKENS_OF_BYTES[np.frombuffer(CHARACTERS.encode(), np.uint8)] = np.arange(1, len(CHARACTERS) + 1)


def choose_character_format(options: DatasetOptions) -> ExampleFormat:
    """The format of examples of so many characters.

    Raises:
      DatasetError: a vocabulary is asked for; that of characters is given.
    """
    if options.vocabulary_size:
        raise DatasetError(f"vocabulary_size={options.vocabulary_size}: expected 0, the characters are given")
    length = options.sequence_length or DEFAULT_LENGTH
    labels = LabelFormat(NEXT_TOKEN, (length,), NUM_TOKENS, padding=PAD, oov=OOV)
    return ExampleFormat((length,), "int32", TOKEN_NAMES, labels=labels, takes_tokens=True)


def encode_characters(text: str) -> np.ndarray:
    """The token of each character, int32, shape (characters,)."""
    # JSON can hold half a surrogate pair, which is a character outside of the vocabulary like others.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return _TOKENS_OF_BYTES[np.minimum(codes, 255)]


def cut_into_sequences(snippet: bytes, length: int) -> np.ndarray:
    """The tokens of a snippet, int32, shape (sequences, length + 1); x is all but the last, y all but the first."""
    tokens = _TOKENS_OF_BYTES[np.frombuffer(snippet, np.uint8)]
    num_sequences = -(-(len(tokens) + 2) // (length + 1))
    row = np.full(num_sequences * (length + 1), PAD, np.int32)
    row[0], row[1 : len(tokens) + 1], row[len(tokens) + 1] = BOS, tokens, EOS
    return row.reshape(num_sequences, length + 1)
