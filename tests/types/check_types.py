"""Runs mypy over the source: the errors of the files that must have none, and how many the other packages have.

The files are those of `[tool.types]` in pyproject.toml; an error in one of them is exit code 1.
"""

import collections
import pathlib
import sys
import tomllib

from mypy import api

PACKAGES = ("files", "datasets", "models", "tff_algos", "launch", "examples", "reproductions")


def main() -> int:
    patterns = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["tool"]["types"]["without_errors"]
    checked = {str(path) for pattern in patterns for path in pathlib.Path().glob(pattern)}
    output, failure, code = api.run(["--python-executable=.venv/bin/python", *PACKAGES])
    if code not in (0, 1):  # it could not run, which it says here or there
        print(output + failure, end="", file=sys.stderr)
        return code
    errors = [line for line in output.splitlines() if ": error: " in line]
    elsewhere = collections.Counter()
    for line in errors:
        if line.split(":")[0] in checked:
            print(line)
        else:
            elsewhere[line.split("/")[0]] += 1
    print(f"{len(errors) - elsewhere.total()} errors in the {len(checked)} files that must have none; elsewhere:")
    print(", ".join(f"{package} {elsewhere[package]}" for package in PACKAGES))
    return int(elsewhere.total() < len(errors))


if __name__ == "__main__":
    sys.exit(main())
