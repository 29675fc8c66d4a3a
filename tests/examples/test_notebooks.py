"""The notebooks of `examples` run from their first cell to their last, and what they show is so."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}

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


def run_notebook(name, folder, python_path=str(ROOT)):
    """What it printed, without the lines of cells, and what its cells drew; nothing lies beside the notebook."""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path,
        "TMPDIR": str(folder / "written"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    (folder / "written").mkdir()
    before = set(folder.iterdir())
    command = [sys.executable, "-c", RUN_AS_NOTEBOOK, str(NOTEBOOKS[name])]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout[-1500:] + ended.stderr[-3000:]
    assert {path.name for path in set(folder.iterdir()) - before} <= {"cache"}
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"cell"')]
    assert not any(line["left_open"] for line in told)
    return ended.stdout, {line["cell"]: line["drawn"] for line in told if line["drawn"]}


def test_a_table_of_ones_own_is_trained_on_and_asked_about(tmp_path):
    said, drawn = run_notebook("own_csv", tmp_path)
    assert "odd " in said and "done     5 rounds" in said
    assert float(re.search(r"right on all rows: ([\d.]+)", said)[1]) > 0.8
    assert drawn == {"clients": [[10]]}  # a bar for each hospital


def test_two_algorithms_are_compared_on_one_page(tmp_path):
    said, drawn = run_notebook("compare", tmp_path)
    assert drawn == {"curves": [[4, 4]]}
    [page] = tmp_path.glob("written/compare_*/compare.html")
    assert f"4 runs in {page}" in said
    [(pairs, low, high)] = re.findall(r"SCAFFOLD +\S+ +(\d+) +\S+ +(\S+) +(\S+)$", said, re.MULTILINE)
    assert int(pairs) == 2 and float(low) < float(high)


def test_an_exported_file_is_as_good_as_in_training(tmp_path):
    said, drawn = run_notebook("phone", tmp_path)
    [[of_file, in_training]] = re.findall(r"accuracy of the file ([\d.]+), in training ([\d.]+)", said)
    assert float(of_file) > 0.6 and float(of_file) == pytest.approx(float(in_training), abs=0.03)
    assert drawn == {"run": [[1] * 8]}
    assert {path.suffix for path in tmp_path.glob("written/phone_*/run/export/*.tflite")} == {".tflite"}


@pytest.mark.slow
def test_with_another_python_the_projects_own_runs_the_commands(tmp_path):
    """As in Colab: `launch` cannot be imported, and the project lies in the current folder."""
    (tmp_path / "federated-suite").symlink_to(ROOT)
    said, drawn = run_notebook("own_csv", tmp_path, python_path="")
    assert "done     5 rounds" in said and drawn == {"clients": [[10]]}


def test_the_notebooks_begin_alike_and_store_no_output():
    starts = set()
    for name, path in NOTEBOOKS.items():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code)
        assert len({cell["id"] for cell in cells}) == len(cells) <= 12
        starts.add("".join(code[0]["source"]).replace(f'"{name}_"', ""))
    assert len(NOTEBOOKS) == 3 and len(starts) == 1
