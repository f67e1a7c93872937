"""Claim, commit, mark, settle and fail."""

from dataclasses import replace
from datetime import timedelta

import pytest

from codehub.domain.conditions import ArchiveFact, Observation, Reason, Resource, Snapshot, Status, VolumeFact
from codehub.domain.deletion import request_deletion
from codehub.domain.failures import MAX_PURGE_DELAY_SECONDS, MAX_RETRY, TERMINAL
from codehub.domain.judge import conclude, judge
from codehub.domain.planner import Decision, Plan, needs_upload, note_waiting, plan
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.domain.transitions import claim, commit_archive, fail, mark_restored, release, settle
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    NEW_OP,
    NOW,
    OLD_KEY,
    OLD_OP,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    archived,
    new_snapshot,
    observed,
    pending,
    running,
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
    leftover = observed(replace(archived(), archive_op_id=OLD_OP), VOLUME_AND_ARCHIVE)
    claimed = claim(leftover, Operation.ARCHIVING, NEW_OP)
    assert claimed.archive_op_id == OLD_OP
    assert not needs_upload(claimed)


def test_an_empty_archive_gets_an_id() -> None:
    assert claim(pending(), Operation.CREATE_EMPTY_ARCHIVE, NEW_OP).archive_op_id == NEW_OP


def test_restoring_clears_the_old_marker() -> None:
    stale = replace(archived(), restore_marker=OLD_KEY)
    assert claim(stale, Operation.RESTORING, NEW_OP).restore_marker is None


def test_other_operations_change_nothing_else() -> None:
    assert claim(standby(), Operation.STARTING, NEW_OP) == replace(standby(), operation=Operation.STARTING)


def test_committing_stores_the_new_key_and_forgets_what_was_observed_of_the_old_archive() -> None:
    committed = commit_archive(claim(standby(), Operation.ARCHIVING, NEW_OP))
    assert committed.archive_key == NEW_KEY
    assert committed.conditions.archive_ready.status is Status.UNKNOWN
    assert commit_archive(committed) == committed


def test_nothing_is_committed_before_an_operation_has_begun() -> None:
    with pytest.raises(ValueError, match="no archive operation"):
        commit_archive(standby())


def test_marking_stores_the_key_of_the_restored_archive() -> None:
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


def test_an_unrelated_outage_is_not_blamed() -> None:
    blind = replace(standby(), operation=Operation.STARTING, unreachable=(Resource.ARCHIVE,))
    assert settle(blind, NOW, 0).snapshot.error_reason is ErrorReason.ACTION_FAILED


def test_settling_an_operation_that_a_violation_ended_changes_nothing() -> None:
    lost = observed(replace(standby(), operation=Operation.STARTING), ARCHIVE_ONLY)
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
    assert judged.error_message == "The operation took too long. Recover to try again."
    assert judged.conditions.volume_ready.reason == Reason.NOT_OBSERVED


UNSEEN_ARCHIVE = replace(VOLUME_AND_ARCHIVE, archive=ArchiveFact.UNREACHABLE)


@pytest.mark.parametrize(
    ("snapshot", "operation", "observation"),
    [
        (standby(DesiredState.ARCHIVED), Operation.ARCHIVING, UNSEEN_ARCHIVE),
        (standby(DesiredState.RUNNING), Operation.STARTING, OUTAGE),
        (running(DesiredState.STANDBY), Operation.STOPPING, OUTAGE),
        (archived(DesiredState.RUNNING), Operation.RESTORING, OUTAGE),
        (pending(), Operation.PROVISIONING, OUTAGE),
        (pending(DesiredState.ARCHIVED), Operation.CREATE_EMPTY_ARCHIVE, OUTAGE),
    ],
)
def test_an_operation_that_waits_for_a_provider_gives_its_claim_back(
    snapshot: Snapshot, operation: Operation, observation: Observation
) -> None:
    claimed = observed(claim(snapshot, operation, NEW_OP), observation)
    released = release(claimed, NOW)
    assert (released.operation, released.phase) == (Operation.NONE, snapshot.phase)
    assert plan(released).decision is Decision.WAIT


