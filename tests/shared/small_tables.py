"""Small tables in files of text and parquet, and the facts of the sources that they become."""

import pyarrow
import pyarrow.parquet

from datasets.dataset import DatasetOptions
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.parquet import FORMAT as PARQUET


def write_text(folder, content, name="mine.csv"):
    """The path of a file that holds this text, or these bytes."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder / name)


def open_text(folder, content, **options):
    """The source of a table of text."""
    return CSV.open(write_text(folder, content), DatasetOptions(**options))


def write_columns(path, columns, schema=None, **how):
    """The path of a parquet file, whose folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), path, **how)
    return str(path)


def open_columns(folder, columns, **options):
    """The source of a parquet file."""
    return PARQUET.open(write_columns(folder / "mine.parquet", columns), DatasetOptions(**options))


def read_split(source, split="train"):
    """{client: x}, {client: y} as lists; features without their channel."""
    read = {name: source.read(client, split) for client, name in enumerate(source.client_names)}
    xs = {name: (x[..., 0] if x.shape[-1] == 1 else x).tolist() for name, (x, _) in read.items()}
    return xs, {name: y.tolist() for name, (_, y) in read.items()}


_FACTS = {
    "clients": lambda source: source.client_names,
    "features": lambda source: source.format.feature_names,
    "categories": lambda source: source.format.categories,
    "classes": lambda source: source.format.class_names,
    "task": lambda source: source.format.labels.task,
    "shape": lambda source: source.format.input_shape,
    "dtype": lambda source: source.format.input_dtype,
    "x": lambda source: read_split(source)[0],
    "y": lambda source: read_split(source)[1],
    "test_x": lambda source: read_split(source, "test")[0],
    "test_y": lambda source: read_split(source, "test")[1],
    "counts": lambda source: {split: counts.tolist() for split, counts in source.num_examples.items()},
    "label_counts": lambda source: source.count_labels().tolist(),
    "filled": lambda source: dict(source.filled),
    "dropped": lambda source: source.num_dropped,
    "has_clients": lambda source: source.has_clients,
    "is_ordered": lambda source: source.is_ordered_by_time,
}


def assert_facts(source, said=(), noted=None, **expected):
    """A source has these facts, names of `_FACTS`, says these parts in its reading, and has a note with each part."""
    assert {name: _FACTS[name](source) for name in expected} == expected
    assert [part for part in said if part not in source.reading] == [], source.reading
    if noted is not None:
        assert len(source.notes) == len(noted), source.notes
        assert all(part in note for part, note in zip(noted, source.notes, strict=True)), source.notes
