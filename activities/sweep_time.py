"""Bounds a sweep's time by this worker's clock."""

from datetime import datetime

from codehub.clock import Clock
from codehub.contracts import SweepRequest


def sweep_time(request: SweepRequest, clock: Clock) -> datetime:
    """The time by which something is due, never later than the clock.

    A request comes from outside: a server whose clock is years ahead, or anybody who can start a workflow,
    must not make everything look unused and every grace look over.
    """
    return min(request.now, clock())


def first_seen_time(request: SweepRequest, clock: Clock) -> datetime:
    """The time from which a grace runs, never earlier than the clock: a grace may only become longer."""
    return max(request.now, clock())
