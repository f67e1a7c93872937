"""How a person may recover a workspace, and what follows."""

from dataclasses import replace

import pytest

from codehub.domain.conditions import ArchiveFact, ContainerFact, Observation, Reason, Resource, Snapshot
from codehub.domain.planner import plan
from codehub.domain.recovery import (
    HARMLESS,
    RecoverChoice,
    RecoverVerdict,
    choices,
    judge_choice,
    recover,
)
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.domain.transitions import claim, commit_archive, mark_restored, settle
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    NEW_OP,
    NOTHING,
    NOW,
    OLD_KEY,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    VOLUME_ONLY,
    archived,
    new_snapshot,
    observed,
    running,
    standby,
)

VOLUME_LOST = observed(standby(DesiredState.RUNNING), ARCHIVE_ONLY)
ARCHIVE_LOST = observed(archived(DesiredState.RUNNING), NOTHING)
HALF_RESTORED = observed(new_snapshot(key=OLD_KEY), VOLUME_ONLY)
FOR_A_LOST_VOLUME = (RecoverChoice.RETRY, RecoverChoice.RESTORE_ARCHIVE, RecoverChoice.START_EMPTY)


def corrupted(*observations: Observation) -> Snapshot:
    """Return a workspace whose current archive was found damaged by a restore."""
    failed = replace(archived(DesiredState.RUNNING), error_reason=ErrorReason.ARCHIVE_CORRUPTED)
    return observed(failed, *observations or (ARCHIVE_ONLY,))


def test_only_an_error_can_be_recovered() -> None:
    assert choices(running()) == ()
    with pytest.raises(ValueError, match="cannot recover"):
        recover(running(), RecoverChoice.RETRY)


def test_an_ordinary_error_offers_only_retry() -> None:
    failed = observed(replace(standby(), error_reason=ErrorReason.TIMEOUT, error_count=1), VOLUME_AND_ARCHIVE)
    assert choices(failed) == (RecoverChoice.RETRY,)
    recovered = observed(recover(failed, RecoverChoice.RETRY).snapshot, VOLUME_AND_ARCHIVE)
    assert (recovered.phase, recovered.error_reason, recovered.error_count) == (Phase.STANDBY, None, 0)


def test_a_purged_workspace_is_not_recovered() -> None:
    assert choices(replace(VOLUME_LOST, deleted=True, purge=True)) == ()


def test_lost_data_offers_what_still_exists() -> None:
    assert choices(VOLUME_LOST) == FOR_A_LOST_VOLUME
    assert choices(ARCHIVE_LOST) == (RecoverChoice.RETRY, RecoverChoice.START_EMPTY)
    never_archived = observed(new_snapshot(), VOLUME_ONLY, NOTHING)
    assert choices(never_archived) == (RecoverChoice.RETRY, RecoverChoice.START_EMPTY)


@pytest.mark.parametrize("silent", [Resource.CONTAINER, Resource.VOLUME])
def test_a_home_cannot_be_given_up_while_its_provider_is_silent(silent: Resource) -> None:
    assert choices(replace(VOLUME_LOST, unreachable=(silent,))) == (RecoverChoice.RETRY,)


def test_an_archive_cannot_be_given_up_while_its_store_is_silent() -> None:
    assert choices(replace(ARCHIVE_LOST, unreachable=(Resource.ARCHIVE,))) == (RecoverChoice.RETRY,)
    # With a lost volume, the archive may be given up whatever its store reports.
    assert choices(replace(VOLUME_LOST, unreachable=(Resource.ARCHIVE,))) == FOR_A_LOST_VOLUME


@pytest.mark.parametrize(("lost", "found"), [(VOLUME_LOST, VOLUME_AND_ARCHIVE), (ARCHIVE_LOST, ARCHIVE_ONLY)])
def test_files_that_are_back_cannot_be_given_up(lost: Snapshot, found: Observation) -> None:
    back = observed(lost, found)
    assert back.phase is Phase.ERROR
    assert choices(back) == (RecoverChoice.RETRY,)


