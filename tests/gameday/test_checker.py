"""Each check finds its violation, and nothing when all is well."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from codehub.domain.garbage import GracePeriods
from codehub.domain.limits import RunningLimits
from codehub.domain.naming import archive_key, meta_key
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from gameday.checks.api import compare
from gameday.checks.archives import ArchiveWatch, find_committed, find_unneeded
from gameday.checks.convergence import needs_person
from gameday.checks.findings import Findings, Invariant
from gameday.checks.homes import check_existence
from gameday.checks.orphans import find_leftovers, find_mismatches
from gameday.checks.watcher import LONGEST_CLAIM, OutageWatch, check_limits, find_locked_out
from gameday.people.journal import Journal
from tests.gameday.histories import BEGAN, WORKSPACE, row

OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
OLD_KEY, NEW_KEY = archive_key(WORKSPACE, OLD), archive_key(WORKSPACE, NEW)
GRACES = GracePeriods(orphan=timedelta(seconds=30), undelete=timedelta(seconds=40))


def test_a_repeated_violation_is_recorded_once_and_every_check_counts() -> None:
    findings = Findings(lambda: 7.0)
    for _ in range(3):
        findings.record(Invariant.LIMITS, ["Three are running."], None)
    assert [each.at for each in findings.violations] == [7.0]
    assert findings.checked[Invariant.LIMITS] == 3


def test_limits_count_running_and_requested_workspaces_even_during_deletion() -> None:
    deleted = {"phase": Phase.DELETING, "desired_state": DesiredState.DELETED, "deleted": True}
    rows = [
        row(phase=Phase.RUNNING),
        row(desired_state=DesiredState.RUNNING),
        row(**deleted),
        row(owner_id="bob", container_exists=True, **deleted),
    ]
    assert not list(check_limits(rows, RunningLimits(2, 3)))
    [per_user] = check_limits(rows, RunningLimits(1, 3))
    assert "ada has 2" in per_user
    [total] = check_limits(rows, RunningLimits(2, 2))
    assert total.startswith("3 workspaces")


def test_a_claim_that_lasts_through_a_long_outage_locks_the_owner_out() -> None:
    late = BEGAN + LONGEST_CLAIM
    uploading = row(operation=Operation.ARCHIVING, volume_is_complete=True, claimed_at=BEGAN)
    [found] = find_locked_out([uploading], late)
    assert found.workspace_id == WORKSPACE
    allowed = (
        replace(uploading, claimed_at=late),
        replace(uploading, volume_is_complete=False),
        replace(uploading, operation=Operation.NONE, claimed_at=None),
    )
    assert not list(find_locked_out(allowed, late))


def test_an_outage_is_long_only_without_interruption() -> None:
    watch = OutageWatch()
    assert not watch.update(BEGAN, only_s3_is_down=True)
    assert not watch.update(BEGAN + LONGEST_CLAIM, only_s3_is_down=False)
    assert not watch.update(BEGAN + LONGEST_CLAIM, only_s3_is_down=True)
    assert watch.update(BEGAN + 2 * LONGEST_CLAIM, only_s3_is_down=True)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def test_an_archive_is_committed_when_its_meta_exists() -> None:
    assert find_committed({OLD_KEY, meta_key(OLD_KEY), NEW_KEY}) == {OLD_KEY}


def test_the_archive_of_a_row_must_exist() -> None:
    named = row(phase=Phase.ARCHIVED, archive_key=OLD_KEY)
    [loss] = ArchiveWatch(GRACES).check([named], set(), after(0.0))
    assert (loss.workspace_id, loss.key) == (WORKSPACE, OLD_KEY)
    assert not list(ArchiveWatch(GRACES).check([named], {OLD_KEY}, after(0.0)))


def test_the_last_archive_of_a_deleted_workspace_must_exist_during_the_undelete_period() -> None:
    gone = row(phase=Phase.DELETED, deleted=True, deleted_at=BEGAN, archive_key=OLD_KEY)
    assert len(list(ArchiveWatch(GRACES).check([gone], set(), after(39.0)))) == 1
    assert not list(ArchiveWatch(GRACES).check([gone], set(), after(40.0)))
    purged = replace(gone, purge=True)
    assert not list(ArchiveWatch(GRACES).check([purged], set(), after(0.0)))


@pytest.mark.parametrize(("removed_at", "losses"), [(5.0, 1), (17.0, 1), (19.0, 0)])
def test_an_archive_must_not_disappear_soon_after_it_was_needed(removed_at: float, losses: int) -> None:
    watch = ArchiveWatch(GRACES)
    assert not list(watch.check([row(archive_key=OLD_KEY)], {OLD_KEY}, after(0.0)))
    replaced = row(archive_key=NEW_KEY)
    assert not list(watch.check([replaced], {OLD_KEY, NEW_KEY}, after(1.0)))
    assert len(list(watch.check([replaced], {NEW_KEY}, after(removed_at)))) == losses


@pytest.mark.parametrize("phase", [Phase.ERROR, Phase.STANDBY])
def test_an_error_that_is_over_does_not_start_a_grace_anew(phase: Phase) -> None:
    watch = ArchiveWatch(GRACES)
    assert not list(watch.check([row(archive_key=OLD_KEY)], {OLD_KEY}, after(0.0)))
    failing = row(phase=phase, archive_key=NEW_KEY, error_reason=ErrorReason.ACTION_FAILED)
    assert not list(watch.check([failing], {OLD_KEY, NEW_KEY}, after(25.0)))
    assert not list(watch.check([row(archive_key=NEW_KEY)], {NEW_KEY}, after(31.0)))


def test_only_unneeded_archives_are_garbage() -> None:
    objects = {OLD_KEY, meta_key(OLD_KEY), NEW_KEY, meta_key(NEW_KEY), "archives/unknown"}
    assert find_unneeded(objects, [row(archive_key=NEW_KEY)], BEGAN, GRACES) == {OLD_KEY, "archives/unknown"}
    # The incomplete upload of the current operation is needed too.
    assert find_unneeded({OLD_KEY}, [row(archive_op_id=OLD)], BEGAN, GRACES) == set()


@pytest.mark.parametrize(
    ("changes", "volumes", "instances", "words"),
    [
        ({}, {WORKSPACE}, {}, None),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {WORKSPACE: ["7"]}, None),
        ({"phase": Phase.ARCHIVED}, set(), {}, None),
        ({"phase": Phase.ERROR, "error_reason": ErrorReason.TIMEOUT}, {WORKSPACE}, {WORKSPACE: ["7"]}, None),
        ({"phase": Phase.ARCHIVED}, {WORKSPACE}, {}, "it has a volume"),
        ({"phase": Phase.DELETED}, {WORKSPACE}, {}, "it has a volume"),
        ({}, set(), {}, "it has no volume"),
        ({}, {WORKSPACE}, {WORKSPACE: ["7"]}, "it has an instance (7)"),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {}, "0 instances"),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {WORKSPACE: ["7", "8"]}, "2 instances"),
    ],
)
def test_volumes_and_instances_must_match_the_phase(
    changes: dict[str, Any], volumes: set[str], instances: dict[str, list[str]], words: str | None
) -> None:
    found = [problem for _, problem in find_mismatches([row(**changes)], volumes, instances)]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_what_a_job_left_behind_goes_with_the_volume() -> None:
    leftovers = {str(WORKSPACE): ["Secret credentials"]}
    found = [*find_leftovers([row(phase=Phase.ARCHIVED)], leftovers)]
    assert found == [(WORKSPACE, "It is ARCHIVED, but it still has the Secret credentials.")]
    failed = row(phase=Phase.ERROR, error_reason=ErrorReason.TIMEOUT)
    assert not [*find_leftovers([row(phase=Phase.STANDBY), row(phase=Phase.RUNNING), failed], leftovers)]


def test_a_workspace_needs_a_person_only_with_an_error_and_no_operation() -> None:
    failed = {"error_reason": ErrorReason.RETRY_EXCEEDED}
    assert needs_person(row(phase=Phase.ERROR, **failed))
    assert needs_person(row(phase=Phase.DELETING, deleted=True, **failed))
    assert not needs_person(row(phase=Phase.DELETING, deleted=True, purge=True, **failed))
    assert not needs_person(row(phase=Phase.STANDBY, operation=Operation.STARTING, **failed))


def test_a_workspace_is_deleted_only_if_its_owner_asked_for_it() -> None:
    journal = Journal()
    deleted = row(phase=Phase.DELETED, deleted=True)
    assert [*check_existence(deleted, journal)] == ["It is deleted, but nobody asked for that."]
    existence = journal.existence(WORKSPACE)
    request = existence.begin_deletion()
    assert not [*check_existence(deleted, journal), *check_existence(row(), journal)]
    existence.acknowledge_deletion(request, purged=False)
    assert not [*check_existence(deleted, journal)]
    [problem] = check_existence(row(), journal)
    assert problem.startswith("It exists, although")


def test_live_updates_must_match_the_api() -> None:
    actual = {"a": {"phase": "RUNNING", "name": "one"}, "b": {"phase": "STANDBY", "name": "two"}}
    assert not list(compare(actual, actual))
    shown = {"a": {"phase": "STANDBY", "name": "one"}, "c": {"phase": "ARCHIVED", "name": "three"}}
    assert list(compare(shown, actual)) == [
        "c is still shown as ARCHIVED, but it is gone.",
        "b is STANDBY, but no live update said so.",
        "a is shown with phase STANDBY, but it is RUNNING.",
    ]
