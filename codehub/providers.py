"""Opens the providers of a backend: instances, volumes and storage jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codehub.adapters.docker.changes import DockerChanges
from codehub.adapters.docker.engine import engine_version, open_engine
from codehub.adapters.docker.home_store import DockerHomeStore
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.options import DockerOptions, Limits, Timeouts
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.adapters.local.ides import installed_ides
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalHomeStore
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.adapters.local.volumes import LocalVolumes
from codehub.db.session import Database
from codehub.ports import ArchiveStore, Changes, HomeStore, Instances, StorageJobs, Volumes
from codehub.services.guarded_providers import GuardedInstances, GuardedStorageJobs, GuardedVolumes, HomeGuard
from codehub.services.home_store import Homes
from codehub.settings import Settings, SettingsError


@dataclass(frozen=True)
class Providers:
    """The providers of one backend. Storage jobs need the archive store, so they are created on demand."""

    backend: str
    home_store: HomeStore
    instances: Instances
    volumes: Volumes
    jobs: Callable[[ArchiveStore], StorageJobs]
    changes: Changes | None
    # Returns the version of the server that runs the workspaces, if there is one.
    version: Callable[[], Awaitable[str]] | None = None

    @property
    def homes(self) -> Homes:
        return Homes(self.backend, self.home_store, self.volumes)

    def guarded(self, database: Database) -> "Providers":
        """Return providers that fail while the home store is not the one that the database records."""
        # Without BEGIN and COMMIT around the single statement.
        reading = Database(database.engine.execution_options(isolation_level="AUTOCOMMIT"))
        guard = HomeGuard(reading, self.backend, self.home_store)
        return replace(
            self,
            instances=GuardedInstances(self.instances, guard),
            volumes=GuardedVolumes(self.volumes, guard),
            jobs=lambda store: GuardedStorageJobs(self.jobs(store), guard),
        )


@dataclass(frozen=True)
class Editors:
    """The IDEs that a new workspace can use."""

    names: tuple[str, ...]
    default: str
    # Whether any other image can be used too.
    other_images: bool


@asynccontextmanager
async def open_providers(settings: Settings) -> AsyncIterator[Providers]:
    backend = settings.workspaces.instance_backend
    if backend == "local":
        yield _local(local_root_of(settings))
    elif backend == "local-docker":
        options = docker_options_of(settings)
        async with open_engine(settings.docker.url) as engine:
            yield Providers(
                backend=backend,
                home_store=DockerHomeStore(engine, options, settings.docker.url),
                instances=DockerInstances(engine, options),
                volumes=DockerVolumes(engine, options),
                jobs=lambda store: DockerStorageJobs(engine, options, store),
                changes=DockerChanges(engine),
                version=lambda: engine_version(engine),
            )
    else:
        raise SettingsError(
            [f"CODEHUB_WORKSPACES_INSTANCE_BACKEND is {backend}, which this version does not support"]
        )


def _local(root: Path) -> Providers:
    return Providers(
        backend="local",
        home_store=LocalHomeStore(root),
        instances=LocalInstances(root),
        volumes=LocalVolumes(root),
        jobs=lambda store: LocalStorageJobs(root, store),
        changes=None,
    )


def editors_of(settings: Settings) -> Editors:
    default = settings.workspaces.default_image_ref
    if settings.workspaces.instance_backend != "local":
        return Editors((default,), default, other_images=True)
    names = tuple(installed_ides())
    return Editors(names, default if default in names else next(iter(names), ""), other_images=False)


def docker_options_of(settings: Settings) -> DockerOptions:
    docker = settings.docker
    return DockerOptions(
        project=docker.project,
        network=docker.network,
        default_image=settings.workspaces.default_image_ref,
        job_image=docker.job_image,
        job_network=docker.job_network,
        limits=Limits(docker.memory_bytes, docker.cpus, docker.pids),
        job_limits=Limits(memory_bytes=docker.job_memory_bytes, pids=docker.pids),
        timeouts=Timeouts(start=docker.start_seconds, stop=docker.stop_seconds),
    )


def local_root_of(settings: Settings) -> Path:
    return settings.general.data_dir.absolute() / "local"
