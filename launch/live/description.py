"""What a client must know of a run's examples to read its own: the columns of a table, or the form of arrays.

A description is an object that JSON can hold, made of the organiser's data or of a file that a person wrote. A client
gets it, reads its file by it (`launch/live/join.py`), and names its digest when it joins. It has `kind`, and
- of a "table": `columns`, those that are predicted from, in order, each with `name`, `kind` ("number", "one_hot" or
  "index"), and of a number what fills a gap (`fill`), and what a model takes from it and divides it by then (`mean`,
  `deviation`); of categories `values` in order, `joined` ({spelling: value}) and the place of the most frequent one;
  `label`, with its `name`, `classes` in order, and `numbers`, the number that stands for each, or `spellings`, the
  class of each text; `missing` ("refuse", "median" or "drop"), `missing_words`, `decimal_mark`, and `left_out`, columns
  of no use;
- of "arrays": `input_shape` of an example as stored, `input_dtype`, `classes`, and `image`, how a drawing becomes one,
  as `datasets.drawn_images` tells pages, or null: a client that gets arrays has no use for it.
Both have `name`, `scale` and `offset`: what is stored becomes float32(x) * scale + offset.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.client_source import TRAIN
from datasets.dataset import DatasetOptions
from datasets.drawn_images import describe_image
from datasets.errors import DatasetError
from datasets.example_format import CLASSIFICATION, ExampleFormat, Preprocessing
from datasets.federated_data import FederatedData
from datasets.file_formats import find_format
from datasets.options import FILES
from datasets.stored_source import SPLIT_ORDER, find_fill
from datasets.tables.cells import read_missing_words, read_number
from datasets.tables.features import DROP, INDEX, MEDIAN, ONE_HOT, Feature, check_missing, choose_features, list_groups
from datasets.tables.labels import TableLabels, choose_labels
from datasets.tables.number_styles import NumberStyle
from datasets.tables.scan import read_splits
from datasets.tables.source import look_through
from datasets.tables.table import Roles, Table, choose_roles
from datasets.tables.written_numbers import COMMA
from launch.runs.stored_data import Scaling
from launch.settings.data_flags import NONE, choose_options
from launch.settings.run_config import RunConfig
from launch.settings.serving import OWN_DATA
from tff_algos.settings.config_fields import ConfigError

TABLE, ARRAYS = "table", "arrays"
NUMBER = "number"
LEAST_DEVIATION = 1e-30  # as models have it
_OWN = f"with --{OWN_DATA}"


def digest(description: Mapping[str, Any]) -> str:
    """What names a description, 64 hex digits; `join.py` computes the same."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def describe_examples(config: RunConfig, data: FederatedData) -> dict[str, Any]:
    """The description of the organiser's data; a table is read once more.

    Args:
      config: of the run.
      data: what it loaded.

    Raises:
      ConfigError: clients cannot read such data, or not as the settings ask.
      DatasetError: the table cannot be read.
    """
    labels, options = data.format.labels, choose_options(vars(config))
    if labels.task != CLASSIFICATION or data.format.takes_tokens:
        what = "tokens" if data.format.takes_tokens else labels.title
        raise ConfigError(OWN_DATA, True, f"false for {what}: clients read numbers and one class an example")
    if config.standardize != NONE:
        raise ConfigError("standardize", config.standardize, f"{NONE} {_OWN}: columns are scaled by the organiser's")
    for name in ("window", "weight_column", "text_column"):
        if value := getattr(options, name):
            raise ConfigError(name, value, f"none {_OWN}: each row is an example, and all count alike")
    table = None
    if config.dataset == FILES:
        path = os.path.abspath(os.path.expanduser(config.data))
        make_table = find_format(path, options.data_format).make_table
        table = make_table(path, options) if make_table else None
    if table is not None and not choose_roles(table, options).block:
        return {"name": data.dataset, **describe_table(table, options, data.format.preprocessing)}
    return describe_arrays(data)


def describe_arrays(data: FederatedData) -> dict[str, Any]:
    """The description of examples that come as arrays, as they are stored."""
    return {
        "name": data.dataset,
        "kind": ARRAYS,
        "input_shape": list(data.format.input_shape),
        "input_dtype": data.format.input_dtype,
        "classes": list(data.format.class_names),
        "image": describe_image(data),
        "scale": data.format.preprocessing.scale,
        "offset": data.format.preprocessing.offset,
    }


