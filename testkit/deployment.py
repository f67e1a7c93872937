"""A CodeHub on shared real servers, with its own database, namespace, bucket and data directory."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from google.protobuf.duration_pb2 import Duration
from sqlalchemy.exc import DBAPIError
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from codehub.adapters.temporal.convergence import TemporalConvergence
from codehub.adapters.temporal.schedules import SCHEDULES
from codehub.adapters.temporal.search_attributes import ensure_search_attributes
from codehub.bootstrap import connect_temporal, open_database, open_ports, prepare_stores
from codehub.db.session import Connection, Database, DatabaseUnavailable, connect
from codehub.db.snapshots import load_snapshot
from codehub.domain.conditions import Snapshot, Status, WorkspaceId
from codehub.domain.limits import RunningLimits
from codehub.domain.states import DesiredState, Operation, Phase
from codehub.embedded.stack import EmbeddedStack
from codehub.policy import policy_of
from codehub.services.deletion import delete_workspace
from codehub.services.requests import RequestContext
from codehub.services.workspaces import request_state
from codehub.settings import Settings, load_settings
from migrations import runner
from testkit.homes import homes_of
from testkit.rows import add_user, add_workspace
from testkit.trees import Description
from testkit.waiting import DEADLINE_SECONDS, until
from worker.workers import create_workers

BIN = Path(__file__).with_name("bin")
RETENTION = Duration(seconds=24 * 3600)


@dataclass(frozen=True)
class Servers:
    """PostgreSQL, Redis, S3 and Temporal for many deployments, and a migrated database to clone."""

    stack: EmbeddedStack
    template: str


@dataclass
class Deployment:
    """Requests and observations of one deployment, with workers in this process or in separate ones."""

    settings: Settings
    environment: Mapping[str, str]
    client: Client
    database: Database
    owner: UUID

    async def create(self, desired: DesiredState) -> WorkspaceId:
        async with self.database.transaction() as session:
            return await add_workspace(
                session,
                self.owner,
                desired_state=desired,
                phase_changed_at=datetime.now(UTC),
                image_ref=self.image_ref,
                instance_backend=self.settings.workspaces.instance_backend,
                storage_backend=self.settings.workspaces.storage_backend,
            )

    async def want(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        limits = policy_of(self.settings).limits
        await request_state(
            self.database, workspace_id, desired, context=RequestContext("test", limits, datetime.now(UTC))
        )

    async def delete(self, workspace_id: WorkspaceId, *, purge: bool) -> None:
        context = RequestContext("test", RunningLimits(), datetime.now(UTC))
        await delete_workspace(self.database, workspace_id, purge=purge, context=context)

    async def wake(self, workspace_id: WorkspaceId) -> None:
        task_queue = self.settings.temporal.task_queue
        convergence = TemporalConvergence(self.client, task_queue, timeout_seconds=DEADLINE_SECONDS)
        await convergence.wake(workspace_id, str(self.owner))

    async def look(self, workspace_id: WorkspaceId) -> Snapshot:
        async with self.database.transaction() as session:
            snapshot = await load_snapshot(session, workspace_id)
        assert snapshot is not None
        return snapshot

    async def look_during_outage(self, workspace_id: WorkspaceId) -> Snapshot | None:
        try:
            return await self.look(workspace_id)
        except (DatabaseUnavailable, DBAPIError, OSError):
            return None

    async def wait_for_operation(self, workspace_id: WorkspaceId, operation: Operation) -> None:
        """Wait until this operation is claimed."""

        async def claimed() -> bool:
            return (await self.look(workspace_id)).operation is operation

        await until(claimed, f"{operation} of {workspace_id}")

    async def wait_for_phase(self, workspace_id: WorkspaceId, phase: Phase) -> None:
        """Wait until the workspace is in this phase without an operation; fail if it is in ERROR."""

        async def arrived() -> bool:
            snapshot = await self.look_during_outage(workspace_id)
            if snapshot is None:
                return False
            assert snapshot.phase is not Phase.ERROR, f"{snapshot.error_reason}: {snapshot.error_message}"
            return (snapshot.phase, snapshot.operation) == (phase, Operation.NONE)

        await until(arrived, f"{workspace_id} in {phase}")

    async def wait_until_answers(self, workspace_id: WorkspaceId, status: Status) -> None:
        """Wait until the control plane has observed whether the IDE answers."""

        async def seen() -> bool:
            return (await self.look(workspace_id)).conditions.container_answers.status is status

        await until(seen, f"answers: {status}")

    async def create_large(self, ballast_bytes: int) -> WorkspaceId:
        """Create a workspace in STANDBY with a home that takes seconds to archive."""
        workspace_id = await self.create(DesiredState.STANDBY)
        await self.wake(workspace_id)
        await self.wait_for_phase(workspace_id, Phase.STANDBY)
        self.fill_home(workspace_id)
        # Random bytes do not compress.
        (self.home(workspace_id) / "ballast").write_bytes(os.urandom(ballast_bytes))
        return workspace_id

    async def move_to(self, workspace_id: WorkspaceId, desired: DesiredState) -> None:
        await self.want(workspace_id, desired)
        await self.wake(workspace_id)
        await self.wait_for_phase(workspace_id, Phase(desired.value))

    @property
    def image_ref(self) -> str:
        """Return the default image; on the local backend, the name under which the tiny IDE is installed."""
        workspaces = self.settings.workspaces
        return "code-server" if workspaces.instance_backend == "local" else workspaces.default_image_ref

    def home(self, workspace_id: WorkspaceId) -> Path:
        """Return the directory of the home; it exists only if the volume does."""
        return homes_of(self.settings).path(workspace_id)

    def fill_home(self, workspace_id: WorkspaceId) -> None:
        """Make every kind of entry that a home can have, in an empty home."""
        homes_of(self.settings).fill(workspace_id)

    def describe_home(self, workspace_id: WorkspaceId) -> Description:
        """Return all attributes of the home that must survive."""
        return homes_of(self.settings).describe(workspace_id)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """Run a worker in this process."""
        async with open_ports(self.settings, self.client) as ports:
            task_queue = self.settings.temporal.task_queue
            async with create_workers(self.client, task_queue, ports, policy_of(self.settings)):
                yield

    @contextmanager
    def worker_process(self, module: str = "worker", **extra: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker in its own process, and kill it at the end."""
        log = Path(self.environment["CODEHUB_DATA_DIR"]) / "worker.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                (sys.executable, "-m", module),
                env={**self.environment, **extra},
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


