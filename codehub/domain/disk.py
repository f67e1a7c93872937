"""The disk limit of a workspace: how close its usage is, and when a start is refused."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from codehub.domain.states import Phase


class DiskLevel(StrEnum):
    """How close a workspace is to its limit."""

    OK = "ok"
    HIGH = "high"
    CRITICAL = "critical"
    OVER = "over"


# From this percentage of the limit on, each level applies; OVER means above the limit.
LEVELS = {DiskLevel.CRITICAL: 90, DiskLevel.HIGH: 80}


class StartRefusal(StrEnum):
    """Why a start is refused, which determines what the owner can do."""

    OVER = "over"
    # It stopped after the measurement, so files may have been deleted in between.
    NOT_MEASURED_SINCE = "not_measured_since"
    # There is nothing to measure until it is restored.
    ARCHIVED = "archived"


@dataclass(frozen=True)
class DiskUsage:
    """The last measurement, which started at `measured_at`.

    An incomplete one ran out of time, so actual usage is at least this much.
    """

    used_bytes: int
    measured_at: datetime
    complete: bool = True


def effective_limit(own: int | None, installation: int | None) -> int | None:
    """Return the limit of a workspace; None means no limit, and so does an administrator's 0."""
    limit = installation if own is None else own
    return limit or None


def disk_level(used_bytes: int, limit: int | None) -> DiskLevel:
    if limit is None:
        return DiskLevel.OK
    if used_bytes > limit:
        return DiskLevel.OVER
    reached = (level for level, percent in LEVELS.items() if used_bytes * 100 >= limit * percent)
    return next(reached, DiskLevel.OK)


def start_refusal(
    usage: DiskUsage | None, limit: int | None, phase: Phase, phase_changed_at: datetime
) -> StartRefusal | None:
    """Return why the workspace may not start, or None if it may. Without a measurement it may."""
    if usage is None or disk_level(usage.used_bytes, limit) is not DiskLevel.OVER:
        return None
    if phase is Phase.ARCHIVED:
        return StartRefusal.ARCHIVED
    return StartRefusal.OVER if usage.measured_at >= phase_changed_at else StartRefusal.NOT_MEASURED_SINCE
