"""A home on a lost node: it is out of reach but not lost, and a person may wait or go back to the archive."""

from dataclasses import replace
from datetime import timedelta

import pytest

from codehub.domain.attention import LifecycleState
from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    LostNode,
    Observation,
    Resource,
    Snapshot,
    Status,
    VolumeFact,
)
from codehub.domain.failures import OutOfReach, within_reach
from codehub.domain.judge import judge
from codehub.domain.planner import Decision, note_waiting, plan
from codehub.domain.recovery import (
    RecoverChoice,
    RecoverVerdict,
    choices,
    judge_choice,
    must_set_aside,
    note_obstacle,
    recover,
)
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.unit.domain.builders import (
    ARCHIVE_ONLY,
    NEW_KEY,
    NOTHING,
    NOW,
    OLD_KEY,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    new_snapshot,
    observed,
    running,
    standby,
)

SINCE = NOW - timedelta(hours=2)
NODE_LOST = replace(
    ARCHIVE_ONLY, volume=VolumeFact.UNREACHABLE, lost_node=LostNode("On a disk of node1.", SINCE)
)
NODE_LOST_WITHOUT_ARCHIVE = replace(NODE_LOST, archive=ArchiveFact.ABSENT)
OUT_OF_REACH = observed(standby(DesiredState.RUNNING), NODE_LOST)
# A restore was cut off by the loss of the node.
HALF_RESTORED = observed(new_snapshot(key=OLD_KEY), VOLUME_AND_ARCHIVE, NODE_LOST)
NEVER_ARCHIVED = observed(new_snapshot(), replace(NOTHING, volume=VolumeFact.PRESENT), NODE_LOST)
RESTORE = RecoverChoice.RESTORE_ARCHIVE


def test_a_home_on_a_lost_node_is_neither_lost_nor_usable() -> None:
    assert OUT_OF_REACH.phase is Phase.STANDBY
    assert OUT_OF_REACH.conditions.volume_ready.is_true
    assert OUT_OF_REACH.error_reason is None
    assert plan(OUT_OF_REACH).decision is Decision.WAIT
    assert note_waiting(OUT_OF_REACH, NOW).waiting_for == (Resource.VOLUME,)


def test_the_condition_says_since_when_as_the_provider_knows() -> None:
    reach = OUT_OF_REACH.conditions.volume_reachable
    assert (reach.status, reach.message) == (Status.FALSE, "On a disk of node1.")
    assert reach.last_transition_time == SINCE


def test_a_node_that_left_the_cluster_is_lost_since_it_stopped_responding() -> None:
    removed = replace(NODE_LOST, lost_node=LostNode("node1 is gone.", None))
    assert observed(OUT_OF_REACH, removed).conditions.volume_reachable.last_transition_time == SINCE
    unseen = judge(standby(), removed, NOW)
    assert unseen.conditions.volume_reachable.last_transition_time == NOW


def test_an_outage_says_nothing_about_the_node() -> None:
    assert observed(OUT_OF_REACH, OUTAGE).conditions.home_is_out_of_reach
    assert not observed(standby(), OUTAGE).conditions.home_is_out_of_reach


@pytest.mark.parametrize("seen", [VOLUME_AND_ARCHIVE, ARCHIVE_ONLY])
def test_a_node_that_is_back_ends_it(seen: Observation) -> None:
    back = observed(OUT_OF_REACH, seen)
    assert not back.conditions.home_is_out_of_reach
    assert RecoverChoice.WAIT not in choices(back)


def test_everything_continues_when_the_node_is_back() -> None:
    back = observed(OUT_OF_REACH, VOLUME_AND_ARCHIVE)
    assert (plan(back).decision, plan(back).operation) == (Decision.RUN, Operation.STARTING)
    assert choices(back) == ()


def test_the_choices_are_to_wait_and_the_last_archive_if_there_is_one() -> None:
    assert choices(OUT_OF_REACH, has_other_archives=True) == (RecoverChoice.WAIT, RESTORE)
    assert choices(HALF_RESTORED) == (RecoverChoice.WAIT, RESTORE)
    assert choices(NEVER_ARCHIVED, has_other_archives=True) == (RecoverChoice.WAIT,)
    gone = observed(standby(), replace(VOLUME_AND_ARCHIVE, archive=ArchiveFact.ABSENT), NODE_LOST)
    assert choices(replace(gone, archive_key=None)) == (RecoverChoice.WAIT,)
    assert choices(replace(OUT_OF_REACH, deleted=True, purge=True)) == ()


def test_an_error_of_a_workspace_on_a_lost_node_has_the_same_choices() -> None:
    failed = observed(replace(OUT_OF_REACH, error_reason=ErrorReason.RETRY_EXCEEDED), NODE_LOST)
    assert failed.phase is Phase.ERROR
    assert choices(failed) == (RecoverChoice.WAIT, RESTORE)
    waiting = observed(recover(failed, RecoverChoice.WAIT).snapshot, NODE_LOST)
    assert (waiting.phase, waiting.error_reason) == (Phase.STANDBY, None)


@pytest.mark.parametrize("choice", [RecoverChoice.WAIT, RecoverChoice.RETRY])
def test_waiting_gives_nothing_up(choice: RecoverChoice) -> None:
    assert judge_choice(OUT_OF_REACH, choice) is RecoverVerdict.CARRY_OUT
    recovery = recover(OUT_OF_REACH, choice)
    assert recovery.snapshot == OUT_OF_REACH
    assert (recovery.remove_container, recovery.keep_archives) == (False, False)
    assert not must_set_aside(OUT_OF_REACH, choice)


