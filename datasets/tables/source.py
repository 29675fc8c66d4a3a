"""A table becomes a source of clients: looked through once, then written into a store, from which clients are read."""

import dataclasses
import itertools
import os

from datasets.client_source import ClientSource, SourceWeights
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_store import LEFT_OUT, SPLIT_ORDER, ExampleStore
from datasets.file_formats import name_data
from datasets.image_options import ImageOptions
from datasets.label_format import LABEL_KINDS
from datasets.layouts import AUTO, FEATURES
from datasets.stored_source import Reading, open_store, scale_source, serve
from datasets.tables.labels import guess_table_task
from datasets.tables.number_forms import scan_numbers
from datasets.tables.options import AUTO as AUTO_FORM
from datasets.tables.options import AUTO_MARK, DEFAULT_MISSING_WORDS, FALSE_TRUE, NUMBER
from datasets.tables.roles import Roles, choose_roles
from datasets.tables.scan import MOST_DIFFERENT, scan_table
from datasets.tables.table import Table, list_names
from datasets.tables.windows import GAP, WindowedExamples, cut_windows
from datasets.tables.writing import NUMBERS, write_table
from datasets.text_options import TextOptions
from datasets.unused_options import refuse_options
from files.digests import compute_source_digest

VERSION = 1  # of how a table is read; another makes new stores, and other data
STORE_VERSION = 3  # another makes new stores alone; of data that are read as before, the digest is the same


def open_table(table: Table, options: DatasetOptions) -> ClientSource:
    """The clients of a table.

    Raises:
      DatasetError: its columns or values are of no use; one line that names the file and the place.
    """
    roles = choose_roles(table, options)
    refuse_options(table.path, "a table", options, TextOptions, *(() if roles.block else (ImageOptions,)))
    if options.window and roles.block:
        raise DatasetError(
            f"{table.path}: window={options.window} is for columns of numbers, {roles.block} holds arrays"
        )
    if options.date_form not in (AUTO_FORM, NUMBER) and not roles.time:
        raise DatasetError(
            f"{table.path}: date_form={options.date_form}: no column orders the rows; name it by --time_column, or "
            f"leave --date_form out"
        )
    if not roles.block and options.layout not in (AUTO, FEATURES):
        raise DatasetError(
            f"{table.path}: layout={options.layout}: the columns of a table are features, expected no --layout; "
            f"--window makes sequences of rows"
        )
    names = (
        [os.path.relpath(path, table.path) for path in table.paths] if len(table.paths) > 1 or table.has_clients else []
    )
    told = [options.missing, options.categories, options.layout, options.task or "", options.image_size]
    told += [options.image_colour, bool(options.window)]
    # What earlier versions did has the digest that they gave it.
    before = {"missing_words": DEFAULT_MISSING_WORDS, "join_spellings": False, "truth_names": FALSE_TRUE}
    before |= {"date_form": NUMBER} if roles.time else {}
    told += [[name, value] for name in before if (value := getattr(options, name)) != before[name]]
    class_names = sorted(table.class_names.items())
    used = {**dataclasses.asdict(roles), "guessed": sorted(roles.guessed)}
    if not roles.weight:  # as before there was such a column
        del used["weight"]
    told += [] if options.decimal_mark == AUTO_MARK else [options.decimal_mark]
    how = [VERSION, table.form, names, class_names, used, *told]
    if ordered := [name for name in table.ordered if name in (*roles.labels, *roles.features)]:
        how.append({"ordered": ordered})  # only then: stores of an earlier version have them by the alphabet
    reading = Reading(
        name_data(table.path),
        table.path,
        table.paths,
        how,
        lambda writer: write_table(table, roles, options, writer),
        STORE_VERSION,
    )
    store, description, digest = open_store(reading)
    if numbers := description.more[NUMBERS]:  # data that an earlier version read as categories are others
        digest = compute_source_digest((), [digest, numbers])
    source = serve(reading.name, store, description, digest)
    if roles.weight:
        source = dataclasses.replace(source, weights=SourceWeights(roles.weight, store.read_weights))
    source = dataclasses.replace(source, reading=_describe_columns(table, roles, description.reading))
    source = _cut(source, store, options, table.path) if options.window else source
    layout = FEATURES if source.format.are_features else description.more["layout"] or AUTO
    return scale_source(source, options.scale, layout)


