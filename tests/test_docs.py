"""README and docs/: examples run, commands parse, links lead somewhere, and the front page is short."""

import importlib
import inspect
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

from files.writing import write_text
from launch.command_line import parse_command
from launch.runs.tables import write_json
from launch.settings.flags import list_names_of_runs, parse_config
from launch.settings.run_config import build_run_config, flag_values

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / "README.md"
TUTORIAL, RESULTS = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "results.md"  # the latter is generated
PAGES = [README, *sorted(path for path in (ROOT / "docs").glob("*.md") if path != RESULTS)]
MOST_README_LINES, MOST_README_WORDS, MOST_WORDS_BEFORE_A_COMMAND = 120, 900, 30
MOST_WORDS = 24_940  # of all pages but the generated ones
GENERATED = {"flags.md", "api.md"}  # pages that the site makes from the code
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!http)([^)\s#]*)#?([^)\s]*)\)")
TABLE_ROW = re.compile(r"^\| [^|]+ \| (.*`.*) \|$", re.MULTILINE)
PATH = re.compile(r"(files|datasets|models|tff_algos|launch|reproductions|tests|examples|docs)/[\w./-]*")
OWN_MODULE = re.compile(r"# (my_\w+\.py)\n")
INTERVAL = re.compile(r"±|\[[+-]?[\d.]+, ?[+-]?[\d.]+\]")
TRAIN = "python -m launch.train "
HANDED_TO = {"launch.report": "reproductions.report"}
TAKING_FILES = ("launch.advise", "launch.card", "launch.check", "launch.inspect")
PARSERS = {
    "launch.sweep": "parse_request",
    "launch.tune": "parse_requests",
    "launch.report": "parse_request",
    "launch.compare": "parse_request",
    "launch.export": "parse_request",
    "launch.inspect": "parse_request",
    "launch.advise": "parse_request",
    "launch.benchmark": "parse_options",
    "launch.doctor": "parse_request",
    "launch.track": "parse_request",
    "launch.serve": "parse_request",
}


def split_page(path):
    """The code blocks of a page, as (language, text), and the prose between them."""
    text = path.read_text(encoding="utf-8")
    blocks = [(language, textwrap.dedent(block)) for _, language, block in BLOCK.findall(text)]
    return blocks, BLOCK.sub("", text)


def list_shell_lines(blocks):
    lines = "\n".join(text for language, text in blocks if language == "sh").replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


SPLIT_PAGES = {path: split_page(path) for path in PAGES}
PYTHON_BLOCKS = [text for blocks, _ in SPLIT_PAGES.values() for language, text in blocks if language == "python"]
OWN_MODULES = {match[1]: text for text in PYTHON_BLOCKS if (match := OWN_MODULE.match(text))}
CODE_SPANS = sorted({span for _, prose in SPLIT_PAGES.values() for span in re.findall(r"`([^`\n]+)`", prose)})
SHELL = [*CODE_SPANS, *(line for blocks, _ in SPLIT_PAGES.values() for line in list_shell_lines(blocks))]
COMMANDS = sorted({line for line in SHELL if line.startswith("python -m launch.")})
MAP_ROWS = re.findall(
    r"^\| [^|]+ \| \[[^\]]+\]\(([^)]+)\)[^|]* \| `(\w+)` \|$", (ROOT / "docs/code_map.md").read_text(), re.M
)
STEP_ROWS = [  # of docs/python.md: the functions of a step and their module
    (link, name)
    for names, link in re.findall(
        r"^\| [^|]+ \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$", (ROOT / "docs/python.md").read_text(), re.M
    )
    for name in re.findall(r"`(\w+)`", names)
]
SYMBOLS = {  # by process module: the names beside the paper's symbols in the table of its docstring
    path: [name for span in spans for name in re.findall(r"[A-Za-z_]\w+", span)]
    for path in sorted((ROOT / "tff_algos").glob("*/process.py"))
    if (spans := re.findall(r"`([^`]+)`", "\n".join(TABLE_ROW.findall(path.read_text("utf-8")))))
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that looks like the project's after a first run, with the pages' own modules, as the current one."""
    for name in ("launch", "docs", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "before").symlink_to(ROOT)  # a worktree of another version
    for name, text in OWN_MODULES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    run = {"flags": flag_values(build_run_config({"algo": "fedsikd"})), "data": {}}
    write_json(tmp_path / "runs" / "fedsikd_digits_001" / "config.json", run)
    for algo in ("fedavg", "ditto"):  # as the tutorial's search leaves them
        write_text(tmp_path / "runs" / "tuning" / f"{algo}_tumours" / f"{algo}_tuned.flags", f"--algo={algo}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find_python_block(text):
    (block,) = [block for block in PYTHON_BLOCKS if text in block]
    return block


def find_train_arguments(*texts):
    """The arguments of the train command that holds all the texts."""
    (command,) = [line for line in COMMANDS if line.startswith(TRAIN) and all(text in line for text in texts)]
    return shlex.split(command)[3:]


def run_python(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_version_is_the_same_everywhere():
    """And its day that of the newest entry of the changelog."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff", "setup.py")]
    version, day = re.search(r"^## (\S+) - (\S+)$", texts[0], re.MULTILINE).groups()
    assert f"\nversion: {version}\ndate-released: {day}\n" in texts[1] and f'version="{version}"' in texts[2]


