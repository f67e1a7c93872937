"""Snapshots and observations for tests of the domain."""

from dataclasses import replace
from datetime import UTC, datetime

from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    Observation,
    Snapshot,
    VolumeFact,
    WorkspaceId,
)
from codehub.domain.judge import judge
from codehub.domain.naming import archive_key
from codehub.domain.states import DesiredState, ErrorReason, Operation

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
WORKSPACE = WorkspaceId("11111111-1111-4111-8111-111111111111")
OLD_OP = "22222222-2222-4222-8222-222222222222"
NEW_OP = "33333333-3333-4333-8333-333333333333"
OLD_KEY = archive_key(WORKSPACE, OLD_OP)
NEW_KEY = archive_key(WORKSPACE, NEW_OP)

NOTHING = Observation(ContainerFact.ABSENT, VolumeFact.ABSENT, ArchiveFact.ABSENT)
ARCHIVE_ONLY = replace(NOTHING, archive=ArchiveFact.PRESENT)
VOLUME_ONLY = replace(NOTHING, volume=VolumeFact.PRESENT)
VOLUME_AND_ARCHIVE = replace(ARCHIVE_ONLY, volume=VolumeFact.PRESENT)
ALL_RUNNING = replace(VOLUME_AND_ARCHIVE, container=ContainerFact.READY)
OUTAGE = Observation(ContainerFact.UNREACHABLE, VolumeFact.UNREACHABLE, ArchiveFact.UNREACHABLE)


def new_snapshot(
    desired: DesiredState = DesiredState.RUNNING,
    *,
    key: str | None = None,
    marker: str | None = None,
    operation: Operation = Operation.NONE,
    error: ErrorReason | None = None,
    deleted: bool = False,
    purge: bool = False,
) -> Snapshot:
    return Snapshot(
        workspace_id=WORKSPACE,
        desired_state=desired,
        operation=operation,
        archive_key=key,
        restore_marker=marker,
        error_reason=error,
        deleted=deleted,
        purge=purge,
    )


def observed(snapshot: Snapshot, *observations: Observation) -> Snapshot:
    """Apply the observations, one after the other."""
    for observation in observations:
        snapshot = judge(snapshot, observation, NOW)
    return snapshot


def standby(desired: DesiredState = DesiredState.STANDBY) -> Snapshot:
    return observed(new_snapshot(desired, key=OLD_KEY, marker=OLD_KEY), VOLUME_AND_ARCHIVE)


def running(desired: DesiredState = DesiredState.RUNNING) -> Snapshot:
    return observed(new_snapshot(desired, key=OLD_KEY, marker=OLD_KEY), ALL_RUNNING)


def archived(desired: DesiredState = DesiredState.ARCHIVED) -> Snapshot:
    return observed(new_snapshot(desired, key=OLD_KEY), ARCHIVE_ONLY)


def pending(desired: DesiredState = DesiredState.RUNNING) -> Snapshot:
    return observed(new_snapshot(desired), NOTHING)