@asynccontextmanager
async def running_servers(directory: Path) -> AsyncIterator[Servers]:
    async with EmbeddedStack(directory, Settings()) as stack:
        yield Servers(stack, await _make_template(stack.environment["CODEHUB_DATABASE_URL"]))


@asynccontextmanager
async def open_deployment(servers: Servers, directory: Path, **extra: str) -> AsyncIterator[Deployment]:
    """Open a deployment on running servers, with `extra` settings."""
    name = f"deployment_{uuid4().hex}"
    shared = servers.stack.environment
    database_url = await clone_database(shared["CODEHUB_DATABASE_URL"], servers.template, name)
    environment = {
        **{key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR") if key in os.environ},
        **shared,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CODEHUB_DATABASE_URL": database_url,
        "CODEHUB_TEMPORAL_NAMESPACE": name,
        "CODEHUB_DATA_DIR": str(directory),
        "CODEHUB_LIMITS_MAX_RUNNING_PER_USER": "1000",
        "CODEHUB_WORKSPACES_INSTANCE_BACKEND": "local",
        **extra,
    }
    settings = load_settings(environment)
    await register_namespace(settings)
    client = await connect_temporal(settings)
    await until(lambda: _has_search_attributes(client), "search attributes")
    await prepare_stores(settings)
    async with open_database(settings) as database:
        async with database.transaction() as session:
            owner = await add_user(session)
        yield Deployment(settings, environment, client, database, owner)
    await _delete_schedules(client)


async def _make_template(database_url: str) -> str:
    """Create a migrated database to clone; return its name."""
    url = await clone_database(database_url, "template1", "codehub_deployment_template")
    await runner.upgrade(url)
    return "codehub_deployment_template"


async def clone_database(database_url: str, template: str, name: str) -> str:
    connection: Connection = await connect(database_url)
    try:
        await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    finally:
        await connection.close()
    base, _, query = database_url.partition("?")
    return f"{base.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")


async def register_namespace(settings: Settings) -> None:
    default = settings.model_copy(
        update={"temporal": settings.temporal.model_copy(update={"namespace": "default"})}
    )
    client = await connect_temporal(default)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(
            namespace=settings.temporal.namespace, workflow_execution_retention_period=RETENTION
        )
    )


async def _delete_schedules(client: Client) -> None:
    """Stop the sweeps: without a worker they would cost the shared server time until its end."""
    for schedule_id in SCHEDULES:
        with suppress(RPCError):
            await client.get_schedule_handle(schedule_id).delete()


async def _has_search_attributes(client: Client) -> bool:
    try:
        await ensure_search_attributes(client)
    except RPCError:
        return False  # the new namespace is not known to the whole server yet
    return True
