"""Claim, commit, mark, settle and fail: how the row may change."""

from dataclasses import replace

import pytest

from codehub.domain.conditions import Reason, Resource, Status
from codehub.domain.failures import MAX_RETRY, TERMINAL
from codehub.domain.judge import conclude
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.domain.transitions import claim, commit_archive, fail, mark_restored, needs_upload, settle
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    NEW_OP,
    NOW,
    OLD_KEY,
    OLD_OP,
    VOLUME_AND_ARCHIVE,
    archived,
    new_snapshot,
    pending,
    running,
    seen,
    standby,
)


def test_a_second_claim_is_refused() -> None:
    with pytest.raises(ValueError, match="STARTING is still claimed"):
        claim(replace(standby(), operation=Operation.STARTING), Operation.STOPPING, NEW_OP)


def test_archiving_a_home_begins_with_a_new_id_even_after_an_earlier_attempt_failed() -> None:
    claimed = claim(replace(standby(), archive_op_id=OLD_OP), Operation.ARCHIVING, NEW_OP)
    assert (claimed.operation, claimed.archive_op_id) == (Operation.ARCHIVING, NEW_OP)
    assert needs_upload(claimed)


def test_removing_a_leftover_volume_uploads_nothing_and_keeps_the_id() -> None:
    leftover = seen(replace(archived(), archive_op_id=OLD_OP), VOLUME_AND_ARCHIVE)
    claimed = claim(leftover, Operation.ARCHIVING, NEW_OP)
    assert claimed.archive_op_id == OLD_OP
    assert not needs_upload(claimed)


def test_an_empty_archive_gets_an_id() -> None:
    assert claim(pending(), Operation.CREATE_EMPTY_ARCHIVE, NEW_OP).archive_op_id == NEW_OP


def test_restoring_forgets_the_old_marker() -> None:
    stale = replace(archived(), restore_marker=OLD_KEY)
    assert claim(stale, Operation.RESTORING, NEW_OP).restore_marker is None


def test_other_operations_change_nothing_else() -> None:
    assert claim(standby(), Operation.STARTING, NEW_OP) == replace(standby(), operation=Operation.STARTING)


def test_committing_names_the_new_archive_and_forgets_what_was_seen_of_the_old_one() -> None:
    committed = commit_archive(claim(standby(), Operation.ARCHIVING, NEW_OP))
    assert committed.archive_key == NEW_KEY
    assert committed.conditions.archive_ready.status is Status.UNKNOWN
    assert commit_archive(committed) == committed


def test_nothing_is_committed_before_an_operation_has_begun() -> None:
    with pytest.raises(ValueError, match="no archive operation"):
        commit_archive(standby())


def test_marking_names_the_restored_archive() -> None:
    assert mark_restored(archived()).restore_marker == OLD_KEY


def test_an_observed_result_ends_the_operation_and_clears_the_error() -> None:
    retried = replace(
        running(),
        operation=Operation.STARTING,
        error_count=2,
        error_reason=ErrorReason.ACTION_FAILED,
        error_message="Once more.",
    )
    settlement = settle(retried, NOW, 0)
    assert settlement.snapshot == running()
    assert settlement.retry_after_seconds is None


def test_success_that_is_not_observed_is_a_failed_attempt() -> None:
    settlement = settle(replace(standby(), operation=Operation.STARTING), NOW, 0)
    assert settlement.snapshot.error_reason is ErrorReason.ACTION_FAILED
    assert settlement.snapshot.operation is Operation.STARTING
    assert settlement.retry_after_seconds == 5


def test_a_result_that_cannot_be_observed_is_unreachable() -> None:
    blind = replace(standby(), operation=Operation.STARTING, unreachable=(Resource.CONTAINER,))
    settlement = settle(blind, NOW, 0)
    assert settlement.snapshot.error_reason is ErrorReason.UNREACHABLE
    assert settlement.snapshot.error_message == "The container could not be observed."


def test_an_outage_of_something_else_is_not_blamed() -> None:
    blind = replace(standby(), operation=Operation.STARTING, unreachable=(Resource.ARCHIVE,))
    assert settle(blind, NOW, 0).snapshot.error_reason is ErrorReason.ACTION_FAILED


def test_settling_what_a_violation_has_ended_changes_nothing() -> None:
    lost = seen(replace(standby(), operation=Operation.STARTING), ARCHIVE_ONLY)
    assert settle(lost, NOW, 0).snapshot == lost


@pytest.mark.parametrize("reason", TERMINAL)
def test_a_terminal_reason_ends_in_error_at_once(reason: ErrorReason) -> None:
    settlement = fail(replace(standby(), operation=Operation.STARTING), reason, "It broke.", NOW, 0)
    failed = settlement.snapshot
    assert (failed.phase, failed.operation) == (Phase.ERROR, Operation.NONE)
    assert (failed.error_reason, failed.error_message, failed.error_count) == (reason, "It broke.", 1)
    assert settlement.retry_after_seconds is None


@pytest.mark.parametrize("reason", [ErrorReason.ACTION_FAILED, ErrorReason.UNREACHABLE])
def test_retries_end_after_the_last_attempt(reason: ErrorReason) -> None:
    snapshot = replace(standby(), operation=Operation.ARCHIVING, archive_op_id=NEW_OP)
    waits = []
    for _ in range(MAX_RETRY):
        settlement = fail(snapshot, reason, "It broke.", NOW, 0)
        snapshot = settlement.snapshot
        waits.append(settlement.retry_after_seconds)
    assert waits == [5, 15, None]
    assert (snapshot.phase, snapshot.operation) == (Phase.ERROR, Operation.NONE)
    assert snapshot.error_reason is ErrorReason.RETRY_EXCEEDED
    assert snapshot.archive_op_id == NEW_OP


def test_an_error_during_a_deletion_ends_the_operation_and_shows_in_the_conditions() -> None:
    deleting = replace(
        standby(DesiredState.DELETED), deleted=True, operation=Operation.ARCHIVING, archive_op_id=NEW_OP
    )
    failed = fail(deleting, ErrorReason.TIMEOUT, "Too slow.", NOW, 0).snapshot
    assert (failed.phase, failed.operation) == (Phase.DELETING, Operation.NONE)
    assert failed.conditions.healthy.reason == ErrorReason.TIMEOUT


def test_a_recorded_error_without_a_message_is_explained() -> None:
    judged = conclude(new_snapshot(error=ErrorReason.TIMEOUT), NOW)
    assert judged.error_message == "The operation took longer than it may. Recover to try again."
    assert judged.conditions.volume_ready.reason == Reason.NOT_OBSERVED
