"""Every operation and every way in which it can fail."""

from dataclasses import dataclass

import pytest
from redis.asyncio import Redis
from temporalio.testing import WorkflowEnvironment

from codehub.db.session import Database
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import MAX_RETRY, TERMINAL, Failure, Permanent, Transient
from codehub.domain.states import DesiredState, ErrorReason, Operation, Phase
from codehub.ports import InstanceRequest, Report
from testkit.fakes import FakeInstances
from tests.workflows.harness import ControlPlane, running_control_plane


@dataclass(frozen=True)
class Case:
    """An operation, how to reach it, and the provider call that it makes."""

    operation: Operation
    begin: DesiredState | None
    end: DesiredState
    call: str


CASES = [
    Case(Operation.PROVISIONING, None, DesiredState.STANDBY, "volumes.provision"),
    Case(Operation.CREATE_EMPTY_ARCHIVE, None, DesiredState.ARCHIVED, "jobs.create_empty"),
    Case(Operation.STARTING, DesiredState.STANDBY, DesiredState.RUNNING, "instances.start"),
    Case(Operation.STOPPING, DesiredState.RUNNING, DesiredState.STANDBY, "instances.stop"),
    Case(Operation.ARCHIVING, DesiredState.STANDBY, DesiredState.ARCHIVED, "jobs.archive"),
    Case(Operation.ARCHIVING, DesiredState.STANDBY, DesiredState.ARCHIVED, "volumes.remove"),
    Case(Operation.RESTORING, DesiredState.ARCHIVED, DesiredState.STANDBY, "jobs.restore"),
    Case(Operation.DELETING, DesiredState.ARCHIVED, DesiredState.DELETED, "instances.stop"),
    Case(Operation.DELETING, DesiredState.ARCHIVED, DesiredState.DELETED, "volumes.remove"),
]
CASE_IDS = [f"{case.operation}-{case.call}" for case in CASES]
RETRYABLE = [ErrorReason.ACTION_FAILED, ErrorReason.UNREACHABLE]


async def prepare(plane: ControlPlane, case: Case) -> WorkspaceId:
    """Create a workspace that is about to go through the operation."""
    if case.begin is None:
        return await plane.create(case.end)
    workspace_id = await plane.reach(case.begin)
    if case.end is DesiredState.DELETED:
        # A leftover volume next to its archive, so that there is something to delete.
        plane.write(workspace_id, "leftover")
        await plane.delete(workspace_id)
    else:
        await plane.want(workspace_id, case.end)
    return workspace_id


@pytest.mark.parametrize("reason", RETRYABLE)
@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
async def test_a_failed_attempt_is_retried(plane: ControlPlane, case: Case, reason: ErrorReason) -> None:
    workspace_id = await prepare(plane, case)
    plane.fail(case.call, Transient(reason, "not now"), Transient(reason, "still not"))
    snapshot = await plane.converge(workspace_id)
    assert (snapshot.phase.value, snapshot.error_reason, snapshot.error_count) == (case.end.value, None, 0)
    kinds = [each.kind for each in await plane.events(workspace_id)]
    assert kinds.count("attempt_failed") == MAX_RETRY - 1


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
async def test_the_last_failed_attempt_ends_in_error(plane: ControlPlane, case: Case) -> None:
    workspace_id = await prepare(plane, case)
    plane.fail(case.call, *[Transient(ErrorReason.ACTION_FAILED, "It broke.")] * MAX_RETRY)
    await assert_ends_in_error(plane, workspace_id, case, ErrorReason.RETRY_EXCEEDED, "It broke.")


@pytest.mark.parametrize("reason", sorted(TERMINAL - {ErrorReason.RETRY_EXCEEDED}))
@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
async def test_a_terminal_reason_ends_in_error_at_once(
    plane: ControlPlane, case: Case, reason: ErrorReason
) -> None:
    workspace_id = await prepare(plane, case)
    plane.fail(case.call, Permanent(reason, "It is over."))
    await assert_ends_in_error(plane, workspace_id, case, reason, "It is over.")


async def assert_ends_in_error(
    plane: ControlPlane, workspace_id: WorkspaceId, case: Case, reason: ErrorReason, message: str
) -> None:
    snapshot = await plane.converge(workspace_id)
    expected_phase = Phase.DELETING if case.end is DesiredState.DELETED else Phase.ERROR
    assert (snapshot.phase, snapshot.operation) == (expected_phase, Operation.NONE)
    assert (snapshot.error_reason, snapshot.error_message) == (reason, message)
    last = (await plane.events(workspace_id))[-1]
    assert (last.kind, last.operation, last.error_reason) == ("operation_failed", case.operation, reason)


async def test_an_unexpected_error_is_retried_by_temporal_and_then_counts(plane: ControlPlane) -> None:
    workspace_id = await plane.create(DesiredState.STANDBY)
    plane.fail("volumes.provision", KeyError("a bug"))
    snapshot = await plane.converge(workspace_id)
    assert (snapshot.phase, snapshot.error_count) == (Phase.STANDBY, 0)


class NoOpInstances(FakeInstances):
    """Report a start and do nothing."""

    async def start(self, request: InstanceRequest, report: Report) -> None:
        del request, report


async def test_success_that_is_not_observed_is_a_failed_attempt(
    skipping: WorkflowEnvironment, database: Database, redis_client: Redis
) -> None:
    async with running_control_plane(skipping.client, database, redis_client, NoOpInstances) as plane:
        workspace_id = await plane.create(DesiredState.RUNNING)
        snapshot = await plane.converge(workspace_id)
    assert snapshot.error_reason is ErrorReason.RETRY_EXCEEDED
    assert snapshot.error_message == "STARTING reported success, but its result was not observed."


@pytest.mark.parametrize("failure", [Permanent, Transient])
async def test_an_archive_operation_keeps_its_id_through_an_error(
    plane: ControlPlane, failure: type[Failure]
) -> None:
    workspace_id = await plane.reach(DesiredState.STANDBY)
    plane.fail("jobs.archive", *[failure(ErrorReason.ARCHIVE_CORRUPTED, "bad")] * MAX_RETRY)
    await plane.want(workspace_id, DesiredState.ARCHIVED)
    snapshot = await plane.converge(workspace_id)
    assert snapshot.phase is Phase.ERROR
    assert snapshot.archive_op_id is not None
