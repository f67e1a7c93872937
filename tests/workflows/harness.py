"""The control plane on a fake world: everything but the providers is real."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from google.protobuf.empty_pb2 import Empty
from redis.asyncio import Redis
from sqlalchemy import select
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from activities.observer import Observer
from activities.workspace import WorkspaceActivities
from codehub import contracts
from codehub.adapters.redis.activity import RedisActivityBuffer
from codehub.adapters.redis.progress_board import RedisProgressBoard
from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.search_attributes import NAMES
from codehub.bootstrap import Ports
from codehub.db.models import WorkspaceEvent
from codehub.db.session import Database
from codehub.db.snapshots import load_snapshot
from codehub.domain.conditions import Snapshot, WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.naming import META_SUFFIX, meta_key
from codehub.domain.states import DesiredState, Operation
from codehub.policy import Policy
from codehub.services.deletion import delete_workspace
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state
from testkit.fakes import (
    IMAGE,
    FakeArchives,
    FakeInstances,
    FakeStorageJobs,
    FakeVolumes,
    FakeWorld,
)
from testkit.rows import add_user, add_workspace
from testkit.waiting import DEADLINE_SECONDS
from worker.workers import create_workers

LIMITS = RunningLimits(per_user=100, total=1000)
DEFAULT_POLICY = Policy()


@dataclass
class ServerClock:
    """The worker's clock, as far ahead as the server that skips time."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    async def follow(self, client: Client) -> None:
        try:
            answer = await client.test_service.get_current_time(Empty())
        except RPCError as error:
            if error.status is not RPCStatusCode.UNIMPLEMENTED:
                raise
        else:
            self.ahead = answer.time.ToDatetime(UTC) - datetime.now(UTC)


