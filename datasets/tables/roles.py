"""What each column of a table is for: whose a row is, what is predicted, from what, when, and which rows are the test.

Flags say it; what they leave open is guessed from names that mean one thing, and refused where two columns could be it.
"""

import dataclasses

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.names import check_names
from datasets.options import split_names
from datasets.tables.table import Table, find_column, list_names, simplify

_KINDS_OF_CLIENTS = (
    *("client", "user", "subject", "participant", "person", "patient", "device", "owner", "writer", "speaker"),
    *("household", "hospital", "site", "station", "sensor", "customer", "driver", "volunteer", "partition"),
)
CLIENT_NAMES = frozenset(name for kind in _KINDS_OF_CLIENTS for name in (kind, f"{kind}id", f"{kind}name", f"{kind}no"))
LABEL_NAMES = frozenset({"label", "labels", "target", "targets", "y", "class", "classlabel", "outcome", "labelid"})
TIME_NAMES = frozenset({"time", "timestamp", "datetime", "date", "ts", "unixtime", "epochtime"})
TEST_NAMES = frozenset({"istest", "test", "split", "subset"})
# What pandas writes an index as: the first column of a text file, one of this name in parquet.
FIRST_INDEX_NAMES, INDEX_NAME = frozenset({"", "unnamed0"}), "__index_level_0__"


NO_COLUMN = "none"  # as the name of a column: there is none, whatever its name


@dataclasses.dataclass(frozen=True)
class Roles:
    """The columns of a table by what they are for; "" is none.

    Attributes:
      client: says whose a row is.
      labels: what is predicted, one or several.
      features: what is predicted from, in the order of the file or of the flag.
      time: the order of a client's rows.
      test: which rows are for the test.
      weight: how much each row's loss counts in training; it is never guessed.
      block: the one feature that holds arrays or images; then `features` is that alone.
      guessed: which of the roles were told from the names.
      left_out: columns that are nothing.
    """

    client: str
    labels: tuple[str, ...]
    features: tuple[str, ...]
    time: str
    test: str
    block: str
    guessed: frozenset[str]
    left_out: tuple[str, ...] = ()
    weight: str = ""

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that something is read from, blocks left out."""
        others = (self.client, *self.labels, self.time, self.test, self.weight, *self.features)
        return tuple(dict.fromkeys(name for name in others if name and name != self.block))


def choose_roles(table: Table, options: DatasetOptions) -> Roles:
    """What each column is for.

    Raises:
      DatasetError: a column that is named is not there, has two uses, or none can be told for the label.
    """
    check_names(table.path, "column", table.columns)
    given_labels = tuple(find_column(table, name, "label_column") for name in split_names(options.label_column or ""))
    told = {role: getattr(options, f"{role}_column") for role in ("client", "time", "test", "weight")}
    refused = {role for role, name in told.items() if name == NO_COLUMN and name not in table.columns}
    given = {
        role: find_column(table, name, f"{role}_column") for role, name in told.items() if name and role not in refused
    }
    features = tuple(find_column(table, name, "feature_columns") for name in split_names(options.feature_columns or ""))
    named = [(f"{role}_column", name) for role, name in given.items()]
    named += [("label_column", name) for name in given_labels] + [("feature_columns", name) for name in features]
    taken: dict[str, str] = {}  # name of a column -> the flag or the role that it is taken by
    for flag, name in named:
        if name in taken:
            other = f"in --{taken[name]} and in --{flag}" if taken[name] != flag else f"twice in --{flag}"
            raise DatasetError(f"{table.path}: column {name!r} stands {other}, expected one use of it")
        taken[name] = flag
    guessed = {}
    for role, names in (("label", LABEL_NAMES), ("client", CLIENT_NAMES), ("time", TIME_NAMES), ("test", TEST_NAMES)):
        is_open = not (role in given or role in refused or (role == "label" and given_labels))
        if is_open and not (role == "client" and table.has_clients):
            found = [name for name in table.columns if simplify(name) in names and name not in taken]
            if len(found) > 1:
                flag = f"--{role}_column"
                raise DatasetError(
                    f"{table.path}: columns {list_names(found)} could each be meant by {flag}, expected one; name it "
                    f"by {flag}" + ("" if role == "label" else f", or give {flag}={NO_COLUMN}")
                )
            if found:
                guessed[role] = found[0]
                taken[found[0]] = role
    labels = given_labels or ((guessed["label"],) if "label" in guessed else ())
    if not labels:
        if simplify(given.get("weight", "")) in LABEL_NAMES:
            raise DatasetError(
                f"{table.path}: column {given['weight']!r} stands in --weight_column and is the label by its name, "
                f"expected one use of it; name the label by --label_column"
            )
        raise DatasetError(
            f"{table.path}: no column is called label, target, y or class; say by --label_column which of its columns "
            f"is to be predicted: {list_names(table.columns)}"
        )
    chosen = {role: given.get(role) or guessed.get(role, "") for role in ("client", "time", "test", "weight")}
    if chosen["weight"] in table.blocks:
        raise DatasetError(
            f"{table.path}: weight column {chosen['weight']!r} holds arrays or images, expected a number in each row; "
            f"name another by --weight_column"
        )
    features, block, left_out = _choose_features(table, features, {*labels, *filter(None, chosen.values())})
    return Roles(labels=labels, features=features, block=block, guessed=frozenset(guessed), left_out=left_out, **chosen)


def names_clients(columns: tuple[str, ...], options: DatasetOptions) -> bool:
    """Whether a column says whose a row is, as the flag or the names of the columns have it."""
    if options.client_column:
        return options.client_column != NO_COLUMN
    return any(simplify(name) in CLIENT_NAMES for name in columns)


def _choose_features(
    table: Table, given: tuple[str, ...], others: set[str]
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """(features, the one of them that is a block, columns left out)."""
    rest = given or tuple(name for name in table.columns if name not in others)
    blocks = [name for name in rest if name in table.blocks]
    if blocks:
        if len(blocks) > 1 or (given and len(given) > 1):
            raise DatasetError(
                f"{table.path}: columns {list_names(blocks)} hold arrays or images, expected one such column alone to "
                f"predict from; name it by --feature_columns"
            )
        return (blocks[0],), blocks[0], tuple(name for name in rest if name != blocks[0])
    indices = {INDEX_NAME, *(name for name in table.columns[:1] if simplify(name) in FIRST_INDEX_NAMES)}
    numbers = () if given else tuple(name for name in rest if name in indices)
    features = tuple(name for name in rest if name not in numbers)
    if not features:
        raise DatasetError(f"{table.path}: no column is left to predict from; it has {list_names(table.columns)}")
    return features, "", numbers
