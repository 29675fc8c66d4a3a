"""Scripts of the project run with stand-ins for the programs that they call, which note what they are asked."""

import os
import shutil
import subprocess


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def link_programs(folder, names):
    """Puts the programs of these names, with spaces between, into a folder that alone may be the PATH."""
    for name in names.split():
        (folder / name).symlink_to(shutil.which(name))


def run_script(script, *arguments, calls, **environment):
    """(exit code, stdout, stderr, what the stand-ins have noted into the file `calls`) of a script of the shell."""
    calls.write_text("")
    ended = subprocess.run(
        [shutil.which("sh"), str(script), *arguments],
        env={**os.environ, "CALLS": str(calls), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stdout, ended.stderr, calls.read_text().splitlines()
