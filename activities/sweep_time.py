"""Limits the time of a sweep by this worker's clock."""

from datetime import datetime

from codehub.clock import Clock
from codehub.contracts import SweepRequest


def sweep_time(request: SweepRequest, clock: Clock) -> datetime:
    """Return the time for deadlines, never later than the clock.

    A request comes from outside. A server whose clock is years ahead, or a person who starts a workflow, must
    not make every workspace look idle and every grace period look over.
    """
    return min(request.now, clock())


def first_seen_time(request: SweepRequest, clock: Clock) -> datetime:
    """Return when a grace period starts: the later of both times, so that none ends early."""
    return max(request.now, clock())
