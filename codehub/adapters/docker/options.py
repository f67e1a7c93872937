"""Options for all containers and volumes of an installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from codehub.adapters.docker.engine import RESPONSE_SECONDS
from codehub.adapters.docker.sockets import SocketDirectory
from codehub.domain.conditions import WorkspaceId
from codehub.domain.naming import WORKSPACE_LABEL, parse_workspace_id
from codehub.instance_egress import EgressAccess

# Installations can share an engine; each one sees only its own containers and volumes.
PROJECT_LABEL = "codehub.io/project"
# On the marker volume: the identity of the home store.
STORE_LABEL = "codehub.io/home-store"
# What a container was made from, as JSON. An exited container with another value is recreated.
CONFIGURATION_LABEL = "codehub.io/configuration"
# The requested image. `default` can mean another image at the next start.
IMAGE_REF_LABEL = "codehub.io/image-ref"
# The secret that the IDE expects with every request. Only users who control the engine can read it.
SECRET_LABEL = "codehub.io/secret"  # noqa: S105 (a name)
DEFAULT_NAMES = {"", "default"}
MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Resource limits of one container."""

    memory_bytes: int = 2048 * MIB
    cpus: float = 2.0
    pids: int = 1024


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds."""

    start: float = 60.0
    stop: int = 10
    health: float = 2.0
    # Added to the time that a stop takes.
    response: float = RESPONSE_SECONDS


@dataclass(frozen=True)
class DockerOptions:
    """The options of one installation."""

    # The directory for the sockets of IDEs and agents.
    sockets: SocketDirectory
    # Whether new containers publish ports instead, which all users of this machine can reach.
    publish_ports: bool = False
    # The egress gateway; None means that containers use the network.
    egress: EgressAccess | None = None
    network: str = "codehub-workspaces"
    project: str = "codehub"
    # The base path of IDEs for browsers; it can contain {id}.
    base_path: str = "/"
    # For all programs in workspaces.
    environment: Mapping[str, str] = field(default_factory=dict)
    default_image: str = "codehub-workspace:latest"
    job_image: str = "codehub-storage-job:latest"
    # None: chosen by the address of the archive store.
    job_network: str | None = None
    limits: Limits = Limits()
    job_limits: Limits = Limits(memory_bytes=512 * MIB, pids=128)
    timeouts: Timeouts = Timeouts()

    @property
    def marker_name(self) -> str:
        """The name of the volume whose label identifies this home store."""
        return f"codehub-store-{self.project}"

    def labels(self, workspace_id: WorkspaceId) -> dict[str, str]:
        return {WORKSPACE_LABEL: workspace_id, PROJECT_LABEL: self.project}

    def resolve_image(self, image_ref: str) -> str:
        """Return the image that a start uses for this image_ref."""
        return self.default_image if image_ref in DEFAULT_NAMES else image_ref

    def base_path_of(self, workspace_id: WorkspaceId) -> str:
        return self.base_path.replace("{id}", workspace_id)

    @property
    def filters(self) -> dict[str, list[str]]:
        """The filters that select this installation's workspaces in a listing."""
        return {"label": [WORKSPACE_LABEL, f"{PROJECT_LABEL}={self.project}"]}

    def workspace_of(self, labels: dict[str, str] | None) -> WorkspaceId | None:
        """Return the workspace that these labels name, or None if they are not of this installation."""
        found = labels or {}
        if found.get(PROJECT_LABEL) != self.project or WORKSPACE_LABEL not in found:
            return None
        try:
            return parse_workspace_id(found[WORKSPACE_LABEL])
        except ValueError:
            return None
