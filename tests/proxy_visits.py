"""Visits to a workspace, for tests of the proxy's pages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from codehub.db.running_slots import RunningWorkspace
from codehub.db.views import WorkspaceView
from codehub.domain.conditions import Condition, Conditions, Reason, Status, WorkspaceId
from codehub.domain.recovery import RecoverChoice
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.services.recovery import ArchiveToRestore
from proxy.pages import Pages, Visit

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
ID = WorkspaceId("6f1c0d3e-8a55-4f0e-9a6c-2f3f9f0a7c11")
OTHER = WorkspaceId("0b0e9ad5-6d6c-4f2f-8d4c-4f7b5f1f2a22")
PATH = f"/w/{ID}/?folder=/home"
TOKEN = "a-token"  # noqa: S105 (not a secret)
PAGES = Pages("/hub")
ALL_CHOICES = tuple(RecoverChoice)
ARCHIVES = [
    ArchiveToRestore(UUID(int=7), datetime(2026, 5, 2, 10, 0, tzinfo=UTC), 311_000_000, None),
    ArchiveToRestore(UUID(int=8), None, None, datetime(2026, 5, 1, 10, 0, tzinfo=UTC)),
]


def condition(status: Status, reason: Reason) -> Condition:
    return Condition(status, reason, "", NOW)


ON_DISK = Conditions(volume_ready=condition(Status.TRUE, Reason.COMPLETE))
NOT_ON_DISK = Conditions(volume_ready=condition(Status.FALSE, Reason.ABSENT))
NOWHERE = replace(NOT_ON_DISK, archive_ready=condition(Status.FALSE, Reason.GONE))

VIEW = WorkspaceView(
    workspace_id=ID,
    owner_user_id=UUID(int=1),
    owner_username="ada",
    name="thesis",
    description=None,
    memo=None,
    image_ref="image",
    instance_backend="local",
    storage_backend="local-dir",
    conditions=NOT_ON_DISK,
    observed_at=NOW,
    phase=Phase.STANDBY,
    phase_changed_at=NOW,
    operation=Operation.NONE,
    op_started_at=None,
    desired_state=DesiredState.RUNNING,
    purge=False,
    archive_key="key",
    archive_size_bytes=312_400_000,
    archived_at=datetime(2026, 5, 3, 14, 2, tzinfo=UTC),
    archive_verified_at=datetime(2026, 5, 3, 14, 2, tzinfo=UTC),
    other_archives=(),
    error_reason=None,
    error_message=None,
    error_count=0,
    recovering=False,
    waiting_for=(),
    waiting_since=None,
    standby_ttl_seconds=None,
    archive_ttl_seconds=None,
    last_access_at=NOW,
    created_at=NOW,
    updated_at=NOW,
    deleted_at=None,
    version=1,
)


def visit(**changes: object) -> Visit:
    return Visit(replace(VIEW, **changes), TOKEN, PATH, NOW)  # type: ignore[arg-type]


def under_way(operation: Operation, **changes: object) -> Visit:
    return visit(operation=operation, op_started_at=NOW - timedelta(seconds=4), **changes)


def running(phase: Phase = Phase.RUNNING, desired: DesiredState = DesiredState.RUNNING) -> RunningWorkspace:
    return RunningWorkspace(OTHER, "website", phase, desired, needs_person=phase is Phase.ERROR)


def broken(reason: ErrorReason | None, message: str | None = None, **changes: object) -> Visit:
    return visit(phase=Phase.ERROR, error_reason=reason, error_message=message, **changes)


def deletion_failed(reason: ErrorReason = ErrorReason.RETRY_EXCEEDED, **changes: object) -> Visit:
    deleting = {"phase": Phase.DELETING, "desired_state": DesiredState.DELETED, "deleted_at": NOW}
    return visit(**{**deleting, "error_reason": reason, **changes})
