"""Another revision of this project, checked out into a temporary `git worktree` that no exit leaves behind."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

from launch.benchmarks.peer_process import PROJECT_FOLDER

# Waits until its standard input ends, and so for any end of the benchmark, SIGKILL included. Then removes the worktree
# $1 of the repository that is its working folder, and the folder $2 around it. The next command may have removed both
# with the benchmark's temporary folder; git then still lists the worktree.
_REMOVAL = 'cat >/dev/null; git worktree remove --force "$1"; rm -rf "$2"; git worktree prune'


class RevisionError(ValueError):
    """There is no such revision. The message is one line, made to follow the revision's name and a colon."""


def resolve_revision(revision: str, project: pathlib.Path = PROJECT_FOLDER) -> str:
    """The full hash of the commit that a revision names. Raises RevisionError if the project has none of that name."""
    try:
        top = _run_git(project, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        raise RevisionError("expected git to be installed, which has the other revisions") from None
    if top.returncode != 0 or pathlib.Path(top.stdout.strip()).resolve() != project.resolve():
        raise RevisionError(f"expected {project} to be a git repository; clone it to compare revisions")
    found = _run_git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode != 0:
        raise RevisionError("expected a revision of this repository; git log lists them")
    return found.stdout.strip()


@contextlib.contextmanager
def check_out(commit: str, project: pathlib.Path = PROJECT_FOLDER) -> Iterator[pathlib.Path]:
    """Yields a folder with the files of a commit; it is gone after the block, and after any end of this process.

    Raises:
      RevisionError: git cannot check it out.
    """
    folder = tempfile.mkdtemp(prefix="revision_")
    tree = os.path.join(folder, "tree")
    remover = subprocess.Popen(
        ["sh", "-c", _REMOVAL, "sh", tree, folder],
        cwd=project,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        added = _run_git(project, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", tree, commit)
        if added.returncode != 0:
            raise RevisionError(f"git cannot check it out: {added.stderr.strip().splitlines()[-1]}")
        yield pathlib.Path(tree)
    finally:
        remover.stdin.close()
        remover.wait()


def _run_git(project, *arguments):
    return subprocess.run(
        ["git", *arguments],
        cwd=project,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


def _environment():
    """The user's variables without those by which git, in a hook, names another repository."""
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
