"""Takes part in live rounds: `python join.py http://127.0.0.1:8700 --data=mine.csv`.

One file, whose only packages are ai-edge-litert, NumPy and aiohttp; it needs nothing else of the suite. Examples stay
on this machine: what leaves it are their number, and what training has changed of the model.
"""

import argparse
import sys
from collections.abc import Sequence

# --- Messages (docs/live.md) ---

# --- The examples of this machine ---

# --- Training by the file of the run ---

# --- The connection ---


def main(argv: Sequence[str] | None = None) -> int:
    """Takes part until the run is over; returns the exit code."""
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
