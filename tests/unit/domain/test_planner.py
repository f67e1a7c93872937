"""The matrix of phase, desired state, archive and marker, and what waits, halts or is resumed."""

from dataclasses import replace
from itertools import product

import pytest

from codehub.domain.conditions import ArchiveFact, ContainerFact, Observation, Resource, Snapshot, VolumeFact
from codehub.domain.judge import judge
from codehub.domain.planner import NEEDS, NEXT_OPERATION, Decision, Plan, plan
from codehub.domain.states import DESIRED_LEVELS, LEVELS, DesiredState, ErrorReason, Operation, Phase
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

WANTED = [DesiredState.RUNNING, DesiredState.STANDBY, DesiredState.ARCHIVED]
BY_PHASE = {Phase.PENDING: pending, Phase.ARCHIVED: archived, Phase.STANDBY: standby, Phase.RUNNING: running}


def expected_plan(judged: Snapshot) -> Plan:
    """Return the plan by the rules of docs/contract.md: to the next neighbor up or down, leftovers first."""
    if judged.phase is Phase.ERROR:
        return Plan(Decision.HALT)
    level, wanted = LEVELS[judged.phase], DESIRED_LEVELS[judged.desired_state]
    if wanted <= level == LEVELS[Phase.STANDBY] and judged.conditions.container_exists:
        return Plan(Decision.RUN, Operation.STOPPING)
    if wanted == level == LEVELS[Phase.ARCHIVED] and judged.conditions.volume_exists:
        return Plan(Decision.RUN, Operation.ARCHIVING)
    if wanted == level:
        return Plan(Decision.CONVERGED)
    up = {
        Phase.PENDING: (
            Operation.CREATE_EMPTY_ARCHIVE
            if judged.desired_state is DesiredState.ARCHIVED
            else Operation.PROVISIONING
        ),
        Phase.ARCHIVED: Operation.RESTORING,
        Phase.STANDBY: Operation.STARTING,
    }
    down = {Phase.RUNNING: Operation.STOPPING, Phase.STANDBY: Operation.ARCHIVING}
    return Plan(Decision.RUN, (up if wanted > level else down)[judged.phase])


@pytest.mark.parametrize(
    ("desired", "container", "volume", "archive", "key", "marker"),
    list(
        product(
            WANTED,
            [ContainerFact.ABSENT, ContainerFact.NOT_READY, ContainerFact.READY],
            [VolumeFact.ABSENT, VolumeFact.PRESENT],
            [ArchiveFact.ABSENT, ArchiveFact.PRESENT],
            [None, OLD_KEY],
            [None, OLD_KEY, NEW_KEY],
        )
    ),
)
def test_every_phase_desired_archive_and_marker_has_its_operation(
    desired: DesiredState,
    container: ContainerFact,
    volume: VolumeFact,
    archive: ArchiveFact,
    key: str | None,
    marker: str | None,
) -> None:
    judged = judge(
        new_snapshot(desired, key=key, marker=marker), Observation(container, volume, archive), NOW
    )
    assert plan(judged) == expected_plan(judged)


@pytest.mark.parametrize(("phase", "desired"), list(product(BY_PHASE, WANTED)))
def test_an_operation_moves_between_neighbors_toward_the_desired_state(
    phase: Phase, desired: DesiredState
) -> None:
    planned = plan(BY_PHASE[phase](desired))
    assert planned.operation is NEXT_OPERATION.get((phase, desired), Operation.NONE)
    assert (planned.decision is Decision.CONVERGED) == (LEVELS[phase] == DESIRED_LEVELS[desired])


@pytest.mark.parametrize(("operation", "needed"), [(o, r) for o, needs in NEEDS.items() for r in needs])
def test_an_operation_waits_for_what_it_needs(operation: Operation, needed: Resource) -> None:
    ready = snapshot_planned_for(operation)
    assert plan(ready) == Plan(Decision.RUN, operation)
    assert plan(replace(ready, unreachable=(needed,))) == Plan(Decision.WAIT, operation)


def snapshot_planned_for(operation: Operation) -> Snapshot:
    return {
        Operation.PROVISIONING: pending(),
        Operation.RESTORING: archived(DesiredState.RUNNING),
        Operation.STARTING: standby(DesiredState.RUNNING),
        Operation.STOPPING: running(DesiredState.STANDBY),
        Operation.ARCHIVING: standby(DesiredState.ARCHIVED),
        Operation.CREATE_EMPTY_ARCHIVE: pending(DesiredState.ARCHIVED),
        Operation.DELETING: observed(new_snapshot(deleted=True, purge=True), VOLUME_ONLY),
    }[operation]


