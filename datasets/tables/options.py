"""How tables are read: which column is what, and what cells become. Imports nothing heavy."""

from datasets.options import OF_FILES, declare_options
from tff_algos.settings.config_fields import Needs, setting

MISSING = ("refuse", "median", "drop")
CATEGORIES = ("one_hot", "index")


@declare_options
class TableOptions:
    """See `datasets.tables.roles` for columns, and `datasets.tables.windows` for windows."""

    client_column: str = setting(
        "",
        "Column of a table that names the client of each row; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    label_column: str = setting(
        "", "Column of a table to predict, or several with commas; empty: guessed.", needs=OF_FILES
    )
    feature_columns: str = setting(
        "", "Columns of a table to predict from, with commas; empty: all others.", needs=OF_FILES
    )
    time_column: str = setting(
        "",
        "Column of a table that orders a client's rows; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    test_column: str = setting(
        "",
        "Column of a table that marks test rows by true, 1 or test; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    missing: str = setting("refuse", "What to do with missing values in a table.", choices=MISSING, needs=OF_FILES)
    categories: str = setting(
        "one_hot", "How text in the features of a table becomes numbers.", choices=CATEGORIES, needs=OF_FILES
    )
    window: int = setting(
        0, "Rows of a time series that make one example; 0: each row is one.", minimum=0, needs=OF_FILES
    )
    window_step: int = setting(
        0,
        "Rows from the start of a window to the start of the next; 0: as long as a window.",
        minimum=0,
        needs=Needs("window", bool, "--window=<rows>"),
    )
