"""Ways to run storage jobs, and what a test can do to the world of each."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.local.root import LocalRoot
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.domain.conditions import Resource, WorkspaceId
from codehub.domain.naming import volume_name
from codehub.ports import StorageJobs
from testkit.docker_engine import STALLED_JOB_IMAGE, Engine, build, docker
from testkit.fakes import FakeObject, FakeStorageJobs, FakeWorld
from tests.buckets import Bucket
from tests.contracts.test_archives import store_of
from tests.storage_jobs import path_with_fake

Files = dict[str, bytes]


class JobHarness(Protocol):
    @property
    def jobs(self) -> StorageJobs: ...

    @property
    def cut_off(self) -> StorageJobs:
        """Return the same jobs with an unreachable store."""

    def write_home(self, workspace_id: WorkspaceId, files: Files) -> None: ...

    def read_home(self, workspace_id: WorkspaceId) -> Files | None: ...

    async def read(self, key: str) -> bytes | None: ...

    async def write(self, key: str, content: bytes) -> None: ...

    def stalled(self) -> AbstractContextManager[None]:
        """Keep archive jobs that begin meanwhile from ending."""

    def count(self) -> int:
        """Return how many jobs are running."""


class FakeHarness:
    def __init__(self) -> None:
        self.world = FakeWorld()
        self.jobs = FakeStorageJobs(self.world)
        cut_off = FakeWorld(volumes=self.world.volumes)
        cut_off.down.add(Resource.ARCHIVE)
        self.cut_off = FakeStorageJobs(cut_off)

    def write_home(self, workspace_id: WorkspaceId, files: Files) -> None:
        self.world.volumes.setdefault(workspace_id, {}).update(files)

    def read_home(self, workspace_id: WorkspaceId) -> Files | None:
        return self.world.volumes.get(workspace_id)

    async def read(self, key: str) -> bytes | None:
        return self.world.objects[key].content if key in self.world.objects else None

    async def write(self, key: str, content: bytes) -> None:
        self.world.objects[key] = FakeObject(content)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        self.world.gates["jobs.archive"] = asyncio.Event()
        yield
        del self.world.gates["jobs.archive"]

    def count(self) -> int:
        return len(self.world.jobs)


class LocalHarness:
    def __init__(self, path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = LocalRoot.at(path / "root")
        self.root.prepare()
        self.jobs = LocalStorageJobs(self.root.path, store_of(bucket))
        nowhere = store_of(bucket, endpoint_url="http://127.0.0.1:1")
        self.cut_off = LocalStorageJobs(self.root.path, nowhere)
        self._path = path
        self._bucket = bucket
        self._monkeypatch = monkeypatch

    def write_home(self, workspace_id: WorkspaceId, files: Files) -> None:
        home = self.root.volume(workspace_id)
        home.mkdir(exist_ok=True)
        for name, content in files.items():
            (home / name).write_bytes(content)

    def read_home(self, workspace_id: WorkspaceId) -> Files | None:
        home = self.root.volume(workspace_id)
        return {file.name: file.read_bytes() for file in home.iterdir()} if home.exists() else None

    async def read(self, key: str) -> bytes | None:
        return await self._bucket.read(key) if key in await self._bucket.keys() else None

    async def write(self, key: str, content: bytes) -> None:
        await self._bucket.write(key, content)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        never = self._path / "never"
        os.mkfifo(never)
        with self._monkeypatch.context() as patch:
            patch.setenv("PATH", path_with_fake(self._path / "fakes", "tar", f"read -r line < {never}"))
            yield

    def count(self) -> int:
        return len(running_jobs())


class DockerHarness:
    def __init__(self, engine: Engine, bucket: Bucket) -> None:
        build(STALLED_JOB_IMAGE, "stalled-job.Dockerfile")
        self.engine = engine
        self._store = store_of(bucket)
        self.jobs = DockerStorageJobs(engine.client, engine.options, self._store)
        nowhere = store_of(bucket, endpoint_url="http://127.0.0.1:1")
        self.cut_off = DockerStorageJobs(engine.client, engine.options, nowhere)
        self._bucket = bucket

    def write_home(self, workspace_id: WorkspaceId, files: Files) -> None:
        labels = [
            f"--label={name}={value}" for name, value in self.engine.options.labels(workspace_id).items()
        ]
        docker("volume", "create", *labels, volume_name(workspace_id))
        for name, content in files.items():
            (self.engine.home(workspace_id) / name).write_bytes(content)

    def read_home(self, workspace_id: WorkspaceId) -> Files | None:
        if volume_name(workspace_id) not in self.engine.volumes():
            return None
        return {file.name: file.read_bytes() for file in self.engine.home(workspace_id).iterdir()}

    async def read(self, key: str) -> bytes | None:
        return await self._bucket.read(key) if key in await self._bucket.keys() else None

    async def write(self, key: str, content: bytes) -> None:
        await self._bucket.write(key, content)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        jobs = self.jobs
        options = self.engine.with_options(job_image=STALLED_JOB_IMAGE)
        self.jobs = DockerStorageJobs(self.engine.client, options, self._store)
        yield
        self.jobs = jobs

    def count(self) -> int:
        return len(self.engine.containers())


def running_jobs() -> list[psutil.Process]:
    """Return the jobs that this process has started."""
    children = psutil.Process().children()
    return [child for child in children if _is_job(child)]


def _is_job(process: psutil.Process) -> bool:
    # A child that has ended has no command, and stays listed until something waits for it.
    with suppress(psutil.NoSuchProcess):
        return "storage_job" in process.cmdline()
    return False
