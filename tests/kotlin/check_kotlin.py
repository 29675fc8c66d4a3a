"""Compiles Kotlin: `check_kotlin.py docs/android.md examples/android`, with the Python that has kotlin-jupyter-kernel.

Every ```kotlin block of a page is a file of an app, unless it begins as Gradle's build scripts do; of a folder, every
.kt file is one. All of them are compiled together, as one app, against stubs of the Android and LiteRT classes, which
lie beside this script. Then the same with an error planted in each of them and with `planted.kt`, in which every line
of a function is wrong: a compiler or a stub that lets one of these pass has checked nothing.

Exit codes: 0 the Kotlin compiles and every planted error is found, 1 it does not, 2 it cannot be checked.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

HERE = pathlib.Path(__file__).parent
COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
LIBRARIES = ("kotlin-stdlib-", "annotations-")
FENCE = re.compile(r"^```kotlin\n(.*?)^```", re.MULTILINE | re.DOTALL)
ERROR = re.compile(r"^(\S+?):(\d+):\d+: error: (.*)$", re.MULTILINE)
GRADLE = ("android {", "dependencies {", "plugins {")
PLANTED_LINE = 'private val planted: Int = "a text"'


class Block(NamedTuple):
    """A block of Kotlin of a page: `line` is that of its first line, counted from 1."""

    page: str
    line: int
    code: str

    @property
    def is_gradle(self) -> bool:
        """Whether it belongs into a build script, whose words are not those of an app; comments do not count."""
        lines = (line for line in self.code.splitlines() if line.strip() and not line.startswith("//"))
        return next(lines, "").startswith(GRADLE)


class CompileError(NamedTuple):
    """What the compiler says of a line of a file; `file` is its name without the folder."""

    file: str
    line: int
    message: str


def list_blocks(page: str, text: str) -> list[Block]:
    """The Kotlin blocks of a page in Markdown."""
    return [Block(page, text.count("\n", 0, found.start(1)) + 1, found[1]) for found in FENCE.finditer(text)]


def read_blocks(name: str) -> list[Block]:
    """The Kotlin of a page, or of the .kt files in a folder. Raises OSError."""
    path = pathlib.Path(name)
    if not path.is_dir():
        return list_blocks(name, path.read_text(encoding="utf-8"))
    return [Block(str(each), 1, each.read_text(encoding="utf-8")) for each in sorted(path.rglob("*.kt"))]


def write_block(folder: pathlib.Path, block: Block, planted: str = "") -> str:
    """Writes a block as a file in which its lines have the numbers that they have on the page; returns its name."""
    name = f"{pathlib.Path(block.page).stem}_{block.line}.kt"
    (folder / name).write_text("\n" * (block.line - 1) + block.code + planted, encoding="utf-8")
    return name


def find_jars() -> pathlib.Path:
    """The folder with the compiler. Raises FileNotFoundError."""
    spec = importlib.util.find_spec("run_kotlin_kernel")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("kotlin-jupyter-kernel is not installed here; use make test-kotlin")
    return pathlib.Path(spec.submodule_search_locations[0]) / "jars"


def compile_kotlin(
    jars: pathlib.Path, sources: Sequence[pathlib.Path], output: pathlib.Path, classes: Sequence[pathlib.Path] = ()
) -> list[CompileError]:
    """Compiles sources, Java among them, into a folder; returns the errors. Raises RuntimeError if it does not run."""
    libraries = [path for path in jars.iterdir() if path.name.startswith(LIBRARIES)]
    command = [
        *("java", "-cp", f"{jars}/*", COMPILER, "-no-stdlib", "-no-reflect", "-nowarn"),
        *("-classpath", ":".join(map(str, [*libraries, *classes])), "-d", str(output), *map(str, sources)),
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    errors = [CompileError(pathlib.Path(path).name, int(line), text) for path, line, text in ERROR.findall(said)]
    if bool(errors) != bool(ended.returncode):
        raise RuntimeError(f"the compiler ended with {ended.returncode}: {said.strip().splitlines()[-1:]}")
    return errors


def list_wrong_lines(code: str) -> set[int]:
    """The lines inside the function of `planted.kt`."""
    lines = code.splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.startswith("fun "))
    return set(range(first + 1, len(lines)))


def check_pages(pages: Sequence[str]) -> list[str]:
    """Says which blocks are compiled; returns a line for each thing that is wrong."""
    blocks = [block for page in pages for block in read_blocks(page)]
    whole = [block for block in blocks if not block.is_gradle]
    for block in blocks:
        print(f"{block.page}:{block.line}: {'of Gradle, left out' if block.is_gradle else 'a file'}")
    if not whole:
        return [f"{', '.join(pages)}: no block of Kotlin to compile"]
    jars, java = find_jars(), HERE / "stubs" / "java"  # Java makes no class files here: it is a source every time
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("stubs", "pages", "planted"):
            (folder / part).mkdir()
        if errors := compile_kotlin(jars, [HERE / "stubs" / "kotlin", java], folder / "stubs"):
            return [f"{error.file}:{error.line}: {error.message}" for error in errors]
        classes = [folder / "stubs"]
        page_of = {write_block(folder / "pages", block): block.page for block in whole}
        if errors := compile_kotlin(jars, [folder / "pages", java], folder / "out", classes):
            return [f"{page_of.get(error.file, error.file)}:{error.line}: {error.message}" for error in errors]
        wanted = set()
        for block in whole:
            file = write_block(folder / "planted", block, f"{PLANTED_LINE}\n")
            wanted.add((file, block.line + block.code.count("\n")))
        code = (HERE / "planted.kt").read_text(encoding="utf-8")
        (folder / "planted" / "planted.kt").write_text(code, encoding="utf-8")
        wanted |= {("planted.kt", line) for line in list_wrong_lines(code)}
        errors = compile_kotlin(jars, [folder / "planted", java], folder / "out", classes)
        found = {(error.file, error.line) for error in errors}
        return [f"{file}:{line}: a planted error was not found" for file, line in sorted(wanted - found)]


def main(pages: list[str]) -> int:
    """Checks the pages that the arguments name and returns the exit code."""
    if not pages:
        print("error: expected pages in Markdown, or folders, such as docs/android.md", file=sys.stderr)
        return 2
    try:
        wrong = check_pages(pages)
    except (OSError, RuntimeError) as error:
        print(f"error: cannot be checked: {error}", file=sys.stderr)
        return 2
    for line in wrong:
        print(line, file=sys.stderr)
    print("errors found" if wrong else "the Kotlin compiles, and every planted error is found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
