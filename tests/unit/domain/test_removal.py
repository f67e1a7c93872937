"""A volume that is the only copy of a home goes by a purge and by nothing else."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.conditions import DISCARDED, ArchiveFact, Snapshot
from codehub.domain.removal import is_leftover, may_remove_archived_volume, may_remove_volume
from codehub.domain.states import DesiredState, Operation
from tests.unit.domain.builders import NEW_KEY, OLD_KEY, new_snapshot

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
def test_a_deletion_removes_a_leftover_whose_archive_answers(
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
def test_a_deletion_removes_what_its_owner_gave_up(archive: ArchiveFact) -> None:
    given_up = replace(NEVER_ARCHIVED, restore_marker=DISCARDED, operation=Operation.DELETING)
    assert may_remove_volume(given_up, archive)
    assert not may_remove_volume(replace(given_up, operation=Operation.ARCHIVING), archive)
