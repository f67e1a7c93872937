"""Which archives are protected, and when the others may be collected."""

from dataclasses import replace
from datetime import timedelta

import pytest

from codehub.domain.garbage import GRACE, ArchiveOwner, GracePeriods, is_protected, may_collect
from codehub.domain.naming import ArchiveName
from codehub.domain.states import ErrorReason, Phase
from tests.unit.domain.builders import NEW_KEY, NEW_OP, NOW, OLD_KEY, OLD_OP, WORKSPACE

NAME = ArchiveName(WORKSPACE, OLD_OP)
STRANGER = ArchiveOwner(Phase.STANDBY, archive_key=None, archive_op_id=NEW_OP, error_reason=None)
GONE = ArchiveOwner(Phase.DELETED, OLD_KEY, OLD_OP, ErrorReason.TIMEOUT, deleted_at=NOW)
WEEK = timedelta(days=7)
LAST_MOMENT = WEEK - timedelta(seconds=1)
LIVING = set(Phase) - {Phase.DELETED}


def protected(owner: ArchiveOwner | None) -> bool:
    return is_protected(OLD_KEY, NAME, owner, NOW, GracePeriods())


@pytest.mark.parametrize("phase", LIVING)
def test_the_current_archive_is_protected(phase: Phase) -> None:
    assert protected(replace(STRANGER, phase=phase, archive_key=OLD_KEY))


@pytest.mark.parametrize("phase", LIVING)
def test_the_archive_that_is_being_written_is_protected(phase: Phase) -> None:
    assert protected(replace(STRANGER, phase=phase, archive_op_id=OLD_OP))


def test_every_archive_of_a_broken_workspace_is_protected() -> None:
    assert protected(replace(STRANGER, phase=Phase.ERROR))
    stuck_deletion = replace(STRANGER, phase=Phase.DELETING, error_reason=ErrorReason.RETRY_EXCEEDED)
    assert protected(stuck_deletion)


@pytest.mark.parametrize("phase", LIVING)
def test_an_archive_that_a_recovery_left_behind_is_protected(phase: Phase) -> None:
    assert protected(replace(STRANGER, phase=phase, given_up=frozenset({OLD_KEY})))


def test_an_archive_that_a_recovery_left_behind_goes_with_its_workspace() -> None:
    gone = replace(STRANGER, phase=Phase.DELETED, deleted_at=NOW, given_up=frozenset({OLD_KEY}))
    assert not protected(gone)


def test_other_archives_of_a_healthy_workspace_are_orphans() -> None:
    assert not protected(STRANGER)


@pytest.mark.parametrize("phase", LIVING)
def test_an_older_archive_is_protected_while_the_current_one_is_missing(phase: Phase) -> None:
    assert protected(replace(STRANGER, phase=phase, archive_key=NEW_KEY, archive_missing=True))


@pytest.mark.parametrize(("age", "kept"), [(LAST_MOMENT, True), (WEEK, False)])
def test_an_older_archive_of_a_deleted_workspace_is_protected_while_the_last_one_is_missing(
    age: timedelta, kept: bool
) -> None:
    gone = replace(GONE, archive_key=NEW_KEY, archive_missing=True, deleted_at=NOW - age)
    assert protected(gone) is kept


def test_archives_of_an_unknown_workspace_are_orphans() -> None:
    assert not protected(None)


@pytest.mark.parametrize(("age", "kept"), [(timedelta(0), True), (LAST_MOMENT, True), (WEEK, False)])
def test_the_last_archive_of_a_deleted_workspace_is_protected_for_the_undelete_period(
    age: timedelta, kept: bool
) -> None:
    assert protected(replace(GONE, deleted_at=NOW - age)) is kept


def test_other_archives_of_a_deleted_workspace_are_orphans() -> None:
    assert not protected(replace(GONE, archive_key=NEW_KEY, archive_op_id=OLD_OP))


def test_a_purge_protects_nothing() -> None:
    assert not protected(replace(GONE, purge=True))


def test_the_archive_of_an_undeleted_workspace_is_protected_before_it_is_observed() -> None:
    """Earlier versions left the phase DELETED until the next observation."""
    undeleted = replace(GONE, deleted_at=None)
    assert is_protected(OLD_KEY, NAME, undeleted, NOW + WEEK, GracePeriods())


@pytest.mark.parametrize(("age", "due"), [(GRACE - timedelta(seconds=1), False), (GRACE, True)])
def test_an_orphan_may_be_collected_after_the_grace_period(age: timedelta, due: bool) -> None:
    assert may_collect(NOW - age, NOW, GracePeriods()) == due
