"""What a person runs, each command a module: train, evaluate, export, card, sweep, compare, tune, report and more.

Another Python than the project's answers in one line, and so does one that finds other packages by the names of ours;
this is why the package imports something from the standard library.
"""

import importlib.util
import os
import signal
import sys
import time

from launch.runtimes.arenas import allow_many_arenas

IMPORTED_S = time.time()  # before the modules: what was edited later is not what this process runs

allow_many_arenas()  # before anything that has threads is imported


def find_stranger() -> str:
    """What is wrong if `datasets` or another package of ours is somebody else's, in a line with the fix; or ""."""
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for name in ("files", "datasets", "models", "tff_algos"):
        spec = importlib.util.find_spec(name)
        found = list(spec.submodule_search_locations or [spec.origin]) if spec else []
        folder = os.path.join(ours, name)
        if folder not in map(os.path.realpath, found):
            place = f"is at {found[0]}" if found else "is missing"
            return (
                f"the package {name} {place}, expected it at {folder}; start Python from another folder or environment"
            )
    folder = os.path.join(ours, "datasets")
    if os.path.exists(os.path.join(folder, "arrow_dataset.py")):  # of theirs alone
        fix = "install the suite into an environment of its own"
        return f"{folder} holds Hugging Face's package datasets as well as the suite's; {fix}"
    return ""


# While `python -m launch.<command>` looks for its module, argv begins with "-m"; the console script has its own name.
# Then a command starts, and nobody else imports.
IS_COMMAND = sys.argv[:1] == ["-m"] or os.path.basename(sys.argv[0] if sys.argv else "") == "federated"

# Until `launch.console.stop_signals` takes over, Python would answer Ctrl-C with a traceback of what is being imported.
if IS_COMMAND and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

if any(importlib.util.find_spec(name) is None for name in ("absl", "numpy", "psutil", "tensorflow_federated")):
    print("error: not the project's environment; run: make setup && . .venv/bin/activate", file=sys.stderr)
    sys.exit(2)

if stranger := find_stranger():
    if not IS_COMMAND:
        raise ImportError(stranger)
    print(f"error: {stranger}", file=sys.stderr)
    sys.exit(2)
