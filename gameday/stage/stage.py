"""A complete CodeHub for one game, with access to everything that faults break and checks observe."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from temporalio.client import Client

from codehub.bootstrap import archive_store_of, connect_temporal, database_url_of, open_database
from codehub.db.session import Database
from codehub.embedded.processes import PROCESSES, CodeHubProcess
from codehub.embedded.stack import EmbeddedStack
from codehub.ports import ArchiveStore
from codehub.settings import Settings, load_settings
from gameday.faults.proxy import FaultProxy
from gameday.stage.backend import Backend
from gameday.stage.disk import SmallDisk, mounted_disk
from gameday.stage.docker import docker_backend
from gameday.stage.ide import install_ide
from gameday.stage.kubernetes import kubernetes_backend
from gameday.stage.local import local_backend
from gameday.stage.recoveries import FaultPause, Recovery, RecoveryLog
from gameday.stage.setup import User, add_users, log_to_file, make_settings, process_environment
from migrations import runner

LOCAL_DOCKER = "local-docker"
K8S = "k8s"
WORKERS = ("worker", "worker-2")
# A second worker takes over when one is killed, and the event relays elect a leader.
STAGE_PROCESSES = (*PROCESSES, CodeHubProcess("worker-2", "worker", "Worker 2"))
# Otherwise a part that is killed every few seconds counts as crashing in a loop.
STABLE_SECONDS = 1.0


@dataclass(frozen=True)
class Stage:
    """`settings` and `store` name the real S3; CodeHub's processes reach it through the fault proxy `s3`."""

    backend_name: str
    settings: Settings
    stack: EmbeddedStack
    database: Database
    client: Client
    s3: FaultProxy
    disk: SmallDisk | None
    backend: Backend
    users: tuple[User, ...]
    recovery_log: RecoveryLog
    fault_pause: FaultPause = field(default_factory=FaultPause)

    @property
    def url(self) -> str:
        """The proxy's base URL."""
        return self.settings.public_base_url

    @property
    def store(self) -> ArchiveStore:
        return archive_store_of(self.settings)

    @property
    def recoveries(self) -> list[Recovery]:
        return self.recovery_log.recoveries

    def clock(self) -> float:
        """Return the seconds since the stage was opened."""
        return self.recovery_log.clock()

    async def home(self, workspace_id: str) -> Path:
        return await self.backend.home(workspace_id)

    async def instances(self, workspace_id: str) -> list[str]:
        return (await self.backend.instances()).get(workspace_id, [])

    async def all_instances(self) -> dict[str, list[str]]:
        """Return all instances by workspace."""
        return await self.backend.instances()

    async def jobs(self) -> list[str]:
        return await self.backend.jobs()

    async def volumes(self) -> list[str]:
        """Return the ids of the workspaces that have a volume."""
        return await self.backend.volumes()

    def pid(self, name: str) -> int | None:
        return next((each.pid for each in self.stack.statuses if each.name == name), None)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all supervised processes."""
        return tuple(each.name for each in self.stack.statuses)

    def unavailable(self) -> list[str]:
        """Return the parts that are not ready."""
        return [*self.recovery_log.unavailable(), *self.backend.unavailable()]

    async def wait_ready(self) -> None:
        """Wait until all parts are ready."""
        await asyncio.gather(*(self.stack.wait_ready(name) for name in self.parts), self.backend.wait_ready())


@asynccontextmanager
async def open_stage(
    directory: Path, backend_name: str, users: int, cluster: str = ""
) -> AsyncIterator[Stage]:
    """Start a stage; at the end stop and remove everything except the files in the directory.

    `cluster` is the program that operates the cluster of the backend `k8s`.
    """
    directory = await asyncio.to_thread(directory.resolve)
    programs = install_ide(directory / "ide")
    async with AsyncExitStack() as cleanup:
        disk, backend = await _open_backend(cleanup, directory, backend_name, programs, cluster)
        variables = make_settings(directory, backend.settings)
        recovery_log = RecoveryLog()
        stack = EmbeddedStack(
            directory, load_settings(variables), recovery_log.update, stable_seconds=STABLE_SECONDS
        )
        cleanup.enter_context(log_to_file(stack.data.log("up")))
        await cleanup.enter_async_context(stack)
        settings = load_settings({**variables, **stack.environment})
        database = await _open_database(cleanup, settings)
        players = await add_users(database, users)
        upstream_port = _port_of(archive_store_of(settings))
        s3 = await cleanup.enter_async_context(FaultProxy.open(upstream_port, backend.host))
        overrides = {"CODEHUB_S3_ENDPOINT_URL": s3.url}
        await stack.start_processes(STAGE_PROCESSES, process_environment(variables, programs), overrides)
        client = await connect_temporal(settings)
        recovery_log.enable()
        cleanup.callback(recovery_log.disable)
        yield Stage(backend_name, settings, stack, database, client, s3, disk, backend, players, recovery_log)


async def _open_backend(
    cleanup: AsyncExitStack, directory: Path, name: str, programs: Path, cluster: str
) -> tuple[SmallDisk | None, Backend]:
    if name == LOCAL_DOCKER:
        return None, await cleanup.enter_async_context(docker_backend())
    if name == K8S:
        return None, await cleanup.enter_async_context(kubernetes_backend(cluster))
    homes = directory / "local"
    disk = cleanup.enter_context(mounted_disk(directory / "homes.img", homes))
    return disk, cleanup.enter_context(local_backend(homes, programs))


async def _open_database(cleanup: AsyncExitStack, settings: Settings) -> Database:
    await runner.upgrade(database_url_of(settings))
    return await cleanup.enter_async_context(open_database(settings))


def _port_of(store: ArchiveStore) -> int:
    port = urlsplit(store.endpoint_url or "").port
    assert port is not None  # noqa: S101 (for the type checker: the embedded S3 has one)
    return port
