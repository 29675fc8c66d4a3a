"""Text in TensorFlow Federated's files: a snippet an example, read once into sequences of characters."""

from collections import Counter
from collections.abc import Mapping

from datasets.character_text import choose_character_format, cut_into_sequences
from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_store import StoreWriter
from datasets.progress import show_progress
from datasets.stored_source import Description, Reading, open_reading
from datasets.tff_files.database import TffDatabase
from datasets.tff_files.example import decode_example

_READING_VERSION = 1


def open_snippets(
    database: TffDatabase, parts: Mapping[str, str], options: DatasetOptions, name: str, feature: str = "snippets"
) -> ClientSource:
    """A file of text as characters; see `datasets.character_text`.

    Args:
      database: the file.
      parts: split of the file -> "train", "validation" or "test".
      options: how long a sequence is.
      name: of the data set.
      feature: of an example, its text.

    Raises:
      DatasetError: an example has no such text, or a client has another number of examples than the file says.
    """
    example_format = choose_character_format(options)
    length = example_format.input_shape[0]
    how = [_READING_VERSION, database.digest, dict(parts), feature, length]

    def write(writer: StoreWriter) -> Description:
        found: Counter[tuple[str, str]] = Counter()
        for split, client, record in show_progress(database.iterate(parts), "snippets"):
            try:
                (text,) = decode_example(record, [feature])[feature]
                rows = cut_into_sequences(text, length)
            except (KeyError, ValueError, TypeError):
                raise DatasetError(
                    f"{database.source}: an example of client {client!r} in split {split} has no text {feature}"
                ) from None
            found[split, client] += 1
            writer.append(rows[:, :-1], rows[:, 1:], client, parts[split])
        counts = database.count_examples()
        told = {(split, client) for split in parts for client in counts[split]}
        for split, client in sorted(told | found.keys()):
            number = counts[split].get(client, 0)
            if number != found[split, client]:
                raise DatasetError(
                    f"{database.source}: client_metadata says that client {client!r} has {number} examples in split "
                    f"{split}, there are {found[split, client]}"
                )
        reading = f"text in sequences of {length} characters, of which the next one is predicted"
        return Description(example_format, reading=reading)

    return open_reading(Reading(name, database.source, (), how, write))
