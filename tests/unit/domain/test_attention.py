"""Settled and needs a person: all combinations of what the rules depend on."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import Snapshot
from codehub.domain.deletion import request_deletion
from codehub.domain.failures import RETRYABLE, TERMINAL
from codehub.domain.planner import Decision, plan
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NOTHING,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    archived,
    new_snapshot,
    observed,
    running,
    standby,
)

NONE = Operation.NONE
EVERY_STATE = [
    LifecycleState(phase, operation, desired, recovering, desired is DesiredState.DELETED, purge, reason)
    for phase, operation, desired, recovering, purge, reason in product(
        Phase, Operation, DesiredState, (False, True), (False, True), (None, *ErrorReason)
    )
    if desired is DesiredState.DELETED or not purge
]
HALTED = LifecycleState(
    Phase.DELETING, NONE, DesiredState.DELETED, deleted=True, error_reason=ErrorReason.RETRY_EXCEEDED
)


def test_an_error_needs_a_person() -> None:
    failed = LifecycleState(Phase.ERROR, NONE, DesiredState.RUNNING, error_reason=ErrorReason.TIMEOUT)
    assert failed.needs_person
    assert failed.is_settled


@pytest.mark.parametrize("reason", sorted(TERMINAL))
def test_a_halted_deletion_needs_a_person(reason: ErrorReason) -> None:
    halted = replace(HALTED, error_reason=reason)
    assert halted.needs_person
    assert halted.is_settled


@pytest.mark.parametrize("reason", [None, *sorted(RETRYABLE)])
def test_a_deletion_in_progress_needs_no_person(reason: ErrorReason | None) -> None:
    going_on = replace(HALTED, error_reason=reason)
    assert not going_on.needs_person
    assert not going_on.is_settled


def test_a_purge_continues_despite_errors() -> None:
    assert not replace(HALTED, purge=True).needs_person
    assert not replace(HALTED, purge=True).is_settled


def test_a_deleted_workspace_is_settled_and_needs_no_person() -> None:
    over = replace(HALTED, phase=Phase.DELETED)
    assert not over.needs_person
    assert over.is_settled


def test_an_unfinished_deletion_that_was_just_undone_is_not_settled() -> None:
    back = replace(HALTED, deleted=False, desired_state=DesiredState.ARCHIVED)
    assert not back.needs_person
    assert not back.is_settled


@pytest.mark.parametrize("change", [{"recovering": True}, {"operation": Operation.STOPPING}])
def test_a_busy_workspace_needs_no_person_and_is_not_settled(change: dict[str, object]) -> None:
    busy = replace(HALTED, **change)  # type: ignore[arg-type]
    assert not busy.needs_person
    assert not busy.is_settled


def test_only_a_workspace_that_waits_without_a_claim_is_interruptible() -> None:
    waiting = LifecycleState(Phase.STANDBY, Operation.NONE, DesiredState.ARCHIVED, waiting=True)
    assert waiting.is_interruptible
    for change in ({"waiting": False}, {"recovering": True}, {"operation": Operation.ARCHIVING}):
        assert not replace(waiting, **change).is_interruptible


def test_a_workspace_that_needs_a_person_is_settled() -> None:
    assert all(each.is_settled for each in EVERY_STATE if each.needs_person)


def test_a_settled_workspace_is_where_it_should_be_or_needs_a_person() -> None:
    for each in EVERY_STATE:
        if each.is_settled:
            assert each.phase.value == each.desired_state.value or each.needs_person


def lifecycle_of(snapshot: Snapshot) -> LifecycleState:
    return LifecycleState(
        snapshot.phase,
        snapshot.operation,
        snapshot.desired_state,
        deleted=snapshot.deleted,
        purge=snapshot.purge,
        error_reason=snapshot.error_reason,
    )


def all_judged_rows() -> list[Snapshot]:
    """Return judged rows: every place of a workspace, deleted or not, with each error or none."""
    places = [
        (new_snapshot(), NOTHING),
        (archived(DesiredState.RUNNING), ARCHIVE_ONLY),
        (archived(), ARCHIVE_ONLY),
        (archived(), NOTHING),
        (standby(DesiredState.RUNNING), VOLUME_AND_ARCHIVE),
        (standby(), VOLUME_AND_ARCHIVE),
        (standby(), ARCHIVE_ONLY),
        (standby(), OUTAGE),
        (running(), OUTAGE),
    ]
    requests = (None, False, True)
    found = []
    for (place, observation), reason, purge in product(places, (None, *ErrorReason), requests):
        row = replace(place, error_reason=reason)
        found.append(observed(row if purge is None else request_deletion(row, purge=purge), observation))
    return found


def test_the_planner_halts_exactly_for_what_needs_a_person() -> None:
    rows = all_judged_rows()
    for row in rows:
        halts = plan(row).decision is Decision.HALT and row.phase is not Phase.DELETED
        assert lifecycle_of(row).needs_person is halts, row
    assert any(lifecycle_of(row).needs_person and row.deleted for row in rows)


def test_the_planner_leaves_exactly_the_settled_workspaces_alone() -> None:
    for row in all_judged_rows():
        rests = plan(row).decision in {Decision.CONVERGED, Decision.HALT}
        assert lifecycle_of(row).is_settled is rests, row