def describe_table(table: Table, options: DatasetOptions, preprocessing: Preprocessing) -> dict[str, Any]:
    """The description of a table's columns, as they are read with these options, without a name.

    Raises:
      DatasetError: its columns or values are of no use, or written as no client reads them.
    """
    roles = choose_roles(table, options)
    table, scan, styles, _ = look_through(table.cache_small(), roles, options)
    check_missing(table, roles, scan, options)
    labels = choose_labels(table, roles, scan, options)
    if len(roles.labels) > 1:
        raise ConfigError("label_column", ",".join(roles.labels), f"one column {_OWN}, of classes")
    _check_written(table, roles, styles)
    columns = []
    numbers = _read_numbers(table, roles, options, features := choose_features(table, roles, scan, options))
    for feature in features:
        if feature.categories:
            columns.append(_describe_categories(feature))
            continue
        values = numbers[feature.column]
        is_gap = np.isnan(values)
        fill = find_fill(values[~is_gap], scan.columns[feature.column].num_booleans > 0)
        columns.append({
            "name": feature.column,
            "kind": NUMBER,
            "fill": float(fill) if options.missing == MEDIAN else 0.0,
            **_measure(np.where(is_gap, fill, values), preprocessing),
        })  # fmt: skip
    return {
        "kind": TABLE,
        "columns": columns,
        "label": _describe_label(roles.labels[0], labels),
        "missing": options.missing,
        "missing_words": sorted(read_missing_words(options.missing_words) - {""}),
        "decimal_mark": options.decimal_mark,
        "left_out": [name for name in table.columns if name not in (*roles.features, *roles.labels)],
        "scale": preprocessing.scale,
        "offset": preprocessing.offset,
    }


def _check_written(table: Table, roles: Roles, styles: Mapping[str, NumberStyle]) -> None:
    """Raises DatasetError: a column has numbers that clients do not read, such as 45 kg and 1.230,50."""
    for name, style in styles.items():
        number = read_number(style.sample, style.mark == COMMA)
        if name in (*roles.features, *roles.labels) and number != style.read_text(style.sample):
            raise DatasetError(
                f"{table.path}: column {name!r} has numbers such as {style.sample!r}, expected plain ones, since "
                "clients read no others; write numbers alone, or leave the column out by --drop_columns"
            )


def _read_numbers(
    table: Table, roles: Roles, options: DatasetOptions, features: tuple[Feature, ...]
) -> dict[str, np.ndarray]:
    """The train rows of each column of numbers, as they are stored but for gaps, float32 (rows,)."""
    parts: dict[str, list[np.ndarray]] = {each.column: [] for each in features if not each.categories}
    for piece in table.read(roles.used):
        is_used = read_splits(piece, roles) == SPLIT_ORDER.index(TRAIN)
        for name in roles.used if options.missing == DROP else ():
            is_used &= ~piece.cells[name].is_missing
        for each in features:
            if each.column in parts:
                parts[each.column].append(each.encode(piece.cells[each.column])[is_used, 0])
    return {name: np.concatenate(found) for name, found in parts.items()}


def _measure(values: np.ndarray, preprocessing: Preprocessing) -> dict[str, float]:
    """The mean and deviation of what a model gets; 0 and 1 of what is constant, or nothing but 0 and 1."""
    x = values.astype(np.float64) * preprocessing.scale + preprocessing.offset
    deviation = float(x.std()) if len(x) else 0.0
    is_left = np.isin(values, (0, 1)).all() or deviation <= max(LEAST_DEVIATION, 1e-12 * abs(float(x.mean())))
    return {"mean": 0.0, "deviation": 1.0} if is_left else {"mean": float(x.mean()), "deviation": deviation}


def _describe_categories(feature: Feature) -> dict[str, Any]:
    return {
        "name": feature.column,
        "kind": ONE_HOT if feature.is_one_hot else INDEX,
        "values": list(feature.categories),
        "joined": dict(feature.joined),
        "most_frequent": feature.most_frequent,
    }


def _describe_label(name: str, labels: TableLabels) -> dict[str, Any]:
    """A label by numbers has no spellings; where texts stand for classes, there are no numbers."""
    return {
        "name": name,
        "classes": list(labels.class_names),
        "numbers": [] if labels.index_by_text else list(labels.numbers),
        "spellings": dict(labels.index_by_text),
    }


def make_format(description: Mapping[str, Any]) -> ExampleFormat:
    """What examples are that are read by a description, as the organiser's reader would have them."""
    preprocessing = Preprocessing(description["scale"], description["offset"])
    if description["kind"] == ARRAYS:
        shape, dtype = tuple(description["input_shape"]), description["input_dtype"]
        return ExampleFormat(shape, dtype, tuple(description["classes"]), preprocessing)
    features = tuple(
        Feature(each["name"], tuple(each.get("values", ())), each["kind"] == ONE_HOT) for each in description["columns"]
    )
    names, groups = tuple(name for feature in features for name in feature.names), list_groups(features)
    return ExampleFormat(
        (len(names), 1),
        "float32",
        tuple(description["label"]["classes"]),
        preprocessing,
        are_features=True,
        feature_names=names,
        categories=tuple(at for group in groups for at in group.places),
        groups=groups,
    )


def find_scaling(description: Mapping[str, Any]) -> Scaling | None:
    """What the model takes from the columns and divides them by; None if that would change nothing."""
    pairs: list[tuple[float, float]] = []
    for each in description.get("columns", ()):
        pairs += [(each.get("mean", 0.0), each.get("deviation", 1.0))] * (
            len(each["values"]) if each["kind"] == ONE_HOT else 1
        )
    means, deviations = zip(*pairs, strict=True) if pairs else ((), ())
    return None if all(pair == (0, 1) for pair in pairs) else Scaling(means, deviations, None)