@dataclass
class ControlPlane:
    """One worker, its world, and helpers to send requests and check results."""

    client: Client
    database: Database
    task_queue: str
    world: FakeWorld
    buffer: RedisActivityBuffer
    board: RedisProgressBoard
    convergence: TemporalConvergence
    owner: UUID
    clock: "ServerClock"
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def create(self, desired: DesiredState = DesiredState.RUNNING, **columns: object) -> WorkspaceId:
        async with self.database.transaction() as session:
            usual = {"phase_changed_at": self.now, "image_ref": IMAGE}
            return await add_workspace(session, self.owner, desired_state=desired, **usual | columns)

    async def want(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        await request_state(
            self.database, workspace_id, desired, context=RequestContext("test", LIMITS, datetime.now(UTC))
        )

    async def delete(
        self, workspace_id: WorkspaceId, *, purge: bool = False, now: datetime | None = None
    ) -> None:
        moment = now or datetime.now(UTC)
        context = RequestContext("test", LIMITS, moment)
        await delete_workspace(self.database, workspace_id, purge=purge, context=context)

    async def start(self, workspace_id: WorkspaceId) -> WorkflowHandle[object, str]:
        """Start the workflow as a wake does, with a handle that lets the server skip time."""
        return await self.client.start_workflow(
            contracts.WORKSPACE_WORKFLOW,
            contracts.ConvergeRequest(workspace_id, str(self.owner)),
            id=contracts.workspace_workflow_id(workspace_id),
            task_queue=self.task_queue,
            start_signal=contracts.WAKE_SIGNAL,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            result_type=str,
        )

    async def claim(self, workspace_id: WorkspaceId, operation: Operation) -> contracts.OperationRequest:
        """Claim an operation, as a run does that then dies."""
        request = contracts.ClaimRequest(workspace_id, operation, str(uuid4()))
        observer = Observer(FakeInstances(self.world), FakeVolumes(self.world), FakeArchives(self.world))
        claimed = await WorkspaceActivities(self.database, observer).claim(request)
        assert claimed is not None
        return claimed

    async def converge(self, workspace_id: WorkspaceId) -> Snapshot:
        """Run the workflow to its end."""
        await (await self.start(workspace_id)).result()
        return await self.snapshot(workspace_id)

    async def reach(self, desired: DesiredState) -> WorkspaceId:
        """Create a workspace and bring it to this state."""
        workspace_id = await self.create(desired)
        snapshot = await self.converge(workspace_id)
        assert snapshot.phase.value == desired.value
        return workspace_id

    async def snapshot(self, workspace_id: WorkspaceId) -> Snapshot:
        async with self.database.transaction() as session:
            snapshot = await load_snapshot(session, workspace_id)
        assert snapshot is not None
        return snapshot

    async def events(self, workspace_id: WorkspaceId) -> list[WorkspaceEvent]:
        async with self.database.transaction() as session:
            found = await session.scalars(
                select(WorkspaceEvent)
                .where(WorkspaceEvent.workspace_id == UUID(workspace_id))
                .order_by(WorkspaceEvent.id)
            )
            return list(found)

    def write(self, workspace_id: WorkspaceId, text: str) -> None:
        """Write a file into the home."""
        self.world.volumes[workspace_id] = {"notes": text.encode()}

    def read(self, workspace_id: WorkspaceId) -> str | None:
        """Return the file in the home, or None if there is no home or no file."""
        return self.world.volumes.get(workspace_id, {}).get("notes", b"").decode() or None

    def read_archived(self, key: str | None) -> str | None:
        """Return the file in the home of an archive."""
        home = json.loads(self.world.objects[key or ""].content)
        return bytes.fromhex(home.get("notes", "")).decode() or None

    def archive_keys(self) -> set[str]:
        return {key.removesuffix(META_SUFFIX) for key in self.world.objects}

    def lose_archive(self, key: str | None) -> None:
        for each in (key or "", meta_key(key or "")):
            self.world.objects.pop(each, None)

    def fail(self, call: str, *failures: Exception) -> None:
        """Let the next calls of this name fail, one after the other."""
        self.world.failures[call].extend(failures)

    async def operations(self, workspace_id: WorkspaceId) -> list[str]:
        """Return the claimed operations in order."""
        return [
            str(each.operation)
            for each in await self.events(workspace_id)
            if each.kind == "operation_claimed"
        ]

    async def run_sweep(self, workflow: str) -> dict[str, int]:
        """Run the sweep once, as its schedule does, and return its result."""
        handle = self.client.get_workflow_handle(await self.run_sweep_as(workflow), result_type=dict)
        result: dict[str, int] = await handle.result()
        return result

    async def run_sweep_as(self, workflow: str) -> str:
        """Run a sweep to its end and return the id of its workflow."""
        await self.clock.follow(self.client)
        workflow_id = f"{workflow}-{uuid4()}"
        await self.client.execute_workflow(workflow, id=workflow_id, task_queue=self.task_queue)
        return workflow_id


@asynccontextmanager
async def skipping_server() -> AsyncIterator[WorkflowEnvironment]:
    """Start a server that skips time and has the search attributes."""
    server = Path(sys.executable).with_name("temporal-test-server")
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=str(server)
    ) as environment:
        # This server can add search attributes but not list them, so ensure_search_attributes does not work.
        keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace="default", search_attributes=dict.fromkeys(NAMES, keyword))
        )
        yield environment


@asynccontextmanager
async def running_control_plane(
    client: Client,
    database: Database,
    redis: Redis,
    instances: type[FakeInstances] = FakeInstances,
    policy: Policy = DEFAULT_POLICY,
) -> AsyncIterator[ControlPlane]:
    task_queue = f"test-{uuid4()}"
    world = FakeWorld()
    # A slow server must not end a wake: the next sweep makes up for that, but most tests run no sweep.
    convergence = TemporalConvergence(client, task_queue, timeout_seconds=DEADLINE_SECONDS)
    clock = ServerClock()
    buffer, board = RedisActivityBuffer(redis), RedisProgressBoard(redis)
    ports = Ports(
        database=database,
        instances=instances(world),
        volumes=FakeVolumes(world),
        jobs=FakeStorageJobs(world),
        archives=FakeArchives(world),
        buffer=buffer,
        board=board,
        convergence=convergence,
        clock=clock,
    )
    async with database.transaction() as session:
        owner = await add_user(session)
    async with create_workers(client, task_queue, ports, policy):
        yield ControlPlane(client, database, task_queue, world, buffer, board, convergence, owner, clock)
