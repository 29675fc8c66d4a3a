"""Wrong requests and files, of every command: one line, exit code 2, and nothing is written.

The table is `data/wrong_requests.txt`; the files that its rows name are made here. Rows that only the parser of flags
sees are in `settings/test_flags.py` as well.
"""

import importlib
import io
import json
import pathlib
import shlex
import sys
import zipfile

import numpy as np
import pytest

from datasets.catalog import DATASET_NAMES
from launch.settings.algorithms import ALGORITHMS
from models.model_names import MODEL_NAMES

TABLE = pathlib.Path(__file__).parent / "data" / "wrong_requests.txt"
NOTHING = "(nothing)"
NAMES = {"<algorithms>": ALGORITHMS, "<datasets>": DATASET_NAMES, "<models>": MODEL_NAMES}

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 2


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def text(content):
    return lambda path: path.write_text(content)


def raw(content):
    return lambda path: path.write_bytes(content)


def entry(dtype, shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def zipped(**entries):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in entries.items():
                archive.writestr(name.replace("__", "."), content)

    return write


def cut(write, share):
    def both(path):
        write(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return both


def make_entry(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def folder(path):
    path.mkdir()


def run(flags, **files):
    def write(path):
        path.mkdir()
        content = flags if isinstance(flags, str) else json.dumps(flags)
        (path / "config.json").write_text(content)
        for name, text in files.items():
            (path / name.replace("__", ".")).write_text(text)

    return write


FINISHED = run(
    {
        "flags": {"algo": "fedavg"},
        "data": {
            "input_shape": [8, 8, 1],
            "input_dtype": "uint8",
            "scale": 1,
            "offset": 0,
            "class_names": ["a", "b"],
        },
    },
    summary__json='{"rounds": 1, "fedavg": {}}',
    clients__csv="client,model\nclient_0,global\n",
)
FILES = {
    "folder": folder,
    "empty": raw(b""),
    "text": text("x,y\n1,2\n"),
    "binary": raw(bytes(range(256))),
    # npz
    "good.npz": npz(x=X, y=Y),
    "clients.npz": npz(x=X, y=Y, client=Y),
    "names.npz": npz(x=X, y=np.array(["cat", "dog"], object)[Y]),
    "pictures/ann/dog/1.jpg": raw(b"\xff\xd8\xff"),
    "few.flags": text("--algo=fedavg\n--dataset=npz\n--npz=clients.npz\n--partition=iid\n--num_clients=4\n"),
    "nan.npz": npz(x=np.where(X == 3, np.nan, X), y=Y),
    "infinite.npz": npz(x=X + 1e300, y=Y),
    "no_y.npz": npz(x=X),
    "short_y.npz": npz(x=X, y=Y[:-1]),
    "flat.npz": npz(x=X[:, 0], y=Y),
    "complex.npz": npz(x=X.astype(complex), y=Y),
    "float_labels.npz": npz(x=X, y=Y * 0.5),
    "labels_with_gap.npz": npz(x=X, y=Y * 2),
    "one_class.npz": npz(x=X, y=Y * 0),
    "no_examples.npz": npz(x=X[:0], y=Y[:0]),
    "more.npz": npz(x=X, y=Y, z=Y),
    "half_test.npz": npz(x=X, y=Y, x_test=X),
    "other_test.npz": npz(x=X, y=Y, x_test=X[:, :1], y_test=Y),
    "short_clients.npz": npz(x=X, y=Y, client=Y[:-1]),
    "float_clients.npz": npz(x=X, y=Y, client=Y * 0.5),
    "pickled.npz": npz(x=X, y=np.array([{"a": 1}] * 20, object)),
    "giant.npz": zipped(x__npy=entry("<f8", (10**12, 2)), y__npy=make_entry(Y)),
    "giant_empty.npz": zipped(x__npy=entry("<f8", (10**12, 0)), y__npy=make_entry(Y)),
    "negative.npz": zipped(x__npy=entry("<f8", (-1, 2)), y__npy=make_entry(Y)),
    "no_array.npz": zipped(x__npy=make_entry(X), y__npy=b"1,2,3\n"),
    "cut.npz": cut(npz(x=X, y=Y), 0.5),
    "single.npy": lambda path: np.save(path, X),
    "text.npz": text("x,y\n1,2\n"),
    "empty.npz": raw(b""),
    "folder.npz": folder,
    # flagfiles
    "binary.flags": raw(bytes(range(128, 256))),
    "nul.flags": raw(b"--algo=fedavg\n--rounds=3\0\n"),
    "latin.flags": raw("--algo=fedavg\n--run_dir=caf\xe9\n".encode("latin-1")),
    "itself.flags": text("--algo=fedavg\n--flagfile=itself.flags\n"),
    "there.flags": text("--flagfile=back.flags\n"),
    "back.flags": text("--flagfile=there.flags\n"),
    "stray.flags": text("algo=fedavg\n"),
    "unknown.flags": text("--algo=fedavg\n--colour=red\n"),
    "wrong.flags": text("--algo=fedavg\n--rounds=none\n"),
    "good.flags": text("--algo=fedavg\n--rounds=3\n"),
    "archetypes.flags": text("--algo=fedavg\n--partition=hierarchical\n--validation_per_client=0\n"),
    "folder.flags": folder,
    "nested/good.flags": text("--algo=fedavg\n"),
    # runs
    "run_of_nothing": folder,
    "run_empty_config": run(""),
    "run_cut_config": run('{"flags": {"algo": "fed'),
    "run_list": run("[1, 2]"),
    "run_no_flags": run({"data": {}}),
    "run_number_flags": run({"flags": 3}),
    "run_unknown_algo": run({"flags": {"algo": "gone"}}),
    "run_own_gone": run({"flags": {"algo": "gone_module:ALGORITHM"}}),
    "run_own_ambiguous": run({"flags": {"algo": "own_rows:AMBIGUOUS"}}),
    "run_unknown_flag": run({"flags": {"algo": "fedavg", "colour": "red"}}),
    "run_wrong_type": run({"flags": {"algo": "fedavg", "rounds": "many"}}),
    "run_out_of_range": run({"flags": {"algo": "fedavg", "rounds": -1}}),
    "run_binary": lambda path: (path.mkdir(), (path / "config.json").write_bytes(bytes(range(256)))),
    "run_deep": run('{"flags": ' + "[" * 100000 + "]" * 100000 + "}"),
    "run_big_number": run('{"flags": {"algo": "fedavg", "rounds": ' + "9" * 5000 + "}}"),
    "run_begun": run({"flags": {"algo": "fedavg", "rounds": 50, "seed": 0}, "data": {}}),
    "run_no_summary": run({"flags": {"algo": "fedavg"}, "data": {}}, clients__csv="client,model\nclient_0,global\n"),
    "run_list_summary": run(
        {"flags": {"algo": "fedavg"}, "data": {}}, summary__json="[]", clients__csv="client,model\n"
    ),
    "run_no_models": FINISHED,
    "run_saved": FINISHED,
    "run_saved/models/global/model.keras": raw(b""),
    "run_no_data": run(
        {"flags": {"algo": "fedavg"}, "data": {}},
        summary__json='{"rounds": 1, "fedavg": {}}',
        clients__csv="client,model\nclient_0,global\n",
    ),
    "run_no_columns": run(
        {"flags": {"algo": "fedavg"}, "data": {}},
        summary__json='{"rounds": 1, "fedavg": {}}',
        clients__csv="a,b\n1,2\n",
    ),
    "runs_of_two/a": run({"flags": {"algo": "fedavg"}}),
    "runs_of_two/b": run({"flags": {"algo": "fedavg"}}),
    "run_wrong_sum": run({"flags": {"algo": "fedavg"}}, checksums__sha256="0" * 64 + "  config.json\n"),
    "run_damaged_sums": run({"flags": {"algo": "fedavg"}}, checksums__sha256="x"),
    "with_thesis": run({"flags": {"algo": "fedavg"}}, thesis__tex="x"),
    # archives
    "text.zip": text("no zip"),
    "empty.zip": raw(b""),
    "foreign.zip": zipped(readme__txt="x"),
    "folder.zip": folder,
    "cut.zip": cut(zipped(a="x" * 500), 0.6),
    "replay.csv": text("a,b\n1,2\n"),
    "binary.csv": raw(bytes(range(256))),
    "own_code.py": text("""
import sys
from launch.settings.algorithms import Algorithm
from datasets.catalog import Dataset
NUMBER = 3
def f(*args): pass
def fail(*args):
    raise RuntimeError("no\\nway")
def leave(*args):
    sys.exit(0)
def deep(*args):
    return deep(*args)
def stop(*args):
    raise SystemExit("bye")
FAILS = Dataset("own", loader=fail, format=fail)
LEAVES = Dataset("own", loader=leave, format=leave)
DEEP = Dataset("own", loader=deep, format=deep)
NO_ARRAYS = Dataset("own", loader=lambda options: 3, format=lambda options: 3)
MEMORY = Dataset("own", loader=lambda options: bytearray(10**18), format=fail)
MNIST = Dataset("mnist", loader=fail)
"""),
    "own_loader.py": text("from datasets.catalog import Dataset\nDATASET = Dataset('own', loader=None)\n"),
    "own_stops.py": text("raise SystemExit('bye')\n"),
    "own_rows.py": text("""
import dataclasses
from launch.settings.algorithms import ALGORITHMS
from tff_algos.settings.config_fields import AlgorithmConfig, setting
class Failing(AlgorithmConfig):
    def __init__(self): raise RuntimeError("no way")
ROW = ALGORITHMS["fedavg"]
WRONG_NAME = dataclasses.replace(ROW, name="My Own")
TAKEN_NAME = ROW
NO_CONFIG = dataclasses.replace(ROW, name="own", config_class=dict)
FAILING_CONFIG = dataclasses.replace(ROW, name="own", config_class=Failing)
NO_BUILDER = dataclasses.replace(ROW, name="own", builder="nothing")
WRONG_DEFAULTS = dataclasses.replace(ROW, name="own", shared_defaults={"colour": "red"})
AMBIGUOUS = dataclasses.replace(ROW, name="server")
@dataclasses.dataclass(frozen=True)
class Shared(AlgorithmConfig):
    num_clients: int = setting(3, "Clients.")
SHARED = dataclasses.replace(ROW, name="own", config_class=Shared)
"""),
    "own_raises.py": text("def build(*args): pass\nraise ValueError('first\\nsecond')\n"),
    "own_exits.py": text("import sys\nsys.exit(0)\n"),
    "own_syntax.py": text("def f(:\n"),
    "own_deep.py": text("def f():\n    return f()\nf()\n"),
    "own_needs.py": text("import a_package_that_nobody_has\n"),
    "own_binary.py": raw(b"\x00\xff\xfe"),
    "own_group.py": text("raise ExceptionGroup('several', [ValueError('x')])\n"),
    "own_memory.py": text("x = [0] * 10**15\n"),
    "own_models.py": text("""
import sys
def raises(*args): raise RuntimeError("no\\nway")
def leaves(*args): sys.exit(0)
def deep(*args): return deep(*args)
def nothing(*args): return None
def text(*args): return "model"
def takes_none(): return None
def wide(shape, num_classes):
    import tensorflow as tf
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input(shape), layers.Flatten(), layers.Dense(num_classes + 1)])
def weightless(shape, num_classes):
    import tensorflow as tf
    return tf.keras.Sequential([tf.keras.Input(shape), tf.keras.layers.Flatten()])
NUMBER = 3
"""),
}


def read_table():
    """(command, arguments, how the line begins) of each row."""
    rows, command = [], None
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line.startswith("["):
            command = line.strip("[]")
        elif not line.startswith("#"):
            for kind, names in NAMES.items():
                line = line.replace(kind, ", ".join(names))
            arguments, arrow, beginning = line.partition(" => ")
            assert arrow and beginning, line
            rows.append((command, "" if arguments == NOTHING else arguments, beginning))
    return rows


ROWS = read_table()


def test_the_table_has_two_hundred_rows_none_twice_and_every_command():
    assert len(ROWS) == len({row[:2] for row in ROWS}) >= 200
    commands = {
        "train",
        "serve",
        "sweep",
        "tune",
        "evaluate",
        "export",
        "report",
        "benchmark",
        "doctor",
        "track",
        "compare",
        "card",
        "inspect",
        "advise",
    }
    assert {row[0] for row in ROWS} == commands


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with all the files, which is the current one, and from which modules are imported."""
    root = tmp_path_factory.mktemp("wrong") / "files"
    for name, write in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write(root / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.syspath_prepend(root)
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv(
            "XDG_CACHE_HOME", str(root.parent / "cache")
        )  # what client files and downloads may be written into
        patch.delenv("FL_DATA_DIR", raising=False)
        importlib.invalidate_caches()
        yield root


def list_files(root):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


def describe_fault(command, arguments, beginning, capfd):
    """What is wrong with the answer to a request, "" if it is one line that begins so, and exit code 2."""
    code = importlib.import_module(f"launch.{command}").main(shlex.split(arguments))
    printed, error = capfd.readouterr()
    if code != 2:
        return f"exit code {code}"
    printed = "".join(line for line in printed.splitlines(True) if not line.startswith("wait "))  # a busy machine
    if printed:
        return f"it printed {printed!r}"
    is_one_line = error.count("\n") == 1 and error.endswith("\n")
    return "" if is_one_line and error.startswith(f"error: {beginning}") else f"it said {error!r}, not {beginning!r}"


@pytest.mark.parametrize("command", sorted({row[0] for row in ROWS}))
def test_wrong_requests_are_one_line_each_and_write_nothing(command, files, capfd):
    before, folders = list_files(files), sorted(path for path in files.rglob("*") if path.is_dir())
    faults = []
    for row in (row for row in ROWS if row[0] == command):
        if fault := describe_fault(*row, capfd):
            faults.append(f"{' '.join(row[:2])}: {fault}")
        if list_files(files) != before:
            faults.append(f"{' '.join(row[:2])}: it wrote into the folder")
            before = list_files(files)
    assert not faults, "\n".join(faults)
    assert sorted(path for path in files.rglob("*") if path.is_dir()) == folders