def choose_table_partition(table: Table, options: DatasetOptions) -> str:
    """The default of `--partition`: "natural" for named clients, "iid" for labels that are no classes; else ""."""
    roles = choose_roles(table, options)
    if roles.client or table.has_clients:
        return "natural"
    task = options.task
    if not task:
        head = dataclasses.replace(table, read=lambda names: itertools.islice(table.read(names), 1))
        scan = scan_table(
            head, dataclasses.replace(roles, client="", features=(), time="", test="", block="", weight="")
        )
        if any(column.has_written for column in scan.columns.values()):  # other values and columns decide what it says
            _, scan, _ = scan_numbers(table, roles, options, MOST_DIFFERENT)
        task = guess_table_task(roles, scan)[0]
    return "" if LABEL_KINDS[task].is_by_class else "iid"


def _cut(source: ClientSource, store: ExampleStore, options: DatasetOptions, path: str) -> ClientSource:
    """Windows of the rows in place of these."""
    length, step = options.window, options.window_step or options.window
    windows = cut_windows(store.clients, store.splits, store.times, length, step, SPLIT_ORDER.index(LEFT_OUT))
    if not len(windows.starts):
        raise DatasetError(f"{path}: window={length}: no client has so many rows without a gap, expected fewer")
    text = f"{len(windows.starts):,} windows of {length:,} rows, one every {step:,}, labelled as their last row"
    if windows.num_gaps:
        noun = "gap" if windows.num_gaps == 1 else "gaps"
        text += f"; none crosses one of {windows.num_gaps:,} {noun} (more than {GAP:g} times a client's usual step)"
    note = (
        "windows overlap, so that the first of a client's test part share rows with the last before it; "
        f"--window_step={length} makes them apart"
    )
    examples, rows, num_features = WindowedExamples(store, windows, length), source.format, store.x.shape[1]
    # Of one channel a name would be taken for that of one of so many features.
    names = rows.feature_names if num_features > 1 else ()
    example_format = dataclasses.replace(
        rows,
        input_shape=(length, num_features),
        are_features=False,
        feature_names=names,
        categories=rows.categories if num_features > 1 else tuple(range(length)) * bool(rows.categories),
        has_whole_steps=True,  # a client with too few rows has no window
    )
    return dataclasses.replace(
        source,
        format=example_format,
        num_examples=examples.num_examples,
        read=examples.read,
        weights=source.weights and source.weights._replace(read=examples.read_weights),
        digest=compute_source_digest((), [source.digest, length, step]),
        is_ordered_by_time=True,
        reading=f"{source.reading}; {text}",
        notes=(*source.notes, *([note] if step < length else [])),
        count_labels=source.count_labels and (lambda: examples.count_labels(len(rows.class_names))),
    )


def _describe_columns(table: Table, roles: Roles, rest: str) -> str:
    def name(role: str, columns: str) -> str:
        return f"{columns} (by its name)" if role in roles.guessed else columns

    parts = [f"table, {table.form}: label {name('label', list_names(roles.labels))}"]
    clients = f"client {name('client', roles.client)}" if roles.client else "no clients"
    parts.append("a file a client" if table.has_clients and not roles.client else clients)
    parts += [f"ordered by {name('time', roles.time)}"] if roles.time else []
    parts += [f"test rows by {name('test', roles.test)}"] if roles.test else []
    parts += [f"train examples weighted by {roles.weight}"] if roles.weight else []
    return "; " + "; ".join(filter(None, (", ".join(parts), rest)))
