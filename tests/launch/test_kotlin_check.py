"""The check of `make test-kotlin`: its parts with a stand-in for the compiler, and all of it where it is set up."""

import importlib.util
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = """# Page

```kotlin
// A comment.

import a.B

val x = 1
```

```kotlin
dependencies { }
```

```sh
import not_kotlin
```
"""


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_kotlin", ROOT / "tests" / "kotlin" / "check_kotlin.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_blocks_are_found_with_their_lines(check):
    whole, rest = check.list_blocks("docs/page.md", PAGE)
    assert (whole.line, whole.is_gradle) == (4, False)
    assert (rest.line, rest.is_gradle) == (12, True)
    assert PAGE.splitlines()[whole.line - 1] == "// A comment."


def test_a_block_is_written_at_the_lines_of_its_page(check, tmp_path):
    block = check.list_blocks("docs/page.md", PAGE)[0]
    name = check.write_block(tmp_path, block, "planted\n")
    lines = (tmp_path / name).read_text().splitlines()
    assert name == "page_4.kt" and lines[5] == PAGE.splitlines()[5] == "import a.B"
    assert lines.index("planted") + 1 == block.line + block.code.count("\n")


def test_every_line_of_the_planted_function_is_wanted(check):
    code = (ROOT / "tests" / "kotlin" / "planted.kt").read_text()
    lines = code.splitlines()
    wanted = check.list_wrong_lines(code)
    assert len(wanted) == 9 and all(lines[number - 1].startswith("    ") for number in wanted)


class StandInCompiler:
    """Answers call after call with these errors and notes the sources."""

    def __init__(self, *answers):
        self.answers, self.sources = list(answers), []

    def __call__(self, jars, sources, output, classes=()):
        self.sources.append(sorted(path.name for source in sources[:1] for path in source.glob("*.kt")))
        return self.answers.pop(0)


@pytest.fixture
def run_check(check, tmp_path, monkeypatch, capsys):
    """(*answers of the compiler) -> (exit code, stdout, stderr, sources that it got)."""
    monkeypatch.setattr(check, "find_jars", lambda: tmp_path)
    (tmp_path / "page.md").write_text(PAGE)

    def run(*answers, page="page.md"):
        compiler = StandInCompiler(*answers)
        monkeypatch.setattr(check, "compile_kotlin", compiler)
        exit_code = check.main([str(tmp_path / page)])
        return exit_code, *capsys.readouterr(), compiler.sources

    return run


@pytest.fixture
def planted_errors(check):
    code = (ROOT / "tests" / "kotlin" / "planted.kt").read_text()
    planted = [check.CompileError("planted.kt", line, "mismatch") for line in check.list_wrong_lines(code)]
    return [check.CompileError("page_4.kt", 9, "mismatch"), *planted]


def test_what_compiles_and_fails_when_planted_is_well(run_check, planted_errors):
    exit_code, out, error, sources = run_check([], [], planted_errors)
    assert (exit_code, error) == (0, "")
    assert "page.md:4: a file" in out and "page.md:12: of Gradle, left out" in out
    assert sources == [["CompiledModel.kt"], ["page_4.kt"], ["page_4.kt", "planted.kt"]]


def test_an_error_of_a_page_is_named_with_its_line(check, run_check):
    exit_code, _, error, _ = run_check([], [check.CompileError("page_4.kt", 8, "unresolved reference 'y'.")])
    assert exit_code == 1 and error.endswith("page.md:8: unresolved reference 'y'.\n")


@pytest.mark.parametrize("left_out", [0, -1])
def test_a_planted_error_that_passes_is_a_failure(run_check, planted_errors, left_out):
    del planted_errors[left_out]
    exit_code, _, error, _ = run_check([], [], planted_errors)
    assert exit_code == 1 and error.count("\n") == 1 and "a planted error was not found" in error


def test_a_page_without_kotlin_is_a_failure(run_check, tmp_path):
    (tmp_path / "empty.md").write_text("# Page\n")
    assert run_check(page="empty.md")[0] == 1
    assert run_check(page="no.md")[0] == 2


def test_a_compiler_that_does_not_run_is_no_success(check, tmp_path, monkeypatch):
    monkeypatch.setattr(
        check.subprocess, "run", lambda *arguments, **keywords: subprocess.CompletedProcess([], 1, "", "no memory\n")
    )
    with pytest.raises(RuntimeError, match=r"ended with 1.*no memory"):
        check.compile_kotlin(tmp_path, [tmp_path], tmp_path)


def test_without_java_it_says_that_it_is_skipped(tmp_path):
    project = tmp_path / "project"
    (project / "tests" / "kotlin").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "kotlin" / "check.sh", project / "tests" / "kotlin")
    shutil.copy(ROOT / "extra_environment.sh", project)
    for name in ("dirname", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    ended = subprocess.run(
        ["sh", str(project / "tests" / "kotlin" / "check.sh")],
        env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0
    assert ended.stdout.startswith("test-kotlin: SKIPPED, nothing was compiled: there is no java here")
    assert not (project / ".venv-kotlin").exists()


def test_the_page_has_one_block_of_gradle_and_files(check):
    blocks = check.list_blocks("docs/phones.md", (ROOT / "docs" / "phones.md").read_text())
    assert [block.is_gradle for block in blocks].count(True) == 1 and len(blocks) >= 4


def test_a_folder_has_a_block_for_each_file(check, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "Second.kt").write_text("val x = 1\n")
    (tmp_path / "app" / "First.kt").write_text("val y = 1\n")
    (tmp_path / "build.gradle.kts").write_text("plugins { }\n")
    blocks = check.read_blocks(str(tmp_path))
    assert [(pathlib.Path(block.page).name, block.line) for block in blocks] == [("First.kt", 1), ("Second.kt", 1)]
    assert len(check.read_blocks(str(ROOT / "examples" / "android"))) == 3


@pytest.mark.slow
def test_the_kotlin_of_the_pages_compiles():
    python = ROOT / ".venv-kotlin" / "bin" / "python"
    if not python.exists() or not shutil.which("java"):
        pytest.skip("needs Java, and the compiler that make test-kotlin sets up")
    command = [str(python), "tests/kotlin/check_kotlin.py", "docs/phones.md", "examples/android"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
