"""The kind of event between two snapshots."""

from dataclasses import replace

import pytest

from activities.audit_trail import event_kind
from codehub.db.events import EventKind
from codehub.domain.conditions import Snapshot
from codehub.domain.states import ErrorReason, Operation, Phase
from tests.unit.domain.builders import running, standby

STARTING = replace(standby(), operation=Operation.STARTING)
BROKEN = replace(standby(), phase=Phase.ERROR, error_reason=ErrorReason.DATA_LOST)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (standby(), standby(), None),
        (standby(), running(), EventKind.PHASE_CHANGED),
        (STARTING, STARTING, None),
        (STARTING, running(), EventKind.OPERATION_COMPLETED),
        (STARTING, BROKEN, EventKind.OPERATION_FAILED),
        (standby(), BROKEN, EventKind.ERROR_FOUND),
        (
            STARTING,
            replace(STARTING, error_reason=ErrorReason.UNREACHABLE, error_count=1),
            EventKind.ATTEMPT_FAILED,
        ),
        (
            replace(STARTING, error_reason=ErrorReason.UNREACHABLE, error_count=1),
            replace(STARTING, error_reason=ErrorReason.UNREACHABLE, error_count=2),
            EventKind.ATTEMPT_FAILED,
        ),
    ],
)
def test_the_kind_of_event_between_two_snapshots(
    before: Snapshot, after: Snapshot, kind: EventKind | None
) -> None:
    assert event_kind(before, after) is kind
