"""The notebook `examples/first_steps.ipynb` runs from its first cell to its last, and what it shows is so."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"

# Runs the code cells as a notebook does: one after another in the names of `__main__`, inside an event loop, each
# allowed to await. After each cell a line of JSON tells what the figures that it showed hold.
RUN_AS_NOTEBOOK = """
import ast, asyncio, inspect, json, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

drawn = []
def show():
    for number in plt.get_fignums():
        drawn.append([len(axes.lines) + len(axes.patches) + len(axes.images) for axes in plt.figure(number).axes])
    plt.close("all")
plt.show = show

async def run_cells():
    names = {"__name__": "__main__"}
    for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), cell["id"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            pending = eval(code, names)
            if inspect.iscoroutine(pending):
                await pending
            print(json.dumps({"cell": cell["id"], "drawn": drawn, "left_open": plt.get_fignums()}))
            drawn.clear()

asyncio.run(run_cells())
"""


@pytest.fixture(scope="module")
def cells():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The notebook's process, ended, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("notebook")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    command = [sys.executable, "-c", RUN_AS_NOTEBOOK, str(NOTEBOOK)]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended, folder


def test_both_algorithms_learn_and_their_models_are_as_good_outside(run):
    ended, folder = run
    reached = [
        float(accuracy) for accuracy in re.findall(r"done     4 rounds in .*: test accuracy ([\d.]+)", ended.stdout)
    ]
    assert len(reached) == 2 and min(reached) > 0.6
    [[of_file, in_training]] = re.findall(r"accuracy of the file ([\d.]+), in training ([\d.]+)", ended.stdout)
    assert float(in_training) == pytest.approx(reached[1], abs=6e-4)  # three digits
    assert float(of_file) == pytest.approx(float(in_training), abs=0.03)
    [[of_keras, in_training]] = re.findall(r"accuracy of the Keras model ([\d.]+), in training ([\d.]+)", ended.stdout)
    assert float(in_training) == pytest.approx(reached[0], abs=6e-4)
    assert float(of_keras) == pytest.approx(float(in_training), abs=0.003)  # one image of 359 at most
    [file] = folder.glob("first_steps_*/fedsikd/export/*.tflite")
    assert file.stat().st_size < 100_000
    assert "Traceback" not in ended.stderr


def test_its_plots_are_shown_and_hold_something(run):
    ended, folder = run
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"cell"')]
    shown = {line["cell"]: line["drawn"] for line in told if line["drawn"]}
    assert shown == {"data": [[1]], "compare": [[2, 2]], "run": [[1] * 8]}
    assert not any(line["left_open"] for line in told)
    # Only its own temporary folder and the cache of clients' files: nothing beside the notebook.
    assert {path.name.split("_")[0] for path in folder.iterdir()} == {"cache", "first"}


def test_no_output_is_stored(cells):
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code)
    assert len({cell["id"] for cell in cells}) == len(cells)