def test_the_readme_and_the_pages_are_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_README_LINES and len(text.split()) <= MOST_README_WORDS
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in PAGES) <= MOST_WORDS
    before = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text.partition("```")[0])
    assert len(before.split()) <= MOST_WORDS_BEFORE_A_COMMAND
    assert not INTERVAL.search(text)


def test_the_pages_of_the_site_that_are_generated(monkeypatch):
    """The flags of runs and the names of the API; the help of the other commands is tested with them."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    flags, api = (importlib.import_module(name) for name in ("flag_reference", "api_reference"))
    monkeypatch.setattr(flags, "list_commands", list)
    page = flags.build_page()
    assert "| `--epochs` |" in page and "## FedSiKD" in page
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in page.splitlines() if line.startswith("|")}) == 1
    for name in re.findall("^::: (.+)$", api.build_page(), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        path = ROOT / f"{module.replace('.', '/')}.py"
        assert re.search(rf"^(def|class) {attribute}\b", path.read_text(encoding="utf-8"), re.MULTILINE), name


@pytest.fixture
def first_steps(tmp_path):
    """A folder with the table that the tutorial makes."""
    (tmp_path / "make_tumours.py").write_text(find_python_block("# make_tumours.py"), encoding="utf-8")
    made = run_python(["make_tumours.py"], tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path


def test_the_tutorial_looks_at_its_table(first_steps):
    looked = run_python(["-m", "launch.inspect", "tumours.csv"], first_steps)
    assert looked.returncode == 0, looked.stderr
    [shown] = [text for language, text in SPLIT_PAGES[TUTORIAL][0] if language == "text"]
    odd, train = shown.splitlines()
    start, end = odd.split(", ...; ")
    assert train == looked.stdout.splitlines()[-1]
    assert any(line.startswith(start) and line.endswith(end) for line in looked.stdout.splitlines())


@pytest.mark.slow
def test_the_tutorial_runs_to_its_end(first_steps):
    """All but what needs npm: the page for a phone is tested by `make test-web`."""
    commands = "\n".join(text for language, text in SPLIT_PAGES[TUTORIAL][0] if language == "sh")
    kept = [line for line in commands.splitlines() if not line.startswith((". ", "make ")) and "--web_page" not in line]
    assert len(kept) > 8
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(first_steps / "cache")}
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-e", "-c", "\n".join(kept)], cwd=first_steps, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert (first_steps / "tumours.html").is_file()
    export = first_steps / "runs" / "tumours" / "fedavg" / "seed_0" / "export"
    assert {"global.int8.tflite", "report.md", "card.md"} <= {path.name for path in export.iterdir()}


@pytest.mark.slow
def test_the_first_run_prints_what_the_readme_shows(tmp_path):
    """But for seconds, accuracies and the rounds that are left out."""
    shown = README.read_text(encoding="utf-8").partition("<!-- first run -->\n```\n")[2].partition("\n```\n")[0]
    run = run_python(["-m", "launch.train", "--algo=fedsikd"], tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    left = iter(mask(run.stdout))
    assert all(line in left for line in mask(shown) if line != "...")  # in this order


def mask(output):
    """Lines without what differs between machines."""
    return [
        re.sub(r"\d+\.\d+|\d+( min \d+)? s\b|best .* in round \d+", "*", line) for line in output.strip().splitlines()
    ]


@pytest.mark.slow
def test_own_data_and_own_model_train(tmp_path):
    (tmp_path / "make_data.py").write_text(find_python_block("np.savez"), encoding="utf-8")
    (tmp_path / "my_models.py").write_text(find_python_block("# my_models.py"), encoding="utf-8")
    made = run_python(["make_data.py"], tmp_path)
    assert made.returncode == 0, made.stderr
    arguments = find_train_arguments("--npz=", "--model=my_models:")
    run = run_python(["-m", "launch.train", *arguments, "--smoke"], tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "my_models:build_small" in run.stdout


def test_the_own_data_set_loads(checkout):
    from datasets.catalog import load_arrays

    arrays = load_arrays("examples.own_data:WAVES")
    assert arrays.train_x.shape[1:] == (64, 1) and len(arrays.client_names) == 6
    source = load_arrays("examples.own_data:PHONES")
    assert len(source.client_names) == 100_000
    x, y = source.read(7, "train")
    assert x.shape == (len(y), 8) and len(y) == source.num_examples["train"][7]


def test_the_own_format_reads(checkout, monkeypatch):
    from datasets.dataset import DatasetOptions

    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout / "cache"))
    path = checkout / "people.jsonl"
    path.write_text('["bob", [1.5, 2], 1]\n["ann", [3, 4], 0]\n["bob", [5, 6], 0]\n', encoding="utf-8")
    module = {}
    exec(find_python_block("formats/lines.py"), module)
    assert module["FORMAT"].recognise(str(path))
    source = module["FORMAT"].open(str(path), DatasetOptions())
    assert source.client_names == ("ann", "bob") and source.read(1, "train")[0].tolist() == [[1.5, 2], [5, 6]]


@pytest.mark.slow
@pytest.mark.parametrize("own", ["my_algorithms:", "own_data:WAVES", "own_data:PHONES"])
def test_own_modules_train(own, checkout):
    (arguments,) = [
        shlex.split(line)[3:] for line in COMMANDS if line.startswith(TRAIN) and own in line and "--help" not in line
    ]
    run = run_python(["-m", "launch.train", *arguments, "--smoke"], checkout)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.slow
def test_python_trains_as_the_page_says(checkout):
    (checkout / "first.py").write_text(find_python_block("from launch.api import"), encoding="utf-8")
    run = run_python(["first.py"], checkout)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "test_accuracy" in run.stdout


def test_the_signatures_of_an_algorithms_parts_are_those_of_the_code():
    from tff_algos.rounds.synchronous import SynchronousProcess

    text = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    parts = re.findall(r"`(\w+)\(([^`]*)\)` \(`([\w.]+)`\)", " ".join(text.split()))
    shown = [(getattr(importlib.import_module(module), name), names) for name, names, module in parts]
    methods = re.findall(r"^- `(\w+)\(([^`]*)\)`: ", text, re.MULTILINE)
    shown += [(getattr(SynchronousProcess, name), f"self, {names}") for name, names in methods]
    assert len(parts) > 15 and len(methods) > 12
    for found, names in shown:
        expected = [each.partition("=")[0].strip("*") for each in names.split(", ") if each not in ("", "*")]
        assert list(inspect.signature(found).parameters) == expected, found


def test_every_python_block_is_tried():
    single = map(find_python_block, ("np.savez", "# make_tumours.py", "from launch.api import", "formats/lines.py"))
    assert set(PYTHON_BLOCKS) == {*single, *OWN_MODULES.values()} and set(OWN_MODULES) == {
        "my_models.py",
        "my_algorithms.py",
    }


def test_every_command_is_shown():
    programs = {f"launch.{path.stem}" for path in (ROOT / "launch").glob("*.py") if '"__main__"' in path.read_text()}
    assert {command.split()[2] for command in COMMANDS} == programs - {"launch.federated"}  # which runs these


HELP_TEXTS = {}  # by command and arguments


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command, checkout, capsys):
    _, _, module_name, *arguments = shlex.split(command)
    module = importlib.import_module(module_name)
    # A user's algorithm has its flags in the help only where it is named.
    asked = [*(argument for argument in arguments if re.match("--algo=.*:", argument)), "--helpfull"]
    if (module_name, *asked) not in HELP_TEXTS:
        assert module.main(asked) == 0
        HELP_TEXTS[module_name, *asked] = capsys.readouterr().out
    help_text = HELP_TEXTS[module_name, *asked]
    for argument in arguments[: arguments.index("--")] if "--" in arguments else arguments:
        if module_name in TAKING_FILES and not argument.startswith("-"):
            continue  # the file, which its parser wants
        name = argument.split("=")[0]
        if module_name in ("launch.sweep", "launch.tune") and name[2:] in list_names_of_runs():
            continue  # a flag of the runs
        assert name in ("--help", "--flagfile", "--experiment") or f"{name}\n" in help_text or f"{name} [" in help_text
    if "--help" in arguments:
        return
    if module_name == "launch.train":
        parse_config(arguments)
    elif module_name in PARSERS:
        parsing = importlib.import_module(HANDED_TO.get(module_name, module_name))
        getattr(parsing, PARSERS[module_name])(arguments)
    else:
        parse_command(module.Flags, [argument for argument in arguments if argument.startswith("-")])


def test_arguments_of_make_are_understood():
    given = re.findall(r'make train ARGS="(.*?)"', "\n".join(SHELL))
    assert given
    for arguments in given:
        parse_config(["--algo=fedsikd", *shlex.split(arguments)])


def test_targets_are_in_the_makefile_which_lists_them_by_itself():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", "\n".join(SHELL))) <= targets
    shown = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^\w+$", shown, re.MULTILINE) == ["Start", "Check", "Extras"]
    assert set(re.findall(r"^  make ([\w-]+)", shown, re.MULTILINE)) == targets - {"help"}


def test_links_and_paths_lead_somewhere():
    """As in a checkout, of which mkdocs knows but the pages. Anchors are those that GitHub makes of headings."""
    pages = {path: split_page(path)[1] for path in (*PAGES, RESULTS, *RESULTS.with_suffix("").glob("*.md"))}
    anchors = {
        path: {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in HEADING.findall(prose)}
        for path, prose in pages.items()
    }
    links = [(path, *link) for path, prose in pages.items() for link in LINK.findall(prose)]
    for page, name, anchor in links:
        target = (page.parent / name).resolve() if name else page
        assert target.exists() or name in GENERATED, (page, name)
        assert not anchor or anchor in anchors[target], (page, name, anchor)
    assert [path for path in CODE_SPANS if PATH.fullmatch(path) and not (ROOT / path).exists()] == []


def test_the_map_of_the_code_names_what_is_there():
    assert len(MAP_ROWS) > 9 and len(STEP_ROWS) > 8
    for link, name in [*MAP_ROWS, *STEP_ROWS]:
        assert re.search(rf"\b{name}\b", (ROOT / "docs" / link).read_text(encoding="utf-8")), (link, name)


def test_the_papers_symbols_name_what_is_in_the_code():
    """The names of a module's table stand in the algorithms' code, or in that of the data, beside the table itself."""
    assert sum(map(len, SYMBOLS.values())) > 50
    paths = [*(ROOT / "tff_algos").rglob("*.py"), *(ROOT / "datasets").glob("*.py")]
    code = "\n".join(TABLE_ROW.sub("", path.read_text("utf-8")) for path in paths)
    lost = {name for names in SYMBOLS.values() for name in names if not re.search(rf"\b{name}\b", code)}
    assert lost == set()
