"""A time limit for what would wait for ever."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def limit_time(timeout_s: float) -> Iterator[None]:
    """Raises TimeoutError in the block after `timeout_s` seconds. For the main thread only."""

    def give_up(signal_number, frame):
        raise TimeoutError(f"not ready within {timeout_s:g} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
