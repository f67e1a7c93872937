"""Rows and audit trails for the tests of the checks."""

from datetime import UTC, datetime, timedelta
from typing import Any

from codehub.db.events import EventKind, EventView
from codehub.domain.conditions import WorkspaceId
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from gameday.checks.rows import Row

WORKSPACE = WorkspaceId("0f8b3c1e-9a55-4d1c-8a70-5a3c9b1f2d44")
BEGAN = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def row(**changes: Any) -> Row:  # noqa: ANN401
    """Return a stopped workspace with these changes."""
    fields: dict[str, Any] = {
        "workspace_id": WORKSPACE,
        "owner_id": "ada",
        "name": "notes",
        "phase": Phase.STANDBY,
        "operation": Operation.NONE,
        "desired_state": DesiredState.STANDBY,
        "deleted": False,
        "purge": False,
        "archive_key": None,
        "archive_op_id": None,
        "error_reason": None,
        "error_message": None,
        "version": 1,
        "container_exists": False,
    }
    return Row(**{**fields, **changes})


def line(
    number: int,
    kind: EventKind,
    phase: Phase,
    operation: Operation | None = None,
    reason: ErrorReason | None = None,
    **detail: str,
) -> EventView:
    """Return one event; its number is also its time in seconds."""
    at = BEGAN + timedelta(seconds=number)
    return EventView(number, at, kind, "ada", operation, phase, reason, dict(detail))


CREATED = line(1, EventKind.CREATED, Phase.PENDING, to="STANDBY")
CLAIMED = line(2, EventKind.OPERATION_CLAIMED, Phase.PENDING, Operation.PROVISIONING)
COMPLETED = line(4, EventKind.OPERATION_COMPLETED, Phase.STANDBY, Operation.PROVISIONING)
