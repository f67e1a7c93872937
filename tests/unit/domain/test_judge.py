"""From observations to conditions and phases: the full matrix, and the rules that protect data."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from codehub.domain.conditions import (
    ArchiveFact,
    ContainerFact,
    Observation,
    Reason,
    Resource,
    Snapshot,
    Status,
    VolumeFact,
)
from codehub.domain.judge import judge
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from tests.unit.domain.builders import (
    ALL_RUNNING,
    ARCHIVE_ONLY,
    NEW_KEY,
    NOTHING,
    NOW,
    OLD_KEY,
    OUTAGE,
    VOLUME_AND_ARCHIVE,
    VOLUME_ONLY,
    archived,
    new_snapshot,
    observed,
    pending,
    running,
    standby,
)

CONTAINERS = [
    ContainerFact.ABSENT,
    ContainerFact.NOT_READY,
    ContainerFact.UNHEALTHY,
    ContainerFact.READY,
]
VOLUMES = [VolumeFact.ABSENT, VolumeFact.PRESENT]
ARCHIVES = [ArchiveFact.ABSENT, ArchiveFact.PRESENT]
KEYS_AND_MARKERS = [(None, None), (OLD_KEY, None), (OLD_KEY, OLD_KEY), (OLD_KEY, NEW_KEY)]


def expected_first_phase(
    observation: Observation, key: str | None, marker: str | None
) -> Phase | ErrorReason:
    """Return the phase by the table in docs/contract.md, for a workspace that was never observed."""
    complete = observation.volume is VolumeFact.PRESENT and marker == key
    if key and not complete and observation.archive is ArchiveFact.ABSENT:
        return ErrorReason.DATA_LOST
    if observation.container is not ContainerFact.ABSENT and not complete:
        return ErrorReason.CONTAINER_WITHOUT_VOLUME
    if complete:
        return Phase.RUNNING if observation.container is ContainerFact.READY else Phase.STANDBY
    return Phase.ARCHIVED if key else Phase.PENDING


@pytest.mark.parametrize(
    ("container", "volume", "archive", "key_and_marker"),
    list(product(CONTAINERS, VOLUMES, ARCHIVES, KEYS_AND_MARKERS)),
)
def test_phase_follows_from_the_observation(
    container: ContainerFact,
    volume: VolumeFact,
    archive: ArchiveFact,
    key_and_marker: tuple[str | None, str | None],
) -> None:
    key, marker = key_and_marker
    observation = Observation(container, volume, archive)
    judged = judge(new_snapshot(key=key, marker=marker), observation, NOW)
    expected = expected_first_phase(observation, key, marker)
    if isinstance(expected, ErrorReason):
        assert (judged.phase, judged.error_reason) == (Phase.ERROR, expected)
        assert judged.operation is Operation.NONE
    else:
        assert (judged.phase, judged.error_reason) == (expected, None)


@pytest.mark.parametrize("purge", [True, False])
@pytest.mark.parametrize(("container", "volume"), list(product(CONTAINERS, VOLUMES)))
def test_a_deleted_workspace_is_deleting_until_container_and_volume_are_gone(
    container: ContainerFact, volume: VolumeFact, purge: bool
) -> None:
    snapshot = new_snapshot(DesiredState.DELETED, deleted=True, purge=purge)
    judged = judge(snapshot, Observation(container, volume, ArchiveFact.ABSENT), NOW)
    gone = container is ContainerFact.ABSENT and volume is VolumeFact.ABSENT
    assert judged.phase is (Phase.DELETED if gone else Phase.DELETING)


def test_a_workspace_is_not_deleted_before_its_volume_was_observed() -> None:
    judged = observed(new_snapshot(DesiredState.DELETED, deleted=True), OUTAGE)
    assert judged.phase is Phase.DELETING


@pytest.mark.parametrize("before", [pending(), archived(), standby(), running()], ids=lambda s: s.phase)
def test_an_outage_of_every_provider_changes_nothing(before: Snapshot) -> None:
    after = judge(before, OUTAGE, NOW + timedelta(days=1))
    assert replace(after, unreachable=()) == before
    assert after.unreachable == (Resource.CONTAINER, Resource.VOLUME, Resource.ARCHIVE)


def test_an_outage_before_the_first_observation_leaves_everything_unknown() -> None:
    judged = observed(new_snapshot(key=OLD_KEY), OUTAGE)
    assert judged.conditions.volume_ready.status is Status.UNKNOWN
    assert judged.conditions.archive_ready.status is Status.UNKNOWN
    assert judged.conditions.container_ready.status is Status.UNKNOWN
    assert judged.phase is Phase.ARCHIVED


def test_a_half_restored_volume_does_not_count_as_ready() -> None:
    judged = observed(new_snapshot(key=NEW_KEY, marker=OLD_KEY), VOLUME_AND_ARCHIVE)
    assert judged.phase is Phase.ARCHIVED
    assert judged.conditions.volume_ready.reason == Reason.INCOMPLETE


def test_a_committed_key_makes_the_volume_a_leftover_even_while_the_provider_is_silent() -> None:
    committed = replace(standby(), archive_key=NEW_KEY)
    assert observed(committed, OUTAGE).conditions.volume_ready.reason == Reason.INCOMPLETE


def test_a_vanished_archive_is_data_lost_and_never_pending() -> None:
    judged = observed(archived(), NOTHING)
    assert (judged.phase, judged.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)


def test_a_vanished_archive_with_a_complete_volume_is_not_an_error() -> None:
    assert observed(standby(), VOLUME_ONLY).phase is Phase.STANDBY


def test_an_archive_that_was_not_observed_is_unknown_once_its_key_is_set() -> None:
    keyed = replace(pending(), archive_key=NEW_KEY)
    assert observed(keyed, OUTAGE).conditions.archive_ready.status is Status.UNKNOWN


@pytest.mark.parametrize("before", [standby(), running()], ids=lambda s: s.phase)
def test_a_vanished_volume_is_data_lost_even_where_an_older_archive_exists(before: Snapshot) -> None:
    judged = observed(before, ARCHIVE_ONLY)
    assert (judged.phase, judged.error_reason) == (Phase.ERROR, ErrorReason.DATA_LOST)


@pytest.mark.parametrize("operation", set(Operation) - {Operation.NONE})
def test_a_volume_that_vanishes_during_an_operation_ends_it(operation: Operation) -> None:
    judged = observed(replace(standby(), operation=operation), ARCHIVE_ONLY)
    assert judged.error_reason is ErrorReason.DATA_LOST
    assert judged.operation is Operation.NONE


def test_a_volume_may_go_once_its_archive_is_committed() -> None:
    archiving = replace(standby(), operation=Operation.ARCHIVING, archive_key=NEW_KEY)
    judged = observed(archiving, ARCHIVE_ONLY)
    assert (judged.phase, judged.operation) == (Phase.ARCHIVED, Operation.ARCHIVING)


def test_a_loss_is_remembered_until_the_volume_is_observed_again() -> None:
    lost = observed(standby(), ARCHIVE_ONLY, OUTAGE, ARCHIVE_ONLY)
    assert lost.conditions.volume_ready.reason == Reason.VANISHED
    back = observed(replace(lost, error_reason=None), VOLUME_AND_ARCHIVE)
    assert back.phase is Phase.STANDBY


def test_a_purge_takes_the_volume_without_an_error_and_keeps_its_operation() -> None:
    purging = replace(standby(DesiredState.DELETED), deleted=True, purge=True, operation=Operation.DELETING)
    judged = observed(purging, NOTHING)
    assert (judged.phase, judged.error_reason) == (Phase.DELETED, None)
    broken = replace(purging, error_reason=ErrorReason.TIMEOUT)
    assert observed(broken, VOLUME_ONLY).operation is Operation.DELETING


def test_a_container_without_its_complete_volume_is_an_error() -> None:
    judged = observed(archived(), replace(VOLUME_AND_ARCHIVE, container=ContainerFact.NOT_READY))
    assert judged.error_reason is ErrorReason.CONTAINER_WITHOUT_VOLUME


@pytest.mark.parametrize("reason", [ErrorReason.ACTION_FAILED, ErrorReason.UNREACHABLE])
def test_an_error_that_is_being_retried_is_not_an_error_phase(reason: ErrorReason) -> None:
    judged = observed(
        replace(standby(), error_reason=reason, operation=Operation.STARTING), VOLUME_AND_ARCHIVE
    )
    assert (judged.phase, judged.operation) == (Phase.STANDBY, Operation.STARTING)


def test_a_recorded_terminal_error_stays_and_keeps_its_message() -> None:
    failed = replace(standby(), error_reason=ErrorReason.TIMEOUT, error_message="Took 5 minutes.")
    judged = observed(failed, VOLUME_AND_ARCHIVE, ALL_RUNNING)
    assert (judged.phase, judged.error_message) == (Phase.ERROR, "Took 5 minutes.")
    assert judged.conditions.healthy.reason == ErrorReason.TIMEOUT


def test_a_transition_time_changes_only_with_the_status() -> None:
    later = NOW + timedelta(hours=1)
    again = judge(running(), ALL_RUNNING, later)
    assert again.conditions.container_ready.last_transition_time == NOW
    crashed = judge(again, replace(ALL_RUNNING, container=ContainerFact.NOT_READY), later)
    assert crashed.conditions.container_ready.last_transition_time == later
    removed = judge(crashed, VOLUME_AND_ARCHIVE, later + timedelta(hours=1))
    assert removed.conditions.container_ready.last_transition_time == later


@pytest.mark.parametrize(
    "silent", [{"container": ContainerFact.UNREACHABLE}, {"volume": VolumeFact.UNREACHABLE}]
)
@pytest.mark.parametrize("purge", [True, False])
def test_a_deletion_is_finished_only_after_both_providers_reported_it(
    silent: dict[str, Any], purge: bool
) -> None:
    deleted = replace(pending(DesiredState.DELETED), deleted=True, purge=purge)
    unsure = judge(deleted, replace(NOTHING, **silent), NOW)
    assert unsure.phase is Phase.DELETING
    over = judge(unsure, NOTHING, NOW)
    assert over.phase is Phase.DELETED
    # What was gone stays gone while the providers are silent.
    assert judge(over, OUTAGE, NOW).phase is Phase.DELETED


def test_a_restore_into_a_volume_that_is_gone_does_not_count_for_the_next_volume() -> None:
    """A worker dies after it stored the marker, and the volume is lost: a new partial one is not complete."""
    marked = replace(archived(DesiredState.RUNNING), operation=Operation.RESTORING)
    marked = replace(marked, restore_marker=marked.archive_key)
    partial = observed(observed(marked, ARCHIVE_ONLY), VOLUME_AND_ARCHIVE)
    assert partial.conditions.volume_ready.reason == Reason.INCOMPLETE
    assert partial.phase is Phase.ARCHIVED


def test_a_finished_restore_is_remembered_while_its_volume_is_unreachable() -> None:
    marked = replace(archived(DesiredState.RUNNING), operation=Operation.RESTORING)
    marked = replace(marked, restore_marker=marked.archive_key)
    assert observed(marked, OUTAGE).restore_marker == marked.archive_key
