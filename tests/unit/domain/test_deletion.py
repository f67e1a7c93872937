"""Deletion: requests, undeletes, and the volumes that may be removed."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.conditions import DISCARDED, ArchiveFact, Resource, Snapshot
from codehub.domain.deletion import (
    UndeleteRefusal,
    is_leftover,
    may_remove_archived_volume,
    may_remove_volume,
    request_deletion,
    undelete,
    undelete_refusal,
)
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    NOTHING,
    NOW,
    OLD_KEY,
    VOLUME_AND_ARCHIVE,
    archived,
    new_snapshot,
    observed,
    standby,
)

ARCHIVED = new_snapshot(DesiredState.DELETED, key=NEW_KEY, marker=OLD_KEY, deleted=True)
RESTORED = new_snapshot(DesiredState.DELETED, key=NEW_KEY, marker=NEW_KEY, deleted=True)
NEVER_ARCHIVED = new_snapshot(DesiredState.DELETED, deleted=True)


def test_a_volume_is_a_leftover_once_a_newer_archive_is_committed() -> None:
    assert is_leftover(ARCHIVED)
    assert not is_leftover(RESTORED)
    assert not is_leftover(NEVER_ARCHIVED)


@pytest.mark.parametrize(
    ("operation", "snapshot", "key"),
    list(product(Operation, (ARCHIVED, RESTORED, NEVER_ARCHIVED), (OLD_KEY, NEW_KEY))),
)
def test_archiving_removes_a_volume_whose_own_archive_is_committed(
    operation: Operation, snapshot: Snapshot, key: str
) -> None:
    allowed = operation is Operation.ARCHIVING and snapshot is ARCHIVED and key == NEW_KEY
    assert may_remove_archived_volume(replace(snapshot, operation=operation), key) is allowed


@pytest.mark.parametrize(("operation", "archive"), list(product(Operation, ArchiveFact)))
def test_a_deletion_removes_a_leftover_whose_archive_exists(
    operation: Operation, archive: ArchiveFact
) -> None:
    allowed = operation is Operation.DELETING and archive is ArchiveFact.PRESENT
    assert may_remove_volume(replace(ARCHIVED, operation=operation), archive) is allowed


@pytest.mark.parametrize("archive", ArchiveFact)
def test_a_deletion_keeps_a_home_that_is_not_archived_unless_it_is_a_purge(archive: ArchiveFact) -> None:
    for snapshot in (RESTORED, NEVER_ARCHIVED):
        deleting = replace(snapshot, operation=Operation.DELETING)
        assert not may_remove_volume(deleting, archive)
        assert may_remove_volume(replace(deleting, purge=True), archive)
        assert not may_remove_volume(replace(deleting, purge=True, deleted=False), archive)


@pytest.mark.parametrize("archive", ArchiveFact)
def test_a_deletion_removes_a_volume_that_its_owner_discarded(archive: ArchiveFact) -> None:
    discarded = replace(NEVER_ARCHIVED, restore_marker=DISCARDED, operation=Operation.DELETING)
    assert may_remove_volume(discarded, archive)
    assert not may_remove_volume(replace(discarded, operation=Operation.ARCHIVING), archive)


def test_a_healthy_workspace_is_deleted_with_a_last_archive() -> None:
    deleted = request_deletion(standby(), purge=False)
    assert (deleted.desired_state, deleted.deleted, deleted.purge) == (DesiredState.DELETED, True, False)


def test_deleting_from_an_error_is_a_purge() -> None:
    broken = replace(standby(), phase=Phase.ERROR, error_reason=ErrorReason.DATA_LOST)
    assert request_deletion(broken, purge=False).purge
    assert request_deletion(standby(), purge=True).purge


def test_a_deletion_gets_all_its_attempts_at_once() -> None:
    tried = replace(standby(), error_count=2, retry_at=NOW, waiting_for=(Resource.VOLUME,), waiting_since=NOW)
    deleted = request_deletion(tried, purge=False)
    assert (deleted.error_count, deleted.retry_at) == (0, None)
    assert (deleted.waiting_for, deleted.waiting_since) == ((), None)


@pytest.mark.parametrize("purge", [False, True])
def test_a_repeated_deletion_changes_nothing(purge: bool) -> None:
    deleted = replace(request_deletion(standby(), purge=purge), error_count=2)
    assert request_deletion(deleted, purge=purge) is deleted
    assert request_deletion(replace(deleted, purge=True), purge=False).purge


def test_a_deletion_can_become_a_purge() -> None:
    halted = replace(request_deletion(standby(), purge=False), error_count=3)
    purged = request_deletion(halted, purge=True)
    assert (purged.purge, purged.error_count) == (True, 0)


def test_a_finished_deletion_that_is_undone_is_archived_at_once() -> None:
    deleted = observed(request_deletion(archived(), purge=False), ARCHIVE_ONLY)
    assert deleted.phase is Phase.DELETED
    back = undelete(deleted)
    assert (back.phase, back.desired_state, back.deleted) == (Phase.ARCHIVED, DesiredState.ARCHIVED, False)
    assert replace(observed(back, ARCHIVE_ONLY), conditions=back.conditions) == back


def test_an_unfinished_deletion_that_is_undone_keeps_its_phase_until_it_is_observed() -> None:
    deleting = observed(request_deletion(standby(), purge=False), VOLUME_AND_ARCHIVE)
    assert (deleting.phase, undelete(deleting).phase) == (Phase.DELETING, Phase.DELETING)
    assert observed(undelete(deleting), VOLUME_AND_ARCHIVE).phase is Phase.STANDBY


@pytest.mark.parametrize(
    ("snapshot", "refusal"),
    [
        (archived(), UndeleteRefusal.NOT_DELETED),
        (request_deletion(archived(), purge=True), UndeleteRefusal.PURGED),
        (observed(request_deletion(new_snapshot(), purge=False), NOTHING), UndeleteRefusal.NO_ARCHIVE),
    ],
)
def test_a_deletion_that_cannot_be_undone_says_why(snapshot: Snapshot, refusal: UndeleteRefusal) -> None:
    assert undelete_refusal(snapshot) is refusal
    with pytest.raises(ValueError, match="cannot be undone"):
        undelete(snapshot)


def test_a_deletion_is_not_undone_while_an_operation_is_claimed() -> None:
    deleted = observed(request_deletion(archived(), purge=False), ARCHIVE_ONLY)
    with pytest.raises(ValueError, match="cannot be undone"):
        undelete(replace(deleted, operation=Operation.DELETING))
