"""Files of any format become a source of clients: read through once, into a store, from which runs are served.

A format says what it will open and how it reads it (`Reading`). The examples go into a store that is named by the
digest of both, so that a second run reads none of the files, unless one has changed.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from tqdm import tqdm

from datasets.client_source import ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, read_example_format
from datasets.example_store import ExampleStore, StoreWriter, open_or_write_store
from datasets.layouts import choose_preprocessing, describe_examples
from files.digests import compute_source_digest
from files.reading import explain_errors

Item = TypeVar("Item")
_SHOWN_AFTER_S = 5.0


def show_progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a bar on the terminal from the fifth second on; without a terminal there is none.

    Args:
      items: what is worked on, one by one.
      what: they are, before the bar.
      total: how many there are; None if they say so themselves, or nobody knows.
    """
    return iter(tqdm(items, what, total, leave=False, file=sys.stderr, disable=None, delay=_SHOWN_AFTER_S))


@dataclasses.dataclass(frozen=True)
class Description:
    """What is known of data once all of them were read; the store keeps it as JSON.

    Attributes:
      format: of the examples, as the store has them.
      has_clients: see `ClientSource`, like all below.
      is_ordered_by_time: see there.
      num_dropped: see there.
      reading: see there.
      notes: see there.
      filled: see there.
      more: what else the format wants to know of the store when it is opened again, as JSON can hold it.
    """

    format: ExampleFormat
    has_clients: bool = True
    is_ordered_by_time: bool = False
    num_dropped: int = 0
    reading: str = ""
    notes: tuple[str, ...] = ()
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    more: Any = None

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it; `open_store` reads it back."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**values, "format": self.format.to_json(), "notes": list(self.notes)}


class Reading(NamedTuple):
    """What a format says of its files before it reads them.

    Attributes:
      name: how reports call the data.
      path: of the file or folder, for errors.
      files: all that are opened, in a fixed order; their contents name the store.
      how: what else decides what is read, as JSON can hold it; a number that changes with the reading itself is in it.
      write: hands all examples to the writer, and describes them. It raises DatasetError.
      store_version: of what a store holds, where it may be none of an earlier version; the digest is the same.
    """

    name: str
    path: str
    files: Iterable[str]
    how: Any
    write: Callable[[StoreWriter], Description]
    store_version: int = 0


def open_reading(reading: Reading) -> ClientSource:
    """The clients of files, from the store, which is written unless it is there.

    Raises:
      DatasetError: a file cannot be read, or what it holds is of no use; one line that names the file and the place.
    """
    return serve(reading.name, *open_store(reading))


def serve(name: str, store: ExampleStore, description: Description, digest: str) -> ClientSource:
    """The clients of a store, from what `open_store` gave; `name` is that of the data."""
    example_format = description.format
    labels = example_format.labels
    return ClientSource(
        name,
        example_format,
        store.client_names,
        store.num_examples,
        store.read,
        digest,
        description.has_clients,
        description.is_ordered_by_time,
        description.num_dropped,
        description.reading,
        description.notes,
        (lambda: store.count_labels(example_format.num_classes)) if labels.is_by_class else None,
        filled=description.filled,
    )


def open_store(reading: Reading) -> tuple[ExampleStore, Description, str]:
    """(store, what is in it, its digest) of files; see `open_reading`."""
    with explain_errors(reading.path, DatasetError):
        digest = compute_source_digest(reading.files, reading.how)
    # The digest names the data in runs; only the store is another, where its content is.
    name = compute_source_digest((), [digest, reading.store_version]) if reading.store_version else digest
    store = open_or_write_store(name, lambda writer: reading.write(writer).to_json())
    described = {**store.facts, "format": read_example_format(store.facts["format"])}
    return store, Description(**{**described, "notes": tuple(described["notes"])}), digest


def scale_source(source: ClientSource, scale: str, layout: str) -> ClientSource:
    """A source whose numbers are scaled, and whose `reading` begins with what its examples are.

    What a store holds is the same at any scale, so that another one reads no file again.

    Args:
      source: of any format.
      scale: see `layouts.choose_preprocessing`.
      layout: how the examples were read, one of `layouts.LAYOUTS`.

    Raises:
      DatasetError: a scale for tokens.
    """
    form = source.format
    is_uint8 = form.input_dtype == "uint8"
    preprocessing = choose_preprocessing(scale, form.input_shape, is_uint8, form.takes_tokens)
    return dataclasses.replace(
        source,
        format=dataclasses.replace(form, preprocessing=preprocessing),
        reading=describe_examples(form.input_shape, preprocessing, layout) + source.reading,
    )