@pytest.mark.parametrize(
    ("snapshot", "choice", "expected"),
    [
        (VOLUME_LOST, RecoverChoice.START_EMPTY, RecoverVerdict.CARRY_OUT),
        (observed(VOLUME_LOST, OUTAGE), RecoverChoice.START_EMPTY, RecoverVerdict.WAIT),
        (observed(VOLUME_LOST, OUTAGE), RecoverChoice.RETRY, RecoverVerdict.CARRY_OUT),
        (observed(ARCHIVE_LOST, OUTAGE), RecoverChoice.START_EMPTY, RecoverVerdict.WAIT),
        (observed(ARCHIVE_LOST, OUTAGE), RecoverChoice.RESTORE_ARCHIVE, RecoverVerdict.REFUSE),
        (observed(VOLUME_LOST, VOLUME_AND_ARCHIVE), RecoverChoice.RESTORE_ARCHIVE, RecoverVerdict.REFUSE),
        (running(), RecoverChoice.RETRY, RecoverVerdict.REFUSE),
    ],
)
def test_an_earlier_choice_is_judged_by_a_fresh_observation(
    snapshot: Snapshot, choice: RecoverChoice, expected: RecoverVerdict
) -> None:
    assert judge_choice(snapshot, choice) is expected


def test_retry_finds_the_volume_that_was_put_back() -> None:
    recovered = recover(VOLUME_LOST, RecoverChoice.RETRY)
    assert not recovered.remove_container
    assert observed(recovered.snapshot, VOLUME_AND_ARCHIVE).phase is Phase.STANDBY


def test_retry_does_not_take_an_older_archive_for_the_lost_volume() -> None:
    recovered = recover(VOLUME_LOST, RecoverChoice.RETRY).snapshot
    assert observed(recovered, ARCHIVE_ONLY).error_reason is ErrorReason.DATA_LOST


def test_restore_archive_restores_the_last_archive_from_the_start() -> None:
    recovery = recover(VOLUME_LOST, RecoverChoice.RESTORE_ARCHIVE)
    assert recovery.remove_container
    judged = observed(recovery.snapshot, ARCHIVE_ONLY)
    assert (judged.phase, judged.restore_marker) == (Phase.ARCHIVED, None)
    assert plan(judged).operation is Operation.RESTORING


def test_start_empty_gives_the_archive_up() -> None:
    judged = observed(recover(ARCHIVE_LOST, RecoverChoice.START_EMPTY).snapshot, NOTHING)
    assert (judged.phase, judged.archive_key) == (Phase.PENDING, None)
    assert plan(judged).operation is Operation.PROVISIONING


@pytest.mark.parametrize("broken", [HALF_RESTORED, corrupted(VOLUME_AND_ARCHIVE)])
def test_a_half_restored_volume_is_not_taken_for_an_empty_home(broken: Snapshot) -> None:
    observation = VOLUME_AND_ARCHIVE
    judged = observed(recover(broken, RecoverChoice.START_EMPTY).snapshot, observation)
    assert (judged.phase, judged.archive_key) == (Phase.PENDING, None)
    assert not judged.conditions.volume_ready.is_true
    # An empty archive is created, then restored over the volume.
    assert plan(judged).operation is Operation.CREATE_EMPTY_ARCHIVE
    parked = observed(commit_archive(claim(judged, Operation.CREATE_EMPTY_ARCHIVE, NEW_OP)), observation)
    settled = settle(parked, NOW, 0).snapshot
    assert (settled.phase, settled.archive_key) == (Phase.ARCHIVED, NEW_KEY)
    assert plan(settled).operation is Operation.RESTORING
    restored = observed(mark_restored(claim(settled, Operation.RESTORING, NEW_OP)), observation)
    assert restored.phase is Phase.STANDBY


def test_start_empty_also_works_for_a_workspace_that_should_not_run() -> None:
    broken = replace(corrupted(VOLUME_AND_ARCHIVE), desired_state=DesiredState.ARCHIVED)
    judged = observed(recover(broken, RecoverChoice.START_EMPTY).snapshot, VOLUME_AND_ARCHIVE)
    assert plan(judged).operation is Operation.CREATE_EMPTY_ARCHIVE


@pytest.mark.parametrize("broken", [HALF_RESTORED, corrupted(VOLUME_AND_ARCHIVE)])
def test_what_is_left_on_the_disk_becomes_the_home_only_if_a_person_chooses_it(broken: Snapshot) -> None:
    assert RecoverChoice.USE_DISK in choices(broken)
    judged = observed(recover(broken, RecoverChoice.USE_DISK).snapshot, VOLUME_ONLY)
    assert (judged.phase, judged.archive_key) == (Phase.STANDBY, None)


