"""The names of files and columns have one home: no other module spells one of them where it means one."""

import ast
import pathlib

import pytest

from launch.runs import archetype_metrics, columns
from launch.runs.column_titles import title_column
from launch.settings.run_config import algorithm_fields, shared_fields

ROOT = pathlib.Path(__file__).parents[3]
HOMES = {"launch/runs/columns.py", "launch/runs/archetype_metrics.py", "tff_algos/protocol.py"}
# The same spelling for something else: a flag, a key of `config.json`, the template of a page.
OTHER_WORDS = {
    "launch/settings/own_algorithm.py": {
        *(columns.IS_PERSONAL, columns.BUDGET_SPENT, columns.STOPPED_EARLY, columns.KEPT_BEST, columns.TOKEN_BASELINES),
        columns.OVERALL_MAJORITY_TEST_ACCURACY,
        columns.REACHED_LIMITS,
    },
    "tff_algos/oracle/config.py": {columns.META_ARCHETYPE},  # a choice of a setting
    # Below `runs`, so the names stand there.
    "launch/settings/run_config.py": {columns.CONFIG_FILE, columns.METRICS_FILE, columns.RECORD_FILE},
    "launch/runs/run_description.py": {
        columns.NUM_TRAIN,
        columns.NUM_VALIDATION,
        columns.NUM_TEST,
    },
    "launch/settings/serving.py": {columns.SERVE_FILE, "own_data"},  # likewise; and a flag
    "launch/serve.py": {"own_data"},
    "launch/tflite/export_models.py": {columns.TRAINING_FILE},  # how the names of such files end
    # Words of the protocol, and counts that have the names of their columns.
    "launch/live/join.py": {columns.NUM_TRAIN, columns.NUM_TEST},
    "launch/live/roster.py": {columns.NUM_TRAIN, columns.NUM_TEST, columns.ROSTER_FILE},
    "launch/live/status.py": {columns.BYTES_DOWN, columns.BYTES_UP},
    "launch/live/network.py": {
        *(columns.BYTES_DOWN, columns.BYTES_UP, columns.BYTES_OF_ORDERS, columns.BYTES_OF_FILES, columns.NUM_REJECTED),
        *(columns.NUM_PRESENT, columns.NUM_ASKED, columns.NUM_ANSWERED, columns.NUM_LATE, columns.NUM_MISSING),
        columns.NUM_RETURNS,
    },
    # It runs in an environment that has none of our packages.
    "launch/runs/trackers/sender.py": {columns.METRICS_FILE, columns.SUMMARY_FILE, columns.TIMING_FILE},
}
FLAGS = {field.name for field in (*shared_fields(), *algorithm_fields("amfl_p"))}
PAGE = columns.WEB_PAGE.removeprefix("export/")
MODULES = sorted(
    name
    for package in ("launch", "tff_algos")
    for path in (ROOT / package).rglob("*.py")
    if (name := str(path.relative_to(ROOT))) not in HOMES
)


def list_names():
    values = [*vars(columns).values(), archetype_metrics.CHANGE, archetype_metrics.MIXED]
    flat = [name for value in values for name in (value if isinstance(value, tuple) else (value,))]
    return {name for name in flat if isinstance(name, str)} - {columns.__name__, columns.__doc__, columns.__file__}


# Of several words, or with a suffix: a plain word may mean anything.
NAMES = {
    name for name in list_names() if not {"/", " "} & set(name) and name and not name.isalpha() and name not in FLAGS
} - {PAGE}


def find_names(text):
    """The names that a module spells as literals, other than as docstrings."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return {node.value for node in literals if node.value in NAMES}


def test_no_other_module_spells_a_name():
    found = {name: find_names((ROOT / name).read_text(encoding="utf-8")) for name in MODULES}
    own = {name: names - OTHER_WORDS.get(name, set()) for name, names in found.items()}
    assert not {name: names for name, names in own.items() if names}, f"take them from {columns.__name__}"


def test_no_exemption_outlives_its_reason():
    for name, words in OTHER_WORDS.items():
        assert words <= find_names((ROOT / name).read_text(encoding="utf-8")), name


def test_names_are_found_where_they_mean_a_column_or_file():
    assert {"test_accuracy", "metrics.csv", "round_s", "client_accuracy_change"} <= NAMES
    assert find_names('x = "test_accuracy"') == {"test_accuracy"}
    assert find_names('"""round_s"""\ndef f():\n    """metrics.csv"""') == set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("num_clients", "Clients that took part"),
        ("live_models", "Models on the server"),
        ("my_own_norm", "My own norm"),
        ("num_hops", "Number of hops"),
        ("wait_s", "Wait, s"),
        ("client_test_rmse_std", "Client test RMSE deviation"),
        ("_", "_"),
    ],
)
def test_a_column_in_words(name, expected):
    assert title_column(name) == expected
