"""Running limits, idle rules, and the workspaces of disabled users."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from codehub.domain.states import DesiredState, Operation, Phase


@dataclass(frozen=True)
class RunningLimits:
    """How many workspaces may run at once, and how much disk space a workspace may use and still start."""

    per_user: int = 2
    total: int = 100
    # None means no limit.
    disk_bytes: int | None = None


class LimitScope(StrEnum):
    """Which limit was exceeded."""

    USER = "user"
    GLOBAL = "global"


@dataclass(frozen=True)
class IdleTimes:
    """How long a workspace may be unused before it loses its compute, and then its disk."""

    standby: timedelta
    archive: timedelta


def idle_times(
    standby_seconds: int | None, archive_seconds: int | None, defaults: IdleTimes, longest: IdleTimes
) -> IdleTimes:
    """Return the idle times of a workspace: its own or the defaults, within the administrators' bounds."""
    standby = defaults.standby if standby_seconds is None else timedelta(seconds=standby_seconds)
    archive = defaults.archive if archive_seconds is None else timedelta(seconds=archive_seconds)
    return IdleTimes(min(standby, longest.standby), min(archive, longest.archive))


@dataclass(frozen=True)
class Usage:
    """What the idle rules are based on."""

    phase: Phase
    operation: Operation
    desired_state: DesiredState
    last_access_at: datetime | None
    phase_changed_at: datetime


def counts_as_running(
    phase: Phase, desired_state: DesiredState, *, deleted: bool, container_exists: bool
) -> bool:
    """Return whether a workspace takes a slot: requested ones do, so admission reserves a slot.

    A container keeps its slot until it is gone, also in an error and during a deletion.
    """
    is_wanted = desired_state is DesiredState.RUNNING and not deleted
    return is_wanted or phase is Phase.RUNNING or container_exists


def exceeded_limit(own: int, total: int, limits: RunningLimits) -> LimitScope | None:
    """Return the limit that one more running workspace would exceed, or None."""
    if own >= limits.per_user:
        return LimitScope.USER
    return LimitScope.GLOBAL if total >= limits.total else None


def disabled_target(phase: Phase, operation: Operation, desired_state: DesiredState) -> DesiredState | None:
    """Return the desired state for a workspace of a disabled user; None if it stays, or an operation runs.

    From there the idle rules archive it. An error still waits for a person.
    """
    if operation is not Operation.NONE or desired_state is not DesiredState.RUNNING or phase is Phase.ERROR:
        return None
    # STANDBY would restore an archived workspace first.
    return DesiredState.ARCHIVED if phase is Phase.ARCHIVED else DesiredState.STANDBY


def idle_target(usage: Usage, times: IdleTimes, now: datetime) -> DesiredState | None:
    """Return where an unused workspace should go now; None while it is used or an operation runs."""
    due = next_idle_change(usage, times)
    if due is None or due[1] >= now:
        return None
    return due[0]


def next_idle_change(usage: Usage, times: IdleTimes) -> tuple[DesiredState, datetime] | None:
    """Return what happens next if the workspace stays unused, and when."""
    if usage.operation is not Operation.NONE:
        return None
    match usage.phase, usage.desired_state:
        case Phase.RUNNING, DesiredState.RUNNING:
            # A workspace that was just started is not idle, even if it was last used days ago.
            used_at = max(usage.last_access_at or usage.phase_changed_at, usage.phase_changed_at)
            return DesiredState.STANDBY, used_at + times.standby
        case Phase.STANDBY, DesiredState.STANDBY:
            return DesiredState.ARCHIVED, usage.phase_changed_at + times.archive
    return None
