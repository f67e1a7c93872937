"""Opens the providers of a backend: instances, volumes and storage jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codehub.adapters.docker.changes import DockerChanges
from codehub.adapters.docker.engine import (
    ELSEWHERE,
    PUBLISH_INSTEAD,
    UNIX_SCHEME,
    engine_version,
    open_engine,
)
from codehub.adapters.docker.home_store import DockerHomeStore
from codehub.adapters.docker.instances import DockerInstances
from codehub.adapters.docker.jobs.storage_jobs import DockerStorageJobs
from codehub.adapters.docker.options import DockerOptions, Limits, Timeouts
from codehub.adapters.docker.sockets import SocketDirectory
from codehub.adapters.docker.volumes import DockerVolumes
from codehub.adapters.kubernetes.changes import KubernetesChanges
from codehub.adapters.kubernetes.client import Kubernetes, NoConfiguration, open_kubernetes
from codehub.adapters.kubernetes.home_store import KubernetesHomeStore
from codehub.adapters.kubernetes.instances import KubernetesInstances
from codehub.adapters.kubernetes.jobs.storage_jobs import KubernetesStorageJobs
from codehub.adapters.kubernetes.options import (
    Claims,
    Egress,
    KubernetesOptions,
    Placement,
    Resources,
)
from codehub.adapters.kubernetes.options import Timeouts as KubernetesTimeouts
from codehub.adapters.kubernetes.removal import patience_of
from codehub.adapters.kubernetes.volumes import KubernetesVolumes
from codehub.adapters.local.cgroups import Limits as LocalLimits
from codehub.adapters.local.ides import installed_ides
from codehub.adapters.local.instances import LocalInstances
from codehub.adapters.local.root import LocalHomeStore
from codehub.adapters.local.storage_jobs import LocalStorageJobs
from codehub.adapters.local.volumes import LocalVolumes
from codehub.db.session import Database
from codehub.image_traits import traits_from_labels
from codehub.instance_egress import EgressAccess
from codehub.instance_ports import port_environment
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
    # Whether workspaces can use other images, if administrators allow them.
    other_images: bool


@asynccontextmanager
async def open_providers(settings: Settings) -> AsyncIterator[Providers]:
    backend = settings.workspaces.instance_backend
    if backend == "local":
        yield _local(settings)
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
        async with open_cluster(settings) as kubernetes:
            yield _kubernetes(settings, kubernetes)


@asynccontextmanager
async def open_cluster(settings: Settings) -> AsyncIterator[Kubernetes]:
    """Open the namespace of the workspaces. Raise SettingsError without credentials for the cluster."""
    cluster = settings.kubernetes
    async with AsyncExitStack() as stack:
        try:
            opened = open_kubernetes(cluster.kubeconfig, cluster.namespace)
            kubernetes = await stack.enter_async_context(opened)
        except NoConfiguration as error:
            variable = "CODEHUB_KUBERNETES_KUBECONFIG"
            raise SettingsError([f"{variable}: there is no way to reach the cluster ({error})"]) from error
        yield kubernetes


def _kubernetes(settings: Settings, kubernetes: Kubernetes) -> Providers:
    options = kubernetes_options_of(settings)
    return Providers(
        backend="k8s",
        home_store=KubernetesHomeStore(kubernetes, options),
        instances=KubernetesInstances(kubernetes, options),
        volumes=KubernetesVolumes(kubernetes, options),
        jobs=lambda store: KubernetesStorageJobs(kubernetes, options, store),
        changes=KubernetesChanges(kubernetes, options),
        version=kubernetes.read_version,
    )


def _local(settings: Settings) -> Providers:
    root, local = local_root_of(settings), settings.local
    return Providers(
        backend="local",
        home_store=LocalHomeStore(root),
        instances=LocalInstances(
            root,
            ides=installed_ides(settings.origins.ide_base_path),
            sandboxed=not local.unsafe_no_sandbox,
            uids=local_uids_of(settings),
            egress=egress_access_of(settings),
            limits=LocalLimits(local.memory_bytes, local.cpus, local.processes),
            environment=port_environment(settings.origins),
        ),
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
    if not docker.publish_ports and not docker.url.startswith(UNIX_SCHEME):
        raise SettingsError([f"CODEHUB_DOCKER_URL is {docker.url}: {ELSEWHERE}; {PUBLISH_INSTEAD}"])
    sockets = docker.sockets or settings.general.data_dir / "docker" / "sockets"
    return DockerOptions(
        sockets=SocketDirectory(sockets.absolute()),
        publish_ports=docker.publish_ports,
        egress=_docker_egress_of(settings),
        network=docker.network,
        project=docker.project,
        base_path=settings.origins.ide_base_path,
        environment=port_environment(settings.origins),
        default_image=settings.workspaces.default_image_ref,
        job_image=docker.job_image,
        job_network=docker.job_network,
        limits=Limits(docker.memory_bytes, docker.cpus, docker.pids),
        job_limits=Limits(memory_bytes=docker.job_memory_bytes, pids=docker.pids),
        timeouts=Timeouts(start=docker.start_seconds, stop=docker.stop_seconds),
    )


def kubernetes_options_of(settings: Settings) -> KubernetesOptions:
    cluster = settings.kubernetes
    return KubernetesOptions(
        project=cluster.project,
        base_path=settings.origins.ide_base_path,
        environment=port_environment(settings.origins),
        egress=_kubernetes_egress_of(settings),
        default_image=settings.workspaces.default_image_ref,
        image_traits={name: traits_from_labels(labels) for name, labels in cluster.image_labels.items()},
        resources=Resources(
            memory_bytes=cluster.memory_bytes,
            cpus=cluster.cpus,
            requested_memory_bytes=cluster.requested_memory_bytes,
            requested_cpus=cluster.requested_cpus,
            temporary_bytes=cluster.temporary_bytes,
        ),
        placement=Placement(
            node_selector=cluster.node_selector,
            tolerations=cluster.tolerations,
            runtime_class=cluster.runtime_class,
            priority_class=cluster.priority_class,
            image_pull_secrets=cluster.image_pull_secrets,
            image_pull_policy=cluster.image_pull_policy,
        ),
        claims=Claims(cluster.storage_class, cluster.volume_bytes, cluster.access_mode),
        timeouts=KubernetesTimeouts(
            launch=cluster.launch_seconds,
            start=cluster.start_seconds,
            stop=cluster.stop_seconds,
            removal=patience_of(cluster.force_seconds),
            force=cluster.force_seconds,
            pull_failures=cluster.pull_failure_seconds,
        ),
        job_image=cluster.job_image,
        job_resources=Resources(memory_bytes=cluster.job_memory_bytes),
    )


def _kubernetes_egress_of(settings: Settings) -> Egress | None:
    address, key = settings.kubernetes.egress_address, settings.egress.key
    if address is None:
        return None
    if key is None:
        raise SettingsError(["CODEHUB_EGRESS_KEY is not set; CODEHUB_KUBERNETES_EGRESS_ADDRESS needs it"])
    return Egress(address, key.get_secret_value())


def _docker_egress_of(settings: Settings) -> EgressAccess | None:
    if settings.docker.egress == "direct":
        return None
    if (egress := egress_access_of(settings)) is None:
        raise SettingsError(["CODEHUB_EGRESS_KEY is not set; CODEHUB_DOCKER_EGRESS=gateway needs it"])
    return egress


def unsafe_workspaces(settings: Settings) -> bool:
    """Return whether workspaces run without a sandbox, with all rights of CodeHub."""
    unsafe = settings.workspaces.instance_backend == "local" and settings.local.unsafe_no_sandbox
    if unsafe and settings.oidc.issuer:
        # Single sign-on creates accounts, but without a sandbox there may be only one.
        raise SettingsError(["CODEHUB_LOCAL_UNSAFE_NO_SANDBOX must be unset when CODEHUB_OIDC_ISSUER is set"])
    return unsafe


def local_uids_of(settings: Settings) -> range:
    return range(settings.local.first_uid, settings.local.first_uid + settings.local.uid_count)


def egress_access_of(settings: Settings) -> EgressAccess | None:
    """Return how instances reach the gateway, or None without a key."""
    key = settings.egress.key
    return EgressAccess(settings.egress_socket.absolute(), key.get_secret_value()) if key else None


def local_root_of(settings: Settings) -> Path:
    return settings.general.data_dir.absolute() / "local"