def test_nothing_begins_before_the_first_observation() -> None:
    assert plan(observed(new_snapshot(), OUTAGE)) == Plan(Decision.WAIT, Operation.PROVISIONING)
    assert plan(observed(new_snapshot(key=OLD_KEY), OUTAGE)) == Plan(Decision.WAIT, Operation.RESTORING)


@pytest.mark.parametrize("desired", WANTED)
def test_a_claimed_operation_is_resumed_whatever_is_desired_now(desired: DesiredState) -> None:
    claimed = replace(standby(desired), operation=Operation.STARTING)
    assert plan(claimed) == Plan(Decision.RUN, Operation.STARTING)


def test_a_claimed_operation_whose_result_is_observed_is_settled_and_not_repeated() -> None:
    claimed = replace(standby(), operation=Operation.RESTORING)
    assert plan(claimed) == Plan(Decision.SETTLE, Operation.RESTORING)


def test_a_claimed_operation_waits_during_an_outage() -> None:
    claimed = replace(standby(), operation=Operation.STARTING, unreachable=(Resource.CONTAINER,))
    assert plan(claimed) == Plan(Decision.WAIT, Operation.STARTING)


@pytest.mark.parametrize(
    ("observation", "operation"),
    [
        (ALL_RUNNING, Operation.STOPPING),
        (replace(ALL_RUNNING, container=ContainerFact.NOT_READY), Operation.STOPPING),
        (VOLUME_AND_ARCHIVE, Operation.ARCHIVING),
    ],
)
def test_a_deletion_steps_down_so_that_a_last_archive_exists(
    observation: Observation, operation: Operation
) -> None:
    deleted = new_snapshot(DesiredState.DELETED, key=OLD_KEY, marker=OLD_KEY, deleted=True)
    assert plan(observed(deleted, observation)) == Plan(Decision.RUN, operation)


def test_a_deletion_removes_a_leftover_volume_whose_content_is_archived() -> None:
    deleted = new_snapshot(DesiredState.DELETED, key=NEW_KEY, marker=OLD_KEY, deleted=True)
    assert plan(observed(deleted, VOLUME_AND_ARCHIVE)) == Plan(Decision.RUN, Operation.DELETING)


def test_a_deletion_keeps_a_leftover_volume_until_its_archive_is_observed() -> None:
    deleted = new_snapshot(DesiredState.DELETED, key=NEW_KEY, marker=OLD_KEY, deleted=True)
    silent = replace(VOLUME_AND_ARCHIVE, archive=ArchiveFact.UNREACHABLE)
    assert plan(observed(deleted, silent)) == Plan(Decision.WAIT, Operation.DELETING)
    claimed = replace(observed(deleted, silent), operation=Operation.DELETING)
    assert plan(claimed) == Plan(Decision.WAIT, Operation.DELETING)
    assert plan(replace(claimed, purge=True)) == Plan(Decision.RUN, Operation.DELETING)


@pytest.mark.parametrize("observation", [ALL_RUNNING, VOLUME_AND_ARCHIVE, VOLUME_ONLY])
def test_a_purge_goes_directly_to_deleting(observation: Observation) -> None:
    purged = new_snapshot(
        DesiredState.DELETED, key=OLD_KEY, marker=OLD_KEY, deleted=True, purge=True, error=ErrorReason.TIMEOUT
    )
    assert plan(observed(purged, observation)) == Plan(Decision.RUN, Operation.DELETING)


def test_a_deletion_that_failed_waits_for_a_person_instead_of_destroying_the_only_copy() -> None:
    failed = new_snapshot(DesiredState.DELETED, deleted=True, error=ErrorReason.RETRY_EXCEEDED)
    assert plan(observed(failed, VOLUME_ONLY)) == Plan(Decision.HALT)


def test_a_deleted_workspace_has_converged() -> None:
    assert plan(observed(new_snapshot(DesiredState.DELETED, deleted=True), NOTHING)) == Plan(
        Decision.CONVERGED
    )


def test_only_a_person_ends_an_error() -> None:
    assert plan(observed(archived(DesiredState.RUNNING), NOTHING)) == Plan(Decision.HALT)
    assert plan(observed(new_snapshot(error=ErrorReason.TIMEOUT), ARCHIVE_ONLY)) == Plan(Decision.HALT)
