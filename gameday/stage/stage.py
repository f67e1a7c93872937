"""A whole CodeHub of the game day's own, with everything in reach that can be broken or looked at."""

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
from gameday.stage.backend import Ground
from gameday.stage.disk import SmallDisk, mounted_disk
from gameday.stage.docker import docker_ground
from gameday.stage.ide import install_ide
from gameday.stage.local import local_ground
from gameday.stage.recoveries import Calm, Recoveries, Recovery
from gameday.stage.setup import User, add_users, inherited, logged_to, rules_of
from migrations import runner

LOCAL_DOCKER = "local-docker"
WORKERS = ("worker", "worker-2")
# Two, so that a workflow finds another worker when one is killed, and relays have somebody to elect.
ON_STAGE = (*PROCESSES, CodeHubProcess("worker-2", "worker", "Worker 2"))
# Killed every few seconds, a part would soon count as one that crashes in a loop.
STABLE_SECONDS = 1.0


@dataclass(frozen=True)
class Stage:
    """Its `settings` and `store` lead to the real S3; CodeHub's processes reach it through `s3`."""

    backend: str
    settings: Settings
    stack: EmbeddedStack
    database: Database
    client: Client
    s3: FaultProxy
    disk: SmallDisk | None
    ground: Ground
    users: tuple[User, ...]
    heard: Recoveries
    calm: Calm = field(default_factory=Calm)

    @property
    def url(self) -> str:
        """Where people come in."""
        return self.settings.public_base_url

    @property
    def store(self) -> ArchiveStore:
        return archive_store_of(self.settings)

    @property
    def recoveries(self) -> list[Recovery]:
        return self.heard.known

    def clock(self) -> float:
        """Seconds since the stage was opened; faults and recoveries are noted with it."""
        return self.heard.clock()

    def home(self, workspace_id: str) -> Path:
        return self.ground.home(workspace_id)

    async def instances(self, workspace_id: str) -> list[str]:
        return (await self.ground.instances()).get(workspace_id, [])

    async def all_instances(self) -> dict[str, list[str]]:
        """By workspace, in one look."""
        return await self.ground.instances()

    async def jobs(self) -> list[str]:
        return await self.ground.jobs()

    async def volumes(self) -> list[str]:
        """The workspaces of which there is a volume."""
        return await self.ground.volumes()

    def pid(self, name: str) -> int | None:
        return next((each.pid for each in self.stack.statuses if each.name == name), None)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of everything that is supervised."""
        return tuple(each.name for each in self.stack.statuses)

    def away(self) -> list[str]:
        """The parts that are not ready right now."""
        return self.heard.away()

    async def wait_ready(self) -> None:
        """Return when all parts are ready."""
        await asyncio.gather(*(self.stack.wait_ready(name) for name in self.parts))


@asynccontextmanager
async def open_stage(directory: Path, backend: str, users: int) -> AsyncIterator[Stage]:
    """Ready to play; in the end everything is stopped and removed, but for the files in the directory."""
    directory = await asyncio.to_thread(directory.resolve)
    programs = install_ide(directory / "ide")
    async with AsyncExitStack() as held:
        disk, ground = await _ground(held, directory, backend, programs)
        rules = rules_of(directory, ground.settings)
        heard = Recoveries()
        stack = EmbeddedStack(directory, load_settings(rules), heard.hear, stable_seconds=STABLE_SECONDS)
        held.enter_context(logged_to(stack.data.log("up")))
        await held.enter_async_context(stack)
        settings = load_settings({**rules, **stack.environment})
        database = await _prepared_database(held, settings)
        players = await add_users(database, users)
        s3 = await held.enter_async_context(FaultProxy.open(_port_of(archive_store_of(settings))))
        instead = {"CODEHUB_S3_ENDPOINT_URL": s3.url}
        await stack.start_processes(ON_STAGE, inherited(rules, programs), instead)
        client = await connect_temporal(settings)
        heard.arm()
        held.callback(heard.disarm)
        yield Stage(backend, settings, stack, database, client, s3, disk, ground, players, heard)


async def _ground(
    held: AsyncExitStack, directory: Path, backend: str, programs: Path
) -> tuple[SmallDisk | None, Ground]:
    if backend == LOCAL_DOCKER:
        return None, await held.enter_async_context(docker_ground())
    homes = directory / "local"
    disk = held.enter_context(mounted_disk(directory / "homes.img", homes))
    return disk, held.enter_context(local_ground(homes, programs))


async def _prepared_database(held: AsyncExitStack, settings: Settings) -> Database:
    await runner.upgrade(database_url_of(settings))
    return await held.enter_async_context(open_database(settings))


def _port_of(store: ArchiveStore) -> int:
    port = urlsplit(store.endpoint_url or "").port
    assert port is not None  # noqa: S101 (for the type checker: the embedded S3 has one)
    return port