def test_a_damaged_archive_offers_the_others_and_an_empty_home() -> None:
    assert choices(corrupted()) == (RecoverChoice.RETRY, RecoverChoice.START_EMPTY)
    assert choices(corrupted(), has_other_archives=True) == FOR_A_LOST_VOLUME
    leftover = corrupted(VOLUME_AND_ARCHIVE)
    everything = tuple(each for each in RecoverChoice if each is not RecoverChoice.WAIT)
    assert choices(leftover, has_other_archives=True) == everything


def test_a_damaged_archive_that_is_gone_offers_the_others() -> None:
    gone = corrupted(NOTHING)
    assert gone.error_reason is ErrorReason.DATA_LOST
    assert choices(gone, has_other_archives=True) == FOR_A_LOST_VOLUME


def test_a_complete_home_is_not_given_up_for_a_damaged_archive() -> None:
    failed = replace(standby(DesiredState.ARCHIVED), error_reason=ErrorReason.ARCHIVE_CORRUPTED)
    assert choices(observed(failed, VOLUME_AND_ARCHIVE), has_other_archives=True) == (RecoverChoice.RETRY,)


@pytest.mark.parametrize("silent", [Resource.CONTAINER, Resource.VOLUME])
def test_a_damaged_archive_cannot_be_given_up_while_the_disk_is_unreachable(silent: Resource) -> None:
    unseen = replace(corrupted(), unreachable=(silent,))
    assert choices(unseen, has_other_archives=True) == (RecoverChoice.RETRY,)
    assert judge_choice(unseen, RecoverChoice.RESTORE_ARCHIVE, ArchiveFact.PRESENT) is RecoverVerdict.WAIT


@pytest.mark.parametrize("broken", [VOLUME_LOST, corrupted(), corrupted(VOLUME_AND_ARCHIVE)])
def test_an_archive_that_a_person_names_is_restored_instead_of_the_current_one(broken: Snapshot) -> None:
    recovery = recover(broken, RecoverChoice.RESTORE_ARCHIVE, NEW_KEY)
    assert recovery.remove_container
    assert recovery.keep_archives
    judged = observed(recovery.snapshot, ARCHIVE_ONLY)
    assert (judged.phase, judged.archive_key, judged.restore_marker) == (Phase.ARCHIVED, NEW_KEY, None)
    assert plan(judged).operation is Operation.RESTORING


def test_a_damaged_archive_is_not_restored_without_naming_another() -> None:
    assert judge_choice(corrupted(), RecoverChoice.RESTORE_ARCHIVE) is RecoverVerdict.REFUSE
    with pytest.raises(ValueError, match="cannot recover"):
        recover(corrupted(), RecoverChoice.RESTORE_ARCHIVE)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (ArchiveFact.PRESENT, RecoverVerdict.CARRY_OUT),
        (ArchiveFact.UNREACHABLE, RecoverVerdict.WAIT),
        (ArchiveFact.ABSENT, RecoverVerdict.REFUSE),
    ],
)
def test_an_archive_that_a_person_names_must_exist(named: ArchiveFact, expected: RecoverVerdict) -> None:
    assert judge_choice(corrupted(), RecoverChoice.RESTORE_ARCHIVE, named) is expected


def test_every_choice_that_gives_something_up_keeps_the_other_archives() -> None:
    broken = corrupted(VOLUME_AND_ARCHIVE)
    kept = {each: recover(broken, each, NEW_KEY).keep_archives for each in RecoverChoice}
    assert kept == {each: each not in HARMLESS for each in RecoverChoice}


def test_a_stray_container_is_removed_by_retry() -> None:
    stray = observed(archived(), replace(ARCHIVE_ONLY, container=ContainerFact.READY))
    assert stray.error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME
    assert recover(stray, RecoverChoice.RETRY).remove_container


def test_accepting_a_loss_leaves_an_existing_volume_alone() -> None:
    accepted = recover(ARCHIVE_LOST, RecoverChoice.START_EMPTY).snapshot
    assert accepted.conditions.volume_ready.reason == Reason.ABSENT
