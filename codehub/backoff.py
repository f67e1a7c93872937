"""How long to wait before something that failed is tried again."""

import random

# A power of two beyond this says nothing that `longest` does not say.
MOST_DOUBLINGS = 30


def delay_after(failures: int, first: float, longest: float) -> float:
    """Seconds, longer after each failure in a row, never in step with others who wait for the same."""
    delay = min(first * 2.0 ** min(failures - 1, MOST_DOUBLINGS), longest)
    return delay * random.uniform(0.5, 1)  # noqa: S311 (nothing secret)
