"""Those who look on: each sees what is wrong, and nothing where all is right."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from codehub.domain.garbage import GracePeriods
from codehub.domain.limits import RunningLimits
from codehub.domain.naming import archive_key, meta_key
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from gameday.checks.api import compare
from gameday.checks.archives import ArchiveWatch, committed_of, unneeded_of
from gameday.checks.convergence import is_stopped
from gameday.checks.findings import Findings, Invariant
from gameday.checks.homes import check_fate
from gameday.checks.orphans import misfits
from gameday.checks.watcher import PATIENCE, OutageWatch, check_limits, find_locked_out
from gameday.people.journal import Journal
from tests.gameday.histories import BEGAN, WORKSPACE, row

OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
OLD_KEY, NEW_KEY = archive_key(WORKSPACE, OLD), archive_key(WORKSPACE, NEW)
GRACES = GracePeriods(orphan=timedelta(seconds=30), undelete=timedelta(seconds=40))


def test_what_goes_on_being_wrong_is_said_once_and_counted_each_time() -> None:
    findings = Findings(lambda: 7.0)
    for _ in range(3):
        findings.note(Invariant.LIMITS, ["Three run."], None)
    assert [each.at for each in findings.violations] == [7.0]
    assert findings.checked[Invariant.LIMITS] == 3


def test_limits_count_what_runs_and_what_shall_run_also_while_it_is_deleted() -> None:
    deleted = {"phase": Phase.DELETING, "desired_state": DesiredState.DELETED, "deleted": True}
    rows = [
        row(phase=Phase.RUNNING),
        row(desired_state=DesiredState.RUNNING),
        row(**deleted),
        row(owner_id="bob", container_exists=True, **deleted),
    ]
    assert not list(check_limits(rows, RunningLimits(2, 3)))
    [own] = check_limits(rows, RunningLimits(1, 3))
    assert "ada has 2" in own
    [total] = check_limits(rows, RunningLimits(2, 2))
    assert total.startswith("3 workspaces")


def test_whoever_holds_a_claim_through_a_long_outage_locks_its_owner_out() -> None:
    late = BEGAN + PATIENCE
    uploading = row(operation=Operation.ARCHIVING, volume_is_complete=True, claimed_at=BEGAN)
    [found] = find_locked_out([uploading], late)
    assert found.workspace_id == WORKSPACE
    allowed = (
        replace(uploading, claimed_at=late),
        replace(uploading, volume_is_complete=False),
        replace(uploading, operation=Operation.NONE, claimed_at=None),
    )
    assert not list(find_locked_out(allowed, late))


def test_an_outage_is_long_only_without_a_break() -> None:
    watch = OutageWatch()
    assert not watch.notice(BEGAN, only_s3_is_away=True)
    assert not watch.notice(BEGAN + PATIENCE, only_s3_is_away=False)
    assert not watch.notice(BEGAN + PATIENCE, only_s3_is_away=True)
    assert watch.notice(BEGAN + 2 * PATIENCE, only_s3_is_away=True)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def test_an_archive_counts_once_its_meta_is_there() -> None:
    assert committed_of({OLD_KEY, meta_key(OLD_KEY), NEW_KEY}) == {OLD_KEY}


def test_an_archive_that_a_row_names_must_be_there() -> None:
    named = row(phase=Phase.ARCHIVED, archive_key=OLD_KEY)
    [loss] = ArchiveWatch(GRACES).look([named], set(), after(0.0))
    assert (loss.workspace_id, loss.key) == (WORKSPACE, OLD_KEY)
    assert not list(ArchiveWatch(GRACES).look([named], {OLD_KEY}, after(0.0)))


def test_the_last_archive_of_a_deleted_workspace_must_be_there_while_it_can_come_back() -> None:
    gone = row(phase=Phase.DELETED, deleted=True, deleted_at=BEGAN, archive_key=OLD_KEY)
    assert len(list(ArchiveWatch(GRACES).look([gone], set(), after(39.0)))) == 1
    assert not list(ArchiveWatch(GRACES).look([gone], set(), after(40.0)))
    purged = replace(gone, purge=True)
    assert not list(ArchiveWatch(GRACES).look([purged], set(), after(0.0)))


@pytest.mark.parametrize(("removed_at", "losses"), [(5.0, 1), (17.0, 1), (19.0, 0)])
def test_an_archive_that_was_just_needed_must_not_vanish(removed_at: float, losses: int) -> None:
    watch = ArchiveWatch(GRACES)
    assert not list(watch.look([row(archive_key=OLD_KEY)], {OLD_KEY}, after(0.0)))
    replaced = row(archive_key=NEW_KEY)
    assert not list(watch.look([replaced], {OLD_KEY, NEW_KEY}, after(1.0)))
    assert len(list(watch.look([replaced], {NEW_KEY}, after(removed_at)))) == losses


@pytest.mark.parametrize("phase", [Phase.ERROR, Phase.STANDBY])
def test_an_error_that_is_over_does_not_start_a_grace_anew(phase: Phase) -> None:
    watch = ArchiveWatch(GRACES)
    assert not list(watch.look([row(archive_key=OLD_KEY)], {OLD_KEY}, after(0.0)))
    failing = row(phase=phase, archive_key=NEW_KEY, error_reason=ErrorReason.ACTION_FAILED)
    assert not list(watch.look([failing], {OLD_KEY, NEW_KEY}, after(25.0)))
    assert not list(watch.look([row(archive_key=NEW_KEY)], {NEW_KEY}, after(31.0)))


def test_only_what_nothing_needs_is_garbage() -> None:
    objects = {OLD_KEY, meta_key(OLD_KEY), NEW_KEY, meta_key(NEW_KEY), "archives/unknown"}
    assert unneeded_of(objects, [row(archive_key=NEW_KEY)], BEGAN, GRACES) == {OLD_KEY, "archives/unknown"}
    # Half an upload of the operation that goes on is needed, too.
    assert unneeded_of({OLD_KEY}, [row(archive_op_id=OLD)], BEGAN, GRACES) == set()


@pytest.mark.parametrize(
    ("changes", "volumes", "instances", "words"),
    [
        ({}, {WORKSPACE}, {}, None),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {WORKSPACE: ["7"]}, None),
        ({"phase": Phase.ARCHIVED}, set(), {}, None),
        ({"phase": Phase.ERROR, "error_reason": ErrorReason.TIMEOUT}, {WORKSPACE}, {WORKSPACE: ["7"]}, None),
        ({"phase": Phase.ARCHIVED}, {WORKSPACE}, {}, "there is a volume"),
        ({"phase": Phase.DELETED}, {WORKSPACE}, {}, "there is a volume"),
        ({}, set(), {}, "there is no volume"),
        ({}, {WORKSPACE}, {WORKSPACE: ["7"]}, "there is an instance (7)"),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {}, "0 instances"),
        ({"phase": Phase.RUNNING}, {WORKSPACE}, {WORKSPACE: ["7", "8"]}, "2 instances"),
    ],
)
def test_what_is_there_must_fit_to_the_phase(
    changes: dict[str, Any], volumes: set[str], instances: dict[str, list[str]], words: str | None
) -> None:
    found = [problem for _, problem in misfits([row(**changes)], volumes, instances)]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_a_workspace_waits_for_a_person_only_with_an_error_and_no_operation() -> None:
    failed = {"error_reason": ErrorReason.RETRY_EXCEEDED}
    assert is_stopped(row(phase=Phase.ERROR, **failed))
    assert is_stopped(row(phase=Phase.DELETING, deleted=True, **failed))
    assert not is_stopped(row(phase=Phase.DELETING, deleted=True, purge=True, **failed))
    assert not is_stopped(row(phase=Phase.STANDBY, operation=Operation.STARTING, **failed))


def test_a_workspace_is_gone_only_if_its_owner_said_so() -> None:
    journal = Journal()
    deleted = row(phase=Phase.DELETED, deleted=True)
    assert [*check_fate(deleted, journal)] == ["It is deleted, although nobody asked for that."]
    fate = journal.fate(WORKSPACE)
    number = fate.ask_deletion()
    assert not [*check_fate(deleted, journal), *check_fate(row(), journal)]
    fate.acknowledge_deletion(number, purged=False)
    assert not [*check_fate(deleted, journal)]
    [back] = check_fate(row(), journal)
    assert back.startswith("It is back")


def test_followers_must_know_every_workspace_as_it_is() -> None:
    true = {"a": {"phase": "RUNNING", "name": "one"}, "b": {"phase": "STANDBY", "name": "two"}}
    assert not list(compare(true, true))
    told = {"a": {"phase": "STANDBY", "name": "one"}, "c": {"phase": "ARCHIVED", "name": "three"}}
    assert list(compare(told, true)) == [
        "c is still shown as ARCHIVED, but it is gone.",
        "b is STANDBY, but nobody was told of it.",
        "a is shown with phase STANDBY, but it is RUNNING.",
    ]
