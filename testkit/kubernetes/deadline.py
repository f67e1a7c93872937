"""Wait for a condition outside of an event loop."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 120
POLL_SECONDS = 0.1


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Return as soon as the condition holds; after the deadline fail with `what`."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Not within {DEADLINE_SECONDS} s: {what}")
        time.sleep(POLL_SECONDS)
