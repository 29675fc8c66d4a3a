"""The names of files and columns have one home: no other module spells one of them where it means one."""

import ast
import pathlib

from launch.runs import archetype_metrics, columns

ROOT = pathlib.Path(__file__).parents[3]
HOMES = {"launch/runs/columns.py", "launch/runs/archetype_metrics.py", "tff_algos/protocol.py"}
# Words of the same spelling: of flags, of `config.json`, of the reports' own tables, of an algorithm's own summary.
OTHER_WORDS = {
    "launch/benchmarks/pfl_rank.py": {columns.LOSS},  # pfl-research's name
    "launch/papers/fedsikd/measures.py": {columns.ROUND},
    "tff_algos/fed_cd/state.py": {columns.MODELS},
    "launch/settings/run_config.py": {columns.CONFIG_FILE},  # below `runs`, so the name stands there
    "launch/settings/own_algorithm.py": {
        *(columns.START, columns.IS_PERSONAL, columns.BUDGET_SPENT, columns.STOPPED_EARLY)  # likewise
    },
    "launch/runs/run_description.py": {
        *(columns.NUM_CLIENTS, columns.NUM_TRAIN, columns.NUM_VALIDATION, columns.NUM_TEST)
    },
    # Words of the model cards, which stay as they are in files that have left the run folder.
    "launch/tflite/card_page.py": {columns.ACCURACY, columns.CLIENT, columns.MODEL},
    "launch/tflite/export_models.py": {columns.MODEL},
    "launch/tflite/model_card.py": {columns.ACCURACY, columns.CLIENT},
    # Flags.
    "launch/api.py": {columns.MODEL},
    "launch/papers/amfl_p/costs.py": {columns.START},
    "launch/papers/amfl_p/report.py": {"fine_tuning_steps"},
    "launch/comparison/figure.py": {columns.ROUND},
    "launch/settings/suggestions.py": {columns.PATIENCE, columns.MODEL, columns.NUM_CLIENTS},
    # A key of the page's content, and the template of the page.
    "launch/comparison/content.py": {columns.PLOTS},
    "launch/comparison/page.py": {columns.WEB_PAGE.removeprefix("export/")},
    # A flag, and keys of what it writes as JSON.
    "launch/inspection/findings.py": {columns.MODEL, columns.NOTES, columns.READING},
    # Words of the page's scripts, and the template that it is made of.
    "launch/tflite/text_page.py": {columns.MODELS},
    "launch/tflite/web_page.py": {columns.MODELS, columns.WEB_PAGE.removeprefix("export/")},
}
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


NAMES = {name for name in list_names() if name and "/" not in name.removeprefix("export/") and " " not in name}
# A name of several words or with a suffix means a column or file wherever it stands. A plain word means one only where
# it is a key, an index, or part of a path; elsewhere it may be an axis's label or another word of the same spelling.
PLAIN_WORDS = {name for name in NAMES if name.isalpha()}


def find_names(text):
    """The names that a module spells as literals, each where it means a column or a file."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    keys = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            [node.slice]
            if isinstance(node, ast.Subscript)
            else node.keys
            if isinstance(node, ast.Dict)
            else [node.left, node.right]
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            else []
        )
    }
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in NAMES]
    return {
        node.value
        for node in literals
        if id(node) not in docstrings and (node.value not in PLAIN_WORDS or id(node) in keys)
    }


def test_no_other_module_spells_a_name():
    found = {name: find_names((ROOT / name).read_text(encoding="utf-8")) for name in MODULES}
    own = {name: names - OTHER_WORDS.get(name, set()) for name, names in found.items()}
    assert not {name: names for name, names in own.items() if names}, f"take them from {columns.__name__}"


def test_no_exemption_outlives_its_reason():
    for name, words in OTHER_WORDS.items():
        assert words <= find_names((ROOT / name).read_text(encoding="utf-8")), name


def test_names_are_found_where_they_mean_a_column_or_file():
    assert {"test_accuracy", "metrics.csv", "round", "checkpoints", "round_s", "client_accuracy_change"} <= NAMES
    assert find_names('x = "test_accuracy"') == {"test_accuracy"}
    assert find_names('x["round"]') == {"round"} == find_names('{"round": 1}')
    assert find_names('folder / "models" / "a"') == {"models"}
    assert find_names('ax.set(xlabel="round", title="model")') == set()
    assert find_names('"""round"""\ndef f():\n    """metrics.csv"""') == set()
