"""What a person runs, each command a module: train, evaluate, export, card, sweep, compare, tune, report and more.

Another Python than the project's answers in one line; this is why the package imports something from the standard
library.
"""

import importlib.util
import sys

if any(importlib.util.find_spec(name) is None for name in ("absl", "numpy", "psutil", "tensorflow_federated")):
    print("error: not the project's environment; run: make setup && . .venv/bin/activate", file=sys.stderr)
    sys.exit(2)
