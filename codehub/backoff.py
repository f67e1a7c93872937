"""How long to wait before a retry."""

import random

# Keeps the number small after any number of failures.
MAX_DOUBLINGS = 30


def delay_after(failures: int, first: float, longest: float) -> float:
    """Return the seconds to wait: longer after each failure in a row, with jitter."""
    delay = min(first * 2.0 ** min(failures - 1, MAX_DOUBLINGS), longest)
    return delay * random.uniform(0.5, 1)  # noqa: S311 (nothing secret)
