"""Another revision in a temporary worktree: what is refused, what is checked out, and that it goes away."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from launch.benchmarks.revisions import RevisionError, check_out, resolve_revision


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """A git repository with a file `version` in two commits, "old" (tagged, too) and "new"."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for version in ("old", "new"):
        (folder / "version").write_text(version)
        git(folder, "add", "version")
        git(folder, "commit", "-qm", version)
    git(folder, "tag", "-a", "-m", "first", "v1", "HEAD~1")
    return folder


def test_a_revision_is_a_commit_by_any_of_its_names(repository):
    commit = git(repository, "rev-parse", "HEAD~1").strip()
    assert len(commit) == 40
    assert {resolve_revision(name, repository) for name in ("HEAD~1", "v1", commit, commit[:10])} == {commit}


@pytest.mark.parametrize("name", ["", "nope", "--all", "HEAD:version", "HEAD~9", "a b"])
def test_what_names_no_commit_is_refused(name, repository):
    with pytest.raises(RevisionError, match=r"^expected a revision of this repository"):
        resolve_revision(name, repository)


def test_a_folder_that_is_no_repository_is_refused_inside_of_another_too(repository, tmp_path):
    inside = repository / "inside"
    inside.mkdir()
    for folder in (inside, tmp_path):
        with pytest.raises(RevisionError, match=f"^expected {folder} to be a git repository"):
            resolve_revision("HEAD", folder)


def test_without_git_there_are_no_revisions(repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RevisionError, match=r"^expected git to be installed"):
        resolve_revision("HEAD", repository)


def test_variables_of_a_git_hook_name_no_other_repository(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert resolve_revision("HEAD", repository)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_a_worktree_has_the_files_of_its_commit_and_ends_with_the_block(error, repository):
    (repository / "version").write_text("changed")
    (repository / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\necho hook >hooked\n")
    (repository / ".git" / "hooks" / "post-checkout").chmod(0o755)

    def use():
        with check_out(resolve_revision("v1", repository), repository) as tree:
            assert (tree / "version").read_text() == "old"
            assert not (tree / "hooked").exists()
            (tree / "written").write_text("by a run")
            places.append(tree)
            if error:
                raise error

    places = []
    if error:
        with pytest.raises(error):
            use()
    else:
        use()
    assert not os.path.exists(places[0].parent)
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / "version").read_text() == "changed"


def test_a_failed_checkout_is_one_line_and_leaves_nothing(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(RevisionError, match=r"^git cannot check it out: ") as raised, check_out("0" * 40, repository):
        pytest.fail("there is no such commit")
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("revision_*"))


def wait_until(condition, limit_s=60.0):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def is_running(pid):
    """Whether there is such a process; one that has ended and that nobody waits for does not count."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def start_benchmark(repository, folder, code):
    """A benchmark of a command against the repository's first revision, in a process of its own."""
    folder.mkdir()
    program = f"""
        import functools, pathlib, sys
        from launch import benchmark
        from launch.benchmarks import commands
        benchmark.PROJECT_FOLDER = pathlib.Path({str(repository)!r})
        for name in ("resolve_revision", "check_out"):
            of_project = functools.partial(getattr(benchmark, name), project=benchmark.PROJECT_FOLDER)
            setattr(benchmark, name, of_project)
        code = {code!r}
        commands.STARTS["start_fedavg"] = commands.CommandWorkload("start_fedavg", "x", ("-c", code))
        output = {str(folder / "b.json")!r}
        sys.exit(benchmark.main(["--workloads=start_fedavg", "--against=HEAD~1", "--repeats=1", "--output=" + output]))
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_both_trees_are_timed_and_the_other_is_removed(repository, tmp_path):
    folder = tmp_path / "temporary"
    code = f"import os; open({str(tmp_path / 'seen')!r}, 'a').write(open('version').read() + os.linesep)"
    with start_benchmark(repository, folder, code) as child:
        printed, errors = child.communicate()
    assert (child.returncode, errors) == (0, "")
    assert (tmp_path / "seen").read_text().split() == ["new", "old"] * 2
    results = json.loads((folder / "b.json").read_text())["workloads"]["start_fedavg"]
    assert results["against_revision"] == git(repository, "rev-parse", "HEAD~1").strip()
    assert results["ratio_to_against"] == pytest.approx(results["against_s"] / results["ours_s"])
    assert "HEAD~1, commit" in printed
    assert [path.name for path in folder.iterdir()] == ["b.json"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_no_end_leaves_a_worktree_or_a_process(number, exit_code, repository, tmp_path):
    folder = tmp_path / "temporary"
    pid_file = tmp_path / "pid"
    code = f"import os, time; print(os.getpid(), file=open({str(pid_file)!r}, 'w')); time.sleep(1000)"
    with start_benchmark(repository, folder, code) as child:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        pid = int(pid_file.read_text())
        assert len(git(repository, "worktree", "list").splitlines()) == 2
        child.send_signal(number)
        _, errors = child.communicate()
    assert child.returncode == exit_code
    assert errors.count("\n") == (number != signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    wait_until(lambda: not list(folder.rglob("revision_*")))
    assert not (folder / "b.json").exists()
    wait_until(lambda: len(git(repository, "worktree", "list").splitlines()) == 1)
