"""What a person runs, each command a module: train, evaluate, export, card, sweep, compare, tune, report and more.

Another Python than the project's answers in one line; this is why the package imports something from the standard
library.
"""

import contextlib
import importlib.util
import os
import signal
import sys
from types import FrameType


def end_at_once(number: int, frame: FrameType | None) -> None:
    """Ends this process as a signal asks, in one line; there is nothing to finish yet, or nothing any more."""
    with contextlib.suppress(OSError):
        os.write(2, b"stopped\n")
    os._exit(128 + number)


# While `python -m launch.<command>` looks for its module, argv begins with "-m": a command starts, nobody else imports.
# Until `launch.stop_signals` takes over, Python would answer Ctrl-C with a traceback of whatever is being imported.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end_at_once)

if any(importlib.util.find_spec(name) is None for name in ("absl", "numpy", "psutil", "tensorflow_federated")):
    print("error: not the project's environment; run: make setup && . .venv/bin/activate", file=sys.stderr)
    sys.exit(2)
