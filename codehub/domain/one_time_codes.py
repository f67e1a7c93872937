"""Decides when a one-time code is valid: around its time, and only once (RFC 6238)."""

from datetime import datetime

STEP_SECONDS = 30
# One step back and one ahead: clocks of phones differ, and people type slowly.
WINDOW_STEPS = 1


def step_at(now: datetime) -> int:
    """Return the number of the time step."""
    return int(now.timestamp()) // STEP_SECONDS


def acceptable_steps(now: datetime, last_used: int | None) -> list[int]:
    """Return the steps whose codes are valid now; never a used step or an earlier one."""
    current = step_at(now)
    window = range(current - WINDOW_STEPS, current + WINDOW_STEPS + 1)
    return [step for step in window if last_used is None or step > last_used]