def test_waiting_is_carried_out_also_if_the_node_is_back() -> None:
    assert judge_choice(running(), RecoverChoice.WAIT) is RecoverVerdict.CARRY_OUT
    assert recover(running(), RecoverChoice.WAIT).snapshot == running()


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (NODE_LOST, True),
        (replace(NODE_LOST, container=ContainerFact.NOT_READY), True),
        (NODE_LOST_WITHOUT_ARCHIVE, False),
        (replace(NODE_LOST, archive=ArchiveFact.UNREACHABLE), False),
        (replace(NODE_LOST, container=ContainerFact.UNREACHABLE), False),
        (VOLUME_AND_ARCHIVE, False),
        (OUTAGE, False),
    ],
)
def test_a_home_is_set_aside_only_for_an_archive_that_was_just_seen(
    seen: Observation, expected: bool
) -> None:
    assert must_set_aside(observed(OUT_OF_REACH, seen), RESTORE) is expected


def test_a_home_is_not_set_aside_for_an_archive_of_unknown_state() -> None:
    forgotten = replace(OUT_OF_REACH.conditions, archive_ready=new_snapshot().conditions.archive_ready)
    assert not must_set_aside(replace(OUT_OF_REACH, conditions=forgotten), RESTORE)


@pytest.mark.parametrize("snapshot", [OUT_OF_REACH, HALF_RESTORED])
def test_the_archive_waits_until_the_volume_is_set_aside(snapshot: Snapshot) -> None:
    assert judge_choice(snapshot, RESTORE) is RecoverVerdict.WAIT
    with pytest.raises(ValueError, match="cannot recover"):
        recover(snapshot, RESTORE)
    # Set aside: the claim is gone.
    gone = observed(snapshot, ARCHIVE_ONLY)
    assert judge_choice(gone, RESTORE) is RecoverVerdict.CARRY_OUT
    recovered = observed(recover(gone, RESTORE).snapshot, ARCHIVE_ONLY)
    assert (recovered.phase, recovered.archive_key, recovered.error_reason) == (Phase.ARCHIVED, OLD_KEY, None)
    assert plan(recovered).operation is Operation.RESTORING


def test_a_failed_restore_on_a_lost_node_can_be_repeated_elsewhere() -> None:
    failed = observed(replace(HALF_RESTORED, error_reason=ErrorReason.RETRY_EXCEEDED), NODE_LOST)
    gone = observed(failed, ARCHIVE_ONLY)
    recovered = observed(recover(gone, RESTORE).snapshot, ARCHIVE_ONLY)
    assert (recovered.phase, recovered.error_reason) == (Phase.ARCHIVED, None)


def test_a_crash_after_the_volume_was_set_aside_leaves_a_loss_that_a_person_decides() -> None:
    gone = observed(OUT_OF_REACH, ARCHIVE_ONLY)
    assert gone.error_reason is ErrorReason.DATA_LOST
    assert choices(gone) == (RecoverChoice.RETRY, RESTORE, RecoverChoice.START_EMPTY)


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        (RESTORE, ArchiveFact.PRESENT),
        (RecoverChoice.START_EMPTY, None),
        (RecoverChoice.USE_DISK, None),
    ],
)
def test_other_choices_are_refused_while_the_node_is_lost(
    choice: RecoverChoice, named: ArchiveFact | None
) -> None:
    assert judge_choice(OUT_OF_REACH, choice, named) is RecoverVerdict.REFUSE


def test_an_archive_that_is_gone_is_refused() -> None:
    gone = observed(OUT_OF_REACH, NODE_LOST_WITHOUT_ARCHIVE)
    assert judge_choice(gone, RESTORE) is RecoverVerdict.REFUSE


def test_a_named_archive_is_not_taken_for_the_current_one() -> None:
    gone = observed(HALF_RESTORED, ARCHIVE_ONLY)
    assert judge_choice(gone, RESTORE, ArchiveFact.PRESENT) is RecoverVerdict.REFUSE
    with pytest.raises(ValueError, match="cannot recover"):
        recover(gone, RESTORE, NEW_KEY)


def test_a_purge_is_not_recovered_by_an_archive() -> None:
    purged = replace(observed(HALF_RESTORED, ARCHIVE_ONLY), deleted=True, purge=True)
    assert judge_choice(purged, RESTORE) is RecoverVerdict.REFUSE


def test_an_obstacle_is_told_beside_the_node() -> None:
    told = note_obstacle(OUT_OF_REACH, "The instance does not end.")
    message = told.conditions.volume_reachable.message
    assert message == "On a disk of node1. The instance does not end."
    assert observed(told, NODE_LOST).conditions.volume_reachable.message == "On a disk of node1."


def test_the_failures_say_what_happened() -> None:
    lost = OutOfReach("On a disk of node1.", SINCE)
    assert (lost.reason, lost.message, lost.since) == (ErrorReason.UNREACHABLE, "On a disk of node1.", SINCE)
    assert within_reach().reason is ErrorReason.ACTION_FAILED


def state(**changes: object) -> LifecycleState:
    waiting = LifecycleState(
        Phase.STANDBY, Operation.NONE, DesiredState.RUNNING, waiting=True, out_of_reach=True
    )
    return replace(waiting, **changes)  # type: ignore[arg-type]


def test_a_lost_node_offers_a_choice_but_needs_nobody() -> None:
    assert state().can_recover
    assert not state().needs_person
    assert state(recovering=True).can_recover
    assert state(phase=Phase.ERROR, error_reason=ErrorReason.TIMEOUT, out_of_reach=False).can_recover
    assert not state(out_of_reach=False).can_recover
    assert not state(operation=Operation.STARTING).can_recover
    assert not state(deleted=True, purge=True).can_recover
    assert not state(phase=Phase.DELETED, deleted=True).can_recover