def test_the_container_of_an_interrupted_start_counts_until_it_is_observed() -> None:
    starting = observed(claim(standby(DesiredState.RUNNING), Operation.STARTING, NEW_OP), OUTAGE)
    last_attempt = replace(starting, error_count=MAX_RETRY)
    given_up = fail(last_attempt, ErrorReason.UNREACHABLE, "It is down.", NOW, 0).snapshot
    assert given_up.phase is Phase.ERROR
    for interrupted in (release(starting, NOW), given_up):
        assert interrupted.conditions.container_exists
        assert not judge(interrupted, VOLUME_AND_ARCHIVE, NOW).conditions.container_exists


def test_a_start_that_waits_for_another_provider_has_seen_its_container() -> None:
    unseen_volume = replace(VOLUME_AND_ARCHIVE, volume=VolumeFact.UNREACHABLE)
    starting = observed(claim(standby(DesiredState.RUNNING), Operation.STARTING, NEW_OP), unseen_volume)
    released = release(starting, NOW)
    assert released.operation is Operation.NONE
    assert not released.conditions.container_exists


def test_a_committed_archive_and_a_deletion_keep_their_claims_during_an_outage() -> None:
    committed = commit_archive(claim(standby(DesiredState.ARCHIVED), Operation.ARCHIVING, NEW_OP))
    deleting = replace(running(DesiredState.DELETED), deleted=True, purge=True, operation=Operation.DELETING)
    for claimed in (observed(committed, UNSEEN_ARCHIVE), observed(deleting, OUTAGE)):
        assert release(claimed, NOW) is claimed
        assert plan(claimed).decision is Decision.WAIT


def test_an_operation_whose_providers_respond_keeps_its_claim() -> None:
    claimed = observed(claim(standby(DesiredState.ARCHIVED), Operation.ARCHIVING, NEW_OP), VOLUME_AND_ARCHIVE)
    assert release(claimed, NOW) is claimed


def test_a_purge_retries_forever_at_growing_intervals() -> None:
    row = observed(request_deletion(standby(), purge=True), VOLUME_AND_ARCHIVE)
    now, pauses = NOW, []
    for _ in range(MAX_RETRY + 12):
        row = judge(row, VOLUME_AND_ARCHIVE, now)
        assert plan(row) == Plan(Decision.RUN, Operation.DELETING)
        ended = fail(
            replace(row, operation=Operation.DELETING), ErrorReason.ACTION_FAILED, "It broke.", now, 0
        )
        row = ended.snapshot
        if ended.retry_after_seconds is not None:
            assert row.operation is Operation.DELETING
            pauses.append(ended.retry_after_seconds)
            row = replace(row, operation=Operation.NONE)
            continue
        assert (row.operation, row.error_reason) == (Operation.NONE, ErrorReason.RETRY_EXCEEDED)
        assert plan(judge(row, VOLUME_AND_ARCHIVE, now)).decision is Decision.WAIT
        assert row.retry_at is not None
        pauses.append((row.retry_at - now).total_seconds())
        now = row.retry_at
    assert pauses[:3] == [5, 15, 60]
    assert pauses == sorted(pauses)
    assert pauses[-2:] == [MAX_PURGE_DELAY_SECONDS] * 2


def test_a_deletion_starts_with_all_its_attempts() -> None:
    failed = replace(standby(), error_count=MAX_RETRY, retry_at=NOW)
    deleted = request_deletion(failed, purge=True)
    assert (deleted.error_count, deleted.retry_at) == (0, None)


def test_waiting_records_the_provider_and_the_start_until_it_ends() -> None:
    claimed = observed(standby(DesiredState.ARCHIVED), UNSEEN_ARCHIVE)
    waiting = note_waiting(claimed, NOW)
    assert (waiting.waiting_for, waiting.waiting_since) == ((Resource.ARCHIVE,), NOW)
    assert note_waiting(waiting, NOW + timedelta(hours=1)) == waiting
    over = note_waiting(observed(waiting, VOLUME_AND_ARCHIVE), NOW)
    assert (over.waiting_for, over.waiting_since) == ((), None)


def test_a_recovery_waits_for_a_silent_provider_too() -> None:
    broken = observed(replace(standby(), error_reason=ErrorReason.TIMEOUT), UNSEEN_ARCHIVE)
    assert note_waiting(broken, NOW).waiting_for == ()
    assert note_waiting(broken, NOW, recovering=True).waiting_for == (Resource.ARCHIVE,)
