"""Home stores and what a test can do to each kind of them."""

import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

from codehub.adapters.docker.engine import open_engine
from codehub.adapters.docker.home_store import DockerHomeStore
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import SENTINEL, LocalHomeStore, LocalRoot
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.adapters.local.volumes import LocalVolumes
from codehub.domain.conditions import Resource
from codehub.ports import ArchiveStore, HomeStore, Instances, StorageJobs, Volumes
from testkit.docker_engine import UNREACHABLE_URL, URL, Engine, docker, need_docker, opened_engine
from testkit.fakes import FakeHomeStore, FakeInstances, FakeStorageJobs, FakeVolumes, FakeWorld

# Unreachable: nothing in these tests gets that far.
ARCHIVES = ArchiveStore("codehub", "key", "secret", "http://127.0.0.1:9")


class HomeStoreHarness(Protocol):
    @property
    def store(self) -> HomeStore: ...

    @property
    def instances(self) -> Instances: ...

    @property
    def volumes(self) -> Volumes: ...

    @property
    def jobs(self) -> StorageJobs: ...

    def replace_store(self) -> None:
        """Replace this store with an empty one."""

    def make_unreachable(self) -> None:
        """Make the store unreachable."""


OpenStore = Callable[[str, AsyncExitStack], Awaitable[HomeStoreHarness]]


class FakeHarness:
    def __init__(self) -> None:
        self.world = FakeWorld()
        self.store = FakeHomeStore(self.world)
        self.instances = FakeInstances(self.world)
        self.volumes = FakeVolumes(self.world)
        self.jobs = FakeStorageJobs(self.world)

    def replace_store(self) -> None:
        self.world.identity = None
        self.world.volumes.clear()

    def make_unreachable(self) -> None:
        self.world.down.add(Resource.VOLUME)


class LocalHarness:
    def __init__(self, path: Path) -> None:
        self.root = LocalRoot.at(path)
        self.store = LocalHomeStore(path)
        self.instances = LocalInstances(path, ides={}, sandboxed=False)
        self.volumes = LocalVolumes(path)
        self.jobs = LocalStorageJobs(path, ARCHIVES)

    def replace_store(self) -> None:
        shutil.rmtree(self.root.path)
        self.root.path.mkdir()

    def make_unreachable(self) -> None:
        """Make the file unreadable, like a disk with errors."""
        (self.root.path / SENTINEL).unlink(missing_ok=True)
        (self.root.path / SENTINEL).mkdir(parents=True)


class DockerHarness:
    def __init__(self, engine: Engine, dead: DockerHomeStore) -> None:
        self.engine = engine
        self._dead = dead
        self.store = DockerHomeStore(engine.client, engine.options, URL)
        self.instances = DockerInstances(engine.client, engine.options)
        self.volumes = DockerVolumes(engine.client, engine.options)
        self.jobs = DockerStorageJobs(engine.client, engine.options, ARCHIVES)

    def replace_store(self) -> None:
        """Remove the marker. The id of the engine stays, as after a wiped data directory."""
        docker("volume", "rm", *self.engine.volumes())

    def make_unreachable(self) -> None:
        self.store = self._dead


async def open_harness(kind: str, path: Path, stack: AsyncExitStack) -> HomeStoreHarness:
    if kind == "fake":
        return FakeHarness()
    if kind == "local":
        return LocalHarness(path)
    need_docker()
    engine = await stack.enter_async_context(opened_engine())
    nobody = await stack.enter_async_context(open_engine(UNREACHABLE_URL))
    return DockerHarness(engine, DockerHomeStore(nobody, engine.options, UNREACHABLE_URL))
